# Made by client/models.py. Do not edit.
"""Answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from dither._tables import InWords, Plotted


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A confidence interval; `coverage` is exact, at_least, or worst_case (of independent values).

    Attributes:
        level: How often it holds, as 0.95.
    """

    level: float
    lower: float
    upper: float
    coverage: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistic:
    """An estimate that is read off the same release, with its accuracy; it never costs anything more.

    Attributes:
        estimate: In the data's unit; squared of a variance. One whose `interval` begins at 0 is hidden by
            noise: it is at most the other end, and the estimate says little.
        standard_error: Standard deviation of its noise, to first order.
        predicted_error: Root mean square error that the plan predicted; None of former releases.
        interval: For the dataset: the people who contributed.
        population_interval: For the population that they were drawn from.
    """

    estimate: float
    standard_error: float
    predicted_error: float | None = None
    interval: Interval
    population_interval: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread(Statistic, InWords):
    """A variance or a standard deviation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """The number of people: public, or with noise.

    Attributes:
        interval: Where the number is secret, of those who take part.
    """

    estimate: float
    interval: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Quartile:
    """The value with a part `q` of the people at or below it.

    Other fields are as in `Statistic`.
    """

    q: float
    estimate: float
    interval: Interval
    population_interval: Interval | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Coordinate:
    """A coordinate of the mean, or of what was asked in its place, with its accuracy.

    Other fields are as in `Statistic`.

    Attributes:
        coordinate: Which one, from 0 on.
        simultaneous: For the dataset; those of all coordinates hold together. For mean and sum, where the
            number of people is public.
        anytime: As `interval`, which it holds, for all steps of the question at once; of a mean or a sum that
            is sharpened.
        variance: Of the coordinate, with the mean; None where nothing is known of it.
        sd: The square root of the variance.
    """

    estimate: float
    standard_error: float
    predicted_error: float | None = None
    interval: Interval
    population_interval: Interval
    coordinate: int
    simultaneous: Interval | None = None
    anytime: Interval | None = None
    variance: Spread | None = None
    sd: Spread | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LineNumber:
    """A number with both of its intervals."""

    estimate: float
    interval: Interval
    population_interval: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class LinePoint:
    """Where a line is at one place.

    Attributes:
        at: The number that explains; all others are of the one that is explained.
        lower: Of a 95 % interval for the dataset's line here; between points straight lines hold, too.
    """

    at: float
    estimate: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The least-squares line of one number on the other one.

    Attributes:
        intercept: Where the number that explains is 0.
        band: Over the range of the number that explains, ascending.
    """

    slope: LineNumber
    intercept: LineNumber
    band: tuple[LinePoint, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """Where a line is at a number that was asked for.

    Attributes:
        at: Of the measure that explains.
        estimate: Of the measure that is explained.
        interval: For the dataset's line there, not for single people.
    """

    at: float
    estimate: float
    interval: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRange:
    """The range that was found, and how many lie outside; values there count as its nearer end.

    A reporting range is about those who report inside it, if they are as those who answered its searches.

    Attributes:
        outside_at_most: Part of all people that lies outside at most, in 95 of 100 answers.
        people_outside_at_most: The same in people; None where their number is secret.
    """

    lower: float
    upper: float
    outside_at_most: float
    people_outside_at_most: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchesPart:
    """People who answered finished quantile searches of the study.

    Attributes:
        people: How many; `people` has them, each person with a report or an answer once.
        weight: Their part of the whole weight, 0 to 1.
    """

    people: int
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesAnswer:
    """The published mean of one study of a series.

    Attributes:
        created_at: When the study was made, by which the series is in order.
    """

    study: str
    created_at: datetime
    release: str
    estimate: float
    interval: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """A change, or a trend, off what is published: it costs nothing.

    Attributes:
        study: The study that was asked about: the last one of those that are read.
        since: Of a change: the study before it; None of a trend.
        estimate: Of a change the mean of this study less that of the one before, in the data's unit; of a
            trend the slope of the line through all means by least squares, in that unit per study.
        interval: For the people of these studies, who may be the same ones. Of means that say their interval
            alone, as where the number of people is secret, its level is lower: .9 for two of them.
        population_interval: For the populations that they were drawn from; None where too many bounds could
            fail.
        answers: The means that it is read off, in the order of the series.
        without_answer: Studies of the series without a published answer to the question: they are left out.
    """

    statistic: str
    of: str
    series: str
    study: str
    since: str | None = None
    measure: str | None = None
    where: Mapping[str, str] | None = None
    estimate: float
    standard_error: float
    interval: Interval
    population_interval: Interval | None = None
    answers: tuple[SeriesAnswer, ...]
    without_answer: tuple[str, ...]
    in_words: str
    raw: Mapping[str, object] = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """The people whose values lie in a bin: from its lower end on, below its upper one.

    Attributes:
        share: Part of all people, 0 to 1; of a distribution all up to `upper`.
        interval: For the dataset; of a distribution a band: all hold together.
        simultaneous: For the dataset; those of all bins hold together.
        anytime: As `interval`, which it holds, for all steps of the question at once.
    """

    lower: float
    upper: float
    share: float
    interval: Interval
    population_interval: Interval
    simultaneous: Interval
    anytime: Interval | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceShare:
    """The people who made a choice.

    Attributes:
        share: Part of all people, 0 to 1; those of all choices sum to 1.
        interval: For the dataset.
        simultaneous: For the dataset; those of all choices hold together.
        anytime: As `interval`, which it holds, for all steps of the question at once.
    """

    choice: str
    share: float
    interval: Interval
    population_interval: Interval
    simultaneous: Interval
    anytime: Interval | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CellShare:
    """The people who made a pair of choices.

    Attributes:
        where: The choice of each measure.
        share: Part of all people, 0 to 1; those of all cells sum to 1.
        interval: For the dataset.
        simultaneous: For the dataset; those of all cells hold together.
        anytime: As `interval`, which it holds, for all steps of the question at once.
    """

    where: Mapping[str, str]
    share: float
    interval: Interval
    population_interval: Interval
    simultaneous: Interval
    anytime: Interval | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelAnswer:
    """The answer for one label.

    Other fields are as in `Release`.

    Attributes:
        outside_at_most: With `range="found"` or a reporting range: the part of these people that lies outside
            at most; as that of the whole, for all labels at once. None where their number is secret.
        predicted_bias: The part of it that every answer has: of unequal weights, and of shrinking. Those of
            several labels may add up; None as `drawn_to_whole`.
        simultaneous: With `simultaneous=True`: for the dataset; those of all labels hold together.
        weight: Its part of a standardized mean; None of other answers.
        drawn_to_whole: The estimate drawn to that for all people, by as much as its error is more than the
            scatter of all labels: better for most small labels, if labels differ at random. None with fewer
            than three labels that have an answer; None of all but the mean.
        together: The same where labels are secret: for two labels, and for all.
    """

    where: Mapping[str, str]
    people: int | None = None
    people_left_out: int | None = None
    noisy_count: float | None = None
    about: str | None = None
    estimate: float | None = None
    outside_at_most: float | None = None
    standard_error: float | None = None
    predicted_error: float | None = None
    predicted_bias: float | None = None
    interval: Interval | None = None
    population_interval: Interval | None = None
    anytime: Interval | None = None
    simultaneous: Interval | None = None
    weight: float | None = None
    drawn_to_whole: float | None = None
    error: Mapping[str, object] | None = None
    together: tuple[Mapping[str, object], ...] | None = None
    bins: tuple[Bin, ...] | None = None
    cumulative: tuple[Bin, ...] | None = None
    choices: tuple[ChoiceShare, ...] | None = None
    means: tuple[float, ...] | None = None
    coordinates: tuple[Coordinate, ...] | None = None
    count: Count | None = None
    mean: Statistic | None = None
    sd: Spread | None = None
    quartiles: tuple[Quartile, ...] | None = None
    r_squared: float | None = None
    r_squared_interval: Interval | None = None
    lines: tuple[Line, ...] | None = None
    slope: LineNumber | None = None
    intercept: LineNumber | None = None
    band: tuple[LinePoint, ...] | None = None
    prediction: Prediction | None = None
    cells: tuple[CellShare, ...] | None = None
    p_value: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Release(Plotted):
    """One published answer, with its price and its accuracy.

    Asked for another statistic, `estimate`, `standard_error`, `predicted_error` and both intervals are that
    one's.

    Attributes:
        parameters: Of the question, and of how it was answered.
        relation: What the guarantee compares.
        epsilon_max: The largest charge to a person by this answer; with Gaussian noise at `delta`.
        mu2_max: What it charged at most, in mu^2; None with Laplace noise.
        mu2_max_total: The same with the answers that it sharpens; None with Laplace noise.
        delta: Of the study; None with Laplace noise.
        where: The labels of the people whom it is about; None where it is about all.
        by: The attributes whose labels are the groups, with commas between; None without.
        measure: Which of several measures it is about; None in a study of one value.
        groups: One for each declared label, in their order, beside the whole.
        predicted_error: Root mean square error of what is asked that the plan predicted: in its unit, of the
            share of a bin or a choice and of the rank of a quantile as a part of all people; of a description
            that of the mean, of several coordinates that of each. None of `variance`, `sd`, `difference` and
            `standardize` read off a release from before releases said so.
        assumption: What intervals assume of the people, by the question's tilt.
        share: The part of each epsilon that the question has used in all; of an answer with noise of its own,
            by this answer.
        share_before: What it had used before this answer.
        refines: The answer that this one sharpens, at the price of the rest.
        epsilon_max_total: The largest charge to a person by this answer and those that it sharpens.
        people: Live contributions; None where their number is secret.
        people_left_out: Those that have no part in it; None where their number is secret.
        left_out_because: Why, with blanks between: `budget_exhausted`; `local_reports_not_used`;
            `measure_not_reported`: their devices reported others; `label_too_small`: so few have their label
            that the middle of the range is nearer than any answer; of a combination `in_no_answer`: no answer
            that it combines has them; None where all have a part.
        noisy_count: People with noise, each counted as what they weigh over what larger offers count as: too
            few where some weigh less, see `about`. Only where their number is secret.
        about: Whom it is about, and about how many they are, where their number is secret. None of former
            releases and elsewhere.
        least_epsilon: What they offered at least; None as `about`.
        most_epsilon: What larger offers count as; all weigh the same where it is the least. As `about`.
        offered: How many offer at least each level, asked first; None of other answers.
        asked: The estimator that was asked for; `auto` leaves the choice to the service.
        standardize: The known share of each label, of each attribute that the mean is standardized to; None
            of other answers.
        reporting_range: None without reports inside a reporting range.
        of: Of a difference: of what; None of other answers.
        between: Of a difference: the first label less the second; None of other answers.
        estimate: What is asked, with noise, in its unit.
        standard_error: Standard deviation of the noise in it.
        interval: For the dataset: the people who contributed.
        population_interval: For the population that they were drawn from.
        anytime: As `interval`, which it holds, for all steps of the question at once: in 95 of 100 questions
            none of these is wrong, however often one looks and whatever one stops for. None of answers with
            noise of their own, of variances, and of what is read off several labels.
        error: What both intervals of a mean are made of. None of former releases, and where the number of
            people is secret.
        range: With `range="found"`: where the values are. The estimate is the mean of the values moved into
            it, and both intervals are for that mean; None for the declared range.
        variance: Of the values, in the data's unit squared; None where nothing is known of it.
        sd: The square root of the variance.
        combines: The answers whose noisy sums this one combines, at no price: of each chain of steps the
            newest, and descriptions; None of an answer that was paid for.
        weights: Where it is secret who is there: it is the mean of the people of all answers that it
            combines, each counted with the weights of those that have them; they sum to 1.
        new_contributions: Whether contributions came after it; None where that is secret.
        charges: What it cost each cohort; for admins.
        bins: From the lowest one on.
        cumulative: The bins up to and with each of them: never falling, the last one is 1.
        choices: In the order of the study.
        coordinates: Of values of several, in their order.
        measures: Of a covariance: both numbers.
        means: The mean of each of both, off the same noisy sums.
        searches: Of a quantile: people who are joined in, where there are any.
        count: Of a description, with mean, sd and quartiles.
        quartiles: At 0.25, 0.5 and 0.75, ascending.
        counts: Of K-means: people next to each centre, with noise.
        sums: For each centre the sum of their values about the middle of the range, with noise.
        count_error: Standard deviation of the noise in a count.
        sum_error: Standard deviation of the noise in a coordinate of a sum.
        r_squared: Its square: which part of the variance either line explains.
        lines: Of the first measure on the second one, and the other way round.
        intercept: Where the number that explains is 0.
        band: Over the range of the number that explains, ascending.
        on: The measure that explains.
        prediction: Where the line is at the number that was asked for with `at`; None without.
        cells: Of a table, for each choice of the first one all of the other.
        p_value: How likely a table as far from independence is if both choices are independent in the
            population, by a chi-square test that knows the noise.
    """

    id: str
    study: str
    statistic: str
    estimator: str
    estimator_version: int | None = None
    parameters: Mapping[str, object] | None = None
    relation: str | None = None
    epsilon_max: Decimal | None = None
    mu2_max: Decimal | None = None
    mu2_max_total: Decimal | None = None
    delta: Decimal | None = None
    created_at: datetime | None = None
    where: Mapping[str, str] | None = None
    by: str | None = None
    measure: str | None = None
    groups: tuple[LabelAnswer, ...] | None = None
    predicted_error: float | None = None
    assumption: str | None = None
    share: float | None = None
    share_before: float | None = None
    refines: str | None = None
    epsilon_max_total: Decimal | None = None
    people: int | None = None
    people_left_out: int | None = None
    left_out_because: str | None = None
    noisy_count: float | None = None
    about: str | None = None
    least_epsilon: float | None = None
    most_epsilon: float | None = None
    offered: tuple[Mapping[str, object], ...] | None = None
    asked: str | None = None
    standardize: Mapping[str, Mapping[str, float]] | None = None
    reporting_range: FoundRange | None = None
    of: str | None = None
    between: Mapping[str, Sequence[str]] | None = None
    estimate: float | None = None
    standard_error: float | None = None
    interval: Interval | None = None
    population_interval: Interval | None = None
    anytime: Interval | None = None
    error: Mapping[str, object] | None = None
    range: FoundRange | None = None
    variance: Spread | None = None
    sd: Spread | None = None
    combines: tuple[str, ...] | None = None
    weights: tuple[float, ...] | None = None
    new_contributions: bool | None = None
    charges: tuple[Mapping[str, object], ...] | None = field(default=None, repr=False)
    bins: tuple[Bin, ...] | None = None
    cumulative: tuple[Bin, ...] | None = None
    choices: tuple[ChoiceShare, ...] | None = None
    coordinates: tuple[Coordinate, ...] | None = None
    measures: tuple[str, ...] | None = None
    means: tuple[float, ...] | None = None
    searches: SearchesPart | None = None
    count: Count | None = None
    mean: Statistic | None = None
    quartiles: tuple[Quartile, ...] | None = None
    counts: tuple[float, ...] | None = None
    sums: tuple[tuple[float, ...], ...] | None = None
    count_error: float | None = None
    sum_error: float | None = None
    r_squared: float | None = None
    r_squared_interval: Interval | None = None
    lines: tuple[Line, ...] | None = None
    slope: LineNumber | None = None
    intercept: LineNumber | None = None
    band: tuple[LinePoint, ...] | None = None
    on: str | None = None
    prediction: Prediction | None = None
    cells: tuple[CellShare, ...] | None = None
    p_value: float | None = None
    raw: Mapping[str, object] = field(repr=False, compare=False)
