"""An answer never gets worse: over HTTP, until nobody can pay, and for people who come and go."""

from typing import Any

import pytest

from tests.api.service import Service, assert_problem

STUDY = "/v1/studies/minutes"
MEAN = f"{STUDY}/statistics/mean"
RELEASES = f"{STUDY}/releases"


async def crowded(service: Service, people: int, *, epsilon: float = 1, **definition: Any) -> None:
    """A study with central people, sent as one batch."""
    await service.study(slug="minutes", lower=0, upper=120, **definition)
    await join(service, people, epsilon=epsilon)


async def join(service: Service, people: int, *, prefix: str = "p", epsilon: float = 1) -> None:
    records = [
        {"subject": f"{prefix}{place}", "value": place % 100, "epsilon": epsilon, "trust": "central"}
        for place in range(people)
    ]
    done = await service.call("POST", f"{STUDY}/contributions/batch", "contribute", json=records)
    assert done.json()["created"] == people, done.text


async def ask(service: Service, **question: Any) -> dict[str, Any]:
    made = await service.call("POST", RELEASES, "analyse", json=question)
    assert made.status_code == 201, made.text
    return dict(made.json())


async def refused(service: Service, **question: Any) -> str:
    """The detail of the refusal, which has charged nothing."""
    before = await service.call("GET", "/v1/admin/ledger", "admin")
    response = await service.call("POST", RELEASES, "analyse", json=question)
    assert_problem(response, "no_gain", 409)
    after = await service.call("GET", "/v1/admin/ledger", "admin")
    assert after.content == before.content
    return str(response.json()["detail"])


async def current(service: Service, **params: Any) -> dict[str, Any]:
    found = await service.call("GET", MEAN, "analyse", params=params)
    assert found.status_code == 200, found.text
    return dict(found.json())


def width(answer: dict[str, Any]) -> float:
    return float(answer["interval"]["upper"] - answer["interval"]["lower"])


async def test_a_question_repeated_until_nobody_can_pay_keeps_its_best_answer(service: Service) -> None:
    """1,000 central people and a local one, who can always be heard."""
    trust = ["central", "local"]
    await crowded(service, 1000, default_share=0.3, trust=trust, local_mechanism="laplace")
    report = {"subject": "lou", "report": 2**30, "epsilon": 1, "trust": "local"}
    sent = await service.call("POST", f"{STUDY}/contributions", "contribute", json=report)
    assert sent.status_code == 201, sent.text
    answers, codes = [], []
    for _ in range(10):
        response = await service.call("POST", RELEASES, "analyse", json={})
        codes.append(response.status_code)
        if response.status_code == 201:
            answers.append(response.json())
        else:
            assert response.json()["id"] == answers[-1]["id"]
    assert codes == [201] * 4 + [200] * 6
    best = min(width(one) for one in answers)
    assert width(answers[-1]) <= 1.01 * best < 3, "later ones weigh by the variance of earlier ones"
    stands = await current(service)
    assert stands["id"] == answers[-1]["id"]
    assert (stands["people"], stands["people_left_out"], stands["left_out_because"]) == (1001, 0, None)
    assert "1000 of 1001 people cannot pay" in await refused(service, fresh=True)


async def test_what_was_refused_can_be_had_by_those_who_insist_and_is_not_what_stands(
    service: Service,
) -> None:
    await crowded(service, 100, default_share=1, trust=["central", "public"])
    first = await ask(service)
    open_book = {"subject": "pat", "value": 119, "trust": "public"}
    await service.call("POST", f"{STUDY}/contributions", "contribute", json=open_book)
    await refused(service, fresh=True)
    worse = await ask(service, allow_worse=True, fresh=True)
    assert (worse["people"], worse["people_left_out"]) == (101, 100)
    assert worse["left_out_because"] == "budget_exhausted"
    assert width(worse) > 1.5 * width(first)
    assert (await current(service))["id"] == first["id"]
    read = await service.call("GET", f"/v1/releases/{worse['id']}", "analyse")
    assert read.json()["left_out_because"] == "budget_exhausted"


