"""The client for asyncio."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from types import TracebackType
from typing import TypeVar

import httpx

from dither._async_client_sessions import AsyncClientSessions
from dither._base import (
    DEFAULT_CHUNK,
    DEFAULT_TIMEOUT,
    Directory,
    Proxy,
    Timeout,
    to_reply,
)
from dither._flow import Effect, Flow, Reply, Request, Retry, Send, Sleep
from dither._models import (
    BatchProgress,
    BatchResult,
    Budget,
    Contribution,
    DeviceLedger,
    Plan,
    Record,
    Release,
    Study,
    Trust,
)
from dither._numbers import Numeric, Value
from dither._together import Shared, Works
from dither._wire import Parameter

T = TypeVar("T")


class AsyncClient(AsyncClientSessions):
    """The same as `Client`, for asyncio: every method is a coroutine, `releases` an asynchronous iterator.

    What blocks (the ledger's fsync, drawing noise for a large batch) runs in a thread. Tasks that write to
    the ledger at the same time share an fsync, and those that wait for the same round share a request, so
    one client can stand for thousands of people.

    Args and Raises: see `Client`.

    Examples:
        >>> async def device() -> None:
        ...     async with AsyncClient(
        ...         "https://dither.example", "a-token", directory=path, transport=service
        ...     ) as client:
        ...         await client.contribute("commute", subject="ada", value=34, epsilon=1, trust="local")
        ...         print((await client.ledger()).totals)
        >>> asyncio.run(device())
        {'ada': Decimal('1')}
    """

    def __init__(
        self,
        base_url: str,
        token: str,
        *,
        directory: Directory | None = None,
        max_epsilon: Numeric | None = None,
        timeout: Timeout = DEFAULT_TIMEOUT,
        proxy: Proxy = None,
        retry: Retry | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        super().__init__(base_url, token, directory=directory, max_epsilon=max_epsilon, retry=retry)
        self._http = httpx.AsyncClient(transport=transport, **self._http_options(timeout, proxy))
        self._works = Works(self._ledger)
        self._shared = Shared(self._send)

    async def study(self, study: str) -> Study:
        """See `Client.study`."""
        return await self._run(self._operations.study(study))

    async def contribute(
        self,
        study: str,
        *,
        subject: str,
        value: Value,
        epsilon: Numeric | None = None,
        trust: Trust,
        check_spent: bool = True,
    ) -> Contribution:
        """See `Client.contribute`."""
        flow = self._operations.contribute("contribute", study, subject, value, epsilon, trust, check_spent)
        return await self._run(flow)

    async def replace(
        self,
        study: str,
        *,
        subject: str,
        value: Value,
        epsilon: Numeric | None = None,
        trust: Trust,
        check_spent: bool = True,
    ) -> Contribution:
        """See `Client.replace`."""
        flow = self._operations.contribute("replace", study, subject, value, epsilon, trust, check_spent)
        return await self._run(flow)

    async def withdraw(self, study: str, *, subject: str) -> None:
        """See `Client.withdraw`."""
        await self._run(self._operations.withdraw(study, subject))

    async def contribute_many(
        self,
        study: str,
        records: Iterable[Record],
        *,
        epsilon: Numeric | None = None,
        trust: Trust | None = None,
        chunk: int = DEFAULT_CHUNK,
        check_spent: bool = True,
        on_progress: Callable[[BatchProgress], None] | None = None,
    ) -> BatchResult:
        """See `Client.contribute_many`."""
        flow = self._operations.contribute_many(
            study, records, epsilon, trust, chunk, check_spent, on_progress
        )
        return await self._run(flow)

    async def budget(self, subject: str) -> Budget:
        """See `Client.budget`."""
        return await self._run(self._operations.budget(subject))

    async def ledger(self, subject: str | None = None) -> DeviceLedger:
        """See `Client.ledger`."""
        return await self._run(self._operations.ledger(subject))

    async def plan(self, study: str, *, statistic: str = "mean", **parameters: Parameter) -> Plan:
        """See `Client.plan`."""
        return await self._run(self._operations.plan(study, statistic, parameters))

    async def mean(self, study: str, **parameters: Parameter) -> Release:
        """See `Client.mean`."""
        return await self._run(self._operations.mean(study, parameters))

    async def release(
        self,
        study: str,
        *,
        statistic: str = "mean",
        idempotency_key: str | None = None,
        **parameters: Parameter,
    ) -> Release:
        """See `Client.release`."""
        return await self._run(self._operations.release(study, statistic, idempotency_key, parameters))

    async def releases(self, study: str, *, page_size: int = 100) -> AsyncIterator[Release]:
        """See `Client.releases`."""
        cursor: str | None = None
        while True:
            page = await self._run(self._operations.releases_page(study, page_size, cursor))
            for release in page.items:
                yield release
            cursor = page.next_cursor
            if cursor is None:
                return

    async def aclose(self) -> None:
        """See `Client.close`."""
        await self._shared.aclose()
        await self._http.aclose()
        await asyncio.to_thread(self._close_ledger)

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def _run(self, flow: Flow[T]) -> T:
        """Carry out what an operation wants done, until it is done."""
        try:
            effect = next(flow)
            while True:
                try:
                    outcome = await self._carry_out(effect)
                except Exception as fault:
                    effect = flow.throw(fault)
                else:
                    effect = flow.send(outcome)
        except StopIteration as end:
            result: T = end.value
            return result

    async def _carry_out(self, effect: Effect) -> object:
        if isinstance(effect, Send):
            return await (self._shared if effect.request.shared else self._send)(effect.request)
        if isinstance(effect, Sleep):
            await asyncio.sleep(effect.seconds)
            return None
        return await self._works.do(effect.task)

    async def _send(self, request: Request) -> Reply:
        return to_reply(await self._http.request(**self._request_options(request)))
