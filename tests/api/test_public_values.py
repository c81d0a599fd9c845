"""Answers about public values have no noise, and are still no more exact than the values that are kept."""

import statistics
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from app.core.grid import Grid
from app.estimators.accuracy import PredictedErrors
from tests.api.service import Service

STEPS = 2**30
LABELS = ("f", "m")


async def asked(service: Service, study: str, statistic: str, **more: Any) -> Any:
    body = {"statistic": statistic, **more}
    response = await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json=body)
    assert response.status_code in (200, 201), response.text
    return response.json()


async def give(service: Service, study: str, values: Sequence[Any], **more: Any) -> None:
    field = "values" if isinstance(values[0], Mapping) else "value"
    for number, value in enumerate(values):
        record = {"subject": f"p{number}", field: value, "trust": "public"} | {
            name: labels[number % len(labels)] for name, labels in more.items()
        }
        path = f"/v1/studies/{study}/contributions"
        assert (await service.call("POST", path, "contribute", json=record)).status_code == 201


def assert_holds(answer: Mapping[str, Any], truth: float, most: float) -> None:
    """The interval holds the truth, is no wider than that, and is not said to be exact."""
    interval = answer["interval"]
    assert interval["lower"] <= truth <= interval["upper"], (truth, answer)
    assert interval["lower"] <= answer["estimate"] <= interval["upper"]
    assert interval["upper"] - interval["lower"] <= most
    assert interval["coverage"] != "exact"
    population = answer["population_interval"]
    assert population["lower"] <= interval["lower"]
    assert interval["upper"] <= population["upper"]


@pytest.mark.parametrize(
    ("upper", "values"),
    [
        (10**12, [1500] * 50),
        (120, [34] * 50),
        (120, [30, 70] * 25),
        (7, [0.1, 2.3, 6.9, 5] * 5),
        (3, [1] * 5 + [2] * 2),
    ],
)
async def test_the_interval_holds_the_values_as_they_were_given(
    service: Service, upper: int, values: list[float]
) -> None:
    study = await service.study(upper=upper, trust=["public"], attributes={"sex": list(LABELS)})
    await give(service, study, values, attributes=[{"sex": label} for label in LABELS])
    step, people = upper / STEPS * (1 + 1e-6), len(values)
    mean, variance = statistics.fmean(values), statistics.pvariance(values)
    assert_holds(await asked(service, study, "mean"), mean, step)
    assert_holds(await asked(service, study, "sum"), sum(values), people * step)
    assert_holds(await asked(service, study, "variance"), variance, 5 * upper * step)
    spread = await asked(service, study, "sd")
    assert spread["interval"]["lower"] <= variance**0.5 <= spread["interval"]["upper"]
    described = await asked(service, study, "describe")
    assert_holds(described["mean"], mean, step)
    by_label = await asked(service, study, "mean", by="sex")
    assert_holds(by_label, mean, 2 * step)
    own = {label: values[place :: len(LABELS)] for place, label in enumerate(LABELS)}
    for group in by_label["groups"]:
        assert_holds(group, statistics.fmean(own[group["where"]["sex"]]), step)
    between = await asked(service, study, "difference", between="sex:f,m")
    assert_holds(between, statistics.fmean(own["f"]) - statistics.fmean(own["m"]), 2 * step)


async def test_coordinates_and_covariances_hold_too(service: Service) -> None:
    points: list[list[float]] = [[34, 1], [7.1, 55.3], [100, 99.9]] * 4
    vectors = await service.study(upper=120, trust=["public"], dimension=2)
    await give(service, vectors, points)
    for place, one in enumerate((await asked(service, vectors, "mean"))["coordinates"]):
        assert_holds(one, statistics.fmean(point[place] for point in points), 120 / STEPS * 1.000001)
    measures = {"pay": {"lower": 0, "upper": 120}, "age": {"lower": 0, "upper": 120}}
    pairs = await service.study(lower=None, upper=None, trust=["public"], measures=measures)
    await give(service, pairs, [dict(zip(measures, point, strict=True)) for point in points])
    pay, age = ([point[place] for point in points] for place in range(2))
    truth = statistics.covariance(pay, age) * (len(points) - 1) / len(points)
    found = await asked(service, pairs, "covariance", measures="pay,age")
    # It has a little noise for public people, too.
    assert found["estimate"] == pytest.approx(truth, abs=0.05)


def test_noise_that_is_smaller_than_a_step_is_not_all_that_a_mean_is_off_by() -> None:
    grid = Grid(Decimal(0), Decimal(10) ** 12)
    errors = PredictedErrors(
        grid=grid,
        laplaces=((1e-13, 1),),
        dataset_variance=0.0,
        dataset_step=0.0,
        population_variance=0.0,
        population_step=0.0,
        exact=True,
    )
    kept = grid.point(1500, 0)
    assert kept is not None
    found = errors.conclude(Fraction(kept, STEPS)).interval
    assert found.lower <= 1500 <= found.upper
    assert found.coverage == "exact"
    assert errors.dataset_bound().half_width() == pytest.approx(errors.interval_width() / 2)


async def test_a_study_says_to_which_step_it_keeps_values(service: Service) -> None:
    wide = await service.study(upper=10**12)
    assert (await service.call("GET", f"/v1/studies/{wide}", "analyse")).json()["step"] == 10**12 / STEPS
    poll = await service.study(lower=None, upper=None, choices=["yes", "no"])
    assert (await service.call("GET", f"/v1/studies/{poll}", "analyse")).json()["step"] is None
