"""The content of a batch, decompressed piece by piece within a limit."""

import zlib
from collections.abc import Callable
from typing import ClassVar

from app.core.errors import DocumentTooLarge, MalformedDocument

GZIP = 31
"""zlib's window bits for a gzip header and trailer."""

PIECE = 1 << 18
"""Most bytes that one step decompresses into."""

SLICE = 1 << 12
"""Bytes that are decompressed at a time: what follows a member is copied, so it must be short."""

MAX_EXPANSION = 100
"""Records of people compress to a fifth to a thirtieth; nothing but an attack to a hundredth."""

FREE_EXPANSION = 1 << 20
"""Bytes that any document may decompress to."""


class Identity:
    """Content that is sent as it is."""

    piece: ClassVar[int] = PIECE
    """Bytes that are worked on at a time, between which the work may end or others have their turn."""

    def __init__(self, sink: Callable[[bytes], None], limit: int) -> None:
        self._sink = sink
        self._limit = limit
        self._total = 0

    def feed(self, data: bytes) -> None:
        """Pass the next bytes on.

        Raises:
            DocumentTooLarge: more than the limit.
        """
        self._total += len(data)
        if self._total > self._limit:
            raise DocumentTooLarge.over(self._limit)
        self._sink(data)

    def finish(self) -> None:
        """Nothing is held back."""


class Gzip(Identity):
    """Content in gzip, possibly of several members (RFC 1952, section 2.2).

    The work is linear in the bytes received: they are decompressed to `MAX_EXPANSION` times as many at most,
    few are held at a time, and what comes out is passed on in whole pieces, however small the members are.
    """

    piece = PIECE >> 4

    def __init__(self, sink: Callable[[bytes], None], limit: int) -> None:
        super().__init__(sink, limit)
        self._member = zlib.decompressobj(GZIP)
        self._started = False
        self._received = 0
        self._decompressed = 0
        self._waiting = bytearray()

    def feed(self, data: bytes) -> None:
        """Decompress the next bytes and pass them on, never more than two pieces at a time.

        Raises:
            MalformedDocument: it is not gzip.
            DocumentTooLarge: it decompresses to more than the limit, or than is believable.
        """
        for start in range(0, len(data), SLICE):
            self._decompress(data[start : start + SLICE])

    def _decompress(self, data: bytes) -> None:
        self._received += len(data)
        while data:
            if self._member.eof:
                self._member = zlib.decompressobj(GZIP)
            try:
                piece = self._member.decompress(data, PIECE)
            except zlib.error:
                raise MalformedDocument("The document is not gzip.") from None
            self._started = True
            self._decompressed += len(piece)
            if self._decompressed > FREE_EXPANSION + MAX_EXPANSION * self._received:
                raise DocumentTooLarge(f"The document decompresses to {MAX_EXPANSION} times its length.")
            self._waiting += piece
            if len(self._waiting) >= PIECE:
                self._pass_on()
            data = self._member.unused_data if self._member.eof else self._member.unconsumed_tail

    def _pass_on(self) -> None:
        piece, self._waiting = bytes(self._waiting), bytearray()
        super().feed(piece)

    def finish(self) -> None:
        """Check that the last member is complete.

        Raises:
            MalformedDocument: it breaks off.
            DocumentTooLarge: as for `feed`.
        """
        if not (self._started and self._member.eof):
            raise MalformedDocument("The gzip document breaks off.")
        self._pass_on()


CODINGS: dict[str, type[Identity]] = {"identity": Identity, "gzip": Gzip, "x-gzip": Gzip}
"""Content codings by name."""
