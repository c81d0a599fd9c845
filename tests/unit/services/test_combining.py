"""Combinations of published answers: the best weights, an honest error, and what is kept for them."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from scipy.stats import binom

from app.core.cohort import Cohort
from app.core.epsilon import MICRO
from app.core.grid import GRID_SIZE
from app.core.piece import Piece
from app.core.study import StudyDefinition, Trust
from app.services.statistics import combining, planning
from app.services.statistics.crowds import Crowd
from app.services.statistics.questions import Ask, resolve
from dither_research.histories import GAUSSIAN_STUDY, STUDY, cohort_of

PEOPLE, EPSILON, SHARE = 100, MICRO, MICRO // 4


def fresh(
    study: StudyDefinition, cohorts: Sequence[Cohort], estimator: str = "uniform"
) -> tuple[Piece, float]:
    """An answer with noise of its own: the sums that are kept of it, and its estimate."""
    resolved = resolve(study, Ask(estimator=estimator, share=SHARE, tilt=0))
    question = resolved.question(study, people=sum(cohort.count for cohort in cohorts))
    people = Crowd.of(study, cohorts, resolved)
    _, plan, _ = planning.choose(study, people, resolved, question)
    values = planning.noisy(plan, people)
    charges = planning.charges(plan, people, study)
    piece = combining.apart(study, resolved, people, plan, values, charges)
    assert piece is not None
    return piece, plan.conclude(values).estimate


def combine(
    study: StudyDefinition, cohorts: Sequence[Cohort], pieces: Sequence[Piece]
) -> combining.Combination:
    resolved = resolve(study, Ask(tilt=0))
    question = resolved.question(study, people=sum(cohort.count for cohort in cohorts))
    return combining.combine(study, cohorts, resolved, question, pieces)


STUDIES = pytest.mark.parametrize("study", [STUDY, GAUSSIAN_STUDY], ids=["laplace", "gaussian"])


@STUDIES
def test_what_is_kept_is_the_sum_that_the_answer_was_read_from(study: StudyDefinition) -> None:
    """Public people are taken off exactly, so the answer comes back from what is kept and from them."""
    central = cohort_of(1, 4 * EPSILON, [GRID_SIZE // 3] * PEOPLE)
    public = cohort_of(2, 0, [GRID_SIZE // 2] * 50, Trust.PUBLIC)
    piece, estimate = fresh(study, [central, public], "uniform")
    (weight,) = {member.weight for member in piece.members}
    assert [member.cohort_id for member in piece.members] == [1]
    times = MICRO if study is GAUSSIAN_STUDY else 1
    mine = piece.first / times / (weight * GRID_SIZE)
    assert (mine + 25) / 150 == pytest.approx(estimate, abs=1e-9)
    assert not piece.refinable


@STUDIES
def test_the_error_is_that_of_the_best_weights_for_sums_of_the_same_people(study: StudyDefinition) -> None:
    """Closed form: two equal sums of all people halve the noise, and nothing of what people differ by."""
    cohorts = [cohort_of(1, 4 * EPSILON, [GRID_SIZE // 2] * PEOPLE)]
    pieces = [fresh(study, cohorts)[0] for _ in range(2)]
    (weight,) = {member.weight for member in pieces[0].members}
    spread = (pieces[0].scale / (weight * PEOPLE * GRID_SIZE)) ** 2 * (1 if study is GAUSSIAN_STUDY else 2)
    for count in (1, 2):
        found = combine(study, cohorts, pieces[:count])
        shrinkage = found.conclusion.details.get("shrinkage", 1)
        assert isinstance(shrinkage, float | int)
        noise = found.conclusion.standard_error / shrinkage
        assert noise == pytest.approx(math.sqrt(spread / count), rel=1e-6)
        # Drawn to the middle, an answer errs by less; the same people count once.
        assert 0.9 * math.sqrt(spread / count) < found.plan.predicted_error <= math.sqrt(spread / count)
        most = math.sqrt(1 / 4 / PEOPLE + spread / count)
        assert 0.9 * math.sqrt(1 / 4 / PEOPLE) < (found.plan.population_error or 0) <= most


@pytest.mark.long
@STUDIES
def test_intervals_cover_also_after_people_have_left_and_come(study: StudyDefinition) -> None:
    """Of 300 studies at 95 %, more than 38 miss with a probability below 1e-7; a third as wide, more do."""
    generator = np.random.default_rng(5)
    studies, missed, missed_by_third = 300, 0, 0
    errors, stated = np.zeros((300, 2)), (0.0, 0.0)
    for number in range(studies):
        values = (generator.integers(0, 2, PEOPLE) * GRID_SIZE).tolist()
        first = [cohort_of(1, 4 * EPSILON, values)]
        pieces = [fresh(study, first)[0]]
        # Ten leave, and fifty come.
        stayed, came = values[10:], (generator.integers(0, 2, PEOPLE // 2) * GRID_SIZE).tolist()
        cohorts = [cohort_of(1, 4 * EPSILON, stayed), cohort_of(2, 4 * EPSILON, came)]
        pieces.append(fresh(study, cohorts, "adpm")[0])
        found = combine(study, cohorts, pieces)
        truth = float(np.mean(stayed + came)) / GRID_SIZE
        interval = found.conclusion.interval
        missed += not interval.lower <= truth <= interval.upper
        third = (interval.upper - interval.lower) / 6
        missed_by_third += not abs(found.conclusion.estimate - truth) <= third
        # About these people, and about others like them.
        errors[number] = found.conclusion.estimate - truth, found.conclusion.estimate - 0.5
        assert found.plan.population_error is not None
        stated = found.plan.predicted_error, found.plan.population_error
    assert missed <= 38
    assert missed_by_third > 38
    # Even where one Laplace is all of an error, the mean square of 300 is below 1.96 but once in a million.
    assert (np.sqrt(np.mean(np.square(errors), axis=0)) < 1.4 * np.array(stated)).all()
    assert binom.sf(38, studies, 0.05) < 1e-7


def test_an_answer_by_another_number_of_queries_keeps_nothing() -> None:
    study = STUDY
    cohorts = [cohort_of(1, EPSILON, [GRID_SIZE // 2] * PEOPLE)]
    resolved = resolve(study, Ask(share=SHARE))
    people = Crowd.of(study, cohorts, resolved)
    question = resolved.question(study, people=PEOPLE)
    _, plan, _ = planning.choose(study, people, resolved, question)
    values = planning.noisy(plan, people)
    charges = planning.charges(plan, people, study)
    assert combining.apart(study, resolved, people, plan, values, charges) is not None
    assert combining.apart(study, resolved, people, plan, values[:1], charges) is None
