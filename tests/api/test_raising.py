"""Raising all lifetime budgets: for people who are there, and for those who come."""

from typing import Any

import pytest

from tests.api.service import Service, assert_problem

PATH = "/v1/admin/budgets/raise"


async def total(service: Service, subject: str) -> float:
    return float(
        (await service.call("GET", f"/v1/subjects/{subject}/budget", "admin")).json()["epsilon"]["total"]
    )


async def test_every_budget_is_raised_and_new_people_start_with_the_raised_one(service: Service) -> None:
    study, other = await service.study(epsilon={"max": 20}), await service.study(epsilon={"max": 20})
    await service.contribute(study, "full", epsilon=10)
    await service.call(
        "PUT", "/v1/admin/subjects/rich/budget", "admin", json={"epsilon": 50, "reason": "asked"}
    )
    record = {"subject": "full", "value": 1, "epsilon": 0.75, "trust": "central"}
    path = f"/v1/studies/{other}/contributions"
    assert_problem(await service.call("POST", path, "contribute", json=record), "budget_exhausted", 409)

    year = {"epsilon": "0.75", "reason": "another year"}
    raised = await service.call("POST", PATH, "admin", json=year)
    assert raised.json() == {"epsilon": 0.75, "at_most": None, "new_people": 10.75, "delta": 0}
    assert [await total(service, who) for who in ("full", "rich", "new")] == [10.75, 50.75, 10.75]
    assert (await service.call("POST", path, "contribute", json=record)).status_code == 201
    for subject, epsilon, status in (("new", 10.7, 201), ("greedy", 10.8, 409)):
        given = {**record, "subject": subject, "epsilon": epsilon}
        answer = await service.call("POST", path, "contribute", json=given)
        assert answer.status_code == status, answer.text

    bounded = await service.call("POST", PATH, "admin", json={"epsilon": 5, "at_most": 12, "reason": "more"})
    assert bounded.json() == {"epsilon": 5, "at_most": 12, "new_people": 12, "delta": 0}
    assert [await total(service, who) for who in ("full", "rich", "later")] == [12, 50.75, 12]
    again = await service.call("POST", PATH, "admin", json={"epsilon": 5, "at_most": 11, "reason": "less"})
    assert again.json()["new_people"] == 12, "nothing is ever lowered"

    trail = (await service.call("GET", "/v1/admin/audit", "admin", params={"action": "budget.raise"})).json()
    assert [entry["detail"] for entry in trail["items"]][1:] == [
        {"epsilon": 5, "at_most": 12, "reason": "more"},
        {"epsilon": 0.75, "at_most": None, "reason": "another year"},
    ]
    assert (await service.api.services.ledger.audit()).clean


async def gaussian(service: Service, subject: str) -> dict[str, float]:
    budget = (await service.call("GET", f"/v1/subjects/{subject}/budget", "admin")).json()
    return {name: budget["gaussian"][name]["total"] for name in ("mu2", "epsilon")}


