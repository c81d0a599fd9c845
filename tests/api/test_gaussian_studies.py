"""Studies with Gaussian noise over HTTP: what many answers cost, and how accurate they are."""

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
