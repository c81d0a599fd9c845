"""Two add_remove_one studies that differ by one person look the same to an analyst, byte for byte.

Everything that an analyst can fetch is fetched from two services whose studies differ by one person. The
noisy answers are fixed to the same integers in both, so what is compared is everything else: prices,
predictions, plots, statuses, headers, errors, metrics, and when an answer comes at all.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from app import main
from tests.api.service import Service, open_service
from tests.dashboard.browser import Browser
from tests.support.databases import Server
from tests.support.transcripts import fix_answers, stripped

pytestmark = pytest.mark.system

STUDY, POLL, PLANE, PAIR = "secret-size", "secret-poll", "secret-plane", "secret-pair"
RELEASES = 12
"""At a share of 0.2 that is more than anybody can pay."""


class Clock:
    """Moves on only when it is told to."""

    def __init__(self) -> None:
        self.moment = datetime(2030, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self.moment


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(main, "SystemClock", lambda: clock)
    return clock


@pytest.fixture
def same_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise that happens to make the same noisy integers of everybody's data."""
    fix_answers(monkeypatch)


async def transcript(database_url: str, clock: Clock, people: Sequence[str]) -> list[Any]:
    """Everything that an analyst can fetch from a service in which these people take part."""
    clock.moment = datetime(2030, 1, 1, tzinfo=UTC)
    async with open_service(database_url) as service:
        definition = {"relation": "add_remove_one", "default_share": 0.2, "epsilon": {"min": 0.1, "max": 2}}
        await service.study(slug=STUDY, attributes={"region": ["north", "south", "west"]}, **definition)
        for place, subject in enumerate(people):
            # Bob, where he is there, is alone in the west.
            region = "west" if subject == "bob" else ("north", "south")[place % 2]
            terms = {"value": 40 + place % 20, "epsilon": 1 if place % 2 else 0.5}
            await service.contribute(STUDY, subject, **terms, attributes={"region": region})
        await service.study(slug=POLL, lower=None, upper=None, choices=["red", "green", "blue"], **definition)
        for place, subject in enumerate(people):
            vote = {
                "subject": subject,
                "value": ("red", "green")[place % 2],
                "epsilon": 0.5,
                "trust": "central",
            }
            sent = await service.call("POST", f"/v1/studies/{POLL}/contributions", "contribute", json=vote)
            assert sent.status_code == 201, sent.text
        await service.study(slug=PLANE, dimension=2, **definition)
        for place, subject in enumerate(people):
            await service.contribute(PLANE, subject, value=[place, 40], epsilon=0.5)
        both = {name: {"lower": 0, "upper": 50} for name in ("income", "age")}
        await service.study(
            slug=PAIR,
            lower=None,
            upper=None,
            measures=both,
            attributes={"region": ["north", "west"]},
            **definition,
        )
        for place, subject in enumerate(people):
            household = {"subject": subject, "values": {"income": place, "age": 40}, "trust": "central"}
            household["attributes"] = {"region": "west" if subject == "bob" else "north"}
            sent = await service.call(
                "POST", f"/v1/studies/{PAIR}/contributions", "contribute", json=household | {"epsilon": 0.5}
            )
            assert sent.status_code == 201, sent.text
        browser = Browser(service)
        await browser.log_in("analyse")
        seen: list[Any] = []
        releases: list[str] = []

        async def look() -> None:
            clock.moment += timedelta(minutes=1)
            seen.extend([stripped(one) for one in await _everything(service, browser, releases)])

        await look()
        for _ in range(RELEASES):
            clock.moment += timedelta(minutes=1)
            made = await service.call("POST", f"/v1/studies/{STUDY}/releases", "analyse", json={})
            assert made.status_code == 201, made.text
            seen.append(stripped(made))
            releases.append(made.json()["id"])
        await look()
        await browser.client.aclose()
        return seen


SHAPES_ASKED = (
    *("histogram?bins=4&share=0.01", "distribution?edges=20,60&share=0.01", "median?share=0.01"),
    *("quantile?q=0.9&share=0.01", "describe?share=0.01", "sd?share=0.01", "mean?range=found&share=0.01"),
    *("histogram?by=region&bins=3&share=0.01", "median?by=region&share=0.01", "count?share=0.01"),
    *("count?by=region&share=0.01", "describe?by=region&share=0.01"),
    *("mean?by=region&share=0.01", "sd?by=region&share=0.01", "mean?where=region:north&share=0.01"),
    *("mean?by=region&range=found&share=0.01", "mean?least_epsilon=0.8&share=0.01"),
    *("histogram?bins=3&least_epsilon=1.5&share=0.01", "count?least_epsilon=0.6&share=0.01"),
)
"""Statistics beside the mean; little of each, so that there is enough left for the mean."""


