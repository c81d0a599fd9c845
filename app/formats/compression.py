"""The content of a batch, decompressed piece by piece within a limit."""

import zlib
from collections.abc import Callable

from app.core.errors import DocumentTooLarge, MalformedDocument

GZIP = 31
"""zlib's window bits for a gzip header and trailer."""

PIECE = 1 << 18
"""Most bytes that one step decompresses into."""


class Identity:
    """Content that is sent as it is."""

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
    """Content in gzip, possibly of several members (RFC 1952, section 2.2)."""

    def __init__(self, sink: Callable[[bytes], None], limit: int) -> None:
        super().__init__(sink, limit)
        self._member = zlib.decompressobj(GZIP)
        self._started = False

    def feed(self, data: bytes) -> None:
        """Decompress the next bytes and pass them on, never more than a piece at a time.

        Raises:
            MalformedDocument: it is not gzip.
            DocumentTooLarge: it decompresses to more than the limit.
        """
        while data:
            if self._member.eof:
                self._member = zlib.decompressobj(GZIP)
            try:
                piece = self._member.decompress(data, PIECE)
            except zlib.error:
                raise MalformedDocument("The document is not gzip.") from None
            self._started = True
            if piece:
                super().feed(piece)
            data = self._member.unused_data if self._member.eof else self._member.unconsumed_tail

    def finish(self) -> None:
        """Check that the last member is complete.

        Raises:
            MalformedDocument: it breaks off.
        """
        if not (self._started and self._member.eof):
            raise MalformedDocument("The gzip document breaks off.")


CODINGS: dict[str, type[Identity]] = {"identity": Identity, "gzip": Gzip, "x-gzip": Gzip}
"""Content codings by name."""
