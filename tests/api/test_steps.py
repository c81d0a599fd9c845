"""A question's shares add up: later answers sharpen earlier ones, and no person pays for anything twice."""

import asyncio
from typing import Any

import asyncpg
import pytest

from tests.api.service import Service, assert_problem

STUDY = "/v1/studies/minutes"
RELEASES = f"{STUDY}/releases"
EPSILONS = (0.1, 0.333, 1)


async def crowded(service: Service, people: int = 30, **definition: Any) -> None:
    await service.study(slug="minutes", lower=0, upper=120, **definition)
    for epsilon in EPSILONS:
        await join(service, people // len(EPSILONS), epsilon=epsilon, prefix=f"p{epsilon}-")


async def join(service: Service, people: int, *, prefix: str, epsilon: float = 1) -> None:
    records = [
        {"subject": f"{prefix}{place}", "value": place % 100, "epsilon": epsilon, "trust": "central"}
        for place in range(people)
    ]
    done = await service.call("POST", f"{STUDY}/contributions/batch", "contribute", json=records)
    assert done.json()["created"] == people, done.text


async def ask(service: Service, status: int = 201, **question: Any) -> dict[str, Any]:
    made = await service.call("POST", RELEASES, "analyse", json=question)
    assert made.status_code == status, made.text
    return dict(made.json())


def noise(answer: dict[str, Any]) -> float:
    """The standard deviation of the noise, before it is drawn towards the middle."""
    return float(answer["standard_error"] / answer.get("shrinkage", 1))


async def charged(service: Service, *, alone: bool = True) -> dict[float, float]:
    """What all releases have charged, by what was offered; the most, of several cohorts [micro-epsilon]."""
    page = await service.call("GET", f"{RELEASES}?limit=200", "admin")
    sums: dict[tuple[int, float], float] = {}
    for release in page.json()["items"]:
        for charge in release["charges"]:
            key = charge["cohort_id"], charge["offered"]
            sums[key] = sums.get(key, 0) + round(charge["epsilon"] * 1e6)
    assert not alone or len(sums) == len({offered for _, offered in sums})
    return {offered: amount for (_, offered), amount in sorted(sums.items(), key=lambda one: one[1])}


@pytest.mark.parametrize("estimator", ["uniform", "adpm", "optimal", "threshold", "auto"])
async def test_ten_steps_charge_to_the_micro_what_one_answer_does(service: Service, estimator: str) -> None:
    await crowded(service)
    answers = [await ask(service, estimator=estimator, share=step / 10) for step in range(1, 11)]
    steps = await charged(service)
    assert [answer["share"] for answer in answers] == [step / 10 for step in range(1, 11)]
    assert [answer["share_before"] for answer in answers] == [step / 10 for step in range(10)]
    assert [answer["refines"] for answer in answers] == [None, *(answer["id"] for answer in answers[:-1])]
    errors = [noise(answer) for answer in answers]
    assert errors == sorted(errors, reverse=True)
    assert answers[-1]["epsilon_max_total"] == max(steps.values()) / 1e6
    await service.study(slug="once", lower=0, upper=120)
    for epsilon in EPSILONS:
        records = [
            {"subject": f"q{epsilon}-{place}", "value": place, "epsilon": epsilon, "trust": "central"}
            for place in range(10)
        ]
        await service.call("POST", "/v1/studies/once/contributions/batch", "contribute", json=records)
    question = {"estimator": estimator, "share": 1, "fresh": True}
    once = await service.call("POST", "/v1/studies/once/releases", "analyse", json=question)
    assert once.status_code == 201, once.text
    shown = await service.call("GET", f"/v1/releases/{once.json()['id']}", "admin")
    assert steps == {one["offered"]: round(one["epsilon"] * 1e6) for one in shown.json()["charges"]}
    assert noise(answers[-1]) == pytest.approx(noise(once.json()), rel=1e-5)


@pytest.mark.usefixtures("free_attempts")
async def test_a_share_that_all_have_given_is_answered_by_what_stands(service: Service) -> None:
    await crowded(service)
    first = await ask(service, share=0.3)
    before = await service.rows()
    for share in (0.1, 0.3):
        again = await ask(service, 200, share=share)
        assert again == first
    assert await service.rows() == before
    keyed = [
        await service.call(
            "POST", RELEASES, "analyse", json={"share": 0.3}, headers={"Idempotency-Key": "once"}
        )
        for _ in range(2)
    ]
    assert [one.status_code for one in keyed] == [200, 200]
    assert keyed[0].content == keyed[1].content


async def test_without_a_share_it_rises_by_the_default_to_the_end(service: Service) -> None:
    await crowded(service, default_share=0.4)
    shares = [(await ask(service))["share"] for _ in range(3)]
    assert shares == [0.4, 0.8, 1.0]
    assert (await ask(service, 200))["share"] == 1.0


async def test_newcomers_pay_for_themselves_alone(service: Service) -> None:
    await crowded(service)
    first = await ask(service, share=0.5, estimator="adpm")
    await join(service, 60, prefix="new", epsilon=0.5)
    plan = await service.call("GET", f"{STUDY}/plan?estimator=adpm&share=0.5", "analyse")
    assert (plan.json()["share"], plan.json()["share_before"]) == (0.5, 0.5)
    assert plan.json()["estimators"][0]["epsilon_max"] == pytest.approx(0.25)
    renewed = await ask(service, share=0.5, estimator="adpm")
    assert (renewed["people"], renewed["share"], renewed["share_before"]) == (90, 0.5, 0.5)
    assert renewed["refines"] == first["id"]
    assert renewed["epsilon_max"] == pytest.approx(0.25)
    assert renewed["epsilon_max_total"] == first["epsilon_max"]
    shown = await service.call("GET", f"/v1/releases/{renewed['id']}", "admin")
    assert {one["offered"] for one in shown.json()["charges"]} == {0.5}
    both = await ask(service, share=0.7, estimator="adpm")
    assert both["standard_error"] < renewed["standard_error"]
    assert both["epsilon_max"] == pytest.approx(0.2)


async def test_a_leaver_freezes_a_piece_and_the_rest_goes_on(service: Service) -> None:
    await crowded(service)
    await ask(service, share=0.5)
    gone = await service.call("DELETE", f"{STUDY}/contributions/p1-0", "contribute")
    assert gone.status_code == 204
    await ask(service, 200, share=0.5)
    after = await ask(service, share=1, allow_worse=True)
    assert after["people"] == 29
    assert after["interval"]["coverage"] == "worst_case"
    assert after["epsilon_max"] <= 0.5
    sums = await charged(service)
    assert all(amount <= offered * 1e6 for offered, amount in sums.items())
    assert (await ask(service, 200, share=1))["id"] == after["id"]


async def test_fresh_answers_have_noise_and_a_price_of_their_own(service: Service) -> None:
    # Of fewer people noise may move both answers to the same end of the range.
    await crowded(service, 1200)
    first = await ask(service, share=0.2, estimator="uniform")
    fresh = await ask(service, share=0.2, estimator="uniform", fresh=True)
    assert (fresh["share"], fresh["share_before"], fresh["refines"]) == (0.2, 0, None)
    assert fresh["epsilon_max"] == fresh["epsilon_max_total"] == first["epsilon_max"]
    assert fresh["estimate"] != first["estimate"]
    step = await ask(service, share=0.4, estimator="uniform")
    assert (step["share_before"], step["refines"]) == (0.2, first["id"])


async def test_a_cap_bounds_what_a_question_takes_in_all(service: Service) -> None:
    await crowded(service)
    first = await ask(service, share=0.5, epsilon=0.2)
    assert first["epsilon_max"] <= 0.2
    await ask(service, 200, share=0.9, epsilon=0.05)
    more = await ask(service, share=0.9, epsilon=0.3)
    assert more["epsilon_max_total"] <= 0.3


@pytest.mark.parametrize("share", ["0.015", "0.001", "0.00002"])
async def test_small_shares_are_answered_with_coarser_weights(service: Service, share: str) -> None:
    await crowded(service)
    small = await ask(service, share=share, estimator="uniform")
    assert 0 < small["epsilon_max"] <= 0.1 * float(share) + 2e-6
    whole = await ask(service, share=1, estimator="uniform")
    assert 0.099 < whole["epsilon_max_total"] <= 0.1


@pytest.mark.long
async def test_of_many_who_ask_for_a_share_at_once_one_takes_the_step(service: Service) -> None:
    await crowded(service)
    await ask(service, share=0.1)
    answers = await asyncio.gather(
        *(service.call("POST", RELEASES, "analyse", json={"share": 0.3}) for _ in range(64))
    )
    assert sorted(one.status_code for one in answers) == [200] * 63 + [201]
    assert len({one.json()["id"] for one in answers}) == 1
    assert (await service.rows())["release"] == 2


async def test_secret_studies_are_answered_afresh(service: Service) -> None:
    await service.study(slug="minutes", lower=0, upper=120, relation="add_remove_one", trust=["central"])
    await join(service, 20, prefix="p")
    answers = [await ask(service, share=0.2) for _ in range(2)]
    assert [one["share_before"] for one in answers] == [0, 0]
    assert [one["refines"] for one in answers] == [None, None]
    for one in answers:
        # Each charges a share of what offers count as at most, which noisy numbers of people choose.
        assert 0.05 <= one["least_epsilon"] <= one["most_epsilon"] <= 10
        # The first one also asks, with a fifth of it, who offers how much: at most the highest level.
        asked = max((level["least_epsilon"] for level in one.get("offered", ())), default=one["most_epsilon"])
        due = 0.2 * (asked / 5 + one["most_epsilon"] * 4 / 5)
        assert one["epsilon_max"] == one["epsilon_max_total"] == pytest.approx(due)
    assert ["offered" in one for one in answers] == [True, False]


async def test_who_cannot_pay_is_left_out_and_the_others_go_on(service: Service) -> None:
    """Who offers .1 pays .005 of it, then .092 to another question: the rest is too little."""
    await crowded(service)
    first = await ask(service, share=0.05, estimator="adpm")
    await ask(service, share=0.92, estimator="uniform")
    some = await ask(service, share=0.3, estimator="adpm")
    assert (some["people"], some["people_left_out"], some["refines"]) == (30, 10, first["id"])
    assert some["standard_error"] < first["standard_error"]
    shown = await service.call("GET", f"/v1/releases/{some['id']}", "admin")
    assert {one["offered"] for one in shown.json()["charges"]} == {0.333, 1}
    assert some["epsilon_max_total"] == pytest.approx(0.3)
    await join(service, 5, prefix="new", epsilon=0.1)
    more = await ask(service, share=0.3, estimator="adpm")
    assert (more["people_left_out"], more["epsilon_max"]) == (10, pytest.approx(0.03))
    whole = await ask(service, share=0.7, estimator="adpm")
    assert whole["epsilon_max_total"] <= 0.7
    assert all(amount <= offered * 1e6 for offered, amount in (await charged(service, alone=False)).items())


@pytest.mark.parametrize("value", ["true", 1, None])
async def test_fresh_is_true_or_false(service: Service, value: object) -> None:
    await crowded(service)
    response = await service.call("POST", RELEASES, "analyse", json={"fresh": value})
    assert_problem(response, "invalid_request", 422, "fresh")


async def test_two_questions_that_round_up_share_an_epsilon_to_the_last_micro(service: Service) -> None:
    """.87655 of .01 costs 8,766 micro-epsilons, rounded up; .12345 of it 1,235, of which 1,234 are left."""
    await service.study(slug="minutes", lower=0, upper=120)
    await join(service, 300, prefix="p", epsilon=0.01)
    await ask(service, share=0.87655, estimator="uniform", tilt=0)
    second = await ask(service, share=0.12345, estimator="uniform", tilt=1, allow_worse=True)
    assert (second["epsilon_max"], second["people_left_out"]) == (0.001234, 0)
    assert await charged(service) == {0.01: 10_000}


async def test_a_cap_takes_all_that_it_allows(service: Service) -> None:
    """Half of 1, or .2 if that is less: it is .2, and not half of it."""
    await service.study(slug="minutes", lower=0, upper=120)
    await join(service, 300, prefix="p")
    capped = await ask(service, share=0.5, epsilon=0.2, estimator="uniform")
    assert capped["epsilon_max"] == 0.2


async def pieces(service: Service) -> list[dict[str, Any]]:
    """Every cohort of every piece of steps, with its people now, and when the piece was drawn."""
    connection = await asyncpg.connect(service.database_url)
    try:
        rows = await connection.fetch(
            "SELECT piece.number, refinable, scale, cohort_id, cohort.count, member.count AS drawn"
            " FROM piece CROSS JOIN unnest(cohorts, counts) AS member (cohort_id, count)"
            " JOIN cohort ON cohort.id = cohort_id JOIN release ON release.id = release_id"
            " WHERE share_before IS NOT NULL ORDER BY piece.number, cohort_id"
        )
    finally:
        await connection.close()
    return [dict(row) for row in rows]


async def put(service: Service, subject: str, value: float) -> None:
    document = {"value": value, "epsilon": 1, "trust": "central"}
    done = await service.call("PUT", f"{STUDY}/contributions/{subject}", "contribute", json=document)
    assert done.status_code == 200, done.text


async def withdraw(service: Service, subject: str) -> None:
    gone = await service.call("DELETE", f"{STUDY}/contributions/{subject}", "contribute")
    assert gone.status_code == 204


COMINGS_AND_GOINGS = ["puts the same value", "puts another value", "comes back", "makes room", "comes twice"]


@pytest.mark.parametrize("what", COMINGS_AND_GOINGS)
async def test_a_cohort_with_as_many_people_as_before_has_the_same_people(
    service: Service, what: str
) -> None:
    """Who comes, or comes back, is in no cohort of a piece, also with trust and epsilon of one who left."""
    await service.study(slug="minutes", lower=0, upper=120)
    await join(service, 30, prefix="p")
    await ask(service, share=0.2, estimator="uniform")
    (before,) = await pieces(service)
    assert (before["count"], before["drawn"], before["refinable"]) == (30, 30, True)
    if what == "puts the same value":
        await put(service, "p7", 7)
    elif what == "puts another value":
        await put(service, "p7", 100)
    else:
        await withdraw(service, "p7")
        if what == "makes room":
            await join(service, 1, prefix="new")
        else:
            await service.contribute("minutes", "p7", value=7, epsilon=1)
        if what == "comes twice":
            await withdraw(service, "p7")
            await service.contribute("minutes", "p7", value=7, epsilon=1)
    # Sealed and folded by another question, which does not touch the pieces of this one.
    other = await ask(service, share=0.2, estimator="uniform", fresh=True)
    assert other["people"] == 30
    (now,) = await pieces(service)
    assert (now["count"], now["drawn"]) == (29, 30)
    # The next step does not sharpen the piece, and the one after that not either.
    for share in (0.5, 0.6):
        await ask(service, share=share, estimator="uniform", allow_worse=True)
        frozen, *rest = await pieces(service)
        assert (frozen["refinable"], frozen["scale"], frozen["count"]) == (False, before["scale"], 29)
        # One of those who stay, and one of who came.
        assert {row["number"] for row in rest} == {2, 3}
        assert all(row["count"] == row["drawn"] and row["refinable"] for row in rest)
        assert sum(row["count"] for row in rest) == 30
    assert not (await service.api.services.ledger.audit()).findings


@pytest.mark.long
async def test_steps_after_a_person_left_charge_the_others_the_whole_difference(service: Service) -> None:
    await crowded(service)
    await ask(service, share=0.2)
    left = await service.call("DELETE", f"{STUDY}/contributions/p1-0", "contribute")
    assert left.status_code == 204
    for tenth in range(3, 11):
        answer = await ask(service, share=tenth / 10)
        assert answer["epsilon_max"] == pytest.approx(0.1, abs=1e-4)
        assert answer["epsilon_max_total"] == pytest.approx(tenth / 10, abs=1e-4)
    assert (await service.api.services.ledger.audit()).clean


@pytest.mark.long
async def test_intervals_hold_where_people_left_because_of_their_values(service: Service) -> None:
    """People leave who said far less than those who stay: the old sum still holds what they said.

    Read as one of those who stay it would be 7 off. The truth is within five halves of each interval, unless
    noise alone is so far off, which happens once in 3 million runs: a Laplace exceeds the half of its
    interval with a probability of 1/20, and five times that of 20^-5; a sum of several has lighter tails.
    """
    await service.study(slug="minutes", lower=0, upper=100)
    values = {f"low-{place}": place % 20 for place in range(200)}
    stay = {f"stay-{place}": 40 + place % 40 for place in range(1_200)}
    records = [
        {"subject": name, "value": value, "epsilon": 1, "trust": "central"}
        for name, value in (values | stay).items()
    ]
    await service.call("POST", f"{STUDY}/contributions/batch", "contribute", json=records)
    await ask(service, share=0.4)
    for name in values:
        await service.call("DELETE", f"{STUDY}/contributions/{name}", "contribute")
    truth = sum(stay.values()) / len(stay)
    step = await ask(service, share=0.6)
    await ask(service, share=0.4, fresh=True)
    read = (await service.call("GET", f"{STUDY}/statistics/mean", "analyse")).json()
    moved = truth - sum((values | stay).values()) / len(values | stay)
    for answer in (step, read):
        interval = answer["interval"]
        half = (interval["upper"] - interval["lower"]) / 2
        assert answer["people"] == len(stay)
        assert abs(truth - (interval["lower"] + half)) <= 5 * half
    assert 5 * half < moved
