"""What plans predict of numbers that are read off a release, and what a former release says of it."""

import json
import math
from dataclasses import asdict, replace
from typing import Any

import pytest

from app.core.attributes import Attributes
from app.core.epsilon import MICRO
from app.core.grid import GRID_SIZE
from app.services.statistics import planned_errors
from app.services.statistics.kept_ends import written
from app.services.statistics.questions import Ask, resolve
from app.services.statistics.reading import Reading
from app.services.statistics.readings import read_off
from app.services.statistics.steps import plan_step, take
from dither_research import histories
from dither_research.histories import cohort_of

STUDY = replace(histories.STUDY, attributes=Attributes.of({"region": ["north", "south"]}))
WIDTH = float(STUDY.grid.width)
ASKS = [
    Ask(statistic="sum"),
    Ask(statistic="variance"),
    Ask(statistic="sd"),
    Ask(statistic="difference", between="region:north,south"),
    Ask(standardize="region:north=.2,south=.8"),
]


def test_noise_adds_up_as_squares_and_biases_as_they_are_up_to_the_range():
    assert planned_errors.weighted([(1.0, 3.0, 0.0), (-1.0, 4.0, 0.0)], 100.0) == pytest.approx(5)
    assert planned_errors.weighted([(1.0, 3.0, 3.0), (-1.0, 4.0, 4.0)], 100.0) == pytest.approx(7)
    assert planned_errors.weighted([(0.5, 3.0, 3.0), (0.5, 5.0, 3.0)], 100.0) == pytest.approx(
        math.hypot(3, 2)
    )
    assert planned_errors.weighted([(1.0, 3.0, 3.0), (-1.0, 4.0, 4.0)], 2.0) == 4
    assert planned_errors.largest([1.0, -0.5], 2.0) == 3


def test_a_former_release_says_no_error_of_what_it_did_not_predict():
    cohorts = [cohort_of(number, 4 * MICRO, [GRID_SIZE // 2] * 20, segment=number - 1) for number in (1, 2)]
    resolved = resolve(STUDY, Ask(by="region", share=MICRO // 2, tilt=0))
    step = plan_step(STUDY, cohorts, resolved, resolved.question(STUDY, people=40), [], None)
    assert step is not None
    found, _ = take(step, cohorts)
    assert found.variance is not None
    former: dict[str, Any] = {
        **asdict(found),
        **found.details,
        "sd": asdict(found.variance.root),
        "people": 40,
        "predicted_error": 0.25,
    }
    former = json.loads(written(former)[0])
    now = planned_errors.of_answer(former, step.plan, WIDTH)
    for ask in ASKS:
        reading = Reading.of(STUDY, ask)
        old, new = (json.loads(read_off(json.dumps(one).encode(), reading, STUDY)) for one in (former, now))
        assert old["estimate"] == new["estimate"]
        if ask.statistic == "sum":
            assert old["predicted_error"] == 10
            assert new["predicted_error"] == pytest.approx(40 * step.plan.predicted_error)
        else:
            assert old["predicted_error"] is None
            assert 0 < new["predicted_error"] < math.inf