async def test_budgets_for_gaussian_noise_are_raised_by_mu2(service: Service) -> None:
    """Its mu^2 is added, exactly: (1, 1e-6) is .056028, and twice that is more than 1 and less than 2."""
    delta = 0.000001
    study = await service.study(noise="gaussian", delta=delta, epsilon={"max": 20}, trust=["central"])
    await service.contribute(study, "there", epsilon=1)
    before, pure = await gaussian(service, "there"), await total(service, "there")
    assert await gaussian(service, "new") == before
    year = {"epsilon": 1, "delta": delta, "reason": "a year"}
    raised = await service.call("POST", PATH, "admin", json=year)
    assert raised.status_code == 200, raised.text
    for subject in ("there", "new"):
        after = await gaussian(service, subject)
        assert after["mu2"] == pytest.approx(before["mu2"] + 0.056028, abs=1e-9)
        assert before["epsilon"] < after["epsilon"] < before["epsilon"] + 1
        assert await total(service, subject) == pure
    known = {"epsilon": 50, "reason": "asked"}
    await service.call("PUT", "/v1/admin/subjects/rich/budget", "admin", json=known)
    assert await gaussian(service, "rich") == await gaussian(service, "new")
    # What new people start with is what they can reserve; offers are rounded down to three digits.
    most = raised.json()["new_people"]
    assert raised.json() == {"epsilon": 1, "at_most": None, "delta": delta, "new_people": most}
    path = f"/v1/studies/{study}/contributions"
    for subject, epsilon, status in (("greedy", most + 0.2, 409), ("late", most - 0.2, 201)):
        record = {"subject": subject, "value": 1, "epsilon": round(epsilon, 1), "trust": "central"}
        made = await service.call("POST", path, "contribute", json=record)
        assert made.status_code == status, made.text
    # Up to a bound; never down; and the other budgets can be raised beside it.
    bounded = {**year, "epsilon": 5, "at_most": round(most + 0.1, 3)}
    assert (await service.call("POST", PATH, "admin", json=bounded)).json()["new_people"] == pytest.approx(
        most + 0.1, abs=2e-3
    )
    lower = await service.call("POST", PATH, "admin", json={**bounded, "at_most": 0.5})
    assert lower.json()["new_people"] == pytest.approx(most + 0.1, abs=2e-3)
    both = await service.call("POST", PATH, "admin", json={"epsilon": 2, "reason": "a year"})
    assert both.json()["new_people"] == pure + 2
    trail = (await service.call("GET", "/v1/admin/audit", "admin", params={"action": "budget.raise"})).json()
    first = trail["items"][-1]["detail"]
    assert first == {"epsilon": 1, "at_most": None, "gaussian_delta": delta, "reason": "a year"}
    assert (await service.api.services.ledger.audit()).clean
    nothing = await service.call("POST", PATH, "admin", json={**year, "epsilon": 0.000001})
    assert_problem(nothing, "invalid_request", 422, "epsilon")


async def test_a_retry_with_the_same_key_raises_nothing_again(service: Service) -> None:
    await service.contribute(await service.study(), "ada")
    options: dict[str, Any] = {
        "json": {"epsilon": 1, "reason": "a year"},
        "headers": {"Idempotency-Key": "2030"},
    }
    answers = [await service.call("POST", PATH, "admin", **options) for _ in range(3)]
    assert {one.content for one in answers} == {answers[0].content}
    assert await total(service, "ada") == 11
    other = {**options, "json": {"epsilon": 2, "reason": "a year"}}
    assert_problem(await service.call("POST", PATH, "admin", **other), "idempotency_key_reused", 409)
    assert await total(service, "ada") == 11


async def test_people_who_answer_a_session_first_start_with_the_raised_budget(service: Service) -> None:
    study = await service.study(epsilon={"max": 20})
    await service.call("POST", PATH, "admin", json={"epsilon": 2, "reason": "a year"})
    session = {"protocol": "minimum", "epsilon": 12, "participants": 20, "rounds": 2, "mode": "budget_split"}
    made = (await service.call("POST", f"/v1/studies/{study}/sessions", "admin", json=session)).json()
    answer = {"subject": "ada", "round": 1, "answer": 1}
    taken = await service.call("POST", f"/v1/sessions/{made['id']}/answers", "contribute", json=answer)
    assert taken.status_code == 201
    assert await total(service, "ada") == 12


@pytest.mark.parametrize(
    ("document", "fields"),
    [
        ({}, ["epsilon", "reason"]),
        ({"epsilon": 0, "reason": "x"}, ["epsilon"]),
        ({"epsilon": -1, "reason": "x"}, ["epsilon"]),
        ({"epsilon": True, "reason": "x"}, ["epsilon"]),
        ({"epsilon": 1, "reason": ""}, ["reason"]),
        ({"epsilon": 1, "reason": "x", "at_most": -1}, ["at_most"]),
        ({"epsilon": 1, "reason": "x", "at_most": 10**10}, ["at_most"]),
        ({"epsilon": 1, "reason": "x", "delta": 1}, ["delta"]),
    ],
)
async def test_a_bad_raise_changes_nothing(
    service: Service, document: dict[str, Any], fields: list[str]
) -> None:
    await service.contribute(await service.study(), "ada")
    refused = await service.call("POST", PATH, "admin", json=document)
    assert_problem(refused, "invalid_request", 422, *fields)
    assert await total(service, "ada") == 10
