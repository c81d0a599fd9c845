"""The form in which a person answers a study: its fields, its privacy steps, and what they are read as."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from dither.device.choices import choice_points

from app.core.epsilon import MICRO, round_down_to_significant
from app.core.errors import FieldError, InvalidRequest
from app.core.grid import GRID_SIZE, Grid, parse_decimal
from app.core.ledger import Holding
from app.core.measures import VALUE, Measure
from app.core.numbers import JsonNumber
from app.core.reporting_range import FIELD
from app.core.study import StudyDefinition, Trust
from app.dashboard.languages import N_
from app.dashboard.typed import Mark, typed

WITHOUT_SCRIPTS = (Trust.CENTRAL, Trust.PUBLIC)
"""Trust tags that need no program on the person's device."""

NAMES = {
    1: (N_("The study's"),),
    2: (N_("Strong"), N_("Light")),
    3: (N_("Strong"), N_("Medium"), N_("Light")),
}
"""What privacy steps are called, by how many there are."""


UNCLEAR = "may be thousands or decimals"


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedFor:
    """One thing that the form asks for.

    Attributes:
        name: Of the field; refusals call it so, too.
        label: The name of what is asked; empty where the study asks for one thing without a name.
        place: From 1 on, of one number of several with this label; 0 where there is one.
        options: What it is one of; empty for a number.
        lower, upper: Range of a number, as text.
    """

    name: str
    label: str
    place: int = 0
    options: tuple[str, ...] = ()
    lower: str = ""
    upper: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EpsilonChoice:
    """How much privacy a person may choose.

    Attributes:
        name: In words.
        offer: The epsilon that it offers [micro-epsilon].
        amount: What it may cost in all [the study's currency].
        of_answer: How often in 100 times someone who sees all that is published, and knows all other people's
            answers, guesses at most which of two answers was given; without an answer it would be 50.
        of_presence: The same for whether one was given; None where that is public.
    """

    name: str
    offer: int
    amount: int
    of_answer: int
    of_presence: int | None

    @property
    def epsilon(self) -> str:
        """The epsilon, as a contribution has it."""
        return f"{self.offer / MICRO:.6f}".rstrip("0").rstrip(".")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A measure, or the one value: its name in a contribution, of its fields, and for people."""

    key: str
    field: str
    label: str
    measure: Measure

    @property
    def asked(self) -> list[AskedFor]:
        """A field for each of its numbers."""
        one = self.measure
        several = one.dimension > 1
        return [
            AskedFor(
                name=f"{self.field}.{place}" if several else self.field,
                label=self.label,
                place=place + 1 if several else 0,
                options=one.choices,
                lower=f"{one.lower:f}",
                upper=f"{one.upper:f}",
            )
            for place in range(one.dimension)
        ]


def _parts(definition: StudyDefinition) -> list[_Part]:
    if definition.measures.several:
        return [
            _Part(key=name, field=f"values.{name}", label=name, measure=measure)
            for name, measure in definition.measures.named.items()
        ]
    one = Measure(definition.lower, definition.upper, definition.choices, definition.dimension)
    label = definition.one_measure if definition.measures else ""
    return [_Part(key=VALUE, field=VALUE, label=label, measure=one)]


def asked(definition: StudyDefinition) -> list[AskedFor]:
    """What the form asks for: each measure and each attribute."""
    found = [one for part in _parts(definition) for one in part.asked]
    return found + [
        AskedFor(name=f"attributes.{name}", label=name, options=tuple(labels))
        for name, labels in definition.attributes.labels.items()
    ]


def trusted(definition: StudyDefinition) -> list[Trust]:
    """The trust tags that the form offers without scripts."""
    return [tag for tag in WITHOUT_SCRIPTS if tag in definition.trust]


def takes_reports(definition: StudyDefinition) -> bool:
    """Whether the script of the page can make an answer a report.

    It makes none of vectors, which sessions ask for, nor where no epsilon with three digits is admissible.
    """
    is_vector = definition.dimension > 1 and not definition.measures.several
    is_admissible = bool(definition.epsilons) or _rounded_up(definition.epsilon_min) <= definition.epsilon_max
    return Trust.LOCAL in definition.trust and not is_vector and is_admissible


def steps(definition: StudyDefinition) -> list[EpsilonChoice]:
    """The privacy that the form offers, the most private step first: the ends of the range and the middle."""
    if definition.epsilons:
        tiers = sorted(definition.epsilons)
        offers = [tiers[0], tiers[len(tiers) // 2], tiers[-1]]
    else:
        low, high = definition.epsilon_min, definition.epsilon_max
        if takes_reports(definition):
            low, high = _rounded_up(low), round_down_to_significant(high)
        offers = [low, max(low, round_down_to_significant(math.isqrt(low * high))), high]
    offers = sorted(set(offers))
    return [_step(definition, name, offer) for name, offer in zip(NAMES[len(offers)], offers, strict=True)]


def _rounded_up(epsilon: int) -> int:
    """To three significant digits, which a report needs [micro-epsilon].

    >>> _rounded_up(1_234_567), _rounded_up(500_000)
    (1240000, 500000)
    """
    unit = int(10 ** max(0, len(str(epsilon)) - 3))
    return -(-epsilon // unit) * unit


def _step(definition: StudyDefinition, name: str, offer: int) -> EpsilonChoice:
    amount = definition.amount(round_down_to_significant(offer))
    secret = definition.hides_people
    # Where the promise is about presence, another answer is a person less and a person more.
    return EpsilonChoice(
        name=name,
        offer=offer,
        amount=amount,
        of_answer=_times_in_100(definition, amount, 2 if secret else 1),
        of_presence=_times_in_100(definition, amount, 1) if secret else None,
    )


def _times_in_100(definition: StudyDefinition, amount: int, steps_apart: int) -> int:
    r"""How often in 100 times a guess between two equally likely cases is right at most, rounded up.

    Of two cases that are guessed from an output, the best guess is right with :math:`(1 + \mathrm{TV}) / 2`.
    Under :math:`\varepsilon` the total variation is at most :math:`\tanh(\varepsilon / 2)`, so that this is
    :math:`e^\varepsilon / (1 + e^\varepsilon)`; with Gaussian noise of :math:`\mu` it is
    :math:`\Phi(\mu / 2)`. Cases k steps apart have k times the :math:`\varepsilon` or :math:`\mu`.

    Args:
        definition: Of the study.
        amount: What all answers together cost a person at most [the study's currency].
        steps_apart: Between the two cases, in neighboring data sets.
    """
    if definition.delta:
        mu = steps_apart * math.sqrt(amount / MICRO)
        return min(100, math.ceil(100 * math.erfc(-mu / math.sqrt(8)) / 2))
    return times_in_100(steps_apart * amount / MICRO)


def times_in_100(epsilon: float) -> int:
    """How often in 100 times a guess between two cases is right at most under an epsilon, rounded up.

    >>> times_in_100(0.5), times_in_100(0)
    (63, 50)
    """
    return min(100, math.ceil(100 / (1 + math.exp(-epsilon))))


def record_of(definition: StudyDefinition, fields: Mapping[str, str], mark: Mark) -> dict[str, object]:
    """What a filled form says, as the document of a contribution.

    Args:
        definition: Of the study.
        fields: Of the form.
        mark: What people who filled it write before decimals.

    Raises:
        InvalidRequest: names numbers with a comma that may be a decimal mark or a thousands mark.
    """
    tags = trusted(definition)
    trust = fields.get("trust") or (tags[0].value if len(tags) == 1 else None)
    record: dict[str, object] = {} if trust is None else {"trust": trust}
    if trust != Trust.PUBLIC.value and "epsilon" in fields:
        record["epsilon"] = fields["epsilon"]
    if definition.attributes:
        labels = {name: fields.get(f"attributes.{name}", "") for name in definition.attributes.labels}
        record["attributes"] = {name: label for name, label in labels.items() if label}
    if trust == Trust.LOCAL.value:
        return record | _reports(definition, fields)
    errors: list[FieldError] = []
    values: dict[str, object] = {}
    for part in _parts(definition):
        written = {one.name: fields.get(one.name, "") for one in part.asked}
        if not any(written.values()):
            continue
        if part.measure.choices:
            values[part.key] = written[part.field]
        else:
            numbers = [_number(field, text, mark, errors) for field, text in written.items()]
            values[part.key] = numbers[0] if part.measure.dimension == 1 else numbers
    if errors:
        raise InvalidRequest.naming(errors, "the answer is ")
    if definition.measures.several:
        record["values"] = values
    elif values:
        record[VALUE] = values[VALUE]
    return record


def _reports(definition: StudyDefinition, fields: Mapping[str, str]) -> dict[str, object]:
    """What the script of the page made of the answers: one report, or those of some measures."""
    if not definition.measures.several:
        stated = {FIELD: fields[FIELD]} if FIELD in fields else {}
        return {"report": JsonNumber(fields["report"]), **stated} if "report" in fields else {}
    names = [name for name in definition.measures.named if f"reports.{name}" in fields]
    return {"reports": {name: JsonNumber(fields[f"reports.{name}"]) for name in names}}


def given(definition: StudyDefinition, held: Holding) -> dict[str, str]:
    """What a person gave, by the fields of the form: beside a report the labels; nothing once withdrawn."""
    if not held.live:
        return {}
    found = {}
    if held.trust is not Trust.LOCAL and held.value is not None:
        points = iter([held.value] if held.vector is None else held.vector)
        for part in _parts(definition):
            for one in part.asked:
                point = next(points)
                if point is not None:
                    found[one.name] = _text(part.measure, point)
    labels = definition.attributes.labels_of(held.segment) if definition.attributes else {}
    return found | {f"attributes.{name}": label for name, label in labels.items()}


def _number(field: str, text: str, mark: Mark, errors: list[FieldError]) -> JsonNumber:
    """A number as people write it: with a point or a comma before decimals."""
    meant = typed(text, mark)
    if meant is None:
        errors.append(FieldError(field, UNCLEAR))
    return JsonNumber(text if meant is None else meant)


def _text(measure: Measure, point: int) -> str:
    """The shortest text that is kept as this grid point, or the label of a choice."""
    if measure.choices:
        return measure.choices[choice_points(len(measure.choices)).index(point)]
    grid = Grid(measure.lower, measure.upper)
    value = grid.to_unit(Fraction(point, GRID_SIZE))
    for digits in range(1, 18):
        text = f"{value:.{digits}g}"
        if grid.point(*parse_decimal(text)) == point:
            return f"{float(text):.15g}" if digits <= 15 else text
    return f"{value!r}"
