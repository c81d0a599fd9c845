"""Shares of bins, choices and coordinates add up: answers sharpen those before, and newcomers alone pay."""

import asyncio
from typing import Any

import pytest
from dither.device.choices import ChoiceRandomizer, choice_points

from app.core.epsilon import MICRO
from tests.api.service import Service
from tests.client.bits import Seeded

STUDY = "/v1/studies/minutes"
EPSILONS = (0.1, 0.333, 1)
TERMS: dict[str, dict[str, Any]] = {
    "laplace": {},
    "gaussian": {"noise": "gaussian", "delta": 1e-6},
}
HISTOGRAM: dict[str, Any] = {"statistic": "histogram", "edges": "40,80"}
MEAN: dict[str, Any] = {"statistic": "mean", "edges": None}
TWO_BINS: dict[str, Any] = {"edges": "40"}
KINDS = pytest.mark.parametrize(
    ("dimension", "kind"),
    [(1, HISTOGRAM), (1, TWO_BINS), (3, MEAN)],
    ids=["histogram", "two bins", "coordinates"],
)


def question_of(question: dict[str, Any]) -> dict[str, Any]:
    """A histogram, if nothing else is said; without what is None."""
    return {name: value for name, value in {**HISTOGRAM, **question}.items() if value is not None}


def value_of(place: int, dimension: int) -> int | list[int]:
    return place % 100 if dimension == 1 else [(place + at) % 100 for at in range(dimension)]


async def crowded(service: Service, people: int = 30, **definition: Any) -> None:
    await service.study(slug="minutes", **({"lower": 0, "upper": 120} | definition))
    for epsilon in EPSILONS:
        dimension = definition.get("dimension", 1)
        await join(
            service, people // len(EPSILONS), epsilon=epsilon, prefix=f"p{epsilon}-", dimension=dimension
        )


async def join(
    service: Service, people: int, *, prefix: str, epsilon: float = 1, dimension: int = 1, **more: Any
) -> None:
    person = {"epsilon": epsilon, "trust": "central", **more}
    records = [
        {"subject": f"{prefix}{place}", "value": value_of(place, dimension), **person}
        for place in range(people)
    ]
    done = await service.call("POST", f"{STUDY}/contributions/batch", "contribute", json=records)
    assert done.json()["created"] == people, done.text


async def ask(service: Service, status: int = 201, **question: Any) -> dict[str, Any]:
    made = await service.call("POST", f"{STUDY}/releases", "analyse", json=question_of(question))
    assert made.status_code == status, made.text
    return dict(made.json())


async def plan(service: Service, **question: Any) -> dict[str, Any]:
    made = await service.call("GET", f"{STUDY}/plan", "analyse", params=question_of(question))
    assert made.status_code == 200, made.text
    return dict(made.json())


async def charged(service: Service, since: int = 0, study: str = "minutes") -> dict[float, int]:
    """What the releases of a study have charged, by what was offered [1e-6 of its currency]."""
    page = await service.call("GET", f"/v1/studies/{study}/releases?limit=200", "admin")
    sums: dict[float, int] = {}
    for release in page.json()["items"][::-1][since:]:
        for charge in release["charges"]:
            cost = charge.get("mu2") or charge["epsilon"]
            offered = round(charge["offered"], 3)
            sums[offered] = sums.get(offered, 0) + round(cost * 1e6)
    return sums


async def clean(service: Service) -> None:
    report = await service.api.services.ledger.audit()
    assert report.clean, report.findings


async def raised(
    service: Service, shares: tuple[float, ...], slug: str, noise: str, dimension: int, kind: dict[str, Any]
) -> tuple[dict[float, int], float]:
    """What other people are charged who are asked for these shares, as `charged`, and the predicted error."""
    await service.study(slug=slug, lower=0, upper=120, dimension=dimension, **TERMS[noise])
    for epsilon in EPSILONS:
        records = [
            {
                "subject": f"{slug}-{epsilon}-{place}",
                "value": value_of(place, dimension),
                "epsilon": epsilon,
                "trust": "central",
            }
            for place in range(100)
        ]
        await service.call("POST", f"/v1/studies/{slug}/contributions/batch", "contribute", json=records)
    for share in shares:
        question = question_of({**kind, "share": share, "allow_worse": True})
        made = await service.call("POST", f"/v1/studies/{slug}/releases", "analyse", json=question)
        assert made.status_code == 201, made.text
    return await charged(service, study=slug), made.json()["predicted_error"]


