"""`GET .../statistics/mean` reads the best combination of all that is published, and charges no one."""

import asyncio
import math
from collections import Counter
from typing import Any

import asyncpg
import pytest

from tests.api.service import Service

STUDY = "/v1/studies/minutes"
RELEASES = f"{STUDY}/releases"


async def crowded(service: Service, people: int = 400, **definition: Any) -> None:
    await service.study(slug="minutes", lower=0, upper=120, **definition)
    await join(service, people)


async def join(service: Service, people: int, *, prefix: str = "p", trust: str = "central") -> None:
    records = [
        {
            "subject": f"{prefix}{place}",
            "value": place % 100,
            "trust": trust,
            **({"epsilon": (0.2, 1)[place % 2]} if trust == "central" else {}),
        }
        for place in range(people)
    ]
    done = await service.call("POST", f"{STUDY}/contributions/batch", "contribute", json=records)
    assert done.json()["created"] == people, done.text


async def ask(service: Service, **question: Any) -> dict[str, Any]:
    made = await service.call("POST", RELEASES, "analyse", json=question)
    assert made.status_code == 201, made.text
    return dict(made.json())


async def mean(service: Service, query: str = "") -> dict[str, Any]:
    found = await service.call("GET", f"{STUDY}/statistics/mean{query}", "analyse")
    assert found.status_code == 200, found.text
    return dict(found.json())


async def paid(service: Service) -> bytes:
    return (await service.call("GET", "/v1/admin/ledger", "admin")).content


def width(answer: dict[str, Any]) -> float:
    return float(answer["interval"]["upper"] - answer["interval"]["lower"])


ALIKE = {"epsilon": {"min": 0.8, "max": 1}}
SECRET = pytest.mark.parametrize(
    "definition",
    [ALIKE, {**ALIKE, "noise": "gaussian", "delta": 1e-6}, {"epsilon": {"min": 1, "max": 1}}],
    ids=["laplace", "gaussian", "hourglass"],
)
CURRENCIES = pytest.mark.parametrize("currency", [{}, {"noise": "gaussian", "delta": 1e-6}])


@pytest.mark.long
@CURRENCIES
async def test_fresh_answers_and_steps_of_several_estimators_are_combined(
    service: Service, currency: dict[str, Any]
) -> None:
    await crowded(service, 4000, **currency)
    answers = [await ask(service, share=0.2, fresh=True) for _ in range(2)]
    answers += [await ask(service, share=0.2, estimator=name) for name in ("uniform", "adpm")]
    before = await paid(service)
    best = await mean(service)
    assert await paid(service) == before
    assert best["combines"] == [one["id"] for one in answers]
    assert (best["epsilon_max"], best["share"], best["refines"]) == (0, 0, None)
    releases = (await service.call("GET", RELEASES, "admin")).json()["items"]
    charged: Counter[int] = Counter()
    for charge in (charge for release in releases for charge in release["charges"]):
        charged[charge["cohort_id"]] += round(charge["mu2" if currency else "epsilon"] * 1e6)
    total = best["mu2_max_total" if currency else "epsilon_max_total"]
    assert round(total * 1e6) == max(charged.values())
    assert width(best) < 0.75 * min(map(width, answers))
    assert best["predicted_error"] < 0.75 * min(one["predicted_error"] for one in answers)
    again = await service.call("GET", f"{STUDY}/statistics/mean", "analyse")
    assert again.json() == best
    stored = await service.call("GET", f"/v1/releases/{best['id']}", "analyse")
    assert stored.json().items() <= best.items()
    own = await mean(service, "?estimator=uniform")
    assert own["id"] == answers[2]["id"]


async def test_one_chain_of_steps_is_its_own_combination(service: Service) -> None:
    await crowded(service)
    last = [await ask(service, share=share) for share in (0.2, 0.4)][-1]
    found = await mean(service)
    assert found["id"] == last["id"]
    assert "combines" not in found


