"""Do intervals hold where devices draw which measures they report, and are they no wider for it by a tilt?

Devices report one or two of three measures. Those who offer twice as much report two of them, with the same
epsilon for each, so that they are heard twice as often; what they have is smaller, by the tilt.
"""

from dataclasses import replace
from decimal import Decimal

import pytest
from scipy.stats import binom

from app.core.cohort import Cohort
from app.core.epsilon import MICRO
from app.core.grid import GRID_SIZE
from app.core.study import LocalMechanism, Relation, StudyDefinition, Trust
from app.estimators import registry
from app.estimators.interface import Conclusion
from app.services.statistics.crowds import Crowd
from app.services.statistics.questions import Ask, resolve
from tests.statistical import ALPHA
from tests.support.noise import NoiseSource
from tests.support.reports import report_scale

pytestmark = pytest.mark.statistical

RUNS = 400
EACH, MEASURES, TILT = 2_500_000, 3, 0.2
KINDS = ((1, 9000, 0.6), (2, 3000, 0.4))
"""How many measures they report, people, and their mean."""
MOST_MISSES = int(binom.isf(ALPHA, RUNS, 0.05))
"""A 95 % interval misses more often with a probability of at most ALPHA: each verdict's false-alarm rate."""

STUDY = StudyDefinition(
    slug="household",
    title="Household",
    lower=Decimal(0),
    upper=Decimal(1),
    relation=Relation.REPLACE_ONE,
    trust=frozenset(Trust),
    epsilon_min=10_000,
    epsilon_max=10 * MICRO,
    default_share=MICRO,
    local_mechanism=LocalMechanism.LAPLACE,
    tilt=round(TILT * MICRO),
)


def answers(source: NoiseSource, study: StudyDefinition, *, apart: bool) -> list[tuple[Conclusion, float]]:
    """Answers with the means of all people; offers apart by how many measures they report, or not."""
    resolved, found = resolve(study, Ask(estimator="optimal")), []
    for _ in range(RUNS):
        cohorts, total = [], 0.0
        for number, (reported, people, mean) in enumerate(KINDS):
            values = source.people.beta(4 * mean, 4 * (1 - mean), people)
            heard = values[source.people.random(people) < reported / MEASURES]
            drawn = heard + source.people.laplace(scale=report_scale(EACH) / GRID_SIZE, size=heard.size)
            reports = [round(report) for report in (drawn * GRID_SIZE).tolist()]
            total += float(values.sum())
            cohorts.append(
                Cohort(
                    id=number,
                    trust=Trust.LOCAL,
                    epsilon=EACH,
                    carried=0,
                    spent=EACH,
                    count=people,
                    total=sum(reports),
                    total_squares=sum(report * report for report in reports),
                    silent=people - heard.size,
                    reported=reported if apart else 0,
                )
            )
        crowd = Crowd.of(study, cohorts, resolved)
        question = resolved.question(study, people=crowd.people)
        estimator = registry.get(resolved.estimator, study.relation, study.noise)
        plan = estimator.plan(crowd.groups, registry.for_estimator(estimator, question))
        found.append((plan.conclude([0]), total / crowd.people))
    return found


def missed(answers: list[tuple[Conclusion, float]]) -> int:
    return sum(not one.interval.lower <= mean <= one.interval.upper for one, mean in answers)


def test_an_interval_covers_all_people_and_counts_no_tilt_for_what_was_drawn(source):
    found = answers(source, STUDY, apart=True)
    assert missed(found) <= MOST_MISSES
    # As if all of those who were not heard differed by the tilt it would be .11 on each side.
    assert max(one.interval.upper - one.interval.lower for one, _ in found) < 0.11


def test_control_people_who_are_heard_more_often_are_no_sample_of_all(source):
    """One sample of both kinds, as if all were drawn alike, without a tilt: what passes this is blind."""
    assert missed(answers(source, replace(STUDY, tilt=0), apart=False)) > 3 * MOST_MISSES