@pytest.mark.long
@pytest.mark.parametrize("noise", TERMS)
@KINDS
async def test_ten_steps_charge_to_the_micro_what_one_answer_does(
    service: Service, noise: str, dimension: int, kind: dict[str, Any]
) -> None:
    await crowded(service, 300, dimension=dimension, **TERMS[noise])
    answers = [await ask(service, **kind, share=step / 10, allow_worse=True) for step in range(1, 11)]
    assert [answer["share"] for answer in answers] == [step / 10 for step in range(1, 11)]
    assert [answer["share_before"] for answer in answers] == [step / 10 for step in range(10)]
    assert [answer["refines"] for answer in answers] == [None, *(answer["id"] for answer in answers[:-1])]
    errors = [answer["predicted_error"] for answer in answers]
    assert errors == sorted(errors, reverse=True)
    steps = await charged(service)
    total = "mu2_max_total" if noise == "gaussian" else "epsilon_max_total"
    assert round(answers[-1][total] * 1e6) == max(steps.values())
    await clean(service)
    # One answer at share 1 to people like these, and one at .1 that is raised to 1 at once: weights are made
    # for the share that a question begins with.
    once, fresh = await raised(service, (1,), "once", noise, dimension, kind)
    twice, risen = await raised(service, (0.1, 1), "twice", noise, dimension, kind)
    assert steps == twice
    assert errors[-1] == pytest.approx(risen, rel=1e-4)
    assert all(once[offered] <= steps[offered] for offered in once)
    # Where the noise of either share is loud enough, no person saturates.
    assert (steps == once) is (noise == "gaussian" and kind is not TWO_BINS)
    if steps == once:
        assert errors[-1] == pytest.approx(fresh, rel=1e-4)
    else:
        assert fresh < errors[-1] < (1.2 if dimension > 1 else 1.3) * fresh


async def test_what_stands_is_answered_for_nothing_and_without_a_share_it_rises(service: Service) -> None:
    await crowded(service, 300, default_share=0.4)
    first = await ask(service)
    assert (first["share"], first["share_before"], first["refines"]) == (0.4, 0, None)
    rows = await service.rows()
    assert await ask(service, 200, share=0.3) == first
    # A distribution over the same bins is the same question.
    assert (await ask(service, 200, statistic="distribution", share=0.4))["id"] == first["id"]
    assert await service.rows() == rows
    found = await plan(service)
    second = await ask(service)
    assert (found["share"], found["share_before"]) == (second["share"], second["share_before"]) == (0.8, 0.4)
    (planned,) = found["estimators"]
    assert planned["epsilon_max"] == second["epsilon_max"]
    assert planned["epsilon_max_total"] == second["epsilon_max_total"]
    assert planned["predicted_error"] == second["predicted_error"]
    assert (await ask(service))["share"] == 1
    assert (await ask(service, 200))["share"] == 1
    read = await service.call("GET", f"{STUDY}/statistics/histogram?edges=40,80", "analyse")
    assert read.json()["share"] == 1
    await clean(service)


