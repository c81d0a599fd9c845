"""Publications: answers that everyone may read, in a signed file that anyone can verify without the service.

A file says what analysts may see of its answers and of the study, and nothing else: of the hash chain only
keyed digests, of costs only what questions, sessions and studies fix. Its proofs show how many releases of
all studies there are.
"""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID, uuid4

from app.core.clock import Clock
from app.core.epsilon import delta_to_json, epsilon_to_json
from app.core.errors import Conflict, Gone, InvalidRequest, NotFound
from app.core.merkle import covering, grown, over, path
from app.core.principal import Principal
from app.core.publication import Publication, PublicationState, Spending
from app.core.study import Study, StudyDefinition, Trust
from app.estimators.confidence import LEVEL
from app.formats.publication import (
    FORMAT,
    PublicKey,
    SigningKey,
    commitment_of,
    leaf_of,
    log_name,
)
from app.formats.strict_json import decode_foreign
from app.services.admin.tokens import new_secret
from app.services.paging import Page, decode_cursor, page_of
from app.services.statistics.kept_ends import read_at
from app.services.statistics.releases import MOST_BYTES
from app.services.subjects import SubjectKey
from app.services.work import run
from app.store import journal, tree
from app.store import publications as store
from app.store.database import Connection, Database
from app.store.publications import Shown, ToPublish
from app.store.releases import read_kept_ends
from app.store.tree import Chained

LEAVES_AT_ONCE = 500

READ_AT_ONCE = 16 * 2**20
"""Bytes of answers of which leaves are made at once."""

_PROVES = frozenset({"format", "checkpoint", "signature"})
"""What of a file speaks of its signatures."""

