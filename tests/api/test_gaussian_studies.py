"""Studies with Gaussian noise over HTTP: what many answers cost, and how accurate they are."""

from typing import Any

import pytest

from tests.api.service import Service, assert_problem

PEOPLE, ANSWERS = 40, 100
NOISY = {"noise": "gaussian", "delta": 0.000001}


@pytest.mark.long
async def test_a_hundred_answers_have_a_tenth_of_laplace_noises_variance(service: Service) -> None:
    """Everybody offers (1, 1e-6), or 1; both studies give 100 answers, and no more."""
    errors = {}
    for name, noise in (("pure", {}), ("noisy", NOISY)):
        study = await service.study(slug=name, tilt=0, **noise)
        for number in range(PEOPLE):
            await service.contribute(study, f"{name}-{number}", epsilon=1)
        question = {"estimator": "uniform", "share": 1 / ANSWERS, "fresh": True}
        found = set()
        for _ in range(ANSWERS):
            made = await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json=question)
            assert made.status_code == 201, made.text
            found.add(made.json()["standard_error"])
        (errors[name],) = found
        more = await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json=question)
        assert more.status_code == 409
    assert errors["noisy"] ** 2 < 0.1 * errors["pure"] ** 2
    budget = (await service.call("GET", "/v1/subjects/noisy-0/budget", "admin")).json()
    assert budget["epsilon"]["reserved"] == 0
    # 0.056028, of which each answer takes a hundredth, rounded down.
    assert budget["gaussian"]["mu2"]["reserved"] == 0.056028
    assert budget["gaussian"]["mu2"]["spent"] == 0.056
    (line,) = budget["studies"]
    assert (line["mu2"], line["mu2_spent"]) == (0.056028, 0.056)
    assert 0.99 < line["spent"] < line["epsilon"] <= 1


async def test_what_a_person_lacks_is_said_in_mu2(service: Service) -> None:
    study = await service.study(**NOISY, epsilon={"min": 0.1, "max": 100})
    body = {"subject": "ada", "value": 1, "epsilon": 50, "trust": "central"}
    refused = await service.call("POST", f"/v1/studies/{study}/contributions", "contribute", json=body)
    problem = assert_problem(refused, "budget_exhausted", 409)
    assert "mu^2: 4.001782 is left" in str(problem)


async def crowded(service: Service, study: str) -> None:
    """People with three epsilons."""
    await service.study(slug=study, lower=0, upper=120, **NOISY)
    records = [
        {"subject": f"{study}-{epsilon}-{place}", "value": place, "epsilon": epsilon, "trust": "central"}
        for epsilon in (0.3, 0.5, 1)
        for place in range(10)
    ]
    done = await service.call("POST", f"/v1/studies/{study}/contributions/batch", "contribute", json=records)
    assert done.json()["created"] == 30, done.text


async def charged(service: Service, study: str) -> dict[float, int]:
    """What all releases have charged, by what was offered [1e-6 of mu^2]."""
    page = await service.call("GET", f"/v1/studies/{study}/releases?limit=200", "admin")
    sums: dict[float, int] = {}
    for release in page.json()["items"]:
        for charge in release["charges"]:
            sums[charge["offered"]] = sums.get(charge["offered"], 0) + round(charge["mu2"] * 1e6)
    return sums


async def ask(service: Service, study: str, **question: Any) -> dict[str, Any]:
    made = await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json=question)
    assert made.status_code == 201, made.text
    return dict(made.json())


@pytest.mark.long
@pytest.mark.parametrize("estimator", ["uniform", "adpm", "optimal", "auto"])
async def test_ten_steps_charge_to_the_micro_what_one_answer_does(service: Service, estimator: str) -> None:
    await crowded(service, "steps")
    answers = []
    for step in range(1, 11):
        planned = await service.call(
            "GET", f"/v1/studies/steps/plan?estimator={estimator}&share={step / 10}", "analyse"
        )
        answers.append(await ask(service, "steps", estimator=estimator, share=step / 10))
        (chosen,) = [one for one in planned.json()["estimators"] if one["chosen"]]
        for name in ("epsilon_max", "mu2_max", "epsilon_max_total"):
            assert chosen[name] == answers[-1][name]
    assert [answer["share_before"] for answer in answers] == [step / 10 for step in range(10)]
    assert [answer["refines"] for answer in answers] == [None, *(answer["id"] for answer in answers[:-1])]
    errors = [answer["standard_error"] / answer.get("shrinkage", 1) for answer in answers]
    assert errors == sorted(errors, reverse=True)
    await crowded(service, "once")
    once = await ask(service, "once", estimator=estimator, share=1)
    await crowded(service, "fresh")
    fresh = await ask(service, "fresh", estimator=estimator, share=1, fresh=True)
    assert (
        await charged(service, "steps") == await charged(service, "once") == await charged(service, "fresh")
    )
    for other in (once, fresh):
        assert errors[-1] == pytest.approx(other["standard_error"] / other.get("shrinkage", 1), rel=1e-9)
        assert answers[-1]["mu2_max_total"] == other["mu2_max_total"]


async def test_newcomers_and_leavers_of_a_study_with_gaussian_noise(service: Service) -> None:
    await crowded(service, "minutes")
    first = await ask(service, "minutes", estimator="adpm", share=0.5)
    joined = [
        {"subject": f"new{place}", "value": 9, "epsilon": 0.5, "trust": "central"} for place in range(30)
    ]
    await service.call("POST", "/v1/studies/minutes/contributions/batch", "contribute", json=joined)
    renewed = await ask(service, "minutes", estimator="adpm", share=0.5)
    assert (renewed["people"], renewed["share"], renewed["refines"]) == (60, 0.5, first["id"])
    shown = await service.call("GET", f"/v1/releases/{renewed['id']}", "admin")
    assert [one["people"] for one in shown.json()["charges"]] == [30]
    gone = await service.call("DELETE", "/v1/studies/minutes/contributions/new0", "contribute")
    assert gone.status_code == 204
    more = await ask(service, "minutes", estimator="adpm", share=1, allow_worse=True)
    assert (more["people"], more["interval"]["coverage"]) == (59, "worst_case")
    assert more["standard_error"] < renewed["standard_error"]
    assert (await service.api.services.ledger.audit()).findings == []
