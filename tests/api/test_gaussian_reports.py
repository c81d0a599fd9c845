"""Local people of studies with Gaussian noise: choices and measures, whose reports mu^2 pays for."""

from typing import Any

import pytest
from dither.device.choices import ChoiceRandomizer, choice_points
from dither.device.gaussian import micro_mu2, pure_epsilon
from dither.device.measures import epsilon_of_each, reports
from dither.device.randomizers import randomizer

from tests.api.service import Service, assert_problem
from tests.api.test_measures import household
from tests.api.test_shapes import get

MICRO, DELTA = 1_000_000, 1_000_000
GAUSSIAN = {"noise": "gaussian", "delta": 1e-6, "epsilon": {"min": 1, "max": 10}}
COLORS = ["red", "green", "blue"]
MEASURES = {"income": {"lower": 0, "upper": 9000}, "party": {"choices": COLORS}}
DEVICES = (randomizer("hybrid"), ChoiceRandomizer(3))
GREEN = choice_points(3)[1]


def worth(epsilon: int) -> int:
    return pure_epsilon(micro_mu2(epsilon * MICRO, DELTA))


async def load(service: Service, study: str, records: list[dict[str, Any]]) -> None:
    path = f"/v1/studies/{study}/contributions/batch"
    response = await service.call("POST", path, "contribute", json=records)
    assert response.json()["created"] == len(records), response.text


@pytest.mark.long
async def test_reports_of_a_choice_are_debiased_by_what_they_were_randomized_with(service: Service) -> None:
    """Shares within six standard errors, false alarm 6e-9; read with the whole epsilon they are not."""
    terms = {"choices": COLORS, "trust": ["central", "local"], **GAUSSIAN}
    study = await service.study(lower=None, upper=None, **terms)
    device, people = ChoiceRandomizer(3), 8_000
    chosen = [choice_points(3)[0 if number < people // 2 else 1] for number in range(people)]
    await load(
        service,
        study,
        [
            {"subject": f"l{n}", "report": device.report(point, worth(5)), "epsilon": 5, "trust": "local"}
            for n, point in enumerate(chosen)
        ],
    )
    answer = await get(service, study, "statistics/shares")
    found = {one["choice"]: one for one in answer["choices"]}
    assert answer["epsilon_max"] == 0, "reports were paid on arrival"
    for choice, share in {"red": 0.5, "green": 0.5, "blue": 0.0}.items():
        lower, upper = (found[choice]["interval"][end] for end in ("lower", "upper"))
        standard_error = (upper - lower) / 2 / 1.96
        assert abs(found[choice]["share"] - share) < 6 * standard_error, found
    drawn, whole = device.range(worth(5)), device.range(5 * MICRO)
    naive = ((drawn.kept + drawn.other) / 2 - whole.other) / (whole.kept - whole.other)
    lower, upper = (found["red"]["interval"][end] for end in ("lower", "upper"))
    assert abs(float(naive) - 0.5) > 6 * (upper - lower) / 2 / 1.96, "the control"
    person = (await service.call("GET", "/v1/subjects/l0/budget", "admin")).json()
    assert person["gaussian"]["mu2"]["reserved"] == pytest.approx(micro_mu2(5 * MICRO, DELTA) / MICRO)


async def test_reports_of_measures_share_the_pure_epsilon(service: Service) -> None:
    """A device reports as many as the pure epsilon is worth: one of two at epsilon 10, which is 1.4 there."""
    study = await household(service, measures=MEASURES, trust=["central", "local"], **GAUSSIAN)
    described = await service.call("GET", f"/v1/studies/{study}", "analyse")
    assert described.json()["local_mechanism"] == "hybrid"
    sent: list[dict[str, Any]] = []
    for number in range(600):
        drawn = reports(DEVICES, (1 << 30, GREEN), worth(10))
        assert len(drawn) == 1
        named = {list(MEASURES)[place]: report for place, report in drawn.items()}
        sent.append({"subject": f"l{number}", "reports": named, "epsilon": 10, "trust": "local"})
    await load(service, study, sent)
    mean = await get(service, study, "statistics/mean", measure="income")
    # Sums of bounded reports: six deviations are a false alarm of 2e-9.
    assert abs(mean["estimate"] - 9000) < 6 * mean["standard_error"]
    noise = DEVICES[0].noise(epsilon_of_each(worth(10), 2)).worst ** 0.5 / 2**30 * 9000
    reporting = sum("income" in one["reports"] for one in sent)
    assert mean["standard_error"] == pytest.approx(noise / reporting**0.5, rel=0.2)
    shares = await get(service, study, "statistics/shares", measure="party")
    (green,) = (one for one in shares["choices"] if one["choice"] == "green")
    assert abs(green["share"] - 1) < 6 * shares["predicted_error"]
    both = {"income": 1 << 30, "party": 2}
    refused = await service.call(
        "POST",
        f"/v1/studies/{study}/contributions",
        "contribute",
        json={"subject": "greedy", "reports": both, "epsilon": 10, "trust": "local"},
    )
    assert_problem(refused, "invalid_request", 422, "reports")


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
async def test_measures_need_reports_with_a_range(service: Service, mechanism: str) -> None:
    document = {
        "slug": "impossible",
        "measures": MEASURES,
        "trust": ["local"],
        "local_mechanism": mechanism,
        **(GAUSSIAN if mechanism == "gaussian" else {}),
    }
    response = await service.call("POST", "/v1/studies", "admin", json=document)
    assert_problem(response, "invalid_request", 422, "local_mechanism")
