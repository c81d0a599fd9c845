"""The HTTP protocol of the server: bounds what a connection may hold before its request is known.

Uvicorn bounds neither the size of a request's head nor the time it takes to arrive, and the parser copies
an unfinished header field again with every piece of it. All this happens before any token is seen.
"""

import asyncio
from typing import Any

import structlog
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from app.web.problems import head_too_large
from app.web.request_log import HEADER, new_request_id

_log = structlog.get_logger("dither.http")

MAX_HEAD_BYTES = 32 * 1024
"""Largest request line with its header fields, and largest trailer: twice the longest JWT that is taken."""

HEAD_SECONDS = 10.0
"""How long a head may take, from the opening of the connection or the first byte after the last answer."""

LINGER_SECONDS = 5.0
"""How long a closed connection may keep what its client does not read."""

MAX_PIPELINED = 16
"""Most requests of one connection that wait for the answer before theirs."""

PIECE_BYTES = 4 * 1024
"""The parser gets a document piece by piece, and the bounds are looked at between two of them."""


class PipelineTooLong(Exception):
    """Makes the parser give up a connection."""


class BoundedProtocol(HttpToolsProtocol):
    """One connection, bounded in what it may send and how long it may be silent.

    Args:
        head_seconds: How long a head may take.
        options: What uvicorn passes.
    """

    def __init__(self, *, head_seconds: float = HEAD_SECONDS, **options: Any) -> None:
        super().__init__(**options)
        self._head_seconds = head_seconds
        self._head_timer: asyncio.TimerHandle | None = None
        self._in_head = True
        # Bytes since the parser last finished a head, a part of a body, or a message.
        self._unfinished = 0

    # ------------------------------------------------------------------- the transport's callbacks

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a request, but not for ever."""
        super().connection_made(transport)
        self._limit_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._release_head()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what has arrived, and refuse what is too long."""
        for start in range(0, len(data), PIECE_BYTES):
            if self.transport.is_closing():
                return
            piece = data[start : start + PIECE_BYTES]
            self._unfinished += len(piece)
            super().data_received(piece)
            if self._unfinished > MAX_HEAD_BYTES:
                self._refuse()
        # Between two requests every byte ends uvicorn's own timeout for idle connections.
        if self._answered and self._head_timer is None and not self.transport.is_closing():
            self._limit_head()

    # ---------------------------------------------------------------------- the parser's callbacks

    def on_message_begin(self) -> None:
        """A head begins."""
        self._in_head = True
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header field; a trailer, which nothing reads, is dropped."""
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Start on the request.

        Raises:
            PipelineTooLong: the client sends more and more requests and waits for no answer.
        """
        self._in_head = False
        self._unfinished = 0
        self._release_head()
        if len(self.pipeline) >= MAX_PIPELINED:
            raise PipelineTooLong
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A part of the body."""
        self._unfinished = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is complete."""
        self._unfinished = 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP; where an answer is under way, a second one would be taken for it."""
        if self._answered:
            super().send_400_response(msg)
        self._end()

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection, also one whose client never read its answer."""
        self._end()

    # ------------------------------------------------------------------------------------- bounds

    @property
    def _answered(self) -> bool:
        """Whether no request waits for an answer."""
        return self.cycle is None or self.cycle.response_complete

    def _limit_head(self) -> None:
        self._head_timer = self.loop.call_later(self._head_seconds, self._end)

    def _release_head(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _refuse(self) -> None:
        if self._answered and not self.transport.is_closing():
            request_id = new_request_id()
            with structlog.contextvars.bound_contextvars(request_id=request_id):
                refusal = head_too_large()
                _log.info("request", method="any", route=None, status=refusal.status_code)
            named = [*refusal.raw_headers, (HEADER, request_id.encode())]
            fields = (b"%s: %s\r\n" % field for field in named)
            head = b"".join((STATUS_LINE[refusal.status_code], *fields, b"\r\n"))
            self.transport.write(head + bytes(refusal.body))
        self._end()

    def _end(self) -> None:
        """Close, and give up after a while what the client does not read."""
        self.transport.close()
        self.loop.call_later(LINGER_SECONDS, self.transport.abort)
