"""Plans of several questions: each as it is alone, and what all of them take together."""

from typing import Any

import pytest

from app.core.study import Relation
from tests.api.service import Service
from tests.api.test_steps import STUDY, ask, charged, join


async def plans(service: Service, *questions: dict[str, Any], status: int = 200) -> dict[str, Any]:
    found = await service.call("POST", f"{STUDY}/plan", "analyse", json={"questions": list(questions)})
    assert found.status_code == status, found.text
    return dict(found.json())


@pytest.mark.parametrize("gaussian", [False, True])
async def test_each_is_as_it_is_alone_and_what_is_read_off_one_answer_is_paid_once(
    service: Service, gaussian: bool
) -> None:
    terms: dict[str, Any] = {"noise": "gaussian", "delta": 1e-6} if gaussian else {}
    await service.study(slug="minutes", lower=0, upper=120, **terms)
    await join(service, 200, prefix="p")
    questions: list[dict[str, Any]] = [
        {"statistic": "mean", "share": 0.1},
        {"statistic": "sd", "share": 0.1},
        {"statistic": "mean", "share": 0.2},
        {"statistic": "median", "share": 0.1},
        {"statistic": "quantile", "q": 0.5, "share": 0.1},
        {"statistic": "mean", "share": 0.1, "fresh": True},
    ]
    found = await plans(service, *questions)
    prices = []
    for question, one in zip(questions, found["questions"], strict=True):
        params = {name: str(value).lower() for name, value in question.items()}
        alone = (await service.call("GET", f"{STUDY}/plan", "analyse", params=params)).json()
        assert alone.items() <= one.items()
        chosen = next(row for row in alone["estimators"] if row["chosen"])
        assert one["epsilon_max"] == chosen["epsilon_max"] > 0
        prices.append(one["mu2_max"] if gaussian else one["epsilon_max"])
    assert prices[4] == prices[3]
    together = found["mu2_max"] if gaussian else found["epsilon_max"]
    assert together == pytest.approx(prices[2] + prices[3] + prices[5], abs=1e-5)
    assert (found["mu2_max"] is None) is not gaussian
    if not gaussian:
        before = sum((await charged(service)).values())
        for question in questions:
            if question["statistic"] == "mean":
                await ask(service, **question, allow_worse=True)
        await ask(service, statistic="median", share=0.1)
        spent = await charged(service, alone=False)
        assert before == 0
        assert max(spent.values()) <= 1e6 * together + 10


@pytest.mark.parametrize("relation", Relation)
async def test_all_together_take_no_more_than_they_charge_when_they_are_asked_in_turn(
    service: Service, relation: Relation
) -> None:
    """What one of them leaves for another, as a description does for a mean, is not what any of them pays."""
    terms = {"relation": relation.value, "epsilon": {"min": 1, "max": 1}}
    await service.study(slug="minutes", lower=0, upper=120, **terms)
    await join(service, 3_000, prefix="p")
    questions: list[dict[str, Any]] = [
        {"share": 0.1, **question}
        for question in (
            {"statistic": "describe"},
            {"statistic": "mean"},
            {"statistic": "sd"},
            {"statistic": "histogram", "bins": 4},
            {"statistic": "distribution", "edges": [30, 60, 90]},
            {"statistic": "median"},
            {"statistic": "quantile", "q": 0.5},
        )
    ]
    found = await plans(service, *questions)
    for question in questions:
        made = await service.call("POST", f"{STUDY}/releases", "analyse", json=question)
        assert made.status_code in (200, 201), made.text
    assert 0.3 < found["epsilon_max"] <= max((await charged(service)).values()) / 1e6


async def test_what_stands_is_not_paid_again_and_no_one_pays_more_than_they_offered(service: Service) -> None:
    await service.study(slug="minutes", lower=0, upper=120, epsilon={"max": 2})
    await join(service, 200, prefix="p")
    await ask(service, share=0.3)
    found = await plans(service, {"share": 0.3}, {"share": 0.2})
    assert found["epsilon_max"] == 0
    many = [{"statistic": "quantile", "q": place / 20, "share": 0.5} for place in range(1, 10)]
    assert (await plans(service, *many))["epsilon_max"] == 2


async def test_a_fault_is_named_with_its_place(service: Service) -> None:
    await service.study(slug="minutes", lower=0, upper=120)
    for question, field in (
        ({"statistic": "mode"}, "questions.1.statistic"),
        ({"share": 2}, "questions.1.share"),
        ({"by": "region"}, "questions.1.by"),
        ({"allow_worse": True}, "questions.1.allow_worse"),
        ({"fresh": "yes"}, "questions.1.fresh"),
        (7, "questions.1"),
    ):
        # The last one is no question at all.
        refused = await plans(service, {}, question, status=422)  # type: ignore[arg-type]
        assert [error["field"] for error in refused["errors"]] == [field]
    assert (await plans(service, status=422))["errors"][0]["field"] == "questions"
    await plans(service, *[{}] * 21, status=422)
    odd = await service.call("POST", f"{STUDY}/plan", "analyse", json={"questions": [{}], "share": 1})
    assert odd.json()["errors"][0]["field"] == "share"
    denied = await service.call("POST", f"{STUDY}/plan", "contribute", json={"questions": [{}]})
    assert denied.status_code == 403
