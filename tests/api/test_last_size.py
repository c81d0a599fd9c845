"""Plans where the number of people is secret count on the last noisy count that is published."""

from typing import Any

import pytest

from tests.api.service import Service
from tests.api.test_asked_accuracy import NOISES, SECRET, survey
from tests.api.test_shapes import get


@pytest.mark.parametrize("noise", NOISES)
async def test_every_plan_of_a_secret_study_counts_on_the_last_noisy_count(
    service: Service, noise: dict[str, Any]
):
    study = await survey(service, **noise, **SECRET)
    asked: list[dict[str, Any]] = [
        {"statistic": "histogram", "edges": "30"},
        {"statistic": "median"},
        {"statistic": "describe"},
        {"statistic": "mean", "range": "found"},
        {"statistic": "mean"},
    ]

    # Those who offer 5 weigh as much as those who offer 10: noise would choose.
    asked = [{**question, "least_epsilon": 5} for question in asked]

    async def errors(**more: Any) -> list[float]:
        plans = [await get(service, study, "plan", **question, **more) for question in asked]
        return [plan["estimators"][0]["predicted_error"] for plan in plans]

    unknown = await errors()
    # The first answer counts the people, whatever it is, and the next plans know it.
    made = await get(service, study, "statistics/histogram", edges="30", least_epsilon=5)
    known = await errors()
    assert all(error < least / 5 for error, least in zip(known, unknown, strict=True))
    assert known == pytest.approx(await errors(expected_size=made["noisy_count"]))
    north = [
        await get(service, study, "plan", **question, where="region:north")
        for question in asked
        if question["statistic"] != "describe"
    ]
    assert all(
        plan["estimators"][0]["predicted_error"] > error
        for plan, error in zip(north, (known[0], known[1], known[3], known[4]), strict=True)
    ), "half of them, as far as one knows"
    answer = await get(service, study, "statistics/median", least_epsilon=5)
    assert answer["predicted_error"] == pytest.approx(known[1]), "as planned"
