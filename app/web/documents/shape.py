"""Histograms, quantiles and descriptions on the wire; and whatever a release may be."""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from app.core.session import SessionProtocol
from app.services.shapes.questions import (
    COORDINATES,
    CORRELATION,
    COUNT,
    COVARIANCE,
    DESCRIBE,
    HISTOGRAM,
    QUANTILE,
    SHARES,
    TABLE,
)
from app.services.statistics.questions import REGRESSION
from app.web.documents.release import (
    ChargeOut,
    ClusterReleaseOut,
    IntervalOut,
    LabelOut,
    OfLabel,
    PublishedOut,
    ReleaseOut,
    StatisticOut,
)
from app.web.documents.types import WireOut

AtAllSteps = Annotated[
    IntervalOut | None,
    Field(description="As `interval`, which it holds, for all steps of the question at once."),
]


class _ShapeOut(PublishedOut[OfLabel]):
    """What every answer about the distribution of the values says."""

    charges: list[ChargeOut] | None = Field(None, description="What it cost each cohort; for admins.")
    new_contributions: bool | None = Field(
        None,
        description="Whether contributions came after it; only where the best answer was asked for.",
    )


class ShareOfBinOut(WireOut):
    """The people whose values lie in a bin: from its lower end on, below its upper one."""

    lower: float
    upper: float
    share: float = Field(description="Part of all people, 0 to 1; of a distribution all up to `upper`.")
    interval: IntervalOut = Field(description="For the dataset; of a distribution a band: all hold together.")
    population_interval: IntervalOut
    simultaneous: IntervalOut = Field(description="For the dataset; those of all bins hold together.")
    anytime: AtAllSteps = None


class HistogramOfLabelOut(LabelOut):
    """The shares by bin of the people with one label."""

    bins: list[ShareOfBinOut] | None = Field(description="Null where no person with the label takes part.")
    cumulative: list[ShareOfBinOut] | None = Field(None, description="As of the whole.")


class HistogramReleaseOut(_ShapeOut[HistogramOfLabelOut]):
    """The shares of people by bin; asked for a distribution, `bins` is what `cumulative` is here."""

    sharpens = "bins"

    bins: list[ShareOfBinOut] = Field(description="From the lowest one on.")
    cumulative: list[ShareOfBinOut] | None = Field(
        None, description="The bins up to and with each of them: never falling, the last one is 1."
    )


class ShareOfChoiceOut(WireOut):
    """The people who made a choice."""

    choice: str
    share: float = Field(description="Part of all people, 0 to 1; those of all choices sum to 1.")
    interval: IntervalOut = Field(description="For the dataset.")
    population_interval: IntervalOut
    simultaneous: IntervalOut = Field(description="For the dataset; those of all choices hold together.")
    anytime: AtAllSteps = None


class SharesOfLabelOut(LabelOut):
    """The shares by choice of the people with one label."""

    choices: list[ShareOfChoiceOut] | None = Field(
        description="Null where no person with the label takes part."
    )


class SharesReleaseOut(_ShapeOut[SharesOfLabelOut]):
    """The shares of people by choice."""

    sharpens = "choices"

    choices: list[ShareOfChoiceOut] = Field(description="In the order of the study.")


class ShareOfCellOut(WireOut):
    """The people who made a pair of choices."""

    where: dict[str, str] = Field(description="The choice of each measure.")
    share: float = Field(description="Part of all people, 0 to 1; those of all cells sum to 1.")
    interval: IntervalOut = Field(description="For the dataset.")
    population_interval: IntervalOut
    simultaneous: IntervalOut = Field(description="For the dataset; those of all cells hold together.")
    anytime: AtAllSteps = None


class TableOfLabelOut(LabelOut):
    """The table of the people with one label; all null where none of them takes part."""

    cells: list[ShareOfCellOut] | None
    p_value: float | None


class TableReleaseOut(_ShapeOut[TableOfLabelOut]):
    """The shares of people by the pairs of two choices."""

    sharpens = "cells"

    statistic: Literal["table"]
    measures: list[str]
    cells: list[ShareOfCellOut] = Field(
        description="Of a table, for each choice of the first one all of the other."
    )
    p_value: float = Field(
        description="How likely a table as far from independence is if both choices are independent in the "
        "population, by a chi-square test that knows the noise."
    )


class SearchesOut(WireOut):
    """People who answered finished quantile searches of the study."""

    people: int = Field(
        description="How many; `people` has them, each person with a report or an answer once."
    )
    weight: float = Field(description="Their part of the whole weight, 0 to 1.")


