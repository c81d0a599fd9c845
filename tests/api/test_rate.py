"""The rate limit of a token."""

from collections.abc import Hashable
from uuid import uuid4

import pytest

from app.web import rate
from app.web.rate import RateLimit, RateLimited
from tests.api.service import Service, assert_problem, open_service


class Watch:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def taken(limit: RateLimit, token: Hashable, most: int = 1000) -> int:
    """How many requests are let through at this moment."""
    for count in range(most):
        try:
            limit.take(token)
        except RateLimited:
            return count
    return most


def test_a_token_may_ask_so_often_a_minute() -> None:
    watch = Watch()
    limit = RateLimit(60, watch)
    one, other = uuid4(), uuid4()
    assert taken(limit, one) == 60
    watch.now = 2.5
    assert taken(limit, one) == 2
    assert taken(limit, other) == 60
    watch.now = 1000
    assert taken(limit, one) == 60


def test_it_is_told_how_long_to_wait() -> None:
    limit = RateLimit(2, Watch())
    token = uuid4()
    assert taken(limit, token) == 2
    with pytest.raises(RateLimited) as caught:
        limit.take(token)
    assert caught.value.retry_after == 30


def test_zero_is_no_limit() -> None:
    assert taken(RateLimit(0, Watch()), uuid4()) == 1000


def test_full_buckets_are_forgotten_and_others_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate, "MAX_BUCKETS", 100)
    watch = Watch()
    limit = RateLimit(60, watch)
    for _ in range(100):
        limit.take(uuid4())
    watch.now = 60
    busy = uuid4()
    assert taken(limit, busy) == 60
    for _ in range(50):
        limit.take(uuid4())
    assert len(limit._buckets) <= 60
    assert taken(limit, busy) == 0


async def test_the_service_refuses_one_request_too_many(database_url: str) -> None:
    async with open_service(database_url, rate_limit_per_minute=3) as service:
        for left in (2, 1, 0):
            response = await service.call("GET", "/v1/studies", "analyse")
            assert response.status_code == 200
            assert response.headers["ratelimit-policy"] == '"token";q=3;w=60'
            assert response.headers["ratelimit"] == f'"token";r={left};t={60 - 20 * left}'
        response = await service.call("GET", "/v1/studies", "analyse")
        assert_problem(response, "rate_limited", 429)
        assert response.headers["retry-after"] == "20"
        assert response.headers["ratelimit"] == '"token";r=0;t=60'
        refused = await service.call("GET", "/v1/admin/tokens", "contribute")
        assert_problem(refused, "forbidden", 403)
        assert refused.headers["ratelimit"] == '"token";r=2;t=20'
        assert (await service.call("GET", "/v1/studies", "contribute")).status_code == 200
        for _ in range(5):
            assert (await service.call("GET", "/health/live", "analyse")).status_code == 200


async def test_without_a_limit_there_is_nothing_to_say(service: Service) -> None:
    response = await service.call("GET", "/v1/studies", "analyse")
    assert not [name for name in response.headers if name.startswith("ratelimit")]
