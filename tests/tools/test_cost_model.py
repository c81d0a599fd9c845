"""The models of `make bench-scale`: they find what made the points, and say so where they do not."""

from pathlib import Path

import pytest

from benchmarks import cost_model, scale_page
from benchmarks.points import Cost, Point, Size, read, write

RELEASE, COHORT, PERSON = 0.02, 5e-5, 4e-7


def point(people: int, *, epsilons: int = 90, slow: float = 1.0) -> Point:
    """What a machine measures on which the first release costs this much for each of these."""
    seconds = slow * (RELEASE + COHORT * epsilons + PERSON * people)
    tables = {name: 1_000_000 for names in cost_model.TABLES.values() for name in names}
    return Point(
        size=Size(people=people, epsilons=epsilons),
        costs={"first release": [Cost(count=1, seconds=seconds, service=seconds / 2, database=seconds / 2)]},
        asked=tables,
        rows=dict.fromkeys(cost_model.TABLES, 1_000),
    )


KNOWN = [
    point(people, epsilons=epsilons) for people in (10_000, 100_000, 1_000_000) for epsilons in (10, 1_000)
]


def test_a_model_finds_the_costs_that_made_its_points() -> None:
    model = cost_model.fit(KNOWN)["first release, time"]
    assert model.coefficients == pytest.approx({"1": RELEASE, "cohorts": COHORT, "people": PERSON})
    assert model.ratios == pytest.approx([1.0] * len(KNOWN))


@pytest.mark.parametrize("slow", [0.5, 1.0, 3.0])
def test_a_prediction_is_off_by_what_the_machine_did_otherwise(slow: float) -> None:
    compared = cost_model.compare(KNOWN, point(10_000_000, slow=slow))["first release, time"]
    assert compared.measured / compared.predicted == pytest.approx(slow)
    assert cost_model.off(compared) == pytest.approx(max(slow, 1 / slow))


def test_an_interval_is_as_wide_as_the_points_lie_apart() -> None:
    model = cost_model.fit([*KNOWN, point(10_000_000, slow=2.0)])["first release, time"]
    variables = Size(people=100_000_000).variables
    lower, upper = model.interval(variables)
    assert lower < model.at(variables) < upper
    assert upper / lower == pytest.approx(max(model.ratios) / min(model.ratios))


def test_points_are_kept_as_they_are(tmp_path: Path) -> None:
    write(tmp_path / "points.json", KNOWN)
    assert read(tmp_path / "points.json") == KNOWN


def test_the_page_is_of_ten_million_people_and_within_the_goal_for_memory() -> None:
    largest = max(read(scale_page.RESULT), key=lambda one: one.size.people)
    assert largest.size.people == 10**7
    assert largest.service_memory < 500e6