class QuantileOfLabelOut(LabelOut):
    """The quantile of the people with one label."""

    estimate: float | None = Field(description="Null where no person with the label takes part.")
    interval: IntervalOut | None = Field(description="As of the whole.")
    population_interval: IntervalOut | None = Field(None, description="As of the whole.")


class QuantileReleaseOut(_ShapeOut[QuantileOfLabelOut]):
    """A value with a stated part of the people at or below it."""

    estimate: float
    interval: IntervalOut = Field(
        description="For the quantile of the dataset, before `estimator_version` 4 for that of the "
        "population, too; where the number of people is secret, of those who take part."
    )
    population_interval: IntervalOut | None = Field(
        None, description="For the quantile of the population; null before `estimator_version` 4."
    )
    searches: SearchesOut | None = Field(
        None, description="Of a quantile: people who are joined in, where there are any."
    )


class CountOfLabelOut(LabelOut):
    """The number of people with one label."""

    estimate: float = Field(description="As of the whole.")
    interval: IntervalOut = Field(description="As of the whole.")


class CountReleaseOut(_ShapeOut[CountOfLabelOut]):
    """The number of people: public, or with noise where it is secret."""

    statistic: Literal["count"]
    estimate: float = Field(description="Each person counts as one; where it is secret, with noise.")
    interval: IntervalOut = Field(description="Where it is secret, of those who take part.")


class CovarianceOfLabelOut(LabelOut):
    """The covariance of the people with one label."""

    estimate: float | None = Field(description="Null where no person with the label takes part.")
    interval: IntervalOut | None = Field(description="As of the whole.")
    population_interval: IntervalOut | None
    means: list[float] | None = Field(description="As of the whole.")


class CovarianceReleaseOut(_ShapeOut[CovarianceOfLabelOut]):
    """The covariance of two of the numbers that people gave [one unit times the other]."""

    statistic: Literal["covariance"]
    measures: list[str] = Field(description="Of a covariance: both numbers.")
    estimate: float
    interval: IntervalOut = Field(description="For the dataset.")
    population_interval: IntervalOut
    means: list[float] = Field(description="The mean of each of both, off the same noisy sums.")


class WithIntervalOut(WireOut):
    """A number with both of its intervals."""

    estimate: float
    interval: IntervalOut
    population_interval: IntervalOut


class PointOfLineOut(WireOut):
    """Where a line is at one place."""

    at: float = Field(description="The number that explains; all others are of the one that is explained.")
    estimate: float
    lower: float = Field(
        description="Of a 95 % interval for the dataset's line here; between points straight lines hold, too."
    )
    upper: float


class PredictionOut(WireOut):
    """Where a line is at a number that was asked for."""

    at: float = Field(description="Of the measure that explains.")
    estimate: float = Field(description="Of the measure that is explained.")
    interval: IntervalOut = Field(description="For the dataset's line there, not for single people.")


class LineOut(WireOut):
    """The least-squares line of one number on the other one."""

    slope: WithIntervalOut
    intercept: WithIntervalOut = Field(description="Where the number that explains is 0.")
    band: list[PointOfLineOut] = Field(description="Over the range of the number that explains, ascending.")


class CorrelationOfLabelOut(LabelOut):
    """The same of the people with one label; all null where none of them takes part."""

    estimate: float | None
    interval: IntervalOut | None
    population_interval: IntervalOut | None
    r_squared: float | None
    r_squared_interval: IntervalOut | None
    means: list[float] | None
    lines: list[LineOut] | None


class CorrelationReleaseOut(_ShapeOut[CorrelationOfLabelOut]):
    """The correlation of two of the numbers that people gave, and the lines of either on the other one."""

    statistic: Literal["correlation"]
    measures: list[str]
    estimate: float = Field(description="Between -1 and 1.")
    interval: IntervalOut = Field(description="For the dataset.")
    population_interval: IntervalOut
    r_squared: float = Field(description="Its square: which part of the variance either line explains.")
    r_squared_interval: IntervalOut
    means: list[float] = Field(description="The mean of each of them, off the same noisy sums.")
    lines: list[LineOut] = Field(
        description="Of the first measure on the second one, and the other way round."
    )


class RegressionOfLabelOut(LabelOut):
    """The line of the people with one label; all null where none of them takes part."""

    slope: WithIntervalOut | None
    intercept: WithIntervalOut | None
    r_squared: float | None
    r_squared_interval: IntervalOut | None
    means: list[float] | None
    band: list[PointOfLineOut] | None
    prediction: PredictionOut | None = None