@pytest.mark.parametrize("noise", TERMS)
@KINDS
async def test_newcomers_pay_for_themselves_alone(
    service: Service, noise: str, dimension: int, kind: dict[str, Any]
) -> None:
    await crowded(service, 300, dimension=dimension, **TERMS[noise])
    first = await ask(service, **kind, share=0.5)
    await join(service, 200, prefix="new", epsilon=0.5, dimension=dimension)
    found = await plan(service, **kind, share=0.5)
    assert found["newcomers"]["people"] == 200
    renewed = await ask(service, **kind, share=0.5)
    assert (renewed["people"], renewed["share"], renewed["share_before"]) == (500, 0.5, 0.5)
    assert renewed["refines"] == first["id"]
    assert set(await charged(service, since=1)) == {0.5}
    assert renewed["epsilon_max"] == found["newcomers"]["epsilon_max"]
    assert renewed["predicted_error"] < first["predicted_error"]
    both = await ask(service, **kind, share=1)
    assert both["predicted_error"] < renewed["predicted_error"]
    assert set(await charged(service, since=2)) == {*EPSILONS, 0.5}
    await clean(service)


@KINDS
async def test_a_leaver_freezes_a_piece_and_the_rest_goes_on(
    service: Service, dimension: int, kind: dict[str, Any]
) -> None:
    await crowded(service, dimension=dimension)
    await ask(service, **kind, share=0.5, allow_worse=True)
    gone = await service.call("DELETE", f"{STUDY}/contributions/p1-0", "contribute")
    assert gone.status_code == 204
    await ask(service, 200, **kind, share=0.5)
    after = await ask(service, **kind, share=1, allow_worse=True)
    assert after["people"] == 29
    shown = after.get("bins") or after["coordinates"]
    assert {one["interval"]["coverage"] for one in shown} == {"worst_case"}
    assert after["epsilon_max"] <= 0.5
    sums = await charged(service)
    assert all(amount <= 2 * offered * 1e6 for offered, amount in sums.items())
    assert (await ask(service, 200, **kind, share=1))["id"] == after["id"]
    await clean(service)


@KINDS
async def test_fresh_answers_have_noise_and_a_price_of_their_own(
    service: Service, dimension: int, kind: dict[str, Any]
) -> None:
    await crowded(service, 300, dimension=dimension)
    first = await ask(service, **kind, share=0.2)
    fresh = await ask(service, **kind, share=0.2, fresh=True)
    assert (fresh["share"], fresh["share_before"], fresh["refines"]) == (0.2, 0, None)
    assert fresh["epsilon_max"] == fresh["epsilon_max_total"] > 0
    shown = "bins" if "bins" in first else "coordinates"
    assert fresh[shown] != first[shown]
    step = await ask(service, **kind, share=0.4)
    assert (step["share_before"], step["refines"]) == (0.2, first["id"])
    # A micro less where each half is rounded up.
    assert step["epsilon_max_total"] == pytest.approx(2 * first["epsilon_max"], abs=1.1e-6)
    await clean(service)


@pytest.mark.long
@KINDS
async def test_many_clients_make_one_step(service: Service, dimension: int, kind: dict[str, Any]) -> None:
    await crowded(service, 300, dimension=dimension)
    await ask(service, **kind, share=0.1)
    made = await asyncio.gather(
        *(
            service.call("POST", f"{STUDY}/releases", "analyse", json=question_of({**kind, "share": 0.3}))
            for _ in range(64)
        )
    )
    assert sorted(one.status_code for one in made) == [200] * 63 + [201]
    assert len({one.json()["id"] for one in made}) == 1
    await clean(service)


