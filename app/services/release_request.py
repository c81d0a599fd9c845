"""A request for an answer: what stands for it, and what a new answer is compared with."""

from dataclasses import dataclass
from uuid import UUID

from app.core.release import StoredRelease
from app.core.study import Relation, Study
from app.services import gain
from app.services.questions import Ask, Resolved, resolve
from app.services.replies import Idempotency
from app.store import releases as store
from app.store.database import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaUse:
    """What a new release takes of its asker's quota [ppm]."""

    token_id: UUID
    share: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRequest:
    """One request for an answer.

    Attributes:
        study, resolved: What was asked of which study.
        first: Whether an answer that stands will do.
        least: Whether it must have taken at least the question's share and cap.
        idempotency, use, allow_worse: As in `Releases.release`.
    """

    study: Study
    resolved: Resolved
    first: bool
    least: bool
    idempotency: Idempotency | None
    use: QuotaUse | None
    allow_worse: bool

    @classmethod
    def of(
        cls,
        study: Study,
        ask: Ask,
        *,
        asker: UUID | None,
        first: bool = False,
        idempotency: Idempotency | None = None,
        allow_worse: bool = False,
    ) -> "ReleaseRequest":
        """Check a question against its study.

        Raises:
            InvalidRequest: it is not admissible.
        """
        resolved = resolve(study.definition, ask)
        share = resolved.share_taken(study.definition)
        return cls(
            study=study,
            resolved=resolved,
            first=first,
            least=ask.share is not None or ask.epsilon is not None,
            idempotency=idempotency,
            use=None if asker is None else QuotaUse(token_id=asker, share=share),
            allow_worse=allow_worse,
        )

    @property
    def _compares(self) -> bool:
        return self.study.definition.relation is Relation.REPLACE_ONE

    async def standing(self, connection: Connection, *, any_share: bool = False) -> StoredRelease | None:
        """The answer that stands for the question, if there is one."""
        if self._compares:
            best = await store.standing(
                connection,
                self.study.id,
                self.resolved.by_parts(),
                width=float(self.study.definition.grid.width),
                at_least=self.least and not any_share,
                as_good=gain.AS_GOOD,
            )
            if best is not None:
                return best
        return (await store.latest(connection, self.study.id, self.resolved.digest()))[0]

    async def best(self, connection: Connection, people: int) -> float | None:
        """The smallest width that a former answer has for these people; None: nothing to compare with."""
        if not self._compares:
            return None
        family, width = self.resolved.by_parts().family, float(self.study.definition.grid.width)
        return await store.best_width(connection, self.study.id, family, people=people, width=width)

    def check(self, people: int, left_out: int, width: float, best: float | None) -> None:
        """Refuse an answer that is no gain, where answers are compared; see `gain.check`."""
        if self._compares and not self.allow_worse:
            gain.check(people=people, left_out=left_out, width=width, best=best, needed=self.first)
