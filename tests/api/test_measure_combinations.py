"""Means of a measure are read off all that is published of that measure, and of no other, for nothing."""

import json
from typing import Any

import pytest

from tests.api.service import Service
from tests.api.test_combinations import ALIKE, paid, width
from tests.api.test_measure_reports import load, record, study_of
from tests.api.test_measures import household, release
from tests.api.test_shapes import get

GAUSSIAN = {"noise": "gaussian", "delta": 1e-6}
SECRET = {"relation": "add_remove_one", **ALIKE}
STUDIES = pytest.mark.parametrize(
    "terms",
    [{}, GAUSSIAN, SECRET, {**SECRET, **GAUSSIAN}],
    ids=["laplace", "gaussian", "secret-laplace", "secret-gaussian"],
)
AGE, INCOME = 34.5, 7500
"""Ages are .2 of their range from its lower end, incomes .8: sums of one are far from any of the other."""


async def move_in(service: Service, study: str, people: int = 2_000) -> None:
    records = [
        {
            "subject": f"p{number}",
            "values": {"income": 7000 + number % 1001, "age": 20 + number % 30},
            "epsilon": 1,
            "trust": "central",
        }
        for number in range(people)
    ]
    await load(service, study, records)


async def free(service: Service, study: str, measure: str) -> bool:
    return bool((await get(service, study, "plan", measure=measure))["free"])


@STUDIES
async def test_a_mean_of_a_measure_is_read_with_the_description_of_that_measure_for_nothing(
    service: Service, terms: dict[str, Any]
) -> None:
    study = await household(service, trust=["central"], default_share=0.1, **terms)
    await move_in(service, study)
    described = {
        name: await release(service, study, statistic="describe", measure=name, share=0.2)
        for name in ("age", "income")
    }
    # Its description alone makes no mean free, and that of another measure does not either.
    assert not await free(service, study, "age")
    answer = await get(service, study, "statistics/mean", measure="age")
    assert "combines" not in answer
    assert (await free(service, study, "age"), await free(service, study, "income")) == (True, False)
    before = await paid(service)
    both = await get(service, study, "statistics/mean", measure="age")
    assert (await paid(service), both["epsilon_max"], both["measure"]) == (before, 0, "age")
    assert both["combines"] == [described["age"]["id"], answer["id"]]
    most = "mu2_max" if "noise" in terms else "epsilon_max"
    assert both[f"{most}_total"] == pytest.approx(described["age"][most] + answer[most])
    assert both["estimate"] == pytest.approx(AGE, abs=6)
    ends = described["age"]["mean"]["interval"]
    # Some of what secret people's sums say of their number is noise, and precisions add up.
    slack = 1.02 if "relation" in terms else 1
    assert width(both) < slack * min(width(answer), ends["upper"] - ends["lower"])
    # What another measure pays for is no news of this one.
    other = await get(service, study, "statistics/mean", measure="income")
    assert "combines" not in other
    assert not await free(service, study, "age")
    assert (await get(service, study, "statistics/mean", measure="age"))["id"] == both["id"]
    before = await paid(service)
    incomes = await get(service, study, "statistics/mean", measure="income")
    assert (await paid(service), incomes["combines"]) == (before, [described["income"]["id"], other["id"]])
    assert incomes["estimate"] == pytest.approx(INCOME, abs=700)
    if "relation" not in terms:
        total = await get(service, study, "statistics/sum", measure="age")
        assert (total["id"], await paid(service)) == (both["id"], before)
    assert (await service.api.services.ledger.audit()).clean


@pytest.mark.parametrize("terms", [{}, GAUSSIAN], ids=["laplace", "gaussian"])
async def test_answers_of_several_estimators_and_fresh_ones_are_combined_by_measure(
    service: Service, terms: dict[str, Any]
) -> None:
    study = await household(service, trust=["central"], default_share=0.1, **terms)
    await move_in(service, study)
    made: dict[str, list[str]] = {"age": [], "income": []}
    for question in ({"fresh": True}, {"estimator": "uniform"}, {"share": 0.15}):
        for name, answers in made.items():
            asked: dict[str, Any] = {"share": 0.1, **question, "measure": name, "allow_worse": True}
            answers.append((await release(service, study, **asked))["id"])
    before = await paid(service)
    for name, mean, within in (("age", AGE, 4), ("income", INCOME, 450)):
        found = await get(service, study, "statistics/mean", measure=name)
        assert (found["combines"], found["epsilon_max"]) == (made[name], 0)
        assert found["estimate"] == pytest.approx(mean, abs=within)
    assert await paid(service) == before
    assert (await service.api.services.ledger.audit()).clean


async def test_who_gives_another_number_has_left_for_the_sums_of_every_measure(service: Service) -> None:
    study = await household(service, trust=["central"], default_share=0.2)
    await move_in(service, study, 400)
    first = [await release(service, study, measure="age", share=0.2, fresh=True) for _ in range(2)]
    found = await get(service, study, "statistics/mean", measure="age")
    assert (found["people"], found["people_left_out"]) == (400, 0)
    path = f"/v1/studies/{study}/contributions"
    for number in range(4):
        # The same age, and another income.
        moved = {"values": {"income": 100, "age": 20 + number % 30}, "epsilon": 1, "trust": "central"}
        done = await service.call("PUT", f"{path}/p{number}", "contribute", json=moved)
        assert done.status_code == 200, done.text
    income = await release(service, study, measure="income", share=0.1)
    assert (await get(service, study, "statistics/mean", measure="age"))["id"] == found["id"]
    last = await release(service, study, measure="age", share=0.4, estimator="uniform")
    later = await get(service, study, "statistics/mean", measure="age")
    assert later["combines"] == [*(one["id"] for one in first), last["id"]]
    assert income["id"] not in later["combines"]
    # Those who gave another number are in the last answer, beside those who are in all.
    assert (later["people"], later["people_left_out"]) == (400, 0)
    assert later["estimate"] == pytest.approx(AGE, abs=6)
    assert (await service.api.services.ledger.audit()).clean


async def test_those_who_reported_other_measures_are_left_out_of_a_combination_with_their_reason(
    service: Service,
) -> None:
    study = await study_of(service, default_share=0.2)
    local = [record(f"l{number}", 5) for number in range(300)]
    values = {"values": {"income": 9000, "age": 58, "size": 2.25}, "epsilon": 5, "trust": "central"}
    await load(service, study, [*local, *({"subject": f"c{number}", **values} for number in range(100))])
    asked: dict[str, Any] = {"measure": "age", "estimator": "optimal", "share": 0.2}
    made = [(await release(service, study, **asked, fresh=fresh))["id"] for fresh in (True, False)]
    before = await paid(service)
    found = await get(service, study, "statistics/mean", measure="age")
    assert (found["combines"], await paid(service)) == (made, before)
    reporters = sum("age" in one["reports"] for one in local)
    assert (found["people"], found["people_left_out"]) == (400, 300 - reporters)
    assert found["left_out_because"] == "measure_not_reported"
    # Laplace noise in a part of it: a false alarm of 4e-8 at most.
    assert abs(found["estimate"] - 58) < 12 * found["standard_error"]
    stored = await service.call("GET", f"/v1/releases/{found['id']}", "analyse")
    assert json.loads(stored.content)["combines"] == made
    assert (await service.api.services.ledger.audit()).clean
