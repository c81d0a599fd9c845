"""The parts of an answer."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A confidence interval: its coverage, for example 0.95, and its ends in the data's unit."""

    level: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistic:
    """An estimate that is read off a release beside its own, with its accuracy.

    Attributes:
        estimate: In the data's unit; squared for a variance.
        standard_error: Of the noise.
        interval: For the people who contributed.
        population_interval: For the population they were drawn from.
        predicted_error: Root mean square error that the plan predicted, in the unit of the estimate; None of
            a release from before releases said so.
    """

    estimate: float
    standard_error: float
    interval: Interval
    population_interval: Interval
    predicted_error: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread(Statistic):
    """A variance or a standard deviation."""

    @property
    def in_words(self) -> str:
        """The estimate and its interval; "at most 3497" where the interval begins at 0: noise hides it.

        >>> client.mean("commute").sd.in_words
        '20.2 (15.9 to 24.1)'
        """
        return spread_in_words(self.estimate, self.interval.lower, self.interval.upper)


def spread_in_words(estimate: float, lower: float, upper: float) -> str:
    """A variance or a standard deviation in words: "at most" the upper end where the lower one is 0.

    >>> spread_in_words(1200.0, 0.0, 3497.0)
    'at most 3497'
    """
    if lower <= 0 < upper:
        return f"at most {upper:.6g}"
    return f"{estimate:.6g} ({lower:.6g} to {upper:.6g})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """The number of people: public, or with noise.

    Attributes:
        estimate: People.
        interval: Where the number is secret, of those who take part.
    """

    estimate: float
    interval: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Quartile:
    """The value with a part `q` of the people at or below it, in the data's unit.

    Answers before version 4 have one interval for both, and no `population_interval`.
    """

    q: float
    estimate: float
    interval: Interval
    population_interval: Interval | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Coordinate:
    """A coordinate of the answer to a question about values of several.

    Attributes:
        coordinate: Which one, from 0 on.
        estimate, standard_error, interval, population_interval: As those of a `Release`, of this coordinate.
        simultaneous: Of a mean or a sum: for the people who contributed, such that those of all coordinates
            hold at once; None where their number is secret.
        variance, sd: Of this coordinate, beside a mean; None where nothing is known of them.
    """

    coordinate: int
    estimate: float
    standard_error: float
    interval: Interval
    population_interval: Interval
    simultaneous: Interval | None = None
    variance: Spread | None = None
    sd: Spread | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRange:
    """The range of a mean with `range="found"`: values outside count as its nearer end.

    Attributes:
        lower, upper: Its ends, in the data's unit.
        outside_at_most: The part of the people that lies outside at most, in 95 of 100 answers.
        people_outside_at_most: The same in people; None where their number is secret.
    """

    lower: float
    upper: float
    outside_at_most: float
    people_outside_at_most: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchesPart:
    """The people who answered searches that a quantile joins in.

    Attributes:
        people: How many.
        weight: Their part of the whole weight, 0 to 1.
    """

    people: int
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """A part of the range, and how many people's values lie in it.

    Attributes:
        lower, upper: Its ends, in the data's unit; a value at the upper one is in the next bin.
        share: Part of all people, 0 to 1; in a distribution of all up to `upper`.
        interval: For the people who contributed; in a distribution a band, which holds everywhere at once.
        population_interval: For the population they were drawn from.
        simultaneous: For the people who contributed, such that those of all bins hold at once.
    """

    lower: float
    upper: float
    share: float
    interval: Interval
    population_interval: Interval
    simultaneous: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceShare:
    """How many people made a choice.

    Attributes:
        choice: Its label.
        share: Part of all people, 0 to 1; those of all choices sum to 1.
        interval: For the people who contributed.
        population_interval: For the population they were drawn from.
        simultaneous: For the people who contributed, such that those of all choices hold at once.
    """

    choice: str
    share: float
    interval: Interval
    population_interval: Interval
    simultaneous: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelAnswer:
    """The answer for one label of an attribute.

    Attributes:
        where: The label, by the name of its attribute.
        people, people_left_out: Who has it, and those of them that could not take part; None where their
            number is secret.
        noisy_count: Their number with noise, where it is secret, each counted as what they weigh.
        about: About how many they are, in words; None elsewhere, and of former releases.
        estimate, standard_error, interval, population_interval: As those of a `Release`; None where no
            person with the label takes part.
        anytime: As that of a `Release`, for these people.
        predicted_error: As that of a `Release`, for these people; None also of a release from before
            releases said so, and of statistics that are not numbers.
        simultaneous: Where it was asked for: for the people with the label, such that those of all labels
            hold at once.
        outside_at_most: Of a mean over a found range: the part of these people that lies outside at most, for
            all labels at once in 95 of 100 answers; None where their number is secret.
        drawn_to_whole: The estimate drawn to that for all people, by as much as its error is more than the
            scatter of all labels; None of fewer than three labels, and of other statistics than a mean.
        bins, choices: Of a histogram, a distribution or shares, as those of a `Release`.
        count, mean, sd, quartiles: Of a description, as those of a `Release`.
        coordinates: Of values of several coordinates, as those of a `Release`.
    """

    where: Mapping[str, str]
    people: int | None = None
    people_left_out: int | None = None
    noisy_count: float | None = None
    about: str | None = None
    estimate: float | None = None
    standard_error: float | None = None
    interval: Interval | None = None
    population_interval: Interval | None = None
    anytime: Interval | None = None
    predicted_error: float | None = None
    simultaneous: Interval | None = None
    outside_at_most: float | None = None
    drawn_to_whole: float | None = None
    bins: tuple[Bin, ...] | None = None
    choices: tuple[ChoiceShare, ...] | None = None
    count: Count | None = None
    mean: Statistic | None = None
    sd: Spread | None = None
    quartiles: tuple[Quartile, ...] | None = None
    coordinates: tuple[Coordinate, ...] | None = None
