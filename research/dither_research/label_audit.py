"""What `dither audit privacy` looks at of answers by labels, and their planted bug.

Answers come out of the code that plans and takes them (`app.services.statistics.steps`), with the charges
that it makes. One person in a label has either end of the range as their value, beside companions in this
label and in another one. What is looked at are the noisy sums of both labels, in units of what the person
moves the first of them by: everything else is post-processing of them.

Where labels are as secret as presence (`app.estimators.labels_secret`) the person is there or not, or has one
label or the other, which is two neighbors and costs twice as much.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal

import numpy as np

from app.core.attributes import Attributes
from app.core.cohort import Cohort
from app.core.epsilon import MICRO
from app.core.grid import GRID_SIZE
from app.core.study import Relation, StudyDefinition
from app.estimators.found_range import find
from app.estimators.interface import Conclusion, Interval, Plan
from app.services.shapes import kinds as shape_kinds
from app.services.shapes import questions as shape_questions
from app.services.shapes.found_plans import FoundPlan
from app.services.shapes.labels import LabelsPlan
from app.services.shapes.plans import ShapePlan, noisy_counts
from app.services.statistics import planning
from app.services.statistics.crowds import Crowd
from app.services.statistics.questions import Ask, resolve
from app.services.statistics.steps import MeanStep, plan_step, take
from dither_research.histories import STUDY, cohort_of
from dither_research.privacy_audit import STEPS, Cells, Subject, cells
from dither_research.shape_audit import BESIDE, COARSE, PART

BY_REGION: StudyDefinition = replace(STUDY, attributes=Attributes.of({"region": ["north", "south"]}))
BY_CELL: StudyDefinition = replace(
    STUDY, attributes=Attributes.of({"region": ["north", "south"], "age": ["-29", "30-"]})
)
BY_SECRET_REGION: StudyDefinition = replace(BY_REGION, relation=Relation.ADD_REMOVE_ONE)
CHOICES = ("red", "green", "blue")
SHARE = MICRO // 2
SECRET = 2 * MICRO
"""The epsilon of people whose labels are secret."""
EPSILON = 4 * MICRO
COMPANIONS = 5
MANY = 300
"""People of each label beside the one who moves: enough to be seen, all at the lower end."""
PERSON = 1
EDGES = np.linspace(-1, 1, 5)
ANYWHERE = Interval(level=1.0, lower=0.0, upper=1.0, coverage="worst_case")
NOTHING = Conclusion(estimate=0.0, standard_error=0.0, interval=ANYWHERE, population_interval=ANYWHERE)


def label_subjects() -> Iterator[Subject]:
    """Answers by labels as the service makes them."""
    yield _subject("a mean by region, in one region", part=1.0)
    yield _subject("a mean by region and age, in one cell", part=1.0, by="region,age")
    yield _secret_subject("a mean by secret region, one person more", moves=1, charges=1)
    yield _secret_subject("a mean by secret region, a person who moves", moves=2, charges=2)
    for relation in Relation:
        yield _shares_subject(f"shares by region, {relation}", relation)
    yield _median_subject("a median by region, of the label and of all people")
    yield _count_subject("counts by secret region, one person more")
    for relation in Relation:
        yield _found_subject(f"a found range by region, {relation}", relation)


def label_controls() -> Iterator[Subject]:
    """The planted bug."""
    yield _subject("a label charged only for half of its move", part=0.5, planted=True)
    yield _subject("a cell charged only for half of its move", part=0.5, by="region,age", planted=True)
    yield _secret_subject(
        "a secret label charged only for half of its move", moves=2, charges=1, planted=True
    )
    yield _shares_subject(
        "shares of a label charged only for half of their moves", Relation.REPLACE_ONE, part=0.5, planted=True
    )
    yield _median_subject("a median by region charged for its first three levels", planted=True)
    yield _count_subject("counts by secret region charged only for half of a person", planted=True)
    yield _found_subject(
        "a found range by region that charges no one for labels", Relation.REPLACE_ONE, planted=True
    )


def _subject(name: str, *, part: float, by: str = "region", planted: bool = False) -> Subject:
    """An answer by labels, of which a person is charged a part of what it costs."""

    def outputs(draws: int) -> tuple[Cells, Cells]:
        one, other = (_cells(value, draws, by) for value in (0, GRID_SIZE))
        return one, other

    charged = {charge.cohort_id: charge.epsilon for charge in _planned(0, by)[1].charges}[PERSON]
    return Subject(
        name=name,
        claimed=part * charged / MICRO,
        outputs=outputs,
        planted=planted,
        effort=0.4 if planted else 1,
    )


def _planned(value: int, by: str) -> tuple[list[Cohort], MeanStep]:
    """The person's cohort, companions of the same cell, others who share one label at most, and the step."""
    cohorts = [
        cohort_of(PERSON, EPSILON, [value]),
        cohort_of(2, EPSILON, [GRID_SIZE] * COMPANIONS),
        cohort_of(3, EPSILON, [GRID_SIZE] * COMPANIONS, segment=1),
    ]
    study = BY_REGION if by == "region" else BY_CELL
    resolved = resolve(study, Ask(by=by, estimator="uniform", share=SHARE, tilt=0))
    question = resolved.question(study, people=sum(cohort.count for cohort in cohorts))
    step = plan_step(study, cohorts, resolved, question, [], None)
    assert step is not None
    return cohorts, step


