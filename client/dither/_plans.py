# Made by client/models.py. Do not edit.
"""Plans."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from dither._answers import Interval
from dither._tables import PlanTable


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedRange:
    """The range that a mean over a found one is planned for: errors and intervals are as if it were found.

    Attributes:
        width: Its width, in the data's unit.
        release: The answer that found it, the last one; None of a guess: a tenth of the declared range.
    """

    width: float
    release: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedValues:
    """The values that an error is predicted for, as the last answers say, or as a guess.

    Attributes:
        mean: Their mean, in the data's unit.
        sd: Their standard deviation, in the data's unit; None where the error depends on none.
        guess: Whether no answer has said it yet. The error of a standard deviation may then be several times
            as large or as small.
    """

    mean: float
    sd: float | None = None
    guess: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedEstimator:
    """Price and accuracy of one estimator.

    Attributes:
        chosen: Whether the question is answered with it; `auto` takes the first one.
        predicted_error: Root mean square error of what is asked, about the dataset, all people with a live
            contribution: in the data's unit, of a variance in its square, of a covariance in the product of
            both units, of a count in people, of histograms, shares and quantiles as a part of all people. Of
            `variance` and `sd` for `expected_values`; of `describe` that of the mean.
        predicted_error_at_tilt_0: The same for a question with `tilt` 0; replace_one studies.
        epsilon_max: The most that any person would be charged; with Gaussian noise at the study's delta.
        epsilon_max_total: The largest charge to a person by this answer and those that it sharpens.
        mu2_max: What a person would be charged at most, in mu^2; None with Laplace noise.
        answers_left: How many more answers like this the study can give, at least, before they are refused;
            None where they cost nothing, and where it is secret.
        one_report_moves: How far one local report can move the answer at most, with the weights of this plan;
            None without local reports in it.
        half_width: Half of the interval for the dataset that the answer will have, of 95 % or at the `level`
            that is asked for, before it is cut off at the range, in the unit of `predicted_error`. The most
            that it can be of `variance` and `sd`; of `range="found"` that in the expected range; of a count
            in people. None of other answers where the number of people is secret, since the interval depends
            on it, and of histograms, shares, quantiles, covariances and `describe`.
        population_predicted_error: `predicted_error` about the population that the people were drawn from,
            for means, sums, differences and standardized means; None of others, and where the number of
            people is secret.
        population_half_width: `half_width` of the interval for that population; None as that error is.
        anytime_half_width: `half_width` of the interval that holds for all steps of the question at once;
            None of an answer that is not sharpened, and of what is read off variances or several labels.
        gain: With `range="found"`: how many times smaller the square of the interval is than over the
            declared range, if the values fill that; where a part r of it is found, at most 1 / r² times as
            much. None of others.
        expected_range: With `range="found"`: what it is planned for. None of others.
        expected_values: Of `variance` and `sd`, and of a mean of a secret number of people if one is
            published: the values that `predicted_error` is for. None of others, whose error is the same for
            all values or is bounded over them.
        statistics: What is read off such an answer, at no further price, as far as it says it.
    """

    estimator: str
    summary: str | None = None
    chosen: bool | None = None
    predicted_error: float | None = None
    predicted_error_at_tilt_0: float | None = None
    epsilon_max: Decimal | None = None
    epsilon_max_total: Decimal | None = None
    mu2_max: Decimal | None = None
    answers_left: int | None = None
    one_report_moves: float | None = None
    half_width: float | None = None
    population_predicted_error: float | None = None
    population_half_width: float | None = None
    anytime_half_width: float | None = None
    gain: float | None = None
    expected_range: ExpectedRange | None = None
    expected_values: ExpectedValues | None = None
    statistics: tuple[str, ...] = ()
    raw: Mapping[str, object] = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The answer that stands, free to read.

    Attributes:
        share: The part of each epsilon that it has used.
        estimate: None of histograms, and where it does not say what is asked.
        interval: For the people of then; None of histograms.
        half_width: Half of the interval's width.
        people: Live contributions then; None where their number is secret.
    """

    release: str
    share: float | None = None
    estimate: float | None = None
    interval: Interval | None = None
    half_width: float | None = None
    people: int | None = None
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Newcomers:
    """What renews the answer that stands, at its share: only people of whom it has used less pay.

    Attributes:
        people: Those who are charged.
        epsilon_max: The largest charge to one of them; with Gaussian noise at the study's delta.
        epsilon_max_total: The largest charge to any person by the renewed answer and those before it.
        mu2_max: What one of them is charged at most, in mu^2; None with Laplace noise.
        predicted_error: Root mean square error about the dataset, as of an estimator.
        half_width: Half of the interval for all people of now, at the `level` that is asked for, as of an
            estimator; of histograms and shares as a part of all people.
        population_predicted_error: Root mean square error about the population, as of an estimator.
        population_half_width: Half of the interval for the population, as of an estimator.
    """

    people: int
    epsilon_max: Decimal
    epsilon_max_total: Decimal
    mu2_max: Decimal | None = None
    predicted_error: float
    half_width: float
    population_predicted_error: float | None = None
    population_half_width: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRefusal:
    """Why the question would be refused as it is asked; the problem that says so has the same fields.

    Attributes:
        code: As of the problem.
        share: Of `says_nothing`, as of the problem; None of others.
        people: Of `says_nothing`, as of the problem; None of others.
        half_width: Of `out_of_reach`, as of the problem, and `estimators` are at the whole share; None of
            others.
    """

    code: str
    detail: str
    share: float | None = None
    people: int | None = None
    half_width: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(PlanTable):
    """What stands, and what more would give and cost. Nothing is spent.

    Every estimator that has an answer, the one that is taken first, then the most accurate one.

    Attributes:
        share: The part of each epsilon that the question would use in all.
        share_before: What it has used; the price is that of the rest.
        tilt: That of the question; None of a count.
        about: Whom the answer would be about, where the number of people is secret.
        least_epsilon: What they have offered at least; None as `about`, and where that is asked first.
        assumption: What predictions and intervals assume of the people.
        stands: The best answer to the question so far; None before the first one. In add_remove_one studies
            the newest one to this question with this share and cap.
        free: Whether the next read of the question, without a share, charges no person: it combines what was
            published since the answer that stands.
        newcomers: What renewing it would take; None where no one new can pay, where it would be no gain, with
            `fresh`, and in add_remove_one studies.
        refusal: Why the question would be refused as it is asked, before anything is charged; None where it
            is answered. Of `says_nothing` and `no_gain` there are `estimators`: `allow_worse` answers all the
            same.
        in_words: What stands, what more would give and cost, and newcomers alone; where no new answer can be
            made, why.
    """

    share: float | None = None
    share_before: float | None = None
    estimators: tuple[PlannedEstimator, ...]
    tilt: Decimal | None = None
    about: str | None = None
    least_epsilon: Decimal | None = None
    assumption: str | None = None
    stands: Standing | None = None
    free: bool = False
    newcomers: Newcomers | None = None
    refusal: PlannedRefusal | None = None
    in_words: str
    raw: Mapping[str, object] = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedQuestion(Plan):
    """The plan of one of several questions, as if it alone were asked.

    Attributes:
        epsilon_max: What its answer would charge a person at most; 0 where it costs nothing or is refused.
        mu2_max: The same in mu^2; None with Laplace noise.
    """

    epsilon_max: Decimal
    mu2_max: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plans:
    """The plans of several questions. Nothing is spent.

    Attributes:
        questions: In the order in which they were asked.
        epsilon_max: What the answers to all of them would charge a person at most. What is read off one
            answer is paid once, and of several shares of a question that is sharpened the largest one. No
            person is charged more than they offered.
        mu2_max: The same in mu^2; None with Laplace noise.
    """

    questions: tuple[PlannedQuestion, ...]
    epsilon_max: Decimal
    mu2_max: Decimal | None = None
    raw: Mapping[str, object] = field(repr=False, compare=False)
