"""What `dither audit privacy` looks at of choices: shares as the service makes them, and devices' reports.

Shares come out of the code that plans and draws them (`app.services.shapes.plans`), with the charges
that it makes. One person makes either of two choices, or comes to one of them, beside companions. What is
looked at are the noisy counts of both choices, in units of the person's weight: all else is read off them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal

import numpy as np
from dither.device.choices import ONE, ChoiceRandomizer, choice_points
from dither.device.exact import below
from dither.device.gaussian import micro_mu2, pure_epsilon

from app.core.cohort import Cohort
from app.core.epsilon import MICRO
from app.core.measures import Measures
from app.core.study import Relation, StudyDefinition, Trust
from app.mechanisms.entropy import system_bits
from app.services.shapes import kinds as shape_kinds
from app.services.shapes import plans as shape_plans
from app.services.shapes.kinds import resolve
from app.services.shapes.plans import ShapePlan
from app.services.shapes.questions import SHARES, TABLE
from app.services.statistics.questions import PAIR, Ask
from dither_research.histories import STUDY
from dither_research.privacy_audit import STEPS, Cells, Subject, cells

CHOICES = ("red", "green", "blue")
POLL: StudyDefinition = replace(STUDY, lower=Decimal(0), upper=Decimal(2), choices=CHOICES)
TWO: StudyDefinition = replace(
    STUDY,
    measures=Measures(['party:["red","green"]', 'sex:["f","m"]']),
    dimension=2,
    lower=Decimal(0),
    upper=Decimal(1),
)
SINGLE, SETS = 3, 12
"""Choices of which a device reports one at epsilon 1, and of which it reports sets."""
PAID = pure_epsilon(micro_mu2(MICRO, 10**6))
"""What the mu^2 of epsilon 1 at a delta of 1e-6 pays for [micro-epsilon]."""


def choice_subjects() -> Iterator[Subject]:
    """Shares for both relations, and both kinds of reports."""
    for relation in Relation:
        yield shares_subject(f"shares of choices, {relation}", relation)
        yield shares_subject(f"a table of two choices, {relation}", relation, table=True)
    for count in (SINGLE, SETS):
        yield report_subject(f"local report of one of {count} choices", count)
    yield report_subject("local report of a choice, gaussian", SINGLE, offer=PAID, drawn=PAID)


def choice_controls() -> Iterator[Subject]:
    """Planted bugs."""
    yield shares_subject("shares priced at 1 instead of 2 moves", Relation.REPLACE_ONE, planted=True)
    yield shares_subject(
        "a table priced at 1 instead of 2 moves", Relation.REPLACE_ONE, table=True, planted=True
    )
    yield report_subject("sets that hold the truth as often as they lack another choice", SETS, planted=True)
    yield report_subject("a report of the whole epsilon paid in mu^2", SINGLE, offer=PAID, planted=True)


def shares_subject(name: str, relation: Relation, *, table: bool = False, planted: bool = False) -> Subject:
    """A person of epsilon 1 who chooses the first or the second label, or who comes to the second one.

    Args:
        name: Of the subject.
        relation: The neighboring relation.
        table: Whether labels are pairs of two choices, of which the person changes one.
        planted: Whether the noise is that of one move, where replacing a person moves two counts.
    """
    study = replace(TWO if table else POLL, relation=relation, epsilon_min=MICRO, epsilon_max=MICRO)
    ask = Ask(
        statistic=TABLE if table else SHARES,
        share=MICRO,
        tilt=0 if relation is Relation.REPLACE_ONE else None,
        parameters={PAIR: "party,sex"} if table else {},
    )
    question = resolve(study, ask)
    none = (0,) * len(question.starts)
    neighbors = (((1,) if relation is Relation.REPLACE_ONE else (0,)) + none, (0, 1, *none[1:]))

    # Plans depend on offers alone, so both neighbors have the same one.
    person = Cohort(
        id=1, trust=Trust.CENTRAL, epsilon=MICRO, carried=0, spent=0, count=1, total=0, total_squares=0
    )
    made = shape_kinds.make(study, question, [person])
    assert isinstance(made, ShapePlan)
    plan = made.plan
    if planted:
        plan = replace(plan, weighing=replace(plan.weighing, relation=Relation.ADD_REMOVE_ONE))

    def drawn(counts: Sequence[int], draws: int) -> Cells:
        noisy = [shape_plans.noisy_counts(made.crowd, plan, {1: counts})[:2] for _ in range(draws)]
        return cells(np.array(noisy, dtype=np.float64), np.full(2, float(MICRO)), STEPS)

    def outputs(draws: int) -> tuple[Cells, Cells]:
        first, second = (drawn(counts, draws) for counts in neighbors)
        return first, second

    return Subject(name=name, claimed=made.most / MICRO, outputs=outputs, planted=planted)


def report_subject(
    name: str, count: int, *, offer: int = MICRO, drawn: int = MICRO, planted: bool = False
) -> Subject:
    """A device's reports of the first and of the second choice: which of the two are in them.

    Args:
        name: Of the subject.
        count: Choices.
        offer: What the report costs [micro-epsilon].
        drawn: What it is randomized with [micro-epsilon].
        planted: Whether it costs more than is offered: a set holds the true choice as often as it lacks
            another one, as in the symmetric kind, which takes half of the epsilon for each bit; a single
            choice is drawn with more.
    """
    device, points = ChoiceRandomizer(count), choice_points(count)
    power = device.range(drawn).power

    def report(place: int) -> int:
        if not planted or device.range(drawn).is_single:
            return device.report(points[place], drawn)
        bits = [below(ONE + power, system_bits) < (power if one == place else ONE) for one in range(2)]
        return bits[0] | bits[1] << 1

    def outputs(draws: int) -> tuple[Cells, Cells]:
        first, second = (
            np.array([report(place) & 3 for _ in range(draws)], dtype=np.int64) for place in range(2)
        )
        return first, second

    return Subject(name=name, claimed=offer / MICRO, outputs=outputs, planted=planted)
