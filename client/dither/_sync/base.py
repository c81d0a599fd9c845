# Made by client/unasync.py from dither/_async/base.py. Do not edit.
"""Connections, and the loop that carries out an operation."""

from collections.abc import Iterator
from types import TracebackType
from typing import Self, TypeVar

import httpx

from dither._base import DEFAULT_TIMEOUT, BaseClient, Directory, Proxy, Timeout, configured, to_reply
from dither._carriers import Carrier
from dither._errors import InvalidRequest
from dither._flow import Flow, Reply, Request, Retry
from dither._stores import Store
from dither.device.numbers import Numeric

T = TypeVar("T")


class Base(BaseClient):
    """A client that can carry out operations, and has none yet."""

    def __init__(
        self,
        base_url: str,
        token: str,
        *,
        directory: Directory | None = None,
        store: Store | None = None,
        max_epsilon: Numeric | None = None,
        timeout: Timeout = DEFAULT_TIMEOUT,
        proxy: Proxy = None,
        ca: Directory | None = None,
        retry: Retry | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        super().__init__(
            base_url, token, directory=directory, store=store, max_epsilon=max_epsilon, retry=retry
        )
        options = self._http_options(timeout, proxy, ca, transport)
        with configured():
            self._http = httpx.Client(**options)
        self._carrier = Carrier(self._send, self._ledger)

    def close(self) -> None:
        """Close the connections and the ledger.

        Examples:
            >>> client.close()
        """
        self._carrier.close()
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _run(self, flow: Flow[T]) -> T:
        """Carry out what an operation wants done, until it is done.

        Raises:
            InvalidRequest: the client is closed.
        """
        if self._http.is_closed:
            raise InvalidRequest("client", "is closed; make another one, or call it within its `with`")
        try:
            effect = next(flow)
            while True:
                try:
                    outcome = self._carrier.do(effect)
                except Exception as fault:
                    effect = flow.throw(fault)
                else:
                    effect = flow.send(outcome)
        except StopIteration as end:
            result: T = end.value
            return result

    def _pages(self, kind: type[T], path: str, page_size: int, **filters: str | None) -> Iterator[T]:
        """The items of a list, fetched page by page; the filters that are None do not narrow it down."""
        cursor: str | None = None
        while True:
            items, cursor = self._run(self._calls.page(kind, path, page_size, cursor, **filters))
            for item in items:
                yield item
            if cursor is None:
                return

    def _send(self, request: Request) -> Reply:
        return to_reply(self._http.request(**self._request_options(request)))
