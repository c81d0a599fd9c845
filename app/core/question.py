"""The fields of questions, each said once: over HTTP, in the command, on the form and in the reference.

A statistic names the fields that it has. What a field means for a study is the business of the services;
estimators declare their own parameters besides.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto

MOST_BINS = 100
DEFAULT_BINS = 10
CELLS = MOST_CELLS = 1000
DIGITS = 6
DEFAULT_PART = 0.15
"""Of the price of a mean over a found range, what finds it."""


class Kind(Enum):
    """How a field is written."""

    TEXT = auto()
    LABELS = auto()
    NUMBERS = auto()
    FLAG = auto()
    WHOLE = auto()
    NUMBER = auto()
    EPSILON = auto()
    SHARE = auto()
    PART = auto()
    SIZE = auto()
    HALF_WIDTH = auto()
    LEVEL = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field of a question.

    Attributes:
        kind: How it is written.
        help: What it means, for all who ask.
        more: What there is to know besides, where there is room for it.
        metavar: What stands for its value in the help of a command.
        label: What a form calls it; empty for its own name.
        example: A value.
        own: Whether it is a parameter of single statistics.
    """

    kind: Kind = Kind.TEXT
    help: str
    more: str = ""
    metavar: str = ""
    label: str = ""
    example: str = ""
    own: bool = False

    @property
    def description(self) -> str:
        """All that it means."""
        return f"{self.help} {self.more}".rstrip()


