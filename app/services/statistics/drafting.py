"""One estimator's plan as it is shown, and an answer as it is to be published; without the database."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from app.accounting.measurement import recorded
from app.core.clock import Clock
from app.core.cohort import Cohort
from app.core.errors import BudgetExhausted, ServiceError
from app.core.release import AllUsed, Draft, StoredRelease
from app.core.study import Currency, Relation, Study, StudyDefinition, Trust
from app.estimators.expected import ExpectedValues
from app.estimators.interface import Conclusion, Estimator, NotApplicable, Plan, Question
from app.services.statistics import combining, combining_secret, planned_errors, planning, steps
from app.services.statistics.asked_accuracy import Readable
from app.services.statistics.combining import Combination
from app.services.statistics.crowds import Crowd
from app.services.statistics.drafts import NOT_REPORTED, Said, drafted
from app.services.statistics.levels import Level
from app.services.statistics.planning import NOT_COMBINED, Alone, Turnout
from app.services.statistics.questions import MEAN, SD, SUM, VARIANCE, Resolved
from app.services.statistics.reading import Reading
from app.services.statistics.steps import Step
from app.store.combined import Sources


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedEstimator:
    """Price and accuracy of one estimator.

    Attributes:
        estimator, summary: Name, and one line about it.
        predicted_error: Root mean square error about the dataset [the statistic's unit], at most that of the
            range.
        predicted_error_at_tilt_0: The same for a question without a tilt, if privacy and values have nothing
            to do with each other; None in add_remove_one studies.
        half_width: Half of the interval for the dataset, not cut off at the ends of the range, at most half
            of that; None in add_remove_one studies, and of shapes without one [the statistic's unit].
        population_predicted_error, population_half_width: As predicted_error and half_width, about the
            population that people were drawn from; None where that is not predicted.
        anytime_half_width: As half_width, of the interval that holds for all steps of the question at once;
            None of an answer without steps.
        epsilon_max: The most that any person would be charged [micro-epsilon, at the study's delta].
        epsilon_max_total: That with what the answers that it sharpens have charged [as `epsilon_max`].
        mu2_max: The same as `epsilon_max` in mu^2 [1e-6]; None in a study with Laplace noise.
        answers_left: How many more answers like this the study can give, see `statistics.answers_left`.
        chosen: Whether the question is answered with it.
        one_report_moves: How far one local report can move the answer; None without reports in it [the
            statistic's unit].
        statistics: What is read off the answer, at no further price.
        gain: Of a mean over a range that is found, see `shapes.found_plans.FoundPlan`; None of others.
        expected_range: The range that such a mean is planned for: its width [data's unit], and the release
            that found it, None of a guess; None of others.
        expected_values: What values the predicted error is about, see `estimators.expected`: mean and sd
            [data's unit], and whether that is a guess; None where it rests on no such thing.
        of_mean: The error of the mean, by which estimators are chosen [data's unit].
    """

    estimator: str
    summary: str
    predicted_error: float
    predicted_error_at_tilt_0: float | None
    epsilon_max: int
    epsilon_max_total: int
    one_report_moves: float | None
    statistics: tuple[str, ...]
    mu2_max: int | None = None
    answers_left: int | None = None
    half_width: float | None = None
    population_predicted_error: float | None = None
    population_half_width: float | None = None
    anytime_half_width: float | None = None
    chosen: bool = False
    gain: float | None = None
    expected_range: Mapping[str, object] | None = None
    expected_values: Mapping[str, object] | None = None
    of_mean: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Newcomers:
    """What renews the answer that stands, at its share: people of whom it has used less pay, no others.

    Attributes:
        people: Those who are charged.
        epsilon_max: The largest charge to one of them [micro-epsilon, at the study's delta].
        epsilon_max_total: The largest charge to any person by the renewed answer and those before it.
        mu2_max: The same as `epsilon_max` in mu^2 [1e-6]; None in a study with Laplace noise.
        predicted_error, half_width, population_predicted_error, population_half_width: Of the renewed answer,
            see `PlannedEstimator`.
    """

    people: int
    epsilon_max: int
    epsilon_max_total: int
    mu2_max: int | None
    predicted_error: float
    half_width: float
    population_predicted_error: float | None = None
    population_half_width: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A question that may be asked.

    Attributes:
        stands: The best answer to it so far; in add_remove_one studies the newest one to just this question.
        free: Whether what is read without a share charges no person: it combines what came after that.
        newcomers: What renewing that would take; None without newcomers, and in add_remove_one studies.
        share: What it would take of each epsilon in all [ppm].
        share_before: What it has taken [ppm].
        tilt: Of the question [ppm]; None of a count.
        assumption: What it and the predictions assume of people, in words; None of a count.
        level: add_remove_one: whom the answer would be about.
        estimators: Price and accuracy of every estimator that has an answer. The predicted error of a
            histogram or a quantile is that of a bin's share, or of a rank, as a part of all people.
        refusal: Why no estimator has an answer; None where one has.
    """

    share: int
    share_before: int = 0
    tilt: int | None
    assumption: str | None
    level: Level | None = None
    stands: StoredRelease | None
    free: bool = False
    newcomers: Newcomers | None = None
    estimators: Sequence[PlannedEstimator]
    refusal: ServiceError | None = None


def price(
    study: StudyDefinition,
    resolved: Resolved,
    people: Crowd,
    question: Question,
    estimator: Estimator,
    reading: Reading,
) -> PlannedEstimator | None:
    """What this estimator would do; under `auto` with the parameters that `auto` would take."""
    plain = replace(question, tilt=0.0)
    try:
        _, plan, question = planning.choose(study, people, resolved, question, among=[estimator])
        untilted = plan
        if resolved.tilt:
            _, untilted, _ = planning.choose(study, people, resolved, plain, among=[estimator])
    except NotApplicable:
        return None
    except ServiceError as refusal:
        if refusal.code == "budget_exhausted":
            return None
        raise
    costs = planning.charges(plan, people, study).column("epsilon")
    most = planning.epsilon_max(study, estimator, question, costs)
    reads = [Readable(study=study, plan=one, people=people.people) for one in (plan, untilted)]
    return planned(reading, estimator, question, *reads, most=most, most_in_all=most)


def planned(
    reading: Reading,
    estimator: Estimator,
    question: Question,
    read: Readable,
    untilted: Readable,
    *,
    most: int,
    most_in_all: int,
) -> PlannedEstimator:
    """How accurate an answer will be and what it charges at most, with those that it sharpens, as shown.

    Args:
        reading, estimator, question: What is read off the answer to which question.
        read: What it is read off.
        untilted: The same for a question without a tilt.
        most, most_in_all: [the study's currency].
    """
    study, accuracy = read.study, read.accuracy(reading)
    secret = study.relation is Relation.ADD_REMOVE_ONE
    return PlannedEstimator(
        estimator=estimator.name,
        summary=estimator.summary,
        predicted_error=accuracy.error,
        predicted_error_at_tilt_0=None if secret else untilted.accuracy(reading).error,
        epsilon_max=study.epsilon(most),
        epsilon_max_total=study.epsilon(most_in_all),
        mu2_max=most if study.noise is Currency.GAUSSIAN else None,
        one_report_moves=read.one_report(reading),
        statistics=statistics(study, read.plan, question),
        half_width=accuracy.half_width,
        population_predicted_error=accuracy.population_error,
        population_half_width=accuracy.population_half_width,
        anytime_half_width=accuracy.anytime_half_width,
        expected_values=_expected_values(study, reading, question.expected),
        of_mean=read.plan.predicted_error,
    )


def _expected_values(
    study: StudyDefinition, reading: Reading, expected: ExpectedValues
) -> Mapping[str, object] | None:
    """What values a predicted error is about; of a mean only where people are secret and one is published."""
    lower, width = float(study.grid.lower), float(study.grid.width)
    mean = lower + width * expected.place
    if reading.statistic in (VARIANCE, SD):
        return {"mean": mean, "sd": width * math.sqrt(expected.spread), "guess": expected.variance is None}
    if study.relation is Relation.REPLACE_ONE or expected.mean is None:
        return None
    return {"mean": mean, "sd": None, "guess": False}


def statistics(study: StudyDefinition, plan: Plan, answered: Question) -> tuple[str, ...]:
    """What is read off the answer of a plan; a sum only where the number of people is public."""
    sums = (SUM,) if study.relation is Relation.REPLACE_ONE else ()
    return MEAN, *sums, *((VARIANCE, SD) if planning.says_spread(study, plan, answered) else ())


def answer(study: Study, resolved: Resolved, made: Alone) -> Said:
    """Price, draw, read: an answer with noise of its own. Fails closed: whatever goes wrong, no answer."""
    people, plan, estimator, question = made.crowd, made.plan, made.estimator, made.question
    charges = planning.charges(plan, people, study.definition)
    values = planning.noisy(plan, people)
    if study.definition.relation is Relation.ADD_REMOVE_ONE:
        apart = combining_secret.apart(resolved, plan, values)
    else:
        apart = combining.apart(study.definition, resolved, people, plan, values, charges)
    most = planning.epsilon_max(study.definition, estimator, question, charges.column("epsilon"))
    noise = planning.noise_json(plan, [] if apart is None else [apart])
    return replace(
        _said(study.definition, resolved, made, plan.conclude(values), made.crowd),
        most=most,
        most_in_all=most,
        noise=recorded(noise, [planning.measured(plan, people)]),
        charges=charges,
        used=_used(people),
        apart=apart,
    )


def combined(
    study: Study, resolved: Resolved, made: Combination, sources: Sources, *, epoch: int, clock: Clock
) -> Draft:
    """What published answers say together, as an answer of its own: free, and without any noise."""
    said = replace(
        _said(study.definition, resolved, made, made.conclusion, made, why=NOT_COMBINED),
        most_in_all=made.epsilon_max_total,
        used=made.used,
        combines=sources.releases,
    )
    draft = drafted(study, replace(resolved, share=0), said, epoch=epoch, clock=clock)
    asked = resolved.combined()
    return replace(draft, question=asked.family, asked=asked, newest=sources.newest)


def next_step(study: Study, resolved: Resolved, step: Step, cohorts: Sequence[Cohort]) -> Said:
    """Draw and read: an answer that sharpens the one before it. Fails closed."""
    conclusion, taken = steps.take(step, cohorts)
    return replace(
        _said(study.definition, resolved, step, conclusion, step),
        most=step.most,
        most_in_all=step.most_in_all,
        noise=step.noise_json(taken),
        charges=step.charges,
        used=step.used,
        taken=taken,
    )


def _said(
    study: StudyDefinition,
    resolved: Resolved,
    made: Alone | Step | Combination,
    conclusion: Conclusion,
    turnout: Turnout,
    why: str = BudgetExhausted.code,
) -> Said:
    """What an answer for a mean says; with its own parameters: `auto` may have tried others than defaults."""
    plan, variance = made.plan, conclusion.variance

    def finished(document: dict[str, Any]) -> dict[str, Any]:
        if variance is not None:
            document |= {"variance": asdict(variance), "sd": asdict(variance.root)}
        return planned_errors.of_answer(document, plan, float(study.grid.width))

    return Said(
        estimator=made.estimator.name,
        version=made.estimator.version,
        parameters={**resolved.asked(), **made.question.parameters},
        numbers={
            "asked": resolved.estimator,
            "estimate": conclusion.estimate,
            "standard_error": conclusion.standard_error,
            "interval": asdict(conclusion.interval),
            "population_interval": asdict(conclusion.population_interval),
            **({} if conclusion.anytime is None else {"anytime": asdict(conclusion.anytime)}),
        },
        details=conclusion.details,
        finished=finished,
        people=turnout.people,
        left_out={why: turnout.left_out, NOT_REPORTED: turnout.silent},
        width=planning.interval_width(study, plan),
        variance=None if variance is None else variance.population_interval.upper,
        noise=planning.noise_json(plan),
    )


def _used(people: Crowd) -> AllUsed:
    """Every cohort whose sums may be in the answer, in the order of ids."""
    # What a central group offers; local and public people need not have anything left.
    offers = [
        (epsilon if trust is Trust.CENTRAL else 0) if participates else None
        for trust, epsilon, participates in zip(
            *map(people.groups.column, ("trust", "epsilon", "participates")), strict=True
        )
    ]
    here = zip(*map(people.cohorts.column, ("id", "count")), people.places, strict=True)
    return AllUsed.of_rows(
        ("cohort_id", "count", "offer"),
        [
            (cohort, count, offer)
            for cohort, count, place in sorted(here)
            if (offer := offers[place]) is not None
        ],
    )
