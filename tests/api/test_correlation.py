"""Correlation and regression over HTTP: one release for both and both ways, refused by field."""

from typing import Any

import numpy as np
import pytest

from tests.api.service import Service, assert_problem
from tests.api.test_covariance import ONE, regions
from tests.api.test_measures import MEASURES, household, move_in
from tests.api.test_shapes import get, spent

GAUSSIAN = {"noise": "gaussian", "delta": 1e-6}
PAIR = {"measures": "income,age"}
LINE = {"of": "income", "on": "age"}


@pytest.mark.parametrize("terms", [{}, GAUSSIAN, ONE, ONE | GAUSSIAN], ids=str)
async def test_one_release_has_the_correlation_and_both_lines(service: Service, terms: dict[str, Any]):
    study = await household(service, default_share=0.5, **terms)
    await move_in(service, study)
    more = {"expected_size": 300} if terms and "relation" in terms else {}
    (plan,) = (await get(service, study, "plan", statistic="regression", **LINE, **more))["estimators"]
    (both,) = (await get(service, study, "plan", statistic="covariance", **PAIR, **more))["estimators"]
    assert 0 <= round(1e6 * (both["epsilon_max"] - plan["epsilon_max"])) <= 1
    found = await get(service, study, "statistics/regression", **LINE, **more)
    assert found["epsilon_max"] == plan["epsilon_max"]
    assert found["predicted_error"] == plan["predicted_error"]
    paid = await spent(service, study, "p7")
    assert paid == pytest.approx(found["epsilon_max"], abs=1e-5)
    together = await get(service, study, "statistics/correlation", **PAIR, **more)
    turned = await get(service, study, "statistics/regression", of="age", on="income", **more)
    assert together["id"] == turned["id"] == found["id"]
    assert await spent(service, study, "p7") == paid, "the second question is free"
    assert together["measures"] == ["income", "age"]
    assert (found["of"], found["on"], turned["of"], turned["on"]) == ("income", "age", "age", "income")
    assert found["means"] == turned["means"][::-1] == together["means"]
    first, second = together["lines"]
    for line, own in ((first, found), (second, turned)):
        assert {name: own[name] for name in line} == line
        assert {"estimate", "interval", "lines", "measures"}.isdisjoint(own)
    assert found["r_squared"] == pytest.approx(together["estimate"] ** 2)
    for number in (found["slope"], found["intercept"], together):
        for name in ("interval", "population_interval"):
            assert number[name]["lower"] <= number["estimate"] <= number[name]["upper"]
    assert abs(found["means"][0] - 1495) < 1000
    ends = [one["at"] for one in (found["band"][0], found["band"][-1])]
    assert ends == [18, 98]
    assert len(found["band"]) == 26
    assert found["means"][1] in [one["at"] for one in found["band"]]
    assert (await service.api.services.ledger.audit()).clean


@pytest.mark.parametrize("terms", [{}, ONE])
async def test_the_sums_of_the_database_are_those_of_the_people(
    service: Service, terms: dict[str, Any], monkeypatch
):
    monkeypatch.setattr("app.services.shapes.covariances.draw", lambda noise, queries: [0] * queries)
    study = await household(service, default_share=0.5, **terms)
    await move_in(service, study)
    incomes, ages = np.arange(300) * 10.0, 20.0 + np.arange(300) % 30
    found = await get(service, study, "statistics/regression", **LINE)
    slope, intercept = np.polyfit(ages, incomes, 1)
    assert found["slope"]["estimate"] == pytest.approx(float(slope), rel=1e-4)
    assert found["intercept"]["estimate"] == pytest.approx(float(intercept), rel=1e-4)
    assert found["r_squared"] == pytest.approx(float(np.corrcoef(incomes, ages)[0, 1]) ** 2, rel=1e-3)