FIELDS: Mapping[str, Field] = {
    "statistic": Field(help="What to ask for.", metavar="STATISTIC"),
    "estimator": Field(
        help="How; the one with the smallest predicted error if not given.", metavar="ESTIMATOR"
    ),
    "share": Field(
        kind=Kind.SHARE,
        help="Part of each personal epsilon that the question may use in all.",
        more="If not given: to read, whatever the best answer used, and the study's default for a first "
        "one; to make a release, the last share of the question and the study's default beyond it. In "
        "add_remove_one studies each answer uses its own share.",
        metavar="SHARE",
        example="0.1",
    ),
    "until": Field(
        kind=Kind.HALF_WIDTH,
        help="In place of a share: what half of the 95 % interval is to be at most, in the unit of the "
        "statistic.",
        more="The question uses the smallest share for which that is predicted, or is refused before "
        "anything is spent. For mean, sum and difference, and for a count of secret people.",
        metavar="NUMBER",
        label="Until half of the interval is",
        example="1",
    ),
    "epsilon": Field(
        kind=Kind.EPSILON,
        help="The most that any person may be charged.",
        metavar="EPSILON",
        label="At most epsilon",
    ),
    "expected_size": Field(
        kind=Kind.SIZE,
        help="In add_remove_one studies: what to take for the secret number of people.",
        metavar="NUMBER",
        label="Expected people",
    ),
    "tilt": Field(
        kind=Kind.PART,
        help="How far the mean of those who ask for little privacy may differ from the others', as a part "
        "of the range; the study's if not given.",
        metavar="PART",
    ),
    "least_epsilon": Field(
        kind=Kind.EPSILON,
        help="In add_remove_one studies: the least that people must have offered to take part.",
        more="Others are left out in silence, and pay nothing. If not given, what promises the smallest "
        "error; where too little is known for that, a fifth of the share first asks who offers how much.",
        metavar="EPSILON",
        label="Of people who offered at least",
    ),
    "where": Field(
        kind=Kind.LABELS,
        help="Of whom, in a study with attributes: name:label, as region:north; several with commas "
        "between, or repeated.",
        more="Only people with these labels are asked and charged.",
        metavar="NAME:LABEL",
        label="Of whom",
        example="region:north",
    ),
    "by": Field(
        kind=Kind.LABELS,
        help="An attribute: the answer has one estimate for each of its labels, beside the whole. Several, "
        "with commas between or repeated: one for each combination of their labels.",
        more="No person pays more than for one answer.",
        metavar="NAME",
        example="region",
    ),
    "level": Field(
        kind=Kind.LEVEL,
        help="At which level intervals are read: 0.8, 0.9, 0.95 or 0.99; 0.95 if not given.",
        more="It costs nothing, and is no part of the question: the same answer is read. An answer that was "
        "made before answers kept the ends of their intervals at other levels is refused.",
        metavar="LEVEL",
        label="Level of intervals",
        example="0.99",
    ),
    "simultaneous": Field(
        kind=Kind.FLAG,
        help="With labels: beside the interval of each label one that holds together with those of all other "
        "labels.",
        more="For mean, sum and difference; it costs nothing more.",
        label="Intervals that hold together",
    ),
    "standardize": Field(
        help="The share of each label in the population, which sum to 1: the mean is that of the answers for "
        "labels, so weighed. Of several attributes with semicolons between: raked to all of them.",
        more="It costs what the answer by these labels costs, after that nothing. How several attributes go "
        "together is as among the people who contributed; where their number is secret it takes one.",
        metavar="NAME:LABEL=SHARE,...",
        label="Standardize to the population",
        example="region:north=.4,south=.6",
    ),
    "of": Field(
        help="With difference: of what, a mean if not given. With regression: the measure that is explained.",
        metavar="NAME",
    ),
    "between": Field(
        help="With difference: an attribute and two of its labels; the first less the second, read off the "
        "answer by labels.",
        metavar="NAME:LABEL,LABEL",
        label="Difference between",
        example="region:north,south",
    ),
    "measure": Field(
        help="Of which measure, in a study of several measures, where it is required.",
        more="In a study of one it may be given: `value`, or the name that the study has for it.",
        metavar="NAME",
        example="income",
    ),
    "edges": Field(
        kind=Kind.NUMBERS,
        help="Histogram and distribution: where bins begin and end, ascending, with commas between; what "
        "they leave of the range are bins of their own.",
        metavar="NUMBERS",
        own=True,
    ),
    "bins": Field(
        kind=Kind.WHOLE,
        help=f"Histogram and distribution: the number of equal bins over the range, 2 to {MOST_BINS}; "
        f"{DEFAULT_BINS} if neither it nor edges are given.",
        metavar="NUMBER",
        own=True,
    ),
    "q": Field(
        kind=Kind.NUMBER,
        help="Quantile: which part of the people lies at or below it, above 0 and below 1, at most "
        f"{DIGITS} decimals.",
        metavar="PART",
        own=True,
    ),
    "candidates": Field(
        kind=Kind.WHOLE,
        help="Quantile, median and describe: of no effect on answers any more, which are not bound to steps "
        f"of the range; another number is another question. 10 to {MOST_CELLS}; {CELLS} if not given.",
        metavar="NUMBER",
        own=True,
    ),
    "for": Field(
        help="Quantile, median and describe: what is to be as exact as it can be, interval (the default) or "
        "estimate.",
        more="With `estimate` the value is nearer, and its interval wider.",
        metavar="WHAT",
        own=True,
    ),
    "range": Field(
        help="Mean: declared, the study's range (the default), or found: a part of the price finds the range "
        "that holds the values, and the answer is the mean of the values moved into it.",
        metavar="RANGE",
        own=True,
    ),
    "measures": Field(
        help="Covariance and correlation: two of the study's measures, both numbers, with a comma between. "
        "Table: both choices.",
        metavar="NAME,NAME",
        label="Of two measures",
        own=True,
    ),
    "on": Field(help="Regression: the measure that explains, a number.", metavar="NAME", own=True),
    "at": Field(
        kind=Kind.NUMBER,
        help="Regression: a number of the measure that explains, in its range; `prediction` says where the "
        "line is there. It costs nothing more, and is no part of the question.",
        metavar="NUMBER",
        own=True,
    ),
    "range_part": Field(
        kind=Kind.NUMBER,
        help="Mean with range=found: the part of the price that finds the range, above 0 and below 1, at "
        f"most {DIGITS} decimals; {DEFAULT_PART} if not given.",
        metavar="PART",
        own=True,
    ),
}
"""Every field of a question, but the parameters of estimators."""

FRESH = Field(
    kind=Kind.FLAG,
    help="Answer with noise of its own, at the full price of the share, in place of sharpening the last "
    "answer.",
    label="With noise of its own",
)
ALLOW_WORSE = Field(
    kind=Kind.FLAG,
    help="Answer also where most people cannot pay any more, or the interval will be much wider than that "
    "of the best answer so far, or all that the number can be.",
)
"""How an answer is made: these are no part of a question."""

_OF_ALL = ("share", "epsilon", "expected_size", "least_epsilon", "tilt", "where", "by", "measure", "level")
_OF_MEAN = ("estimator", *_OF_ALL)
_OF_SUM = (
    "estimator",
    "share",
    "until",
    "epsilon",
    "tilt",
    "where",
    "by",
    "measure",
    "simultaneous",
    "level",
)
_OF_PAIR = tuple(name for name in _OF_ALL if name != "measure")


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistic:
    """What can be asked.

    Attributes:
        summary: What an answer shows, and when it costs something, in a line.
        fields: What may be said of it, beside `statistic`.
        needs: Those without which there is no answer.
        example: Of its command, behind the name.
        unit: Of its predicted error.
        error: What that is the root mean square error of, with a place for "of each coordinate"; empty for
            what is asked.
    """

    summary: str
    fields: Sequence[str]
    needs: Sequence[str] = ()
    example: str = "commute"
    unit: str = "in the data's unit"
    error: str = ""

    @property
    def own(self) -> Sequence[str]:
        """The fields that are its own parameters."""
        return tuple(name for name in self.fields if FIELDS[name].own)


