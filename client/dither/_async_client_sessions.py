"""What `AsyncClient` does with sessions."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Literal, TypeVar

from dither._base import BaseClient
from dither._client_sessions import Mode, Protocol
from dither._flow import Flow
from dither._numbers import Numeric, Value
from dither._participation import session_document
from dither._session_models import Participation, Session

T = TypeVar("T")


class AsyncClientSessions(BaseClient):
    """The methods about sessions."""

    async def participate(
        self,
        session: str | Session,
        *,
        subject: str,
        value: Value,
        on_progress: Callable[[Participation], None] | None = None,
    ) -> Participation:
        """See `Client.participate`."""
        return await self._run(self._operations.sessions.participate(session, subject, value, on_progress))

    async def session(self, session: str) -> Session:
        """See `Client.session`."""
        return await self._run(self._operations.sessions.session(session))

    async def sessions(self, study: str, *, page_size: int = 100) -> AsyncIterator[Session]:
        """See `Client.sessions`."""
        cursor: str | None = None
        while True:
            page = await self._run(self._operations.sessions.page(study, page_size, cursor))
            for session in page.items:
                yield session
            cursor = page.next_cursor
            if cursor is None:
                return

    async def create_session(
        self,
        study: str,
        *,
        protocol: Protocol,
        epsilon: Numeric,
        participants: int | None = None,
        mode: Mode | None = None,
        threshold: Literal["paper", "hoeffding", "exact_binomial"] | None = None,
        rounds: int | Literal["lower_alpha", "unknown_alpha"] | None = None,
        alpha: Numeric | None = None,
        quantile: Numeric | None = None,
        answers_per_round: int | Literal["any"] | None = None,
        round_seconds: Numeric | None = None,
        deadline_seconds: Numeric | None = None,
        clusters: int | None = None,
        centres: Sequence[Sequence[Numeric]] | None = None,
    ) -> Session:
        """See `Client.create_session`."""
        options = {
            "participants": participants,
            "mode": mode,
            "threshold": threshold,
            "rounds": rounds,
            "alpha": alpha,
            "quantile": quantile,
            "answers_per_round": answers_per_round,
            "round_seconds": round_seconds,
            "deadline_seconds": deadline_seconds,
            "clusters": clusters,
            "centres": centres,
        }
        document = session_document(protocol, epsilon, options)
        return await self._run(self._operations.sessions.create(study, document))

    async def close_round(self, session: str, round: int) -> Session:
        """See `Client.close_round`."""
        return await self._run(self._operations.sessions.close_round(session, round))

    async def finish_session(self, session: str) -> Session:
        """See `Client.finish_session`."""
        return await self._run(self._operations.sessions.finish(session))

    async def _run(self, flow: Flow[T]) -> T:
        """Carry out what an operation wants done, until it is done."""
        raise TypeError(f"{type(self).__name__} cannot carry out anything")