async def test_a_smaller_share_is_no_gain_and_a_larger_one_is(service: Service) -> None:
    await crowded(service, 1000)
    some = await ask(service, share=0.1)
    detail = await refused(service, share=0.05, fresh=True)
    assert "the interval would be" in detail
    await refused(service, share=0.2, epsilon=0.01, fresh=True)
    assert (await current(service, share=0.05))["id"] == some["id"], "has taken more than that"
    assert (await current(service, share=0.1))["id"] == some["id"]
    more = await current(service, share=0.4)
    assert width(more) < width(some)
    for params in ({}, {"share": 0.1}, {"share": 0.4}, {"epsilon": 0.01}):
        assert (await current(service, **params))["id"] == more["id"]
    nearly = await ask(service, share=0.3, fresh=True)
    assert width(nearly) > 1.05 * width(more)
    assert (await current(service, share=0.4))["id"] == more["id"], (
        "a third wider is made, and not what stands"
    )
    best = await current(service)
    assert best["combines"] == [more["id"], nearly["id"]]
    assert width(best) < 1.01 * width(more)
    assert (await current(service, estimator="uniform"))["id"] != more["id"], "is another question"


async def test_reading_gets_what_there_is_where_a_better_answer_cannot_be_had(service: Service) -> None:
    await crowded(service, 20)
    only = await ask(service, share=0.7)
    await ask(service, share=0.2, estimator="uniform")
    assert (await current(service, share=1))["id"] == only["id"]
    response = await service.call("POST", RELEASES, "analyse", json={"share": 1})
    assert_problem(response, "budget_exhausted", 409)


@pytest.mark.long
async def test_people_who_come_and_go_stand_in_the_way_of_no_answer(service: Service) -> None:
    await crowded(service, 300, default_share=0.3)
    first = await ask(service)
    for place in range(150):
        path = f"{STUDY}/contributions/p{place}"
        assert (await service.call("DELETE", path, "contribute")).status_code == 204
    assert (await current(service))["id"] == first["id"], "nothing better was asked for"
    fewer = await ask(service)
    assert width(fewer) > 1.5 * width(first)
    assert (fewer["people"], (await current(service))["id"]) == (150, fewer["id"])
    await join(service, 1000, prefix="new")
    more = await ask(service)
    assert (more["people"], (await current(service))["id"]) == (1150, more["id"])


async def test_one_exact_answer_of_one_person_does_not_stand_for_a_crowd(service: Service) -> None:
    await service.study(slug="minutes", lower=0, upper=120, trust=["central", "public"])
    book = {"subject": "pat", "value": 119, "trust": "public"}
    await service.call("POST", f"{STUDY}/contributions", "contribute", json=book)
    alone = await ask(service)
    # It may have been rounded to the study's step, and by no more.
    step = (await service.call("GET", STUDY, "analyse")).json()["step"]
    assert width(alone) == pytest.approx(step) == 120 / 2**30
    await join(service, 200)
    crowd = await ask(service)
    assert width(crowd) > 1
    assert (await current(service))["id"] == crowd["id"]


async def test_a_first_answer_without_most_people_is_refused_too(service: Service) -> None:
    await crowded(service, 20, default_share=1)
    await ask(service, estimator="uniform")
    await join(service, 10, prefix="new")
    await refused(service, estimator="adpm")
    found = await service.call("GET", MEAN, "analyse", params={"estimator": "adpm"})
    assert_problem(found, "no_gain", 409)
    insisted = await ask(service, estimator="adpm", allow_worse=True)
    assert (insisted["people"], insisted["people_left_out"]) == (30, 20)
    assert (await current(service, estimator="adpm"))["id"] == insisted["id"]


