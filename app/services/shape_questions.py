"""What an analyst asks of the distribution of the values: equal questions have equal digests."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from app.core.epsilon import MICRO, round_down_to_significant, share_of
from app.core.errors import FieldError, InvalidRequest
from app.core.grid import GRID_SIZE, NotANumber
from app.core.numbers import parse_text
from app.core.release import Asked
from app.core.study import NO_TILT, NOT_OF_CHOICES, Relation, StudyDefinition
from app.estimators.found_range import ladder
from app.estimators.ranks import CELLS
from app.estimators.registry import AUTO
from app.services.questions import FOUND, MEAN, RANGE, Ask, attribute, check_measure, conditions

HISTOGRAM, DISTRIBUTION, QUANTILE, MEDIAN = "histogram", "distribution", "quantile", "median"
DESCRIBE, SHARES, COUNT, COVARIANCE = "describe", "shares", "count", "covariance"

SHAPES = (HISTOGRAM, DISTRIBUTION, QUANTILE, MEDIAN, DESCRIBE, SHARES, COUNT, COVARIANCE)
"""Statistics of the distribution, and of how many people there are. A histogram and the distribution
function over the same bins are read off one release, and so are a median and the quantile 0.5."""

BY_BINS = (HISTOGRAM, DISTRIBUTION)

FOUND_RANGE = "found_range"
"""What answers a mean over a range that is found first."""

ESTIMATORS = {
    HISTOGRAM: HISTOGRAM,
    DISTRIBUTION: HISTOGRAM,
    QUANTILE: QUANTILE,
    MEDIAN: QUANTILE,
    MEAN: FOUND_RANGE,
    DESCRIBE: DESCRIBE,
    SHARES: SHARES,
    COUNT: COUNT,
    COVARIANCE: COVARIANCE,
}
"""What answers each statistic here."""

PART = "range_part"
PAIR = "measures"
DEFAULT_PART = MICRO * 15 // 100

MOST_BINS = 100
DEFAULT_BINS = 10
MOST_CELLS = 1000
_DIGITS = 6

_PHRASES = {MEAN: f"a {MEAN} over a range that is found", SHARES: "shares of choices"}

_OF_ALL = {
    COUNT: "does not apply to a count, which is of people",
    COVARIANCE: "does not apply to a covariance: its measures are two",
}
"""Statistics that are not about one measure, and why none is to be named."""

PARAMETERS: dict[str, str] = {
    "edges": "Histogram and distribution: where bins begin and end, ascending, with commas between; what "
    "they leave of the range are bins of their own.",
    "bins": f"Histogram and distribution: the number of equal bins over the range, 2 to {MOST_BINS}; "
    f"{DEFAULT_BINS} if neither it nor edges are given.",
    "q": "Quantile: which part of the people lies at or below it, above 0 and below 1, at most "
    f"{_DIGITS} decimals.",
    "candidates": "Quantile, median and describe: the number of equal steps of the range, one of whose ends "
    f"is the answer. 10 to {MOST_CELLS}; {CELLS} if not given.",
    RANGE: "Mean: declared, the study's range (the default), or found: a part of the price finds the range "
    "that holds the values, and the answer is the mean of the values moved into it.",
    PAIR: "Covariance: two of the study's measures, both numbers, with a comma between.",
    PART: "Mean with range=found: the part of the price that finds the range, above 0 and below 1, at most "
    f"{_DIGITS} decimals; {DEFAULT_PART / MICRO} if not given.",
}
"""Parameters of these statistics, with what they mean."""


def of_shape(ask: Ask) -> bool:
    """Whether a question is for the distribution of the values, or needs it first."""
    return ask.statistic in SHAPES or (ask.statistic == MEAN and ask.parameters.get(RANGE) == FOUND)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeQuestion:
    """A question with every default filled in.

    Attributes:
        estimator: What answers: `histogram`, `quantile`, `found_range`, `describe` or `shares`.
        starts: Where each cell but the first one begins [grid steps].
        edges: The ends of all bins, ascending [data's unit]; empty but for histograms.
        choices: The labels of all bins, for shares of choices.
        quantile: q, for quantiles.
        part: Of the price that finds the range [ppm]; for a mean over a found range.
        where: Of whom: the label of each attribute that it names; empty for all people.
        by: The attribute for each of whose labels it asks besides; empty for none.
        measure: Of which measure, in a study of several; empty in others.
        pair: Of which two, for a covariance.
        share: Part of each personal epsilon [ppm].
        epsilon: The most that any person may be charged, or None [micro-epsilon].
        cap: The same in the study's currency.
        expected_size: add_remove_one: the number of people to predict for.
        tilt: [ppm]; None in add_remove_one studies.
    """

    estimator: str
    starts: tuple[int, ...]
    edges: tuple[float, ...]
    quantile: Fraction | None
    share: int
    epsilon: int | None
    cap: int | None
    expected_size: float | None
    tilt: int | None
    part: int | None = None
    choices: tuple[str, ...] = ()
    where: Mapping[str, str] = field(default_factory=dict)
    by: str = ""
    measure: str = ""
    pair: tuple[str, ...] = ()

    def offer(self, amount: int) -> int:
        """What a person who offers this much may be charged [both in the study's currency]."""
        offer = share_of(amount, self.share)
        return offer if self.cap is None else min(offer, self.cap)

    def share_taken(self, study: StudyDefinition) -> int:
        """The most that a release takes of any person's epsilon [ppm]."""
        if self.cap is None:
            return self.share
        least = max(1, study.amount(round_down_to_significant(study.epsilon_min)))
        return min(self.share, -(-self.cap * MICRO // least))

    @property
    def digest(self) -> bytes:
        """SHA-256 of the question with share and cap."""
        return _digest({**self._asked(), "share": self.share, "epsilon": self.epsilon})

    @property
    def by_parts(self) -> Asked:
        """The question apart from share and cap, and these two."""
        return Asked(family=_digest(self._asked()), share=self.share, cap=self.epsilon)

    def _asked(self) -> dict[str, object]:
        asked: dict[str, object] = {
            "statistic": self.estimator,
            "starts": self.starts,
            "quantile": None if self.quantile is None else str(self.quantile),
            "expected_size": self.expected_size,
            "tilt": self.tilt or None,
        }
        if self.part is not None:
            asked[PART] = self.part
        return asked | self.of_whom_and_what

    @property
    def of_whom_and_what(self) -> dict[str, object]:
        """Condition, attribute and measure, where there are any, as they stand on releases."""
        shown: dict[str, object] = {"where": dict(self.where)} if self.where else {}
        shown |= {"by": self.by} if self.by else {}
        shown |= {PAIR: list(self.pair)} if self.pair else {}
        return shown | {"measure": self.measure} if self.measure else shown

    @property
    def counts_bins(self) -> bool:
        """Whether it asks for noisy counts by bin; otherwise cells are drawn by rank."""
        return self.estimator in (HISTOGRAM, FOUND_RANGE, SHARES)

    @property
    def statistic(self) -> str:
        """What it is for, as its releases say it."""
        return self.estimator if self.part is None else MEAN

    def parameters(self) -> dict[str, object]:
        """Share, caps, and what was asked, as JSON."""
        shown: dict[str, object] = {"share": self.share / MICRO}
        if self.part is not None:
            shown |= {RANGE: FOUND, PART: self.part / MICRO}
        elif self.estimator == HISTOGRAM:
            shown["edges"] = list(self.edges)
        elif not self.counts_bins and self.estimator not in (COUNT, COVARIANCE):
            if self.quantile is not None:
                shown["q"] = float(self.quantile)
            shown["candidates"] = len(self.starts)
        if self.epsilon is not None:
            shown["epsilon"] = self.epsilon / MICRO
        if self.expected_size is not None:
            shown["expected_size"] = self.expected_size
        if self.tilt is not None:
            shown["tilt"] = self.tilt / MICRO
        return shown


def resolve(study: StudyDefinition, ask: Ask) -> ShapeQuestion:
    """Check a question against its study and fill in the defaults.

    Raises:
        InvalidRequest: names every offending field.
    """
    if ask.statistic not in _OF_ALL:
        check_measure(study, ask)
        study = study.of_measure(ask.measure)
    elif ask.measure:
        raise InvalidRequest.field("measure", _OF_ALL[ask.statistic])
    if study.choices and ask.statistic not in (SHARES, COUNT):
        raise InvalidRequest.field("statistic", NOT_OF_CHOICES)
    if ask.statistic == SHARES and not study.choices:
        reason = "is for choices, and these values are numbers: ask for a histogram"
        raise InvalidRequest.field("statistic", reason)
    if ask.statistic == COVARIANCE and study.relation is Relation.ADD_REMOVE_ONE:
        reason = "has an answer only where the number of people is public: sums are divided by it"
        raise InvalidRequest.field("statistic", reason)
    if study.dimension > 1 and ask.statistic not in _OF_ALL:
        reason = f"values of this study have {study.dimension} coordinates: start a K-means session instead"
        raise InvalidRequest.field("statistic", reason)
    estimator, of = ESTIMATORS[ask.statistic], _PHRASES.get(ask.statistic, f"a {ask.statistic}")
    errors: list[FieldError] = []
    if ask.by and estimator not in (HISTOGRAM, SHARES, QUANTILE):
        errors.append(FieldError("by", f"does not apply to {of}: ask for each label with where"))
    if ask.estimator not in (None, AUTO, estimator):
        errors.append(FieldError("estimator", f"must be {estimator} for {of}"))
    secret = study.relation is Relation.ADD_REMOVE_ONE
    if ask.tilt is not None and (secret or estimator == COUNT):
        errors.append(FieldError("tilt", NO_TILT if secret else "does not apply to a count, which is exact"))
    if not secret and ask.expected_size is not None:
        errors.append(FieldError("expected_size", "applies to add_remove_one studies only"))
    known = {
        HISTOGRAM: ("edges", "bins"),
        DISTRIBUTION: ("edges", "bins"),
        QUANTILE: ("q", "candidates"),
        MEDIAN: ("candidates",),
        MEAN: (RANGE, PART),
        DESCRIBE: ("candidates",),
        SHARES: (),
        COUNT: (),
        COVARIANCE: (PAIR,),
    }
    errors += [
        FieldError(name, f"not a parameter of {of}")
        for name in ask.parameters
        if name not in known[ask.statistic]
    ]
    where: Mapping[str, str] = {}
    by = ""
    pair: tuple[str, ...] = ()
    starts: tuple[int, ...] = ()
    edges: tuple[float, ...] = ()
    quantile: Fraction | None = None
    part: int | None = None
    try:
        where = conditions(study, ask)
        by = attribute(study, ask, where)
        if estimator == HISTOGRAM:
            starts, edges = _bins(study, ask.parameters)
        elif estimator == SHARES:
            starts = study.choice_points[1:]
        elif estimator == COVARIANCE:
            pair = _pair(study, ask.parameters)
        elif estimator == COUNT:
            starts = ()
        elif estimator == FOUND_RANGE:
            starts = ladder(study.grid)[1:-1]
            part = int(_rank(PART, ask.parameters) * MICRO) if PART in ask.parameters else DEFAULT_PART
        else:
            if estimator == QUANTILE:
                quantile = Fraction(1, 2) if ask.statistic == MEDIAN else _rank("q", ask.parameters)
            cells = _whole("candidates", ask.parameters.get("candidates", str(CELLS)), 10, MOST_CELLS)
            # A value belongs to the cell of the first candidate that is not below it.
            starts = tuple((2 * cell * GRID_SIZE + cells) // (2 * cells) + 1 for cell in range(cells))
    except InvalidRequest as refusal:
        errors += refusal.fields
    if errors:
        raise InvalidRequest.naming(errors, "the question is ")
    return ShapeQuestion(
        estimator=estimator,
        starts=starts,
        edges=edges,
        quantile=quantile,
        share=study.default_share if ask.share is None else ask.share,
        epsilon=ask.epsilon,
        cap=None if ask.epsilon is None else study.amount(ask.epsilon),
        expected_size=ask.expected_size,
        tilt=None if secret or estimator == COUNT else study.tilt if ask.tilt is None else ask.tilt,
        part=part,
        choices=study.choices,
        where=where,
        by=by,
        measure=ask.measure,
        pair=pair,
    )


def _bins(study: StudyDefinition, parameters: Mapping[str, str]) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Where bins begin [grid steps], and the ends of all bins [data's unit]."""
    grid = study.grid
    if "edges" not in parameters:
        bins = _whole("bins", parameters.get("bins", str(DEFAULT_BINS)), 2, MOST_BINS)
        places = [Fraction(edge, bins) for edge in range(bins + 1)]
        starts = tuple((2 * edge * GRID_SIZE + bins) // (2 * bins) for edge in range(1, bins))
        return starts, tuple(grid.to_unit(place) for place in places)
    if "bins" in parameters:
        raise InvalidRequest.field("bins", "cannot be given beside edges")
    points: list[int] = []
    values: list[float] = []
    for text in parameters["edges"].split(","):
        try:
            mantissa, exponent = parse_text(text.strip())
        except NotANumber:
            raise InvalidRequest.field("edges", "must be numbers with commas between") from None
        point = grid.point(mantissa, exponent)
        if point is None:
            raise InvalidRequest.field("edges", study.outside_range)
        if points and point <= points[-1]:
            raise InvalidRequest.field("edges", "must rise, by more than 2^-30 of the range")
        points.append(point)
        values.append(float(mantissa * Fraction(10) ** exponent))
    inner = [(point, value) for point, value in zip(points, values, strict=True) if 0 < point < GRID_SIZE]
    if not 1 <= len(inner) < MOST_BINS:
        raise InvalidRequest.field("edges", f"must divide the range into 2 to {MOST_BINS} bins")
    ends = (float(study.lower), *(value for _, value in inner), float(study.upper))
    return tuple(point for point, _ in inner), ends


def _pair(study: StudyDefinition, parameters: Mapping[str, str]) -> tuple[str, ...]:
    """The two numbers of a covariance."""
    numbers = [name for name, one in study.measures.named.items() if not one.choices]
    if len(numbers) < 2:
        raise InvalidRequest.field("statistic", "is for studies of several numbers: see measures")
    names = tuple(name.strip() for name in parameters.get(PAIR, "").split(","))
    if len(names) != 2 or names[0] == names[1] or not set(names) <= set(numbers):
        raise InvalidRequest.field(PAIR, f"must be two of {', '.join(numbers)}, with a comma between")
    return names


def _rank(name: str, parameters: Mapping[str, str]) -> Fraction:
    if name not in parameters:
        raise InvalidRequest.field(name, "is needed for a quantile")
    reason = f"must be a number above 0 and below 1 with at most {_DIGITS} decimals"
    try:
        mantissa, exponent = parse_text(parameters[name])
    except NotANumber:
        raise InvalidRequest.field(name, reason) from None
    rank = mantissa * Fraction(10) ** exponent
    if not 0 < rank < 1 or (rank * 10**_DIGITS).denominator != 1:
        raise InvalidRequest.field(name, reason)
    return rank


def _whole(name: str, text: str, least: int, most: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(most)) and least <= int(text) <= most):
        raise InvalidRequest.field(name, f"must be a whole number from {least} to {most}")
    return int(text)


def _digest(document: Mapping[str, object] | Sequence[object]) -> bytes:
    return hashlib.sha256(json.dumps(document, sort_keys=True, separators=(",", ":")).encode()).digest()