NO_PUBLICATION = "There is no such publication."


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is to be published.

    Attributes:
        title: For people.
        releases: The answers, in the order in which they are shown.
        frames: Origins whose pages may show it in a frame.
        expires_at: From then on no one can read it; None for never.
    """

    title: str
    releases: Sequence[UUID]
    frames: Sequence[str]
    expires_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownKey:
    """A public key of this installation.

    Attributes:
        key: What checks its signatures.
        since: When something was first signed by it; None of one that signed nothing yet.
        current: Whether it is the one that signs now.
    """

    key: PublicKey
    since: datetime | None
    current: bool


class Publications:
    """The publications of one installation."""

    def __init__(self, database: Database, clock: Clock, subject_key: SubjectKey) -> None:
        self._database = database
        self._clock = clock
        self._signing = SigningKey(subject_key.signing_seed())

    async def publish(
        self, study: Study, principal: Principal, wish: Wish, slug: str | None = None
    ) -> Publication:
        """Publish answers of a study.

        Args:
            study: Of which they are answers.
            principal: Who publishes.
            wish: What.
            slug: Its address; None for a new one.

        Raises:
            InvalidRequest: it has not these answers, they are too large, or the expiry has passed.
            Conflict: the slug is taken.
        """
        now = self._clock.now()
        publication = Publication(
            slug=slug or f"{study.definition.slug[:50]}-{uuid4().hex[:10]}",
            study=study.definition.slug,
            title=wish.title,
            releases=wish.releases,
            frames=wish.frames,
            token_id=principal.token_id,
            created_at=now,
            changed_at=now,
            expires_at=wish.expires_at,
            withdrawn_at=None,
        )
        await self._prepare(study, publication)

        async def body(connection: Connection) -> None:
            file = await self._file(connection, study, publication)
            if not await store.insert_publication(connection, publication, study.id, file):
                raise Conflict("this address is taken by another publication")
            await self._note(connection, publication, principal, "publication.create", now)

        await self._database.run_tx("publication.create", body)
        return publication

    async def change(self, study: Study, slug: str, principal: Principal, wish: Wish) -> Publication:
        """Put something else at the address of a publication.

        Raises:
            NotFound: there is none.
            Conflict: it was withdrawn.
            InvalidRequest: as of `publish`.
        """
        now = self._clock.now()
        changed = partial(
            replace,
            title=wish.title,
            releases=wish.releases,
            frames=wish.frames,
            expires_at=wish.expires_at,
            token_id=principal.token_id,
            changed_at=now,
        )
        await self._prepare(study, changed(await self.get(study, slug)))

        async def body(connection: Connection) -> Publication:
            found = await _found(connection, study, slug, held=True)
            if found.withdrawn_at is not None:
                raise Conflict("this publication was withdrawn, for good: make another one")
            publication = changed(found)
            file = await self._file(connection, study, publication)
            await store.update_publication(connection, publication, file)
            await self._note(connection, publication, principal, "publication.change", now)
            return publication

        return await self._database.run_tx("publication.change", body)

    async def withdraw(self, study: Study, slug: str, principal: Principal) -> None:
        """Take a publication back. Its file is deleted here; its answers, and copies elsewhere, stay.

        Raises:
            NotFound: there is none.
        """
        now = self._clock.now()

        async def body(connection: Connection) -> None:
            found = await _found(connection, study, slug, held=True)
            if found.withdrawn_at is None:
                await store.withdraw_publication(connection, slug, principal.token_id, now)
                await self._note(connection, found, principal, "publication.withdraw", now)

        await self._database.run_tx("publication.withdraw", body)

    async def get(self, study: Study, slug: str) -> Publication:
        """One publication of a study.

        Raises:
            NotFound: there is none.
        """
        return await self._database.run_tx("publication.read", lambda c: _found(c, study, slug))

    async def page(self, study: Study, limit: int, cursor: str | None) -> Page[Publication]:
        """The publications of a study by their slugs."""
        after = decode_cursor(cursor, str, "")
        found = await self._database.run_tx(
            "publication.page",
            lambda c: store.page_publications(c, study.id, after=after, limit=limit + 1),
        )
        return page_of(found, limit, lambda one: one.slug, behind=after or None)

    def state(self, publication: Publication) -> PublicationState:
        """Whether everyone can read it now."""
        return publication.state_at(self._clock.now())

    async def shown(self, slug: str, level: float = LEVEL) -> tuple[Publication, bytes]:
        """What everyone may read at an address: the publication and its file.

        Args:
            slug: The address.
            level: Of intervals; at another one than 95 % nothing is signed, see `_read_at`.

        Raises:
            NotFound: nothing was published there.
            Gone: it has expired or was withdrawn.
            NotApplicable: the ends of its intervals at this level are not kept.
        """

        async def body(connection: Connection) -> tuple[Shown | None, list[bytes | None]]:
            found = await store.find_publication(connection, slug)
            if found is None or level == LEVEL:
                return found, []
            return found, [await read_kept_ends(connection, one) for one in found.publication.releases]

        found, kept = await self._database.run_tx("publication.find", body)
        if found is None:
            raise NotFound(NO_PUBLICATION)
        if found.file is None or self.state(found.publication) is not PublicationState.SHOWN:
            raise Gone("What was published here has expired or was withdrawn.")
        if level == LEVEL:
            return found.publication, found.file
        return found.publication, await run(_read_at, found.file, kept, level)

    async def keys(self) -> list[KnownKey]:
        """Every public key that files of this installation may be signed by, the oldest first."""
        signers = await self._database.run_tx("publication.keys", tree.read_signers)
        current = self._signing.public
        known = [
            KnownKey(key=key, since=one.since, current=key == current)
            for one in signers
            for key in (PublicKey(key=one.key),)
        ]
        if not any(one.current for one in known):
            known.append(KnownKey(key=current, since=None, current=True))
        return known

    async def _prepare(self, study: Study, publication: Publication) -> None:
        """Check what is to be published, and let the tree grow by every release that there is.

        Raises:
            InvalidRequest: see `publish`.
        """
        if publication.expires_at is not None and publication.expires_at <= publication.changed_at:
            raise InvalidRequest.field("expires_at", "must be in the future")
        sizes = await self._database.run_tx(
            "publication.sizes", lambda c: store.read_sizes(c, study.id, publication.releases)
        )
        if len(sizes) != len(publication.releases):
            raise InvalidRequest.field("releases", "must be releases of this study, each once")
        if len(sizes) > 1 and sum(sizes) > MOST_BYTES:
            reason = f"are over {MOST_BYTES:,} bytes together: publish the large ones one by one"
            raise InvalidRequest.field("releases", reason)
        while await self._database.run_tx("publication.grow", self._grow):
            pass

    async def _grow(self, connection: Connection) -> bool:
        """Let the tree grow by some releases; False where it has all of them."""
        key = await self._tree_key(connection)
        size = await tree.read_size(connection)
        page = await tree.read_chained(connection, after=size, limit=LEAVES_AT_ONCE, most=READ_AT_ONCE)
        if not page:
            return False
        whole = covering(0, size)
        nodes = await tree.read_nodes(connection, whole)
        leaves = await run(_leaves, page, key)
        await tree.add_nodes(connection, dict(grown(size, [nodes[one] for one in whole], leaves)))
        return True

    async def _tree_key(self, connection: Connection) -> bytes:
        """The key that hides links; a transaction that has it has the tree until it ends."""
        return await journal.claim_fact(connection, tree.KEY_FACT, new_secret().encode())

    async def _file(self, connection: Connection, study: Study, publication: Publication) -> bytes:
        """The file of a publication, signed over the tree as it is."""
        key = await self._tree_key(connection)
        size = await tree.read_size(connection)
        found = await store.read_answers(connection, study.id, publication.releases)
        by_id = {one.id: one for one in found}
        answers = [by_id[release] for release in publication.releases]
        paths = {one.number: path(one.number - 1, size) for one in answers}
        asked = {
            part for parts in (*paths.values(), [covering(0, size)]) for whole in parts for part in whole
        }
        nodes = await tree.read_nodes(connection, asked)
        proofs = {number: [over(whole, nodes) for whole in parts] for number, parts in paths.items()}
        spending = await store.read_spending(connection, study.id)
        await tree.claim_signer(connection, self._signing.public.key, publication.changed_at)
        checkpoint = self._signing.checkpoint(log_name(key), size, over(covering(0, size), nodes))
        return await run(
            partial(_sealed, self._signing, key, study, publication, answers, proofs, spending, checkpoint)
        )

    async def _note(
        self,
        connection: Connection,
        publication: Publication,
        principal: Principal,
        action: str,
        at: datetime,
    ) -> None:
        expires = publication.expires_at
        await journal.record(
            connection,
            at,
            principal.token_id,
            action,
            publication.slug,
            study=publication.study,
            title=publication.title,
            releases=[str(one) for one in publication.releases],
            expires_at=None if expires is None else expires.isoformat(),
        )


async def _found(connection: Connection, study: Study, slug: str, *, held: bool = False) -> Publication:
    found = await store.read_publication(connection, study.id, slug, held=held)
    if found is None:
        raise NotFound(NO_PUBLICATION)
    return found


def _answer(body: bytes) -> Mapping[str, Any]:
    """What a release says, read as who verifies a file reads it."""
    return decode_foreign(body, len(body))


def _read_at(file: bytes, kept: Sequence[bytes | None], level: float) -> bytes:
    """A file with its intervals at another level, which it says.

    The tree has answers as they were published, and so has the signature: there is neither here.
    """
    document = decode_foreign(file, len(file))
    answers = []
    for one, ends in zip(document["answers"], kept, strict=True):
        read = read_at(json.dumps(one["answer"]).encode(), ends, level)
        answers.append({"number": one["number"], "answer": json.loads(read)})
    shown = {name: value for name, value in document.items() if name not in _PROVES}
    return json.dumps({**shown, "level": level, "answers": answers}, ensure_ascii=False).encode()


def _leaves(page: Sequence[Chained], key: bytes) -> list[bytes]:
    return [leaf_of(one.number, _answer(one.body), commitment_of(key, one.link)) for one in page]


def _sealed(
    signing: SigningKey,
    key: bytes,
    study: Study,
    publication: Publication,
    answers: Sequence[ToPublish],
    proofs: Mapping[int, Sequence[bytes]],
    spending: Spending,
    checkpoint: str,
) -> bytes:
    bodies = [_answer(one.body) for one in answers]
    return signing.sealed(
        {
            "format": FORMAT,
            "slug": publication.slug,
            "title": publication.title,
            "study": {
                "slug": publication.study,
                "title": study.definition.title,
                "description": study.definition.description,
            },
            "published_at": publication.changed_at.isoformat(),
            "expires_at": None if publication.expires_at is None else publication.expires_at.isoformat(),
            "label": label(study.definition, spending, bodies),
            "answers": [
                {
                    "number": one.number,
                    "commitment": commitment_of(key, one.link).hex(),
                    "proof": [_text(hash_) for hash_ in proofs[one.number]],
                    "answer": body,
                }
                for one, body in zip(answers, bodies, strict=True)
            ],
            "checkpoint": checkpoint,
        }
    )


def label(study: StudyDefinition, spending: Spending, answers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The privacy label: what is promised to whom, what it has cost, and what is no secret.

    Privacy: of a study whose number of people is secret nothing here depends on them.

    Args:
        study: Of which these are answers.
        spending: What all its answers and sessions can have cost one person.
        answers: The answers that are shown.
    """
    counted = not study.hides_people
    unit = "answer" if spending.open_links else "link" if spending.anonymous_links else "person"
    open_facts = ["how many people take part"] if counted else []
    if counted and study.attributes.labels:
        open_facts.append(f"how many gave each {', each '.join(study.attributes.labels)}")
    if Trust.PUBLIC in study.trust:
        open_facts.append("the values of those who chose to give them without protection")
    mechanisms: dict[str, str] = {}
    if Trust.CENTRAL in study.trust:
        mechanisms["central"] = "discrete Gaussian noise" if study.delta else "discrete Laplace noise"
    if Trust.LOCAL in study.trust:
        mechanisms["local"] = "choice" if study.choices else study.local_mechanism.value
    people = [one["people"] for one in answers if counted and one.get("people") is not None]
    return {
        "unit": unit,
        "relation": study.relation.value,
        "epsilon": {
            "spent": epsilon_to_json(study.epsilon(min(spending.charged, study.amount(study.epsilon_max)))),
            "at_most": epsilon_to_json(study.epsilon_max),
            "sessions": epsilon_to_json(spending.sessions),
        },
        "delta": delta_to_json(study.delta),
        "trust": [tag.value for tag in Trust if tag in study.trust],
        "mechanisms": mechanisms,
        "public": open_facts,
        "people": max(people, default=None),
    }


def _text(hash_: bytes) -> str:
    return base64.b64encode(hash_).decode()