def _cells(value: int, draws: int, by: str) -> Cells:
    """Where the noisy sum of the person's label lies, and whether that of the other is above its mean."""
    cohorts, step = _planned(value, by)
    read = replace(step, parts=(), plan=replace(step.plan, conclude=lambda _: NOTHING))
    sums = np.empty((draws, 2))
    for draw in range(draws):
        sums[draw] = [piece.first for piece in take(read, cohorts)[1].changed]
    weights = np.array([piece.members[0].weight for piece in step.pieces], dtype=np.float64)
    own, other = (sums / (weights * GRID_SIZE) - COMPANIONS).T
    found: Cells = np.digitize(np.abs(own - 1) - np.abs(own), EDGES) * 2 + (other > 0)
    return found


def _secret_subject(name: str, *, moves: int, charges: int, planted: bool = False) -> Subject:
    """A person joins the first label, after leaving the second one if there are two moves.

    Args:
        name: What it is.
        moves: How many neighbors lie between the two inputs.
        charges: For how many of them it claims to charge.
        planted: Whether these are too few.
    """
    before = None if moves == 1 else 1

    def outputs(draws: int) -> tuple[Cells, Cells]:
        one, other = (_secret_cells(place, draws, moves) for place in (before, 0))
        return one, other

    people, plan = _secret_plan(0)
    charged = max(charge.epsilon for charge in planning.charges(plan, people, BY_SECRET_REGION))
    return Subject(name=name, claimed=charges * charged / MICRO, outputs=outputs, planted=planted)


def _shares_subject(name: str, relation: Relation, *, part: float = 1.0, planted: bool = False) -> Subject:
    """A person of the first label who makes either of two choices, or who comes to the second one.

    What is looked at are the noisy counts of both choices, in the person's label and in the other one.

    Args:
        name: Of the subject.
        relation: The neighboring relation.
        part: Of what it costs it claims.
        planted: Whether that is too little.
    """
    study = replace(BY_REGION, choices=CHOICES, relation=relation, epsilon_min=MICRO, epsilon_max=MICRO)
    tilt = 0 if relation is Relation.REPLACE_ONE else None
    question = shape_kinds.resolve(
        study, Ask(statistic=shape_questions.SHARES, by="region", share=MICRO, tilt=tilt)
    )
    people = [cohort_of(PERSON, MICRO, [0]), cohort_of(2, MICRO, [0] * COMPANIONS, segment=1)]
    made = LabelsPlan.of(study, question, people)
    plans = [label.plan for label in made.labels if isinstance(label.plan, ShapePlan)]
    neighbors = ((1, 0, 0), (0, 1, 0)) if relation is Relation.REPLACE_ONE else ((0, 0, 0), (0, 1, 0))

    def drawn(counts: Sequence[int], draws: int) -> Cells:
        both = {PERSON: counts, 2: (0, COMPANIONS, 0)}
        noisy = [[count for plan in plans for count in plan.noisy(both)[0][:2]] for _ in range(draws)]
        values = np.array(noisy, dtype=np.float64)
        own = cells(values[:, :2], np.full(2, float(MICRO)), STEPS)
        found: Cells = own * 2 + (values[:, 3] > COMPANIONS * MICRO)
        return found

    def outputs(draws: int) -> tuple[Cells, Cells]:
        first, second = (drawn(counts, draws) for counts in neighbors)
        return first, second

    return Subject(name=name, claimed=part * made.most / MICRO, outputs=outputs, planted=planted)


