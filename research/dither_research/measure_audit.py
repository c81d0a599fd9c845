"""What `dither audit privacy` looks at of answers about several measures, and their planted bug.

Answers come out of the code that plans and takes steps (`app.services.statistics.steps`), one for each of two
measures, with the charges that it makes. One person has either end of both ranges as their values, beside
companions. What is looked at are the two noisy sums, in units of what the person moves them by: everything
else is post-processing of them.

Of a device that reports some measures it is which ones these are, and on which side of the middle of its
range each report lies. That each report costs the whole epsilon shows only where a device makes two of them,
a set that depends on the values only where it is not all.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

import numpy as np
from dither.device.measures import epsilon_of_each, reported, reports
from dither.device.randomizers import randomizer
from dither.device.shapes import HALF
from numpy.typing import NDArray

from app.core.cohort import Cohort
from app.core.epsilon import DELTA_UNIT, MICRO
from app.core.grid import GRID_SIZE
from app.core.measures import Measures
from app.core.noise import DiscreteGaussian, DiscreteLaplace, Noise
from app.core.study import Relation, StudyDefinition
from app.services.shapes.coordinates import CoordinatesPlan
from app.services.shapes.covariances import PairPlan
from app.services.shapes.kinds import make
from app.services.shapes.kinds import resolve as resolve_shape
from app.services.shapes.labels import LabelsPlan
from app.services.shapes.questions import CORRELATION, COVARIANCE
from app.services.statistics.crowds import Crowd
from app.services.statistics.questions import PAIR, Ask, resolve
from app.services.statistics.steps import MeanStep, plan_step, take
from dither_research.histories import STUDY, cohort_of
from dither_research.label_audit import BY_REGION, NOTHING
from dither_research.privacy_audit import Cells, Subject

MEASURES = Measures(["income:0:9000", "age:18:98"])
HOUSEHOLD = replace(STUDY, measures=MEASURES, dimension=2, lower=Decimal(0), upper=Decimal(1))
SHARE = MICRO // 2
EPSILON = 2 * MICRO
COMPANIONS = 5
PERSON = 1
DIMENSION = 2
STUDIES = [
    replace(STUDY, delta=delta, relation=relation)
    for delta in (0, DELTA_UNIT // 100)
    for relation in Relation
]
"""Of both relations and both currencies; at a large delta an audit sees most of Gaussian noise."""
PAIRS = [replace(HOUSEHOLD, delta=study.delta, relation=study.relation) for study in STUDIES]
MANY = 1000
EDGES = np.linspace(-1.9, 1.9, 9)
LIKELIER = np.linspace(-8, 8, 65)
SETS = (2, 1), (3, 1), (2, 5), (3, 5)
"""Measures and epsilons: a device reports one of them, two of three, and both of two."""


def measure_subjects() -> Iterator[Subject]:
    """Two measures as the service answers them."""
    yield _subject("two measures of a person", paid=("income", "age"))
    for study in PAIRS:
        for statistic in (COVARIANCE, CORRELATION):
            yield _pair_subject(study, statistic)
            yield _pair_subject(_by_region(study), statistic)
    for study in STUDIES:
        yield _coordinates_subject(study)
        yield _coordinates_subject(_by_region(study))
    for count, epsilon in SETS:
        yield report_subject(f"local reports of {count} measures, epsilon {epsilon}", count, epsilon)


def measure_controls() -> Iterator[Subject]:
    """The planted bugs."""
    yield _subject("two measures answered for the price of one", paid=("income",), planted=True)
    for study in PAIRS:
        # Of Gaussian noise an audit of a few thousand draws sees no half.
        for statistic in (COVARIANCE, CORRELATION):
            yield _pair_subject(study, statistic, part=4 if study.delta else 2)
            yield _pair_subject(_by_region(study), statistic, part=4 if study.delta else 2)
    yield _coordinates_subject(STUDY, part=2)
    for study in STUDIES:
        yield _coordinates_subject(_by_region(study), part=4 if study.delta else 2)
    yield report_subject("two local reports of the whole epsilon each", 3, 5, whole=True)
    yield report_subject("measures to report chosen by their values", 2, 1, largest=True)


def _by_region(study: StudyDefinition) -> StudyDefinition:
    return replace(study, attributes=BY_REGION.attributes)


def _pair_subject(study: StudyDefinition, statistic: str, *, part: int = 1) -> Subject:
    """A person of epsilon 2, or mu^2 2, whose numbers move, or who comes, where no other person was.

    Of a covariance the first number moves from one end to the other, and the second one is at an end; of a
    correlation both move. Who comes has both there.
    What is looked at is how much likelier one of both makes all noisy sums together: where the study has
    labels, those of the person's label and of another one.

    Args:
        study: Of which relation and currency, with or without labels.
        statistic: Of two numbers.
        part: Of which part of the price the claim is; above 1 that is the planted bug. Half of it is that of
            one number, or of the parts of a person who is replaced that of one who comes, or where a person
            comes that of parts that sum to 1, while they are added doubled.
    """
    secret, labels = study.relation is Relation.ADD_REMOVE_ONE, bool(study.attributes)
    ask = Ask(
        statistic=statistic,
        by="region" if labels else "",
        share=MICRO,
        tilt=None if secret else 0,
        parameters={PAIR: "income,age"},
    )
    made = make(
        study,
        resolve_shape(study, ask),
        [cohort_of(PERSON, 2 * MICRO, [0]), cohort_of(PERSON + 1, 2 * MICRO, [0], segment=1)][: 1 + labels],
    )
    plans = [label.plan for label in made.labels] if isinstance(made, LabelsPlan) else [made]
    of_labels = [plan for plan in plans if isinstance(plan, PairPlan)]
    (paid,) = (charge.epsilon for charge in made.charges() if charge.cohort_id == PERSON)
    product = GRID_SIZE // 4
    upper: Sequence[int] = (1, GRID_SIZE, GRID_SIZE, product)
    before: Sequence[int] = (1, 0, GRID_SIZE, -product)
    if statistic == CORRELATION:
        if secret or not study.delta:
            upper, before = (1, *[0] * 8, GRID_SIZE), (1, GRID_SIZE, *[0] * 8)
        else:
            upper, before = (*upper, product, product), (1, 0, 0, *[product] * 3)
    if secret:
        before = [0] * len(upper)
    neighbors = [{PERSON: one, PERSON + 1: upper} for one in (before, upper)]
    exact = [[_exact_pair(plan, sums) for sums in neighbors] for plan in of_labels]

    def drawn(neighbor: int, draws: int) -> Cells:
        likelier = np.zeros(draws)
        for plan, both in zip(of_labels, exact, strict=True):
            noisy = [plan.noisy(neighbors[neighbor])[0] for _ in range(draws)]
            likelier += _likelier(plan.plan.noise, noisy, *both)
        found: Cells = np.digitize(likelier, LIKELIER)
        return found

    name = f"{statistic}{' by region' if labels else ''}, {study.noise}"
    return _of_part(
        name + (", secret number of people" if secret else ""),
        study,
        paid,
        part,
        drawn,
        effort=0.5 if part > 1 else 1,
    )


def _exact_pair(plan: PairPlan, sums: Mapping[int, Sequence[int]]) -> NDArray[np.float64]:
    """The sums of two numbers without noise, of which there is one cohort."""
    ((cohort,),) = plan.crowd.members
    weight = plan.plan.weighing.weights[0]
    return weight * np.array(plan.plan.parts(*sums[cohort.id]), dtype=np.float64)


def _coordinates_subject(study: StudyDefinition, *, part: int = 1) -> Subject:
    """A person whose coordinates all move from one end to the other; or comes, all of them at one end.

    What is looked at is how much likelier one of both makes all noisy sums together: where the study has
    labels, those of the person's label, off which those of all people are read.

    Args:
        study: Of which relation and currency, with or without labels.
        part: Of which part of the price the claim is; above 1 that is the planted bug. With two coordinates
            half of it is that of one of them.
    """
    secret, labels = study.relation is Relation.ADD_REMOVE_ONE, bool(study.attributes)
    offer = 2 * MICRO
    study = replace(study, dimension=DIMENSION)
    ask = Ask(by="region" if labels else "", share=MICRO, tilt=None if secret else 0)
    question = resolve_shape(study, ask)
    others = cohort_of(PERSON + 1, offer, [0] * MANY, segment=1)

    def one(*values: int) -> tuple[CoordinatesPlan, Mapping[int, Sequence[int]]]:
        """The plan for many people at the lower end and no person or one, and what people add up to."""
        person = cohort_of(PERSON, offer, [*values, *[0] * MANY])
        sums = {
            one.id: (one.count, *[one.total] * DIMENSION, *[one.total_squares] * DIMENSION)
            for one in (person, others)
        }
        if not labels:
            return CoordinatesPlan.of_crowd(study, question, Crowd.of(study, [person], question)), sums
        plan = LabelsPlan.of(study, question, [person, others]).labels[0].plan
        assert isinstance(plan, CoordinatesPlan)
        return plan, sums

    neighbors = one() if secret else one(0), one(GRID_SIZE)
    exact = [_exact(plan, sums) for plan, sums in neighbors]

    def drawn(neighbor: int, draws: int) -> Cells:
        plan, sums = neighbors[neighbor]
        likelier = _likelier(plan.noise, [plan.noisy(sums)[0] for _ in range(draws)], *exact)
        found: Cells = np.digitize(likelier, LIKELIER)
        return found

    (paid,) = (charge.epsilon for charge in neighbors[1][0].charges() if charge.cohort_id == PERSON)
    name = f"mean of {DIMENSION} coordinates{' by region' if labels else ''}, {study.noise}"
    name += ", secret number of people" if secret else ""
    return _of_part(name, study, paid, part, drawn, effort=0.8 if part == 2 else 0.4)


def _of_part(
    name: str,
    study: StudyDefinition,
    paid: int,
    part: int,
    drawn: Callable[[int, int], Cells],
    effort: float = 1,
) -> Subject:
    """A subject that claims a part of what its person pays; above 1 that is the planted bug.

    Args:
        name: Of the subject.
        study: Of which currency.
        paid: By the person [the study's currency].
        part: Of which part of that the claim is.
        drawn: Outputs on neighbor 0 or 1, as cells, from its number and how many.
        effort: See `Subject`.
    """
    return Subject(
        name=f"{name}, charged for 1/{part} of the price" if part > 1 else name,
        claimed=study.epsilon(paid // part) / MICRO,
        delta=study.delta / DELTA_UNIT,
        outputs=lambda draws: (drawn(0, draws), drawn(1, draws)),
        planted=part > 1,
        effort=effort,
    )


def _exact(plan: CoordinatesPlan, sums: Mapping[int, Sequence[int]]) -> NDArray[np.float64]:
    """The queries of all coordinates, which are alike, without noise."""
    groups = [[sums[one.id] for one in cohorts] for cohorts in plan.crowd.members]
    totals = [sum(one[1] for one in own) for own in groups]
    counts = [sum(one[0] for one in own) * GRID_SIZE for own in groups]
    squares = [sum(one[-1] for one in own) for own in groups]
    values = [query.value(totals, counts, squares) for query in plan.queries]
    return np.array(values, dtype=np.float64)


def _likelier(
    noise: Noise, noisy: Sequence[Sequence[int]], first: NDArray[np.float64], second: NDArray[np.float64]
) -> NDArray[np.float64]:
    """By how much the second of two exact answers makes noisy sums likelier than the first one [log]."""
    made = np.array(noisy, dtype=np.float64)
    if isinstance(noise, DiscreteGaussian):
        terms = ((made - first) ** 2 - (made - second) ** 2) / (2 * np.square(noise.sigmas))
    elif isinstance(noise, DiscreteLaplace):
        terms = (np.abs(made - first) - np.abs(made - second)) / np.array(noise.scales)
    likelier: NDArray[np.float64] = terms.sum(axis=1)
    return likelier


def planned(values: Mapping[str, Sequence[int]], measure: str) -> tuple[list[Cohort], MeanStep]:
    """The cohort of a person and companions as a question about one measure sees it, and the answer's step.

    Args:
        values: Of each measure the person's grid point.
        measure: Which one.
    """
    cohorts = [
        cohort_of(PERSON, EPSILON, values[measure]),
        cohort_of(2, EPSILON, [GRID_SIZE] * COMPANIONS),
    ]
    resolved = resolve(HOUSEHOLD, Ask(measure=measure, estimator="uniform", share=SHARE, tilt=0))
    definition = HOUSEHOLD.of_measure(measure)
    question = resolved.question(definition, people=sum(cohort.count for cohort in cohorts))
    step = plan_step(definition, cohorts, resolved, question, [], None)
    if step is None:
        raise ValueError("a mean of a replace_one study is answered by steps")
    return cohorts, step


def _subject(name: str, *, paid: Sequence[str], planted: bool = False) -> Subject:
    """Answers about both measures, of which a person is charged for some."""

    def outputs(draws: int) -> tuple[Cells, Cells]:
        one, other = (_cells(value, draws) for value in (0, GRID_SIZE))
        return one, other

    at_zero = {name: [0] for name in MEASURES.named}
    charged = sum(
        charge.epsilon
        for measure in paid
        for charge in planned(at_zero, measure)[1].charges
        if charge.cohort_id == PERSON
    )
    return Subject(
        name=name,
        claimed=charged / MICRO,
        outputs=outputs,
        planted=planted,
        effort=0.4 if planted else 1,
    )


def _cells(value: int, draws: int) -> Cells:
    """Cells of the log-likelihood ratio of the two noisy sums together, in units of one charge."""
    ratio = np.zeros(draws)
    values = {name: [value] for name in MEASURES.named}
    for measure in MEASURES.named:
        cohorts, step = planned(values, measure)
        read = replace(step, plan=replace(step.plan, conclude=lambda _: NOTHING))
        sums = np.array([take(read, cohorts)[1].changed[0].first for _ in range(draws)], dtype=np.float64)
        (piece,) = step.pieces
        own = sums / (piece.members[0].weight * GRID_SIZE) - COMPANIONS
        ratio += np.abs(own - 1) - np.abs(own)
    found: Cells = np.digitize(ratio, EDGES)
    return found


def report_subject(
    name: str, count: int, epsilon: int, *, whole: bool = False, largest: bool = False
) -> Subject:
    """What a device sends whose measures go up from one to the next, or down: ends of their ranges.

    Args:
        name: Of the subject.
        count: Measures.
        epsilon: Of the person [1].
        whole: Planted: each report costs all of it.
        largest: Planted: the largest values are reported.
    """
    device, offer = randomizer("duchi"), epsilon * MICRO

    def sent(points: Sequence[int]) -> Mapping[int, int]:
        if not (whole or largest):
            return reports([device] * count, points, offer)
        places = list(reports([device] * count, points, offer))
        if largest:
            places = sorted(range(count), key=lambda place: -points[place])[: reported(offer, count)]
        each = offer if whole else epsilon_of_each(offer, count)
        return {place: device.report(points[place], each) for place in places}

    def drawn(points: Sequence[int], draws: int) -> Cells:
        """A digit of base 3 for each measure: not reported, low, high."""
        made = (sent(points) for _ in range(draws))
        codes = [sum(3**place * (1 + (report > HALF)) for place, report in one.items()) for one in made]
        found: Cells = np.array(codes, dtype=np.int64)
        return found

    def outputs(draws: int) -> tuple[Cells, Cells]:
        up = [GRID_SIZE * (place % 2) for place in range(count)]
        return drawn(up, draws), drawn([GRID_SIZE - point for point in up], draws)

    return Subject(name=name, claimed=float(epsilon), outputs=outputs, planted=whole or largest)