async def test_the_first_reader_pays_nothing_where_another_estimator_has_answered(service: Service) -> None:
    await crowded(service)
    made = await ask(service, share=0.5, estimator="uniform")
    before = await paid(service)
    assert (await mean(service))["combines"] == [made["id"]]
    assert await paid(service) == before


@pytest.mark.long
async def test_newcomers_and_leavers_are_stated_and_public_people_are_weighed(service: Service) -> None:
    await crowded(service, trust=["central", "public"])
    await join(service, 100, prefix="known", trust="public")
    for _ in range(2):
        await ask(service, share=0.3, fresh=True)
    first = await mean(service)
    assert (first["people"], first["people_left_out"], first["left_out_because"]) == (500, 0, None)
    gone = await service.call("DELETE", f"{STUDY}/contributions/p0", "contribute")
    assert gone.status_code in (200, 204), gone.text
    assert (await mean(service))["id"] == first["id"]
    await join(service, 50, prefix="new")
    renewed = await ask(service, share=0.3, fresh=True, estimator="uniform")
    second = await mean(service)
    assert renewed["id"] in second["combines"]
    assert len(second["combines"]) == 3
    assert second["people"] == 549
    await ask(service, share=0.28)
    third = await mean(service)
    assert third["id"] != second["id"]
    assert len(third["combines"]) == 4


async def test_a_combination_leaves_the_ledger_in_order(service: Service) -> None:
    await crowded(service)
    for question in ({"fresh": True}, {"fresh": True}, {"estimator": "uniform"}, {"share": 0.3}):
        await ask(service, **{"share": 0.2, **question})
        await mean(service)
    report = await service.api.services.ledger.audit()
    assert not report.findings
    assert report.counts["releases"] == 7


@pytest.mark.long
async def test_all_who_read_at_once_get_the_same_combination(service: Service) -> None:
    await crowded(service)
    for _ in range(2):
        await ask(service, share=0.2, fresh=True)
    found = await asyncio.gather(*(mean(service) for _ in range(16)))
    assert len({one["id"] for one in found}) == 1
    assert len(found[0]["combines"]) == 2
    page = await service.call("GET", RELEASES, "analyse")
    assert len(page.json()["items"]) == 3


async def test_an_archived_study_gives_what_is_stored(service: Service) -> None:
    await crowded(service)
    answers = [await ask(service, share=0.2, fresh=True) for _ in range(2)]
    done = await service.call("POST", f"{STUDY}/archive", "admin", json={"reason": "over"})
    assert done.status_code in (200, 204), done.text
    assert (await mean(service))["id"] in {one["id"] for one in answers}
    page = await service.call("GET", RELEASES, "analyse")
    assert len(page.json()["items"]) == 2


async def test_a_plan_says_that_the_next_read_is_free_until_it_was_made(service: Service) -> None:
    await crowded(service)

    async def plan(query: str = "") -> dict[str, Any]:
        return dict((await service.call("GET", f"{STUDY}/plan{query}", "analyse")).json())

    assert not (await plan())["free"]
    await ask(service, estimator="uniform", share=0.1)
    found = await plan()
    assert (found["free"], found["stands"]) == (True, None)
    assert found["in_words"].startswith("to read what published answers say together is free; for ")
    # What a share, noise of its own, or another estimator asks for has to be paid for.
    for query in ("?share=0.2", "?fresh=true", "?estimator=adpm", "?statistic=sd"):
        assert not (await plan(query))["free"], query
    assert (await plan("?statistic=sum"))["free"]
    before = await paid(service)
    read = await mean(service)
    assert (read["epsilon_max"], await paid(service)) == (0, before)
    found = await plan()
    assert (found["free"], found["stands"]["release"]) == (False, read["id"])