def _median_subject(name: str, *, planted: bool = False) -> Subject:
    """A person who moves between two cells of both trees: those of the own label, and of all people.

    What is looked at is which counts of the last level are above what they are on average.

    Args:
        name: Of the subject.
        planted: Whether it claims the price of the first three levels of both.
    """
    asked = Ask(statistic=shape_questions.MEDIAN, by="region", share=MICRO, tilt=0)
    question = shape_kinds.resolve(BY_REGION, asked)
    people = [cohort_of(PERSON, 4 * MICRO, [0] * 4), cohort_of(2, 4 * MICRO, [0] * 2, segment=1)]
    made = LabelsPlan.of(BY_REGION, question, people)
    trees = [tree for tree in made.trees if PERSON in tree.sizes]
    assert len(trees) == 2, "the label's, and that of all people"

    def drawn(mine: int, draws: int) -> Cells:
        counts = {PERSON: [3 + (mine == 0), mine != 0], 2: [2, 0]}
        found: Cells = np.zeros(draws, dtype=np.int64)
        for tree in trees:
            last = tree.plan.levels - 1
            noisy = np.array([tree.level(last, (1,), counts).counts for _ in range(draws)], dtype=np.float64)
            weight = tree.plan.weighing.weights[0]
            others = weight * (3 + 2 * (2 in tree.sizes))
            above = (noisy - [others, 0] > weight / 2).astype(np.int64)
            found = found * 4 + above[:, 0] * 2 + above[:, 1]
        return found

    def outputs(draws: int) -> tuple[Cells, Cells]:
        first, second = (drawn(mine, draws) for mine in (1, 0))
        return first, second

    claimed = made.most / MICRO / (4 if planted else 1)
    return Subject(name=name, claimed=claimed, outputs=outputs, planted=planted)


def _count_subject(name: str, *, planted: bool = False) -> Subject:
    """A person of epsilon 1 who comes to others of a label: its count and that of the other label.

    Args:
        name: Of the subject.
        planted: Whether it claims half of the price.
    """
    study = replace(BY_SECRET_REGION, epsilon_min=MICRO, epsilon_max=MICRO)
    asked = Ask(statistic=shape_questions.COUNT, by="region", share=MICRO)
    question = shape_kinds.resolve(study, asked)

    def plan_of(people: int) -> LabelsPlan:
        others = cohort_of(2, MICRO, [0] * COMPANIONS, segment=1)
        return LabelsPlan.of(study, question, [cohort_of(PERSON, MICRO, [0] * people), others])

    def drawn(people: int, draws: int) -> Cells:
        plans = [one.plan for one in plan_of(people).labels if one.plan is not None]
        values = [[one.answer({})["estimate"] for one in plans] for _ in range(draws)]
        counted = np.array(values, dtype=np.float64)
        return cells(counted - [BESIDE, COMPANIONS], np.ones(2), STEPS)

    def outputs(draws: int) -> tuple[Cells, Cells]:
        return drawn(BESIDE, draws), drawn(BESIDE + 1, draws)

    claimed = plan_of(1).most / MICRO / (2 if planted else 1)
    return Subject(name=name, claimed=claimed, outputs=outputs, planted=planted)