async def _everything(service: Service, browser: Browser, releases: Sequence[str]) -> list[httpx.Response]:
    api = [
        "/v1/studies",
        f"/v1/studies/{STUDY}",
        f"/v1/studies/{STUDY}/saturation",
        f"/v1/studies/{STUDY}/plan?expected_size=50",
        f"/v1/studies/{STUDY}/plan?expected_size=50&share=1&epsilon=0.3",
        f"/v1/studies/{STUDY}/plan",
        f"/v1/studies/{STUDY}/statistics/mean?expected_size=50",
        f"/v1/studies/{STUDY}/statistics/mean?estimator=adpm",
        f"/v1/studies/{STUDY}/statistics/mean?share=2",
        *(
            f"/v1/studies/{STUDY}/{path}"
            for name in SHAPES_ASKED
            for path in (f"statistics/{name}", f"plan?statistic={name.replace('?', '&')}")
        ),
        f"/v1/studies/{STUDY}/releases?limit=5",
        *(
            f"/v1/studies/{POLL}{path}"
            for path in (
                *("", "/saturation", "/plan?statistic=shares", "/plan?statistic=shares&expected_size=50"),
                *("/statistics/shares?share=0.1", "/statistics/shares", "/statistics/mean", "/releases"),
            )
        ),
        *(
            f"/v1/studies/{PLANE}/{path}"
            for name in ("mean?share=0.1", "sd?share=0.1", "sum", "count?share=0.1")
            for path in (f"statistics/{name}", f"plan?statistic={name.replace('?', '&')}", "releases")
        ),
        *(
            f"/v1/studies/{PAIR}/{path}{asked}"
            for path in ("statistics/covariance?", "plan?statistic=covariance&")
            for asked in (
                *("measures=income,age", "measures=income,age&share=0.1", "measures=income,income"),
                "measures=income,age&share=0.1&expected_size=50",
                "measures=income,age&share=0.1&by=region",
            )
        ),
        *(
            f"/v1/studies/{PAIR}/{path}measure=income"
            for path in (
                *(
                    "statistics/mean?share=0.1&",
                    "statistics/describe?share=0.1&",
                    "statistics/mean?",
                    "plan?",
                ),
                *("statistics/mean?share=0.2&", "statistics/mean?"),
            )
        ),
        f"/v1/studies/{PAIR}/releases",
        f"/v1/studies/{STUDY}/sessions",
        f"/v1/studies/{STUDY}/contributions",
        "/v1/studies/none",
        "/v1/subjects/p1/budget",
        "/v1/subjects/p1/charges",
        "/v1/admin/overview",
        "/v1/admin/budgets/histogram",
        f"/v1/admin/studies/{STUDY}/profile",
        "/v1/admin/ledger",
        *(f"/v1/releases/{release}" for release in releases),
        "/metrics",
        "/health/ready",
    ]
    pages = [
        "/dashboard",
        "/dashboard/studies",
        f"/dashboard/studies/{STUDY}?expected_size=50",
        f"/dashboard/studies/{STUDY}?expected_size=50&estimator=transformed&share=0.5",
        f"/dashboard/studies/{STUDY}?estimator=adpm",
        f"/dashboard/studies/{STUDY}",
        f"/dashboard/studies/{POLL}",
        f"/dashboard/studies/{PLANE}",
        f"/dashboard/studies/{PAIR}",
        f"/dashboard/studies/{PAIR}?statistic=covariance&measures=income,age&expected_size=50",
        f"/dashboard/studies/{POLL}?expected_size=50&share=0.5",
        "/dashboard/studies/none",
        "/dashboard/budgets",
        "/dashboard/ledger/export",
        *(f"/dashboard/releases/{release}" for release in releases),
    ]
    return [
        *[await service.call("GET", path, "analyse") for path in api],
        *[await browser.get(path) for path in pages],
    ]


async def test_an_analyst_cannot_tell_whether_somebody_is_there(
    postgres_server: Server, clock: Clock, same_answers: None
):
    people = [f"p{number}" for number in range(20)]
    with postgres_server.database() as one, postgres_server.database() as other:
        with_bob = await transcript(one, clock, [*people, "bob"])
        without = await transcript(other, clock, people)
    assert len(with_bob) == len(without) > 80
    for first, second in zip(with_bob, without, strict=True):
        assert first == second
    answered = [body for status, _, body in without if status == 201]
    assert len(answered) == RELEASES
    assert any(status == 200 and b"<svg" in body for status, _, body in without), "plots are compared too"
    combined = [body for _, _, body in without if b'"combines"' in body]
    assert any(body.count(b'"ID"') > RELEASES for body in combined), "combinations are compared too"


async def test_the_comparison_sees_a_count_where_it_is_public(
    postgres_server: Server, clock: Clock, same_answers: None, monkeypatch: pytest.MonkeyPatch
):
    """A control: with `replace_one`, where the number of people is public, the same comparison fails."""
    create = Service.study

    async def public(self: Service, **definition: Any) -> str:
        return await create(self, **{**definition, "relation": "replace_one"})

    monkeypatch.setattr(Service, "study", public)
    monkeypatch.setattr("tests.system.test_indistinguishable.RELEASES", 1)
    with postgres_server.database() as one, postgres_server.database() as other:
        first = await transcript(one, clock, ["p1", "p2", "p3", "bob"])
        second = await transcript(other, clock, ["p1", "p2", "p3"])
    assert first != second
