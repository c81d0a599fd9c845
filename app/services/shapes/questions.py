"""What an analyst asks of the distribution of the values: equal questions have equal digests."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from uuid import UUID

from app.core.epsilon import MICRO, share_of
from app.core.errors import FieldError, InvalidRequest
from app.core.grid import GRID_SIZE
from app.core.question import CELLS, MOST_CELLS
from app.core.question import STATISTICS as ASKABLE
from app.core.release import Asked
from app.core.study import NOT_OF_CHOICES, Relation, StudyDefinition
from app.core.study import assumption as of_mean
from app.estimators.found_range import FoundRange, ladder
from app.estimators.registry import AUTO
from app.estimators.second_moments import NUMBERS
from app.services.shapes.parameters import (
    DEFAULT_PART,
    PART,
    read_bins,
    read_pair,
    read_rank,
    read_whole,
)
from app.services.statistics.any_question import AnyQuestion, digest_of
from app.services.statistics.questions import COUNT as COUNT
from app.services.statistics.questions import (
    DECLARED,
    FOUND,
    MEAN,
    NO_SUM,
    PAIR,
    RANGE,
    REGRESSION,
    SD,
    STATISTICS,
    SUM,
    VARIANCE,
    Ask,
    asked_of,
    check_measure,
    no_number,
    of_vectors,
)

HISTOGRAM, DISTRIBUTION, QUANTILE, MEDIAN = "histogram", "distribution", "quantile", "median"
DESCRIBE, SHARES, COVARIANCE, CORRELATION = "describe", "shares", "covariance", "correlation"

TABLE = "table"

OF_NUMBERS = (COVARIANCE, CORRELATION, REGRESSION)
"""Statistics of two numbers of a study of measures."""

OF_PAIRS = (*OF_NUMBERS, TABLE)
"""Statistics of two measures; a table is of two choices."""

COUNTED = (HISTOGRAM, SHARES, TABLE)
"""What is answered by a noisy count a bin, of bins that are known before: it is sharpened by steps."""

SHAPES = (HISTOGRAM, DISTRIBUTION, QUANTILE, MEDIAN, DESCRIBE, SHARES, COUNT, *OF_PAIRS)
"""Statistics of the distribution, and of how many people there are. A histogram and the distribution
function over the same bins are read off one release, and so are a median and the quantile 0.5, and a
correlation and the lines of either number on the other one."""

BY_BINS = (HISTOGRAM, DISTRIBUTION)

FOUND_RANGE = "found_range"
"""What answers a mean over a range that is found first."""

COORDINATES = "coordinates"
"""What answers a mean of values of several coordinates, and what is read off it."""

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
    CORRELATION: CORRELATION,
    REGRESSION: CORRELATION,
    TABLE: TABLE,
}
"""What answers each statistic here."""

MOST_NUMBERS = 10_000
"""Labels times bins, choices or coordinates of one answer."""

QUARTILES = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))

OF_A_DESCRIPTION = 6
"""Count, mean, standard deviation and quartiles."""

SPREAD = "spread"

_MOVED = ", in the part of it that is found, all values moved into it"

_PHRASES = {MEAN: f"a {MEAN} over a range that is found", SHARES: "shares of choices"}

_OF_ALL = {
    COUNT: "does not apply to a count, which is of people",
    **{name: f"does not apply to a {name}: its measures are two" for name in OF_PAIRS},
}
"""Statistics that are not about one measure, and why none is to be named."""


def of_shape(study: StudyDefinition, ask: Ask) -> bool:
    """Whether a question is for the distribution of the values, or needs it first, or for all coordinates."""
    if ask.statistic in SHAPES or (ask.statistic == MEAN and ask.parameters.get(RANGE) == FOUND):
        return True
    return ask.statistic in STATISTICS and of_vectors(study, ask)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedRange:
    """The range that a mean over a found one is planned for.

    Attributes:
        width: Of it [grid steps].
        release: The answer that found it; None of a guess.
    """

    width: int
    release: UUID | None = None

    @property
    def found(self) -> FoundRange:
        """It as if it had been found; where it lies says nothing of errors."""
        return FoundRange(low=0, high=self.width, outside=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeQuestion(AnyQuestion):
    """A question for the distribution of the values, or what needs it.

    Attributes:
        estimator: One of `ESTIMATORS` or `COORDINATES`.
        starts: Where each cell but the first one begins [grid steps].
        edges: The ends of all bins, ascending [data's unit]; empty but for histograms.
        choices: The labels of all bins, for shares of choices.
        quantile: q, for quantiles.
        part: Of the price that finds the range [ppm]; for a mean over a found range.
        pair: Of which two measures, for a covariance, a correlation and lines, and a table.
        axes: Of a table both of them with their labels. No part of the question.
        spread: Whether the answer must have a variance; asked for where it takes sums of its own.
        public: Whether it asks for the number of people where that is public: then it charges no one.
        expected: Of a found range the one that was found last, or None. No part of the question.
    """

    starts: tuple[int, ...]
    edges: tuple[float, ...]
    quantile: Fraction | None
    part: int | None = None
    choices: tuple[str, ...] = ()
    pair: tuple[str, ...] = ()
    axes: tuple[tuple[str, tuple[str, ...]], ...] = ()
    spread: bool = False
    public: bool = False
    expected: ExpectedRange | None = None

    @property
    def size(self) -> float | None:
        """add_remove_one: the number of people to predict for; None where nothing is known of it."""
        return self.expected_size if self.level is None else self.level.size or self.expected_size

    @property
    def weighs_alike(self) -> bool:
        """In a count each person is one."""
        return self.estimator == COUNT

    def assumption(self, study: StudyDefinition) -> str | None:
        """See `AnyQuestion`. A tilt is a part of all people; of a mean it is a part of the study's range."""
        tilt = self.assumed(study)
        if self.estimator == COUNT:
            return None
        if self.estimator == FOUND_RANGE:
            return of_mean(tilt) + (_MOVED if 0 < tilt < MICRO else "")
        if self.estimator == COORDINATES:
            return of_mean(tilt) + (" in each coordinate" if tilt < MICRO else "")
        of_shares = _of_shares(tilt)
        # Of a description both are assumed, the one of the mean and the one of the quartiles.
        both = f"{of_mean(tilt)}, and {of_shares.removeprefix('holds ')}"
        return both if self.estimator == DESCRIBE else of_shares

    @property
    def digest(self) -> bytes:
        """See `AnyQuestion`."""
        return digest_of({**self._asked(), "share": self.share, "epsilon": self.epsilon})

    @property
    def by_parts(self) -> Asked:
        """See `AnyQuestion`."""
        return Asked(family=digest_of(self._asked()), share=self.share, cap=self.epsilon)

    def _asked(self) -> dict[str, object]:
        asked: dict[str, object] = {
            "statistic": self.estimator,
            "starts": self.starts,
            "quantile": None if self.quantile is None else str(self.quantile),
            "expected_size": self.expected_size,
            "tilt": self.tilt or None,
        }
        asked |= {} if self.least_epsilon is None else {"least_epsilon": self.least_epsilon}
        if self.part is not None:
            asked[PART] = self.part
        if self.spread:
            asked[SPREAD] = True
        return asked | self.of_whom_and_what

    @property
    def of_whom_and_what(self) -> dict[str, object]:
        """As of every question; of two measures with these."""
        shown = super(ShapeQuestion, self).of_whom_and_what
        return shown | {PAIR: list(self.pair)} if self.pair else shown

    @property
    def counts_bins(self) -> bool:
        """Whether it asks for noisy counts by bins that are known before it is answered."""
        return self.estimator in (*COUNTED, FOUND_RANGE)

    @property
    def adds_up(self) -> bool:
        """Whether, with `by`, the answer for all people is read off the noisy sums of labels."""
        return self.counts_bins or self.estimator in (*OF_PAIRS, COORDINATES)

    def refuse_too_many_numbers(self, study: StudyDefinition) -> None:
        """Refuse a new answer that would have too many; one that is stored is still given.

        Raises:
            InvalidRequest: says how many would do.
        """
        numbers = {
            HISTOGRAM: len(self.starts) + 1,
            SHARES: len(self.choices),
            TABLE: len(self.starts) + 1,
            COORDINATES: study.dimension,
            DESCRIBE: OF_A_DESCRIPTION,
            CORRELATION: NUMBERS,
        }.get(self.estimator, 1)
        labels = study.attributes.size(self.by)
        if numbers * labels <= MOST_NUMBERS:
            return
        if self.axes and not self.by:
            raise InvalidRequest.field(
                PAIR, f"have {numbers:,} pairs, and an answer at most {MOST_NUMBERS:,}"
            )
        fewer = f"at most {MOST_NUMBERS // labels} bins for each would do; or " if self.edges else ""
        raise InvalidRequest.field(
            "by",
            f"has {labels:,} labels of {numbers:,} numbers each, and an answer at most {MOST_NUMBERS:,}: "
            f"{fewer}ask for one label at a time with where",
        )

    @property
    def statistic(self) -> str:
        """What it is for, as its releases say it."""
        return MEAN if self.estimator in (FOUND_RANGE, COORDINATES) else self.estimator

    def _special(self) -> Mapping[str, object]:
        if self.part is not None:
            return {RANGE: FOUND, PART: self.part / MICRO}
        if self.estimator == HISTOGRAM:
            return {"edges": list(self.edges)}
        if self.counts_bins or self.estimator in (COUNT, *OF_PAIRS, COORDINATES):
            return {}
        quantile = {} if self.quantile is None else {"q": float(self.quantile)}
        return quantile | {"candidates": len(self.starts)}


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
    if study.choices and ask.statistic not in (SHARES, COUNT, TABLE):
        raise InvalidRequest.field("statistic", NOT_OF_CHOICES)
    if ask.statistic == SHARES and not study.choices:
        reason = "is for choices, and these values are numbers: ask for a histogram"
        raise InvalidRequest.field("statistic", reason)
    vectors = study.dimension > 1 and ask.statistic not in _OF_ALL
    if vectors and ask.statistic not in STATISTICS:
        raise InvalidRequest.field("statistic", no_number(study))
    secret = study.relation is Relation.ADD_REMOVE_ONE
    if vectors and secret and ask.statistic == SUM:
        raise InvalidRequest.field("statistic", NO_SUM)
    estimator, of = (
        ESTIMATORS.get(ask.statistic, COORDINATES),
        _PHRASES.get(ask.statistic, f"a {ask.statistic}"),
    )
    parameters = dict(ask.parameters)
    errors: list[FieldError] = []
    if vectors:
        estimator, of = COORDINATES, f"a {ask.statistic} of values of several coordinates"
        if parameters.pop(RANGE, DECLARED) != DECLARED:
            errors.append(FieldError(RANGE, f"must be {DECLARED} for {of}"))
    if ask.estimator not in (None, AUTO, estimator):
        errors.append(FieldError("estimator", f"must be {estimator} for {of}"))
    if ask.tilt is not None and estimator == COUNT:
        errors.append(FieldError("tilt", "does not apply to a count: values have no place in it"))
    asked = asked_of(study, ask, errors)
    own = () if vectors else (PAIR,) if ask.statistic in OF_PAIRS else ASKABLE[ask.statistic].own
    those = f"it has {', '.join(own)}" if own else "it has none"
    errors += [
        FieldError(name, f"not a parameter of {of}; {those}") for name in parameters if name not in own
    ]
    pair: tuple[str, ...] = ()
    axes: tuple[tuple[str, tuple[str, ...]], ...] = ()
    starts: tuple[int, ...] = ()
    edges: tuple[float, ...] = ()
    quantile: Fraction | None = None
    part: int | None = None
    try:
        if estimator == HISTOGRAM:
            starts, edges = read_bins(study, parameters)
        elif estimator == SHARES:
            starts = study.choice_points[1:]
        elif estimator in OF_PAIRS:
            choices = estimator == TABLE
            pair = read_pair(study, parameters, choices=choices, line=ask.statistic == REGRESSION)
            axes = tuple((name, study.of_measure(name).choices) for name in pair if choices)
            starts = tuple(range(1, math.prod(len(labels) for _, labels in axes)))
        elif estimator in (COUNT, COORDINATES):
            starts = ()
        elif estimator == FOUND_RANGE:
            starts = ladder(study.grid)[1:-1]
            part = int(read_rank(PART, parameters) * MICRO) if PART in parameters else DEFAULT_PART
        else:
            if estimator == QUANTILE:
                quantile = Fraction(1, 2) if ask.statistic == MEDIAN else read_rank("q", parameters)
            cells = read_whole("candidates", parameters.get("candidates", str(CELLS)), 10, MOST_CELLS)
            # A value belongs to the cell of the first candidate that is not below it.
            starts = tuple((2 * cell * GRID_SIZE + cells) // (2 * cells) + 1 for cell in range(cells))
    except InvalidRequest as refusal:
        errors += refusal.fields
    if errors:
        raise InvalidRequest.naming(errors, "the question is ")
    if estimator == COUNT:
        level, cap = asked["level"], asked["cap"]
        most = None if level is None else share_of(level.floor, asked["share"])
        if most is not None and (cap is None or cap >= most):
            # People count alike, so no person pays more than all can.
            asked |= {"epsilon": None, "cap": most}
        asked["tilt"] = None
    return ShapeQuestion(
        estimator=estimator,
        starts=starts,
        edges=edges,
        quantile=quantile,
        part=part,
        choices=study.choices,
        pair=pair,
        axes=axes,
        spread=vectors and secret and ask.statistic in (VARIANCE, SD),
        public=estimator == COUNT and not secret,
        **asked,
    )


def _of_shares(tilt: int) -> str:
    if tilt >= MICRO:
        return "holds however privacy and values go together"
    if tilt == 0:
        return "holds if the values of those who ask for little privacy are distributed as the others'"
    return (
        "holds if the values of those who ask for little privacy differ from the others' in at most "
        f"{tilt / 10_000:g} % of them"
    )