@pytest.mark.usefixtures("free_attempts")
async def test_a_key_of_an_answer_that_was_made_is_never_refused(service: Service) -> None:
    await crowded(service, 20, default_share=1, trust=["central", "public"])
    book = {"subject": "pat", "value": 119, "trust": "public"}
    await service.call("POST", f"{STUDY}/contributions", "contribute", json=book)
    made = [
        await service.call("POST", RELEASES, "analyse", json={}, headers={"Idempotency-Key": "once"})
        for _ in range(2)
    ]
    assert made[0].status_code == made[1].status_code == 201
    assert made[0].content == made[1].content
    await refused(service, fresh=True)


@pytest.mark.parametrize("value", ["true", 1, None, {}])
async def test_allow_worse_is_true_or_false(service: Service, value: object) -> None:
    await crowded(service, 5)
    response = await service.call("POST", RELEASES, "analyse", json={"allow_worse": value})
    assert_problem(response, "invalid_request", 422, "allow_worse")


async def test_a_secret_study_is_always_answered_and_its_newest_answer_stands(service: Service) -> None:
    """Empty at first, then a crowd, then an exhausted one: whether there is an answer says nothing of it."""
    await service.study(slug="minutes", relation="add_remove_one", trust=["central"], default_share=0.5)
    made = [await ask(service)]
    await join(service, 50)
    made += [await ask(service) for _ in range(4)]
    for answer in made:
        assert not {"people", "people_left_out", "left_out_because"} & set(answer)
    assert (await current(service, share=0.5))["id"] == made[-1]["id"]
    # Noisy numbers of people choose whom the next answer is about; those about the same are combined, and
    # where all people weigh the same in the newest one, those where they do.
    ends = [(one["least_epsilon"], one["most_epsilon"]) for one in made]
    least, most = ends[-1]
    together = [
        one["id"]
        for one, own in zip(made, ends, strict=True)
        if own[0] == least and (most > least or own == (least, least))
    ]
    assert (await current(service)).get("combines", [made[-1]["id"]]) == together
    assert (await current(service, share=0.25))["id"] not in {one["id"] for one in made}


async def test_a_plan_says_how_many_more_answers_there_can_be_and_is_right(service: Service) -> None:
    """A tenth of the people offer little, and most of them more than an answer needs."""
    await crowded(service, 100, default_share=0.3)
    await join(service, 20, prefix="shy", epsilon=0.1)
    plan = (await service.call("GET", f"{STUDY}/plan", "analyse")).json()["estimators"]
    assert [one["chosen"] for one in plan] == [True] + [False] * (len(plan) - 1)
    assert all(one["predicted_error"] <= 120 for one in plan)
    left = plan[0]["answers_left"]
    made = 0
    while (response := await service.call("POST", RELEASES, "analyse", json={})).status_code == 201:
        made += 1
        again = (await service.call("GET", f"{STUDY}/plan", "analyse")).json()["estimators"]
        if again:
            assert (again[0]["answers_left"] or 0) == left - made
    assert response.status_code == 200, "all have given all"
    assert made == left > 1


async def test_a_share_that_all_have_given_is_planned_as_free(service: Service) -> None:
    await crowded(service, 200)
    await ask(service, share=0.5)
    plan = await service.call("GET", f"{STUDY}/plan", "analyse", params={"share": "0.01"})
    (chosen,) = (one for one in plan.json()["estimators"] if one["chosen"])
    assert (chosen["answers_left"], chosen["epsilon_max"]) == (None, 0)


async def test_a_plan_counts_no_answer_that_would_be_refused(service: Service) -> None:
    await crowded(service, 20)
    await ask(service, estimator="uniform", share=0.9)
    await join(service, 10, prefix="new")
    plan = await service.call("GET", f"{STUDY}/plan", "analyse", params={"share": "0.5"})
    assert {one["answers_left"] for one in plan.json()["estimators"] if one["chosen"]} == {0}


async def test_a_plan_of_a_secret_study_says_nothing_of_it(service: Service) -> None:
    await service.study(slug="minutes", relation="add_remove_one", trust=["central"])
    plan = await service.call("GET", f"{STUDY}/plan", "analyse", params={"expected_size": "50"})
    assert {one["answers_left"] for one in plan.json()["estimators"]} == {None}
