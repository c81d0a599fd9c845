"""What the SDK gives back of plans: what stands for a question, and what more would give and cost."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from html import escape

from dither._models import Interval
from dither._tables import Drawn, Plotted, Row, rows_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedRange:
    """The range that a mean over a found one is planned for.

    Attributes:
        width: In the data's unit.
        release: The answer that found it; None of a guess, a tenth of the declared range.
    """

    width: float
    release: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedValues:
    """The values that an error is predicted for.

    Attributes:
        mean, sd: In the data's unit; sd is None where the error does not depend on it.
        guess: Whether no answer has said it yet: values spread evenly over half of the range.
    """

    mean: float
    sd: float | None
    guess: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedEstimator:
    """An estimator.

    Attributes:
        estimator: Its name.
        chosen: Whether the question is answered with it.
        predicted_error: Root mean square error of what is asked, about the dataset, which is all people with
            a live contribution: in the data's unit, of a variance in its square, of a covariance in the
            product of both units, of a count in people, of shares by bin or choice and of quantiles as a part
            of all people. Of variance and sd for `expected_values`.
        predicted_error_at_tilt_0: That of the same question with tilt 0, if privacy and values have nothing
            to do with each other; None in add_remove_one studies.
        epsilon_max, epsilon_max_total: The largest charge to a person by the answer, and with those that it
            sharpens.
        answers_left: How many more answers like this the study can give, at least; None where that is
            without end, or secret.
        half_width: Half of the 95 % interval that the answer will have, in the same unit; of variance and sd
            the most that it can be. None where the number of people is secret, but of counts, and of
            histograms, shares, quantiles, covariances and descriptions.
        population_predicted_error, population_half_width: As predicted_error and half_width, about the
            population that people were drawn from; of means, sums, differences and standardized means.
        anytime_half_width: As half_width, of the interval that holds for all steps of the question at once;
            None of an answer that is not sharpened.
        one_report_moves: How far one local report can move the answer at most, in the same unit; None
            without local reports in it.
        gain: With `range="found"`, how many times smaller the square of the interval is than over the
            study's range, if the values fill that; at most 1 / r^2 times as much where a part r of it is
            found.
        expected_range: With `range="found"`, the range that errors and intervals are planned for.
        expected_values: Of variance and sd, and of a mean of a secret number of people once one is published,
            the values that predicted_error is for.
        statistics: What is read off such an answer, at no further price.
    """

    estimator: str
    chosen: bool | None
    predicted_error: float | None
    predicted_error_at_tilt_0: float | None = None
    epsilon_max: Decimal | None
    epsilon_max_total: Decimal | None = None
    answers_left: int | None
    one_report_moves: float | None
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
    """The release that stands for a question, which is free to read.

    Attributes:
        release: Its id.
        share: The part of each epsilon that it has used.
        estimate, interval, half_width: What it says of what is asked, and half of the interval's width. None
            of histograms, and where it does not say that.
        people: The people who had contributed; None where their number is secret.
        created_at: When it was published.
    """

    release: str
    share: float | None
    estimate: float | None
    interval: Interval | None
    half_width: float | None
    people: int | None
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Newcomers:
    """What renews the release that stands, at its share: people of whom it has used less pay, no others.

    Attributes:
        people: Those who are charged.
        epsilon_max: The largest charge to one of them.
        epsilon_max_total: The largest charge to any person by the renewed answer and those before it.
        predicted_error: Root mean square error of the renewed answer, as of an estimator.
        half_width: Half of its 95 % interval for all people of now, in the same unit.
        population_predicted_error, population_half_width: The same about the population.
    """

    people: int
    epsilon_max: Decimal
    epsilon_max_total: Decimal
    predicted_error: float
    half_width: float
    population_predicted_error: float | None = None
    population_half_width: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRefusal:
    """Why a question would be refused as it is asked.

    Attributes:
        code, detail: Of the `ProblemError` that says so.
        share, people: Of `SaysNothing`; None of others.
    """

    code: str
    detail: str
    share: float | None = None
    people: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Plotted):
    """What stands, and what more would give and cost: one row an estimator that applies.

    Attributes:
        in_words: The plan in one sentence, which `print(plan)` shows.
        share, share_before: The part of each epsilon that the question would use in all, and has used.
        stands: The release that answers it so far; None before the first one.
        free: Whether the next read without a share charges no person: it combines what is published.
        newcomers: What renewing that at its share would take; None where no one new can pay.
        refusal: Why no new answer can be made; None where one can.
        estimators: The one that is taken first.
        tilt: Of the question; None of a count.
        about: Whom the answer would be about, in words, where the number of people is secret; None elsewhere.
        least_epsilon: There, what they have offered at least.
        assumption: What errors and intervals assume of the people by it, in words.
    """

    in_words: str
    share: float | None = None
    share_before: float | None = None
    stands: Standing | None = None
    free: bool = False
    newcomers: Newcomers | None = None
    refusal: PlannedRefusal | None = None
    estimators: tuple[PlannedEstimator, ...]
    tilt: Decimal | None = None
    about: str | None = None
    least_epsilon: Decimal | None = None
    assumption: str | None = None
    raw: Mapping[str, object] = field(repr=False, compare=False)

    def __str__(self) -> str:
        return self.in_words

    def _repr_html_(self) -> str:
        """The sentence above the table, for notebooks."""
        return f"<p>{escape(str(self))}</p>{Plotted._repr_html_(self)}"

    def _rows(self) -> list[Row]:
        return [row for one in self.estimators for row in rows_of(one.raw)]

    def _drawn(self) -> tuple[str, list[Drawn]]:
        rows = ((one.estimator, one.predicted_error) for one in self.estimators)
        return "predicted error", [Drawn(name, error) for name, error in rows if error is not None]
