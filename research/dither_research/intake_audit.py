"""What the privacy audit sees of a contribution on its whole way: document, intake, sums, noise, answer.

The neighbors differ in one document, and the second one is hostile: its number lies far outside the range.
Intake refuses it, and the person sends the end of the range instead, which is the most that it lets in. Where
a range check is missing the hostile number counts, and one answer tells.
"""

from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from uuid import UUID

import numpy as np
from dither.device.numbers import Grid, parse_decimal
from dither.device.randomizers import randomizer

from app.core.cohort import Cohort
from app.core.contribution import Offer
from app.core.epsilon import MICRO
from app.core.errors import InternalFault, InvalidRequest
from app.core.grid import GRID_SIZE, square
from app.core.numbers import JsonNumber
from app.core.study import Relation, StudyDefinition, Trust
from app.services.contributing.intake import Intake
from app.services.statistics import planning
from app.services.statistics.crowds import Crowd
from app.services.statistics.questions import Ask, resolve
from app.services.subjects import SubjectKey
from dither_research.privacy_audit import Cells, Subject

Record = dict[str, object]

Reader = Callable[[Intake, Record], Offer]
"""How intake reads a record; a planted one forgets a check."""

HOSTILE = "1e6"
"""A million widths above the range."""

ENDS = ("0", "1")
OTHERS = 2
"""People beside the one who is looked for, all at the lower end."""

_SENDER = UUID(int=1)
_EDGES = np.array([1e-9, 0.2, 0.4, 0.6, 0.8, 1 - 1e-9])
_STEPS = np.array([-2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0]) * GRID_SIZE


def read(intake: Intake, record: Record) -> Offer:
    """As the service reads a record."""
    return intake.offer(record, _SENDER)


def intake_subjects(reader: Reader = read, *, planted: bool = False) -> Iterator[Subject]:
    """One subject of each kind: a raw value among n public people, one among a secret number, a report.

    Args:
        reader: How intake reads.
        planted: Whether it has a bug.
    """
    name = ", no range check" if planted else ""
    for relation in Relation:
        yield Subject(
            name=f"through intake, central, {relation.value}{name}",
            claimed=1.0,
            outputs=_answers(relation, reader),
            planted=planted,
            # Each answer is read whole, with its intervals; what the bug adds shows in few of them.
            effort=(0.05 if relation is Relation.ADD_REMOVE_ONE else 0.2) * (0.25 if planted else 1),
        )
    if not planted:
        yield Subject(name="through intake, local", claimed=1.0, outputs=_reports(reader))


def _study(relation: Relation, trust: Trust) -> tuple[StudyDefinition, Intake]:
    definition = StudyDefinition(
        slug="audit",
        title="",
        lower=Decimal(ENDS[0]),
        upper=Decimal(ENDS[1]),
        relation=relation,
        trust=frozenset({trust}),
        epsilon_min=MICRO,
        epsilon_max=MICRO,
        default_share=MICRO,
    )
    return definition, Intake(definition, SubjectKey(bytes(32)))


def _admitted(reader: Reader, intake: Intake, record: Record, name: str, otherwise: str) -> Offer:
    """What intake makes of a hostile record, or of one with the end of the range where it refuses that."""
    try:
        return reader(intake, record)
    except InvalidRequest:
        return reader(intake, {**record, name: JsonNumber(otherwise)})


def _answers(relation: Relation, reader: Reader) -> Callable[[int], tuple[Cells, Cells]]:
    """Answers of the service's own planning about people whose documents went through intake."""
    definition, intake = _study(relation, Trust.CENTRAL)
    low: Record = {
        "subject": "ada",
        "trust": "central",
        "epsilon": "1",
        "value": JsonNumber(ENDS[0]),
    }
    resolved = resolve(definition, Ask())
    present = relation is Relation.ADD_REMOVE_ONE

    def drawn(points: list[int], draws: int) -> Cells:
        cohort = Cohort(
            id=1,
            trust=Trust.CENTRAL,
            epsilon=MICRO,
            carried=0,
            spent=0,
            count=len(points),
            total=sum(points),
            total_squares=sum(square(point) for point in points),
        )
        people = Crowd.of(definition, [cohort], resolved)
        question = resolved.question(
            definition, people=None if present else people.people, expected_size=3.0 if present else None
        )
        _, plan, _ = planning.choose(definition, people, resolved, question)
        planning.charges(plan, people, definition)
        answers = [planning.answer(plan, people).estimate for _ in range(draws)]
        return np.digitize(answers, _EDGES).astype(np.int64)

    def outputs(draws: int) -> tuple[Cells, Cells]:
        others = [reader(intake, low).value] * OTHERS
        hostile = _admitted(reader, intake, {**low, "value": JsonNumber(HOSTILE)}, "value", ENDS[1])
        first = others if present else [*others, others[0]]
        return drawn(first, draws), drawn([*others, hostile.value], draws)

    return outputs


def _reports(reader: Reader) -> Callable[[int], tuple[Cells, Cells]]:
    """A device that is given a value, and a hostile one; what intake takes of its reports is stored."""
    definition, intake = _study(Relation.REPLACE_ONE, Trust.LOCAL)
    grid = Grid(Fraction(ENDS[0]), Fraction(ENDS[1]))
    device = randomizer(definition.local_mechanism.value)

    def drawn(value: str, otherwise: str, draws: int) -> Cells:
        point = grid.point(*parse_decimal(value))
        if point is None:
            point = grid.point(*parse_decimal(otherwise))
        if point is None:
            raise InternalFault("An end of the range lies outside of it.")
        stored = []
        for _ in range(draws):
            report = JsonNumber(str(device.report(point, MICRO)))
            record: Record = {"subject": "ada", "trust": "local", "epsilon": "1", "report": report}
            stored.append(reader(intake, record).value)
        return np.digitize(stored, _STEPS).astype(np.int64)

    def outputs(draws: int) -> tuple[Cells, Cells]:
        return drawn(ENDS[0], ENDS[0], draws), drawn(HOSTILE, ENDS[1], draws)

    return outputs


def without_range_check(intake: Intake, record: Record) -> Offer:
    """The planted bug: a number outside the range becomes the grid point that it would have."""
    try:
        return intake.offer(record, _SENDER)
    except InvalidRequest:
        number = Decimal(str(record["value"]))
        inside = intake.offer({**record, "value": JsonNumber(ENDS[0])}, _SENDER)
        return Offer(
            subject=inside.subject,
            sender=inside.sender,
            trust=inside.trust,
            asked=inside.asked,
            epsilon=inside.epsilon,
            value=int(number * GRID_SIZE),
        )