def _found_subject(name: str, relation: Relation, *, planted: bool = False) -> Subject:
    """A person of the first label at the upper end of the range, and at the lower one or not there.

    What is looked at are the sums of the person's label, the range, and whether its last bin looks taken.

    Args:
        name: Of the subject.
        relation: The neighboring relation.
        planted: Whether it claims the price of finding the range alone.
    """
    study = replace(
        BY_REGION,
        relation=relation,
        epsilon_min=MICRO,
        epsilon_max=MICRO,
        # Few bins: the range is far from zero.
        lower=Decimal(1000),
        upper=Decimal(1001),
    )
    public = relation is Relation.REPLACE_ONE
    asked = Ask(by="region", share=MICRO, tilt=0 if public else None, parameters={"range": "found"})
    question = shape_kinds.resolve(study, asked)
    others = [cohort_of(2 + segment, MICRO, [0] * MANY, segment=segment) for segment in (0, 1)]
    last, weight = len(question.starts), MICRO - PART

    def plan_of(mine: int | None) -> FoundPlan:
        person = cohort_of(PERSON, MICRO, [] if mine is None else [mine])
        return FoundPlan.of(study, question, [person, *others])

    def answer(made: FoundPlan, mine: int | None) -> tuple[int, list[float]]:
        """The range and the last bin, and the sums of the label in units of what the person moves."""
        here = {PERSON: [int(mine == 0), *[0] * (last - 1), int(mine == GRID_SIZE)]}
        here |= {one.id: [MANY, *[0] * last] for one in others}
        counts = noisy_counts(made.crowd, made.bins, here)
        found = find(made.bins, made.edges, counts)
        summed = {one.id: (MANY, 0) for one in others}
        inside = min(max((mine or 0) - found.low, 0), found.width)
        summed[PERSON] = (int(mine is not None), inside)
        own = [one / (weight * GRID_SIZE) for one in made.means.sums[0].noisy(found, summed)]
        # Of two sums that from the upper end on has all others; those of the other label come after them.
        own = own[:1] if public else [own[0], own[1] - MANY]
        return 2 * (found.width == GRID_SIZE) + (2 * counts[-1] > PART), own

    def outputs(draws: int) -> tuple[Cells, Cells]:
        found = []
        for mine in (GRID_SIZE, 0 if public else None):
            made = plan_of(mine)
            ranges, sums = zip(*(answer(made, mine) for _ in range(draws)), strict=True)
            label = cells(np.array(sums), np.ones(len(sums[0])), COARSE)
            found.append(label * 4 + np.array(ranges, dtype=np.int64))
        return found[0], found[1]

    made = plan_of(0)
    claimed = made.most - (made.means.sums[0].costs(study)[0] if planted else 0)
    return Subject(
        name=name,
        claimed=claimed / MICRO,
        outputs=outputs,
        planted=planted,
        effort=0.1 if planted else 0.5,
    )


def _secret_plan(label: int | None) -> tuple[Crowd, Plan]:
    """Companions in both labels, and the person in one of them or in none."""
    cohorts = [
        cohort_of(2 + segment, SECRET, [GRID_SIZE] * COMPANIONS, segment=segment) for segment in (0, 1)
    ]
    if label is not None:
        cohorts.append(cohort_of(PERSON, SECRET, [GRID_SIZE], segment=label))
    resolved = resolve(BY_SECRET_REGION, Ask(by="region", share=SHARE))
    people = Crowd.of(BY_SECRET_REGION, cohorts, resolved)
    question = resolved.question(BY_SECRET_REGION, people=None)
    return people, planning.choose(BY_SECRET_REGION, people, resolved, question)[1]


def _secret_cells(label: int | None, draws: int, moves: int) -> Cells:
    """How much likelier the noisy sums of both labels are with the person in the first one."""
    people, plan = _secret_plan(label)
    seen: list[Sequence[int]] = []

    def conclude(values: Sequence[int]) -> Conclusion:
        seen.append(values)
        return NOTHING

    for _ in range(draws):
        planning.answer(replace(plan, conclude=conclude), people)
    unit = SECRET * SHARE // MICRO * GRID_SIZE
    first, second = (np.array([values[place] for values in seen]) / unit - COMPANIONS for place in (0, 2))
    likelier = np.abs(first) - np.abs(first - 1)
    if moves == 2:
        likelier += np.abs(second - 1) - np.abs(second)
    found: Cells = np.digitize(likelier, moves * EDGES)
    return found
