"""Variance and sd where the number of people is secret: who is there must not show in a plan or a refusal."""

import pytest

from tests.api.service import Service


@pytest.mark.parametrize("statistic", ["mean", "sd", "variance"])
@pytest.mark.parametrize("people", [0, 1])
async def test_a_study_without_people_answers_like_one_with_a_person(
    service: Service, statistic: str, people: int
) -> None:
    study = await service.study(relation="add_remove_one")
    if people:
        await service.contribute(study, f"only-{statistic}", epsilon=1)
    query = "expected_size=50&share=1"
    plan = await service.call("GET", f"/v1/studies/{study}/plan?statistic={statistic}&{query}", "analyse")
    answer = await service.call("GET", f"/v1/studies/{study}/statistics/{statistic}?{query}", "analyse")
    assert answer.status_code == 200, answer.text
    assert answer.json()["statistic"] == statistic
    [row, *_] = plan.json()["estimators"] or [{}]
    assert row.get("statistics") == (["mean"] if statistic == "mean" else ["mean", "variance", "sd"])
    assert answer.json()["epsilon_max"] <= row["epsilon_max"]
