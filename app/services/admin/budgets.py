"""What people have given, what it cost them, what is left."""

import json
from dataclasses import asdict
from uuid import UUID

from dither.device.gaussian import micro_mu2

from app.core.clock import Clock
from app.core.epsilon import MICRO, amount_of, epsilon_of, epsilon_to_json
from app.core.errors import BudgetBelowReserved, InvalidRequest
from app.core.principal import Principal
from app.core.records import Account, PersonalCharge, Raise, Statement
from app.core.study import Currency, StudyDefinition
from app.services.paging import Page, decode_cursor, page_of
from app.services.replies import Idempotency, Replies
from app.store import budgets as store
from app.store import journal
from app.store.contributions import Allowance, starting
from app.store.database import SNAPSHOT, Connection, Database

MOST_BUDGET = 10**9 * MICRO
"""No lifetime budget is above this [micro-epsilon]."""


NOT_GRANTED = (
    "a new person has no lifetime budget for Gaussian noise, so cannot contribute: grant one with "
    "DITHER_LIFETIME_GAUSSIAN=10,0.00001 (an epsilon and a delta), or to all with "
    "dither budget raise --epsilon 10 --delta 0.00001 --reason ..."
)


class Budgets:
    """Lifetime budgets."""

    def __init__(self, database: Database, clock: Clock, allowance: Allowance, replies: Replies) -> None:
        self._database = database
        self._clock = clock
        self._allowance = allowance
        self._replies = replies

    async def statement(self, subject: bytes, studies: frozenset[str] | None = None) -> Statement:
        """A subject's account, with the lines of these studies only unless None.

        A person never seen has the budget of a new subject, so that the answer does not reveal who has
        contributed.
        """
        statement = await self._database.run_tx(
            "budget.statement",
            lambda c: store.read_statement(c, subject, self._allowance),
            isolation_level=SNAPSHOT,
        )
        if studies is None:
            return statement
        return Statement(
            account=statement.account,
            studies=tuple(line for line in statement.studies if line.study in studies),
            sessions=tuple(line for line in statement.sessions if line.study in studies),
        )

    async def warnings(self, definition: StudyDefinition) -> list[str]:
        """Why people who are new now cannot offer what a study lets them offer; empty where they can."""
        new = await self._database.run_tx("budget.new", lambda c: starting(c, self._allowance))
        room, delta = new.room(definition.noise), definition.delta
        if not room:
            return [NOT_GRANTED]
        if amount_of(definition.epsilon_max, delta) <= room:
            return []
        most = epsilon_to_json(epsilon_of(room, delta))
        return [f"epsilon.max is more than the lifetime budget of a new person, {most:.12g}"]

    async def is_known(self, subject: bytes) -> bool:
        """Whether a person was ever here; for admins of the whole installation only."""
        return await self._database.run_tx("budget.known", lambda c: store.is_known(c, subject))

    async def charges(
        self, subject: bytes, limit: int, cursor: str | None, studies: frozenset[str] | None = None
    ) -> Page[PersonalCharge]:
        """What releases cost one person, newest first, in these studies only unless None."""
        before = decode_cursor(cursor, UUID, None)
        items = await self._database.run_tx(
            "budget.charges",
            lambda c: store.page_charges(c, subject, before=before, limit=limit + 1, slugs=studies),
        )
        return page_of(items, limit, lambda row: str(row.release), behind=before)

    async def set_lifetime(
        self,
        subject: bytes,
        *,
        epsilon: int,
        gaussian: tuple[int, int] | None,
        reason: str,
        principal: Principal,
    ) -> Statement:
        """Set a lifetime budget.

        Args:
            subject: HMAC digest.
            epsilon: The new budget [micro-epsilon].
            gaussian: The new budget for studies with Gaussian noise, an epsilon at a delta [micro-epsilon,
                1e-12]; None keeps it.
            reason: For the audit trail.
            principal: Who does it.

        Raises:
            BudgetBelowReserved: more is reserved already.
        """
        detail: dict[str, object] = {"epsilon": epsilon, "reason": reason}
        mu2 = None
        if gaussian is not None:
            mu2 = micro_mu2(*gaussian)
            detail |= {"gaussian_epsilon": gaussian[0], "gaussian_delta": gaussian[1]}

        async def body(connection: Connection) -> None:
            fits = await store.set_budget(
                connection, subject, epsilon=epsilon, mu2=mu2, allowance=self._allowance
            )
            if not fits:
                raise BudgetBelowReserved("more than that is reserved already")
            await journal.record(
                connection, self._clock.now(), principal.token_id, "budget.set", subject.hex(), **detail
            )

        await self._database.run_tx("budget.set", body)
        return await self.statement(subject)

    async def raise_all(
        self,
        *,
        epsilon: int,
        at_most: int | None,
        reason: str,
        principal: Principal,
        delta: int = 0,
        idempotency: Idempotency | None = None,
    ) -> Raise:
        """Add to every lifetime budget, those of people who are new from now on included.

        Args:
            epsilon: What to add [micro-epsilon].
            at_most: Budgets are raised up to this [micro-epsilon]; None: whatever they are.
            delta: Above 0 the budgets for Gaussian noise are raised: by the mu^2 of this epsilon at this
                delta, up to that of `at_most` [1e-12].
            reason: For the audit trail.
            principal: Who does it.
            idempotency: The client's key: a retry with it raises nothing again.

        Raises:
            InvalidRequest: the epsilon is nothing in mu^2.
            IdempotencyKeyReused: the key belongs to another request.
        """
        currency = Currency.at(delta)
        amount = amount_of(epsilon, delta)
        if not amount:
            raise InvalidRequest.field("epsilon", "is less than a millionth of mu^2 at this delta")
        detail: dict[str, object] = {"epsilon": epsilon, "at_most": at_most, "reason": reason}
        if delta:
            detail["gaussian_delta"] = delta

        async def body(connection: Connection) -> Raise:
            if idempotency is not None and (known := await self._replies.claim(connection, idempotency)):
                return Raise(**json.loads(known.body))
            await store.hold_accounts(connection)
            new = await store.raise_all(
                connection,
                self._allowance,
                currency,
                amount=amount,
                at_most=amount_of(MOST_BUDGET if at_most is None else at_most, delta),
            )
            made = Raise(epsilon=epsilon, at_most=at_most, new_people=epsilon_of(new, delta), delta=delta)
            await journal.record(
                connection, self._clock.now(), principal.token_id, "budget.raise", "all", **detail
            )
            if idempotency is not None:
                content = json.dumps(asdict(made)).encode()
                await self._replies.store(connection, idempotency, study_id=None, status=200, body=content)
            return made

        return await self._database.run_tx("budget.raise", body)

    async def page(self, limit: int, cursor: str | None) -> Page[Account]:
        """All accounts, by subject digest."""
        after = decode_cursor(cursor, bytes.fromhex, b"")
        items = await self._database.run_tx(
            "budget.page",
            lambda c: store.page_accounts(c, self._allowance, after=after, limit=limit + 1),
            isolation_level=SNAPSHOT,
        )
        return page_of(items, limit, lambda account: account.subject.hex())