class RegressionReleaseOut(_ShapeOut[RegressionOfLabelOut], LineOut):
    """The line of one number on another one, read off the release of their correlation.

    `predicted_error` is that of the correlation.
    """

    statistic: Literal["regression"]
    of: str = Field(description="The measure that is explained.")
    on: str = Field(description="The measure that explains.")
    r_squared: float = Field(description="The part of the variance that the line explains, 0 to 1.")
    r_squared_interval: IntervalOut
    means: list[float] = Field(description="Of both, the one that is explained first.")
    prediction: PredictionOut | None = Field(
        None, description="Where the line is at the number that was asked for with `at`; left out without."
    )


class CoordinateOut(StatisticOut):
    """A coordinate of the mean, or of what was asked in its place, with its accuracy."""

    coordinate: int = Field(description="Which one, from 0 on.")
    simultaneous: IntervalOut | None = Field(
        None,
        description="For the dataset; those of all coordinates hold together. For mean and sum, where the "
        "number of people is public.",
    )
    anytime: IntervalOut | None = Field(
        None,
        description="As `interval`, which it holds, for all steps of the question at once; of a mean or "
        "a sum that is sharpened.",
    )
    variance: StatisticOut | None = Field(
        None, description="Of the coordinate, with the mean; left out where nothing is known of it."
    )
    sd: StatisticOut | None = Field(None, description="The square root of the variance.")


class CoordinatesOfLabelOut(LabelOut):
    """The same of the people with one label."""

    coordinates: list[CoordinateOut] | None = Field(
        description="Null where no person with the label takes part, or nothing is known of it."
    )


class CoordinatesReleaseOut(_ShapeOut[CoordinatesOfLabelOut]):
    """Mean, sum, variance or sd of values of several coordinates, by coordinate [data's unit].

    `predicted_error` is that of what is asked of each coordinate, in its unit; null of `variance` and `sd`
    that are read off a release from before releases said so.
    """

    sharpens = "coordinates"

    statistic: Literal["mean", "sum", "variance", "sd"]
    coordinates: list[CoordinateOut] = Field(description="Of values of several, in their order.")


class CountOut(WireOut):
    """The number of people: public, or with noise."""

    estimate: float
    interval: IntervalOut = Field(description="Where the number is secret, of those who take part.")


class QuartileOut(WireOut):
    """The value with a part `q` of the people at or below it."""

    q: float
    estimate: float
    interval: IntervalOut = Field(description="As of a quantile, for this one alone.")
    population_interval: IntervalOut | None = Field(None, description="As of a quantile, for this one alone.")


class DescriptionOfLabelOut(LabelOut):
    """The same of the people with one label; all null where none of them takes part."""

    count: CountOut | None
    mean: StatisticOut | None
    sd: StatisticOut | None
    quartiles: list[QuartileOut] | None


class DescriptionOut(_ShapeOut[DescriptionOfLabelOut]):
    """Count, mean, standard deviation and quartiles, from one release; `predicted_error` is the mean's."""

    count: CountOut = Field(description="Of a description, with mean, sd and quartiles.")
    mean: StatisticOut
    sd: StatisticOut | None = Field(description="Null where nothing is known of it.")
    quartiles: list[QuartileOut] = Field(description="At 0.25, 0.5 and 0.75, ascending.")


Lines = CorrelationReleaseOut | RegressionReleaseOut

Numbers = CountReleaseOut | CovarianceReleaseOut | Lines | QuantileReleaseOut | DescriptionOut

Shape = HistogramReleaseOut | SharesReleaseOut | TableReleaseOut | CoordinatesReleaseOut | Numbers

Published = ReleaseOut | ClusterReleaseOut | Shape

_MODELS: Mapping[str, type[Published]] = {
    HISTOGRAM: HistogramReleaseOut,
    SHARES: SharesReleaseOut,
    TABLE: TableReleaseOut,
    COORDINATES: CoordinatesReleaseOut,
    COUNT: CountReleaseOut,
    COVARIANCE: CovarianceReleaseOut,
    CORRELATION: CorrelationReleaseOut,
    REGRESSION: RegressionReleaseOut,
    QUANTILE: QuantileReleaseOut,
    DESCRIBE: DescriptionOut,
    SessionProtocol.KMEANS: ClusterReleaseOut,
}
"""What a release says, by its estimator, or by what is read off it; all others say a mean. To try one after
the other takes seconds where there are thousands of numbers."""


def published(body: bytes) -> Published:
    """What a release says, read from its stored bytes, or from what is read of them."""
    return published_of(json.loads(body))


def published_of(document: Mapping[str, Any]) -> Published:
    """The same of a document that was read."""
    estimator, statistic = document["estimator"], document["statistic"]
    model = _MODELS.get(statistic if statistic == REGRESSION else estimator, ReleaseOut)
    return model.model_validate(document)