_READ_OFF = (
    "The first to ask a question spends for it; after `dither mean` it is free where the number of people is "
    "public."
)
_PART = "part of all people"
_OF_SPREAD = "of the correlation of independent numbers, spread as answers told or as guessed"

STATISTICS: Mapping[str, Statistic] = {
    "mean": Statistic(
        summary="Show the best answer so far. The first to ask a question spends for it; asking again is "
        "free.",
        fields=(*_OF_MEAN, "until", "simultaneous", "standardize", "range", "range_part"),
        example="commute --estimator optimal -p shrinkage=none",
    ),
    "sum": Statistic(
        summary=f"Show the sum of the values. {_READ_OFF}",
        fields=_OF_SUM,
    ),
    "variance": Statistic(
        summary=f"Show the variance of the values. {_READ_OFF}",
        fields=_OF_MEAN,
        unit="in the square of the data's unit",
        error="of the variance{}, at most",
    ),
    "sd": Statistic(
        summary=f"Show the standard deviation of the values. {_READ_OFF}",
        fields=_OF_MEAN,
        example="commute --share 0.2",
        error="of the standard deviation{}, at most",
    ),
    "difference": Statistic(
        summary="Show the mean of a label less that of another one. It is free after `dither mean --by`.",
        fields=("between", "of", *_OF_MEAN, "until", "simultaneous", "range", "range_part"),
        needs=("between",),
        example="income region:north,south",
    ),
    "histogram": Statistic(
        summary="Show which part of the people lies in each bin. The first to ask spends; asking again is "
        "free.",
        fields=("edges", "bins", *_OF_ALL),
        example="commute --edges 15,30,60",
        unit=_PART,
        error="of a bin's share",
    ),
    "distribution": Statistic(
        summary="Show which part of the people lies below each edge. It is free after the histogram of the "
        "bins.",
        fields=("edges", "bins", *_OF_ALL),
        example="commute --bins 20 --share 0.2",
        unit=_PART,
        error="of a bin's share",
    ),
    "quantile": Statistic(
        summary="Show the value that a part of the people does not exceed. The first to ask spends for it.",
        fields=("q", "candidates", "for", *_OF_ALL),
        needs=("q",),
        example="commute 0.9",
        unit=_PART,
        error="of the rank",
    ),
    "median": Statistic(
        summary="Show the value that half of the people do not exceed. The first to ask spends for it.",
        fields=("candidates", "for", *_OF_ALL),
        unit=_PART,
        error="of the rank",
    ),
    "describe": Statistic(
        summary="Show count, mean, standard deviation and quartiles, with one price. The first to ask "
        "spends for it.",
        fields=("candidates", "for", *_OF_ALL),
        error="of the mean",
    ),
    "shares": Statistic(
        summary="Show which part of the people made each choice. The first to ask spends; asking again is "
        "free.",
        fields=_OF_ALL,
        example="party --share 0.2",
        unit=_PART,
        error="of a choice's share",
    ),
    "count": Statistic(
        summary="Show how many people there are: free where it is public, with noise where it is secret.",
        fields=("share", "until", "epsilon", "expected_size", "least_epsilon", "where", "by", "level"),
        example="commute --where region:north",
        unit="people",
    ),
    "covariance": Statistic(
        summary="Show how two numbers of people go together. The first to ask spends; asking again is free.",
        fields=("measures", *_OF_PAIR),
        needs=("measures",),
        example="household income age",
        unit="in the product of both units",
    ),
    "correlation": Statistic(
        summary="Show how closely two numbers of people go together, at the price of a covariance.",
        fields=("measures", *_OF_PAIR),
        needs=("measures",),
        example="household income age",
        unit="without a unit",
        error=_OF_SPREAD,
    ),
    "regression": Statistic(
        summary="Show the line of one number on another one: free after their correlation, and the other "
        "way round.",
        fields=("of", "on", "at", *_OF_PAIR),
        needs=("of", "on"),
        example="household income age --at 40",
        unit="without a unit",
        error=_OF_SPREAD,
    ),
    "table": Statistic(
        summary="Show which part of the people made each pair of two choices, and whether these go together. "
        "The first to ask spends; asking again is free.",
        fields=("measures", *_OF_PAIR),
        needs=("measures",),
        example="household party sex",
        unit=_PART,
        error="of a pair's share",
    ),
}
"""Every statistic, with its fields."""
