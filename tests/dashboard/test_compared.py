"""Of two answers to one question the better one is named where the other is shown, for every statistic."""

from typing import Any

import pytest

from tests.api.service import Service
from tests.dashboard.browser import Browser, text_of

MEASURES: dict[str, Any] = {
    "income": {"lower": 0, "upper": 100},
    "age": {"lower": 0, "upper": 100},
    "party": {"choices": ["red", "green"]},
    "pet": {"choices": ["cat", "dog"]},
}
ABOUT: dict[str, dict[str, Any]] = {
    "mean": {"measure": "income"},
    "histogram": {"measure": "income", "parameters": {"bins": 4}},
    "quantile": {"measure": "income", "parameters": {"q": 0.25}},
    "median": {"measure": "income"},
    "describe": {"measure": "income"},
    "shares": {"measure": "party"},
    "covariance": {"parameters": {"measures": "income,age"}},
    "correlation": {"parameters": {"measures": "income,age"}},
    "table": {"parameters": {"measures": "party,pet"}},
}


@pytest.fixture
async def study(service: Service) -> str:
    slug = await service.study(measures=MEASURES, lower=None, upper=None)
    records = [
        {
            "subject": f"p{number}",
            "values": {
                "income": number % 100,
                "age": (7 * number) % 100,
                "party": "red" if number % 3 else "green",
                "pet": "cat" if number % 2 else "dog",
            },
            "epsilon": 10,
            "trust": "central",
        }
        for number in range(300)
    ]
    sent = await service.call("POST", f"/v1/studies/{slug}/contributions/batch", "contribute", json=records)
    assert sent.json()["created"] == 300, sent.text
    return slug


@pytest.mark.parametrize("statistic", ABOUT)
async def test_a_worse_answer_says_where_the_better_one_is_and_why(
    analyst: Browser, service: Service, study: str, statistic: str
) -> None:
    async def ask(share: float) -> str:
        wish = {"statistic": statistic, "share": share, "fresh": True, "allow_worse": True}
        made = await service.call(
            "POST", f"/v1/studies/{study}/releases", "analyse", json=wish | ABOUT[statistic]
        )
        assert made.status_code == 201, made.text
        return str(made.json()["id"])

    async def page(release: str) -> str:
        await analyst.get(f"/dashboard/releases/{release}")
        assert "Traceback" not in analyst.page
        return analyst.page

    better = await ask(0.4)
    assert "narrower interval" not in await page(better), "there is no other one"
    worse = await ask(0.002)
    shown = await page(worse)
    assert f'narrower interval: <a href="/dashboard/releases/{better}">' in shown
    assert "since this one uses 0.2 % of each epsilon, that one 40 %" in text_of(shown)
    assert "narrower interval" not in await page(better)
    await analyst.get(f"/dashboard/studies/{study}")
    heads = [row.partition("</th>")[0] for row in analyst.page.split('<tr><th scope="row">')]
    [mine], [other] = (
        [head for head in heads if head.startswith(f'<a href="/dashboard/releases/{one}">')]
        for one in (worse, better)
    )
    assert f'an <a href="/dashboard/releases/{better}">older answer</a> to this has ±' in mine
    assert "older answer" not in other


async def test_answers_to_other_questions_are_not_compared(
    analyst: Browser, service: Service, study: str
) -> None:
    wishes: list[dict[str, Any]] = [
        {"statistic": "mean", "measure": "income", "share": 0.4},
        {"statistic": "mean", "measure": "age", "share": 0.002, "allow_worse": True},
        {"statistic": "quantile", "measure": "income", "share": 0.1, "parameters": {"q": 0.25}},
        {"statistic": "quantile", "measure": "income", "share": 0.01, "parameters": {"q": 0.75}},
        {"statistic": "histogram", "measure": "income", "share": 0.1, "parameters": {"bins": 4}},
        {"statistic": "histogram", "measure": "income", "share": 0.01, "parameters": {"bins": 3}},
    ]
    for wish in wishes:
        made = await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json=wish)
        assert made.status_code == 201, made.text
        await analyst.get(f"/dashboard/releases/{made.json()['id']}")
        assert "narrower interval" not in analyst.page, wish
    await analyst.get(f"/dashboard/studies/{study}")
    assert "older answer" not in analyst.page
