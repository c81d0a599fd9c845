"""How often a token, an address or a link may ask: a bucket for each, in each process."""

import math
import time
from collections.abc import Callable, Hashable, Mapping
from typing import ClassVar

from app.core.errors import ServiceError

MAX_BUCKETS = 10_000
"""Buckets that are kept before the full ones are thrown away: a full bucket is like a new one."""


class RateLimited(ServiceError):
    """The token, the address or the link has asked too often in the last minute.

    Attributes:
        retry_after: Seconds until it may ask again.
        headers: What every response says about the limit.
    """

    code: ClassVar[str] = "rate_limited"

    def __init__(
        self, detail: str, *, retry_after: int = 60, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.retry_after = retry_after
        self.headers = headers or {}


class RateLimit:
    """Limits each requester to `per_minute` requests a minute, at once or spread out.

    Args:
        per_minute: Requests a minute; 0 for no limit.
        clock: Seconds that only ever grow.
        who: A requester in words.
    """

    def __init__(
        self, per_minute: int, clock: Callable[[], float] = time.monotonic, *, who: str = "This token"
    ) -> None:
        self._who = who
        self._capacity = float(per_minute)
        self._per_second = per_minute / 60
        self._clock = clock
        self._buckets: dict[Hashable, tuple[float, float]] = {}

    def take(self, requester: Hashable) -> Mapping[str, str]:
        """Count one request.

        Returns:
            The headers `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers): how many
            requests are left, and in how many seconds there are as many as ever.

        Raises:
            RateLimited: it is one too many.
        """
        if not self._capacity:
            return {}
        now = self._clock()
        left = self._left(requester, now)
        if left < 1:
            wait = math.ceil((1 - left) / self._per_second)
            limit = int(self._capacity)
            raise RateLimited(
                f"{self._who} may make {limit} requests a minute.",
                retry_after=wait,
                headers=self._headers(left),
            )
        if len(self._buckets) >= MAX_BUCKETS:
            self._buckets = {
                other: bucket
                for other, bucket in self._buckets.items()
                if self._left(other, now) < self._capacity
            }
        self._buckets[requester] = (left - 1, now)
        return self._headers(left - 1)

    def _headers(self, left: float) -> Mapping[str, str]:
        full = math.ceil((self._capacity - left) / self._per_second)
        return {
            "RateLimit-Policy": f'"token";q={int(self._capacity)};w=60',
            "RateLimit": f'"token";r={int(left)};t={full}',
        }

    def _left(self, requester: Hashable, now: float) -> float:
        left, then = self._buckets.get(requester, (self._capacity, now))
        return min(self._capacity, left + (now - then) * self._per_second)