@CURRENCIES
async def test_the_sums_of_a_description_are_read_with_a_mean_for_nothing(
    service: Service, currency: dict[str, Any]
) -> None:
    await crowded(service, 2000, **currency)
    described = await ask(service, statistic="describe", share=0.4)
    # A mean for a part of a description's price would be less accurate than one for the share of a mean.
    assert not (await service.call("GET", f"{STUDY}/plan", "analyse")).json()["free"]
    answer = await mean(service)
    most = "mu2_max" if currency else "epsilon_max"
    assert answer[most] > 0
    assert "combines" not in answer
    before = await paid(service)
    assert (await service.call("GET", f"{STUDY}/plan", "analyse")).json()["free"]
    both = await mean(service)
    assert (await paid(service), both["epsilon_max"]) == (before, 0)
    assert both["combines"] == [described["id"], answer["id"]]
    assert both[f"{most}_total"] == pytest.approx(described[most] + answer[most])
    assert both["predicted_error"] < answer["predicted_error"]
    widths = [one["interval"]["upper"] - one["interval"]["lower"] for one in (described["mean"], answer)]
    assert width(both) < min(widths)
    assert (await service.api.services.ledger.audit()).clean


@SECRET
async def test_where_it_is_secret_who_is_there_a_description_is_combined_with_means(
    service: Service, definition: dict[str, Any]
) -> None:
    await hidden(service, 4_000, **definition)
    described = await ask(service, statistic="describe", share=0.3)
    answer = await mean(service)
    assert "combines" not in answer
    before = await paid(service)
    both = await mean(service)
    assert (await paid(service), both["combines"]) == (before, [described["id"], answer["id"]])
    # Some of what they say of the number of people is noise, and precisions add up.
    ends = described["mean"]["interval"]
    assert width(both) < 1.02 * min(ends["upper"] - ends["lower"], width(answer))
    assert (await service.api.services.ledger.audit()).clean


async def test_an_archived_study_says_where_its_answers_are_and_how_to_ask_for_them(service: Service) -> None:
    await crowded(service)
    made = await ask(service, estimator="uniform")
    await service.call("POST", f"{STUDY}/archive", "admin", json={"reason": "over"})
    refused = await service.call("GET", f"{STUDY}/statistics/mean", "analyse")
    assert (refused.status_code, refused.json()["code"]) == (409, "study_archived")
    assert "its estimator included; the study's releases list them" in refused.json()["detail"]
    assert (await mean(service, "?estimator=uniform"))["id"] == made["id"]


async def test_another_tilt_is_another_question_and_combines_the_same_sums(service: Service) -> None:
    await crowded(service)
    answers = [await ask(service, share=0.2, fresh=True) for _ in range(2)]
    plain, bent = await mean(service), await mean(service, "?tilt=0.5")
    assert plain["id"] != bent["id"]
    assert plain["combines"] == bent["combines"] == [one["id"] for one in answers]
    assert width(bent) > width(plain)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE piece SET sums[1] = sums[1] + 1",
        "UPDATE piece SET refinable = true",
        "UPDATE piece SET weights[1] = weights[1] + 1",
        "UPDATE piece SET charged[1] = charged[1] + 1",
    ],
)
async def test_the_audit_finds_a_kept_sum_that_was_changed(service: Service, change: str) -> None:
    await crowded(service, 20)
    await ask(service, share=0.5, fresh=True)
    assert (await service.api.services.ledger.audit()).clean
    connection = await asyncpg.connect(service.database_url)
    try:
        await connection.execute(change)
    finally:
        await connection.close()
    assert (await service.api.services.ledger.audit()).findings


async def hidden(service: Service, people: int, **definition: Any) -> None:
    await service.study(
        slug="minutes", lower=0, upper=120, relation="add_remove_one", default_share=0.1, **definition
    )
    records = [
        {"subject": f"p{place}", "value": place % 100, "trust": "central", "epsilon": 1}
        for place in range(people)
    ]
    done = await service.call("POST", f"{STUDY}/contributions/batch", "contribute", json=records)
    assert done.json()["created"] == people, done.text