async def test_choices_of_local_public_and_central_people_are_read_together(service: Service) -> None:
    """Reports and public choices are free, and read anew with each step; none of them pays."""
    choices = ["a", "b", "c"]
    terms = {"choices": choices, "trust": ["central", "local", "public"]}
    await crowded(service, 0, lower=None, upper=None, **terms)

    async def come(people: int, trust: str, prefix: str, **more: Any) -> None:
        records = [{"subject": f"{prefix}{n}", "trust": trust, **more} for n in range(people)]
        path = f"{STUDY}/contributions/batch"
        done = await service.call("POST", path, "contribute", json=records)
        assert done.json()["created"] == people, done.text

    await come(40, "central", "c", value="a", epsilon=1)
    await come(30, "public", "o", value="b")
    # How people trust the service says here what they chose.
    question = {"statistic": "shares", "share": 0.5, "tilt": 1}
    first = await service.call("POST", f"{STUDY}/releases", "analyse", json=question)
    # Of three choices a report with an epsilon of 4 is one of them, and nearly always the true one.
    device, bits = ChoiceRandomizer(3), Seeded(5)
    points = choice_points(3)
    records = [
        {
            "subject": f"l{n}",
            "trust": "local",
            "epsilon": 4,
            "report": device.report(points[2], 4 * MICRO, bits),
        }
        for n in range(200)
    ]
    sent = await service.call("POST", f"{STUDY}/contributions/batch", "contribute", json=records)
    assert sent.json()["created"] == 200
    second = await service.call("POST", f"{STUDY}/releases", "analyse", json=question)
    assert (first.status_code, second.status_code) == (201, 201), second.text
    assert second.json()["refines"] == first.json()["id"]
    assert (second.json()["epsilon_max"], second.json()["people"]) == (0, 270)
    assert second.json()["epsilon_max_total"] == first.json()["epsilon_max"] == 0.5
    for one, share in zip(second.json()["choices"], (40 / 270, 30 / 270, 200 / 270), strict=True):
        assert abs(one["share"] - share) < 7 * second.json()["predicted_error"]
    third = await service.call("POST", f"{STUDY}/releases", "analyse", json={**question, "share": 1})
    assert third.json()["predicted_error"] < second.json()["predicted_error"]
    assert (third.json()["epsilon_max"], third.json()["epsilon_max_total"]) == (0.5, 1)
    await clean(service)


async def test_a_condition_and_a_measure_are_questions_of_their_own(service: Service) -> None:
    terms = {
        "measures": {"time": {"lower": 0, "upper": 120}, "way": {"choices": ["foot", "bus"]}},
        "attributes": {"region": ["north", "south"]},
    }
    await service.study(slug="minutes", lower=None, upper=None, **terms)
    records = [
        {
            "subject": f"p{n}",
            "values": {"time": n, "way": "bus" if n % 4 else "foot"},
            "attributes": {"region": "north" if n < 60 else "south"},
            "epsilon": 1,
            "trust": "central",
        }
        for n in range(100)
    ]
    done = await service.call("POST", f"{STUDY}/contributions/batch", "contribute", json=records)
    assert done.json()["created"] == 100, done.text
    north = {"measure": "time", "where": "region:north"}
    ways = {"statistic": "shares", "measure": "way"}
    for question, people in ((north, 60), (ways, 100)):
        body = {**({} if "statistic" in question else HISTOGRAM), **question}
        made = [
            await service.call("POST", f"{STUDY}/releases", "analyse", json={**body, "share": share})
            for share in (0.1, 0.4, 0.4)
        ]
        assert [one.status_code for one in made] == [201, 201, 200], made[-1].text
        first, second, third = (one.json() for one in made)
        assert second["refines"] == first["id"]
        assert third == second
        assert (second["share_before"], second["people"]) == (0.1, people)
        assert second["epsilon_max"] == pytest.approx(0.3)
    await clean(service)


LABELS: dict[str, Any] = {"attributes": {"region": ["north", "south", "east"]}}
"""No person is in the east."""


async def of_regions(service: Service, dimension: int, noise: str) -> None:
    await service.study(slug="minutes", lower=0, upper=120, dimension=dimension, **LABELS, **TERMS[noise])
    for region, people, epsilon in (("north", 200, 0.333), ("south", 100, 1)):
        attributes = {"region": region}
        await join(
            service, people, prefix=region, epsilon=epsilon, dimension=dimension, attributes=attributes
        )