async def test_every_label_has_its_own_for_the_price_of_one(service: Service):
    study = await regions(service)
    (alone,) = (await get(service, study, "plan", statistic="correlation", **PAIR))["estimators"]
    (plan,) = (await get(service, study, "plan", statistic="correlation", by="region", **PAIR))["estimators"]
    assert plan["epsilon_max"] == alone["epsilon_max"]
    found = await get(service, study, "statistics/regression", by="region", **LINE)
    assert found["epsilon_max"] == alone["epsilon_max"]
    north, south, east = found["groups"]
    assert north["where"] == {"region": "north"}
    for name in ("slope", "intercept", "band", "r_squared", "r_squared_interval", "means"):
        assert east[name] is None
        assert None not in (north[name], south[name])
    together = await get(service, study, "statistics/correlation", by="region", **PAIR)
    assert together["id"] == found["id"]
    assert together["groups"][0]["lines"][0]["slope"] == north["slope"]
    assert (await service.api.services.ledger.audit()).clean


@pytest.mark.parametrize("terms", [{}, ONE | GAUSSIAN], ids=str)
async def test_where_a_line_is_at_a_number_is_free_and_no_part_of_the_question(
    service: Service, terms: dict[str, Any]
):
    study = await regions(service, **terms)
    asked = LINE | {"by": "region"}
    whole = await get(service, study, "statistics/regression", **asked)
    paid = await spent(service, study, "p7")
    for at in (18, "30.5", 58, 98):
        found = await get(service, study, "statistics/regression", **asked, at=at)
        assert {**found, "groups": 0} == {**whole, "groups": 0, "prediction": found["prediction"]}
        north, south, east = found["groups"]
        # Where it is secret who is there, a label without people has an answer, too.
        assert (east["prediction"] is None) is ("relation" not in terms)
        for answer in (found, north, south):
            one = answer["prediction"]
            assert one["at"] == float(at)
            assert one["interval"]["lower"] <= one["estimate"] <= one["interval"]["upper"]
            before = [point for point in answer["band"] if point["at"] <= one["at"]][-1]
            if before["at"] == one["at"]:
                ends = [before[name] for name in ("estimate", "lower", "upper")]
                assert [one["estimate"], one["interval"]["lower"], one["interval"]["upper"]] == pytest.approx(
                    ends
                )
    assert (plan := await get(service, study, "plan", statistic="regression", **asked, at=98))["stands"][
        "interval"
    ] == found["prediction"]["interval"]
    assert plan["in_words"].startswith("now ")
    assert await spent(service, study, "p7") == paid
    widths = []
    for level in ("0.8", "0.95", "0.99"):
        one = (await get(service, study, "statistics/regression", **asked, at=40, level=level))["prediction"]
        assert one["interval"]["level"] == float(level)
        widths.append(one["interval"]["upper"] - one["interval"]["lower"])
    assert widths == sorted(widths)
    response = await service.call(
        "GET",
        f"/v1/studies/{study}/statistics/regression",
        "analyse",
        params=asked | {"at": 40},
        headers={"Accept": "text/csv"},
    )
    assert [row.split(",")[2] for row in response.text.splitlines()].count("prediction; at 40.0") == 1


async def test_spreads_that_answers_told_decide_what_is_predicted(service: Service):
    study = await household(service)
    await move_in(service, study)
    asked = {"statistic": "correlation", "share": 0.5, **PAIR}

    async def predicted() -> float:
        (plan,) = (await get(service, study, "plan", **asked))["estimators"]
        return float(plan["predicted_error"])

    guessed, told = await predicted(), []
    for measure, width in (("income", 9000), ("age", 80)):
        found = await get(service, study, "statistics/sd", measure=measure, share=0.2)
        told.append(found["estimate"] / width)
    # The guess is a standard deviation of a fifth of either range.
    known = guessed / 25 / (told[0] * told[1])
    assert known > 1.2 * guessed, "incomes fill a third of their range"
    assert await predicted() == pytest.approx(known, rel=0.01)
    planned = await predicted()
    found = await get(service, study, "statistics/correlation", share=0.5, **PAIR)
    assert found["predicted_error"] == planned


