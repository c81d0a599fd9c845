"""What an analyst asks of the distribution of the values: equal questions have equal digests."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar
from uuid import UUID

from app.core.epsilon import MICRO
from app.core.errors import InternalFault, InvalidRequest
from app.core.question import STATISTICS as ASKABLE
from app.core.release import Asked
from app.core.study import Study, StudyDefinition
from app.estimators.expected import GUESS
from app.estimators.found_range import FoundRange
from app.estimators.tree_levels import Aim
from app.services.shapes.parameters import AIM
from app.services.statistics.any_question import AnyQuestion, digest_of
from app.services.statistics.questions import COUNT as COUNT
from app.services.statistics.questions import (
    FOUND,
    MEAN,
    PAIR,
    RANGE,
    RANGE_PART,
    REGRESSION,
    STATISTICS,
    Ask,
    of_vectors,
)
from app.services.statistics.reading import READ
from app.store.database import Connection

HISTOGRAM, DISTRIBUTION, QUANTILE, MEDIAN = "histogram", "distribution", "quantile", "median"
DESCRIBE, SHARES, COVARIANCE, CORRELATION = "describe", "shares", "covariance", "correlation"

TABLE = "table"

OF_PAIRS = (COVARIANCE, CORRELATION, REGRESSION, TABLE)
"""Statistics of two measures: of two numbers, and a table of two choices."""

NO_ONE_MEASURE = ": its measures are two"
"""Why none of these is about one measure, see `ShapeEstimator.no_measure`."""

SHAPES = tuple(name for name in ASKABLE if name not in READ)
"""Statistics of the distribution, and of how many people there are. A histogram and the distribution
function over the same bins are read off one release, and so are a median and the quantile 0.5, and a
correlation and the lines of either number on the other one."""

BY_BINS = (HISTOGRAM, DISTRIBUTION)

FOUND_RANGE = "found_range"
"""What answers a mean over a range that is found first."""

COORDINATES = "coordinates"
"""What answers a mean of values of several coordinates, and what is read off it."""

MOST_NUMBERS = 10_000
"""Labels times bins, choices or coordinates of one answer."""

QUARTILES = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))

SPREAD = "spread"


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
        """The range as if it had been found; where it lies says nothing of errors."""
        return FoundRange(low=0, high=self.width, outside=0.0)


def of_shares(tilt: int) -> str:
    """What intervals for shares assume of people with a tilt [ppm], in words."""
    if tilt >= MICRO:
        return "holds however privacy and values go together"
    if tilt == 0:
        return "holds if the values of those who ask for little privacy are distributed as the others'"
    return (
        "holds if the values of those who ask for little privacy differ from the others' in at most "
        f"{tilt / 10_000:g} % of them"
    )


class ShapeEstimator:
    """What the plan of an answer declares: questions, plans and pieces follow it."""

    __slots__ = ()

    name: ClassVar[str]
    """As questions and releases name it."""

    answers: ClassVar[tuple[str, ...]] = ()
    """The statistics that it answers, where these are not of several coordinates."""

    summary: ClassVar[str]
    """One line about it."""

    counts_bins: ClassVar[bool] = False
    """Whether people are counted by bins that are known before they are."""

    keeps: ClassVar[bool] = False
    """Whether noisy sums are kept and sharpened by steps, see `app.services.shapes.steps`."""

    labels_add_up: ClassVar[bool] = False
    """Whether, with `by`, the answer for all people is read off the noisy sums of labels."""

    whole_draws: ClassVar[bool] = False
    """Whether, with `by`, the answer for all people has a tree of its own, for a part of each offer."""

    many_numbers: ClassVar[bool] = False
    """Whether an answer has several numbers for each label, so that pages show some labels of a long one."""

    no_measure: ClassVar[str] = ""
    """Why it is not about one measure of several; empty where it is."""

    is_mean: ClassVar[bool] = False
    """Whether its releases say a mean."""

    @classmethod
    def own(cls, study: StudyDefinition, ask: Ask, parameters: Mapping[str, str]) -> Mapping[str, Any]:
        """The fields of `ShapeQuestion` that are its own.

        Raises:
            InvalidRequest: names every parameter that is wrong.
        """
        return {}

    @classmethod
    async def informed(
        cls, connection: Connection, study: Study, question: "ShapeQuestion"
    ) -> "ShapeQuestion":
        """The question with what former answers told that it is planned for; as it is, where nothing does."""
        return question

    @staticmethod
    def assumption(tilt: int) -> str | None:
        """What intervals assume of people with a tilt [ppm], in words; None where it has no place."""
        return of_shares(tilt)

    @classmethod
    def of_crowd(
        cls, study: StudyDefinition, question: "ShapeQuestion", crowd: Any, part: Callable[[int], int] = int
    ) -> Any:
        """Plan and price a question.

        Args:
            study, question: What is asked.
            crowd: Whom, a `Crowd`.
            part: What of an offer it may take; all of it if not given.

        Raises:
            NotApplicable: no person central or public is there, or the share leaves nothing of their offers.
            BudgetExhausted: people could take part, but cannot pay for all parts.
            InternalFault: a charge exceeds an offer; or it is made of others, and not for a crowd.
        """
        raise InternalFault("It is not made for a crowd.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeQuestion(AnyQuestion):
    """A question for the distribution of the values, or what needs it.

    Attributes:
        shape: What answers it.
        starts: Where each cell but the first one begins [grid steps].
        edges: The ends of all bins, ascending [data's unit]; empty but for histograms.
        choices: The labels of all bins, for shares of choices.
        quantile: q, for quantiles.
        aim: What of quantiles is to be as exact as it can be.
        part: Of the price that finds the range [ppm]; for a mean over a found range.
        pair: Of which two measures, for a covariance, a correlation and lines, and a table.
        axes: Of a table both of them with their labels. No part of the question.
        summed: What is summed of each person, see `app.store.bins`; empty where it is nothing. No part of the
            question.
        numbers: How many an answer has, for each label. No part of the question.
        special: What releases say of what is special to it, as JSON.
        spread: Whether the answer must have a variance; asked for where it takes sums of its own.
        expected: Of a found range the one that was found last, or None. No part of the question.
        spreads: The variances of a pair that a correlation is planned for [range width squared]. No part of
            the question.
        most: Those for which it must say something, else it is refused [the same]. No part of the question.
    """

    shape: type[ShapeEstimator]
    starts: tuple[int, ...] = ()
    edges: tuple[float, ...] = ()
    quantile: Fraction | None = None
    aim: Aim = Aim.INTERVAL
    part: int | None = None
    choices: tuple[str, ...] = ()
    pair: tuple[str, ...] = ()
    axes: tuple[tuple[str, tuple[str, ...]], ...] = ()
    summed: tuple[str, ...] = ()
    numbers: int = 1
    special: Mapping[str, object] = field(default_factory=dict)
    spread: bool = False
    expected: ExpectedRange | None = None
    spreads: tuple[float, float] = (GUESS.spread_in_pair, GUESS.spread_in_pair)
    most: tuple[float, float] = (GUESS.most, GUESS.most)

    @property
    def size(self) -> float | None:
        """add_remove_one: the number of people to predict for; None where nothing is known of it."""
        return self.expected_size if self.level is None else self.level.size or self.expected_size

    @property
    def hears(self) -> bool:
        """Reports of choices are counted; others are noisy numbers, and these answers read values."""
        return bool(self.choices)

    @property
    def weighs_alike(self) -> bool:
        """In a count each person is one."""
        return self.estimator == COUNT

    def assumption(self, study: StudyDefinition) -> str | None:
        """See `AnyQuestion`. A tilt is a part of all people; of a mean it is a part of the study's range."""
        return self.shape.assumption(self.assumed(study))

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
        if self.aim is not Aim.INTERVAL:
            # Questions of before it was a field keep their digests.
            asked[AIM] = self.aim
        if self.part is not None:
            asked[RANGE_PART] = self.part
        if self.spread:
            asked[SPREAD] = True
        return asked | self.of_whom_and_what

    @property
    def of_whom_and_what(self) -> dict[str, object]:
        """As of every question; of two measures with these."""
        shown = super(ShapeQuestion, self).of_whom_and_what
        return shown | {PAIR: list(self.pair)} if self.pair else shown

    @property
    def adds_up(self) -> bool:
        """Whether, with `by`, the answer for all people is read off the noisy sums of labels."""
        return self.shape.labels_add_up

    def refuse_too_many_numbers(self, study: StudyDefinition) -> None:
        """Refuse a new answer that would have too many; one that is stored is still given.

        Raises:
            InvalidRequest: says how many would do.
        """
        numbers, labels = self.numbers, study.attributes.size(self.by)
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
        return MEAN if self.shape.is_mean else self.estimator

    def _special(self) -> Mapping[str, object]:
        return self.special