@pytest.mark.parametrize("noise", TERMS)
@KINDS
async def test_answers_by_label_sharpen_those_before_them(
    service: Service, noise: str, dimension: int, kind: dict[str, Any]
) -> None:
    await of_regions(service, dimension, noise)
    first = await ask(service, **kind, by="region", share=0.5)
    found = await plan(service, **kind, by="region", share=1)
    second = await ask(service, **kind, by="region", share=1)
    assert (second["refines"], second["share_before"]) == (first["id"], 0.5)
    assert second["predicted_error"] < first["predicted_error"]
    (planned,) = found["estimators"]
    for name in ("epsilon_max", "epsilon_max_total", "predicted_error"):
        assert planned[name] == second[name]
    assert (await ask(service, 200, **kind, by="region", share=1))["id"] == second["id"]
    # What both steps charge together is what the second one says.
    steps = await charged(service)
    assert set(steps) == {0.333, 1}
    currency = "mu2_max_total" if noise == "gaussian" else "epsilon_max_total"
    assert max(steps.values()) == round(second[currency] * 1e6)
    north, south, east = second["groups"]
    shown = "bins" if dimension == 1 else "coordinates"
    assert [one["people"] for one in second["groups"]] == [200, 100, 0]
    assert east[shown] is None
    for answer in (north, south, second):
        for one in answer[shown]:
            middle = one["share"] if dimension == 1 else one["estimate"]
            assert one["interval"]["lower"] <= middle <= one["interval"]["upper"]
    await clean(service)


@pytest.mark.parametrize("noise", TERMS)
@KINDS
async def test_newcomers_and_leavers_of_a_label_are_of_no_other_label(
    service: Service, noise: str, dimension: int, kind: dict[str, Any]
) -> None:
    await of_regions(service, dimension, noise)
    await ask(service, **kind, by="region", share=0.5)
    south = {"region": "south"}
    await join(service, 80, prefix="new", epsilon=0.5, dimension=dimension, attributes=south)
    renewed = await ask(service, **kind, by="region", share=0.5)
    assert set(await charged(service, since=1)) == {0.5}
    assert [one["people"] for one in renewed["groups"]] == [200, 180, 0]
    gone = await service.call("DELETE", f"{STUDY}/contributions/north0", "contribute")
    assert gone.status_code == 204
    last = await ask(service, **kind, by="region", share=1, allow_worse=True)
    assert [one["people"] for one in last["groups"]] == [199, 180, 0]
    assert set(await charged(service, since=2)) == {0.333, 0.5, 1}
    assert last["people_left_out"] == 0
    shown = "bins" if dimension == 1 else "coordinates"
    assert {one["interval"]["coverage"] for one in last["groups"][0][shown]} == {"worst_case"}
    await clean(service)


async def test_a_label_that_cannot_pay_has_what_it_paid_for(service: Service) -> None:
    await of_regions(service, 1, "laplace")
    first = await ask(service, by="region", share=0.5)
    await ask(service, where="region:south", share=0.5)
    second = await ask(service, by="region", share=1)
    assert (second["people_left_out"], second["left_out_because"]) == (100, "budget_exhausted")
    assert [one["people_left_out"] for one in second["groups"]] == [0, 100, 0]
    # Its noise is that of the first step.
    assert second["groups"][1] == {**first["groups"][1], "people_left_out": 100}
    assert second["groups"][0]["bins"] != first["groups"][0]["bins"]
    assert set(await charged(service, since=2)) == {0.333}
    await clean(service)


@pytest.mark.usefixtures("free_attempts")
async def test_a_cap_bounds_all_steps_and_a_key_remembers_what_stands(service: Service) -> None:
    await crowded(service, 300)
    first = await ask(service, share=0.2, epsilon=0.1)
    again = await ask(service, share=1, epsilon=0.25)
    assert (first["epsilon_max"], again["epsilon_max"], again["epsilon_max_total"]) == (0.1, 0.15, 0.25)
    assert again["refines"] == first["id"]
    keyed = [
        await service.call(
            "POST",
            f"{STUDY}/releases",
            "analyse",
            json={**HISTOGRAM, "share": 1, "epsilon": 0.25},
            headers={"Idempotency-Key": "once"},
        )
        for _ in range(2)
    ]
    assert [one.status_code for one in keyed] == [200, 200]
    assert {one.json()["id"] for one in keyed} == {again["id"]}
    await clean(service)