@pytest.mark.refuses
async def test_no_guess_refuses_a_correlation_of_values_that_fill_their_range(service: Service):
    """Yes or no, and ratings: what is asked of 300 people at epsilon 1 says something, and of 60 nothing."""
    measures = {"yes": {"lower": 0, "upper": 1}, "rating": {"lower": 1, "upper": 5}}
    asked = {"measures": "yes,rating", "share": 1}
    for people, status in ((60, 409), (300, 200)):
        study = await service.study(lower=None, upper=None, measures=measures)
        records = [
            {
                "subject": f"p{place}",
                "values": {"yes": place % 2, "rating": 1 + (place // 3 + 2 * (place % 2)) % 5},
                "epsilon": 1,
                "trust": "central",
            }
            for place in range(people)
        ]
        path = f"/v1/studies/{study}"
        await service.call("POST", f"{path}/contributions/batch", "contribute", json=records)
        plan = await get(service, study, "plan", statistic="correlation", **asked)
        answer = await service.call("GET", f"{path}/statistics/correlation", "analyse", params=asked)
        assert answer.status_code == status, answer.text
        assert (plan["refusal"] is None) == (status == 200)
    (planned,) = plan["estimators"]
    interval = answer.json()["interval"]
    assert interval["upper"] - interval["lower"] < 2
    assert planned["predicted_error"] < 0.15


@pytest.mark.refuses
async def test_a_correlation_of_values_in_a_corner_of_the_range_is_refused_before_it_is_paid(
    service: Service,
):
    study = await household(
        service, measures={"income": {"lower": 0, "upper": 12_000}, "age": MEASURES["age"]}
    )
    await move_in(service, study)
    asked = {"share": 0.2, **PAIR}
    assert (await get(service, study, "plan", statistic="correlation", **asked))["refusal"] is None
    for measure in ("income", "age"):
        await get(service, study, "statistics/sd", measure=measure, share=0.2)
    paid = await spent(service, study, "p7")
    response = await service.call(
        "GET", f"/v1/studies/{study}/statistics/correlation", "analyse", params=asked
    )
    problem = assert_problem(response, "says_nothing", 409)
    assert problem["people"] > 300
    assert await spent(service, study, "p7") == paid


async def test_what_has_no_line_is_refused_by_field(service: Service):
    study = await household(service)
    for wrong, field in (
        ({"of": "income"}, "on"),
        ({"on": "age"}, "of"),
        ({"of": "income", "on": "income"}, "on"),
        ({"of": "income", "on": "size"}, "on"),
        ({"of": "party", "on": "income"}, "of"),
        (LINE | PAIR, "measures"),
        (LINE | {"measure": "income"}, "measure"),
        (LINE | {"bins": 4}, "bins"),
        (LINE | {"at": "17.9"}, "at"),
        (LINE | {"at": "98.01"}, "at"),
        (LINE | {"at": "old"}, "at"),
        (LINE | {"at": "1e99"}, "at"),
        (LINE | {"between": "region:a,b"}, "between"),
    ):
        path = f"/v1/studies/{study}/statistics/regression"
        answer = await service.call("GET", path, "analyse", params=wrong)
        assert_problem(answer, "invalid_request", 422, field)
    answer = await service.call("GET", f"/v1/studies/{study}/statistics/correlation", "analyse", params=LINE)
    assert_problem(answer, "invalid_request", 422)
    answer = await service.call(
        "GET", f"/v1/studies/{study}/statistics/correlation", "analyse", params=PAIR | {"at": "40"}
    )
    assert_problem(answer, "invalid_request", 422, "at")
    one = await service.study()
    for statistic, asked in (("correlation", PAIR), ("regression", LINE)):
        answer = await service.call(
            "GET", f"/v1/studies/{one}/statistics/{statistic}", "analyse", params=asked
        )
        assert_problem(answer, "invalid_request", 422)