@pytest.mark.long
@SECRET
async def test_where_it_is_secret_who_is_there_three_answers_are_read_as_a_narrower_one(
    service: Service, definition: dict[str, Any]
) -> None:
    # Errors go with noisy counts: of 4,000 people their ratio has a standard deviation below 1 %.
    await hidden(service, 4_000, **definition)
    answers = [await ask(service, share=share) for share in (0.1, 0.2, 0.2)]
    gone = await service.call("DELETE", f"{STUDY}/contributions/p0", "contribute")
    assert gone.status_code in (200, 204), gone.text
    before = await paid(service)
    best = await mean(service)
    assert await paid(service) == before
    assert best["combines"] == [one["id"] for one in answers]
    assert (best["epsilon_max"], best["share"], best["refines"]) == (0, 0, None)
    most = "mu2_max" if "noise" in definition else "epsilon_max"
    assert best[f"{most}_total"] == pytest.approx(sum(one[most] for one in answers))
    # Variances are as 1 / share^2, with Gaussian noise as 1 / share: precisions add up.
    power = 1 if "noise" in definition else 2
    precisions = [one["share"] ** power for one in answers]
    assert best["weights"] == pytest.approx([one / sum(precisions) for one in precisions], rel=0.02)
    error = best["predicted_error"] / answers[-1]["predicted_error"]
    assert error == pytest.approx((precisions[-1] / sum(precisions)) ** 0.5, rel=0.1)
    assert width(best) < 0.95 * min(map(width, answers))
    again = await service.call("GET", f"{STUDY}/statistics/mean", "analyse")
    assert again.json() == best
    stored = await service.call("GET", f"/v1/releases/{best['id']}", "analyse")
    assert stored.content == again.content
    assert (await mean(service, "?share=0.2"))["id"] == answers[-1]["id"]
    # How many people there are is foretold by the newest answer that was paid for alone, and where their mean
    # is by what was published last.
    later = await ask(service, share=0.2)
    _, second, third = answers

    def foretold(size: dict[str, Any], mean: dict[str, Any]) -> float:
        place = mean["estimate"] / 120
        return math.hypot(place, 1 - place) / float(size["noisy_count"])

    predicted = later["predicted_error"] / third["predicted_error"]
    assert predicted == pytest.approx(foretold(third, best) / foretold(second, second))
    report = await service.api.services.ledger.audit()
    assert not report.findings


async def test_of_secret_people_noisy_sums_are_kept_and_not_whose_they_are(service: Service) -> None:
    await hidden(service, 20, **ALIKE)
    await ask(service, share=0.2)
    for question in ({"statistic": "sd"}, {"range": "found"}):
        path = f"{STUDY}/statistics/{question.get('statistic', 'mean')}?share=0.1"
        if "range" in question:
            path += "&range=found"
        assert (await service.call("GET", path, "analyse")).status_code == 200
    connection = await asyncpg.connect(service.database_url)
    try:
        rows = await connection.fetch("SELECT refinable FROM piece")
        assert [row["refinable"] for row in rows] == [False, False]
        assert await connection.fetchval("SELECT max(cardinality(cohorts)) FROM piece") == 0
        assert (await service.api.services.ledger.audit()).clean
        await connection.execute("UPDATE piece SET sums[2] = sums[2] + 1")
    finally:
        await connection.close()
    assert (await service.api.services.ledger.audit()).findings
    # A share is an answer of its own, and so are the variance and its parameters.
    assert "combines" not in await mean(service, "?share=0.2")
    assert len((await mean(service))["combines"]) == 2


@pytest.mark.parametrize("question", [{"estimator": "uniform"}, {"statistic": "describe"}])
async def test_where_all_have_left_who_are_in_an_answer_those_who_came_are_asked(
    service: Service, question: dict[str, Any]
) -> None:
    await crowded(service, 40)
    made = await ask(service, share=0.5, **question)
    for place in range(40):
        await service.call("DELETE", f"{STUDY}/contributions/p{place}", "contribute")
    await join(service, 50, prefix="new")
    assert not (await service.call("GET", f"{STUDY}/plan", "analyse")).json()["free"]
    found = await mean(service)
    assert (found["people"], found["people_left_out"]) == (50, 0)
    assert found["epsilon_max"] > 0
    assert found["id"] != made["id"]
