# Made by client/models.py. Do not edit.
"""What statistics can be asked with besides: see the reference of the service."""

from collections.abc import Sequence
from typing import TypedDict

from dither._calls import Where
from dither._wire import Parameter


class Mean(TypedDict, total=False):
    """Of mean."""

    estimator: str
    share: Parameter
    epsilon: Parameter
    expected_size: Parameter
    least_epsilon: Parameter
    tilt: Parameter
    where: Where | None
    by: str | Sequence[str]
    measure: str
    level: Parameter
    until: Parameter
    simultaneous: bool
    range: str
    range_part: Parameter
    variance: Parameter
    shrinkage: Parameter
    group_variance: Parameter
    group_cap: Parameter
    coalition: Parameter
    moments: Parameter


class Sum(TypedDict, total=False):
    """Of sum."""

    estimator: str
    share: Parameter
    until: Parameter
    epsilon: Parameter
    tilt: Parameter
    where: Where | None
    by: str | Sequence[str]
    measure: str
    simultaneous: bool
    level: Parameter
    variance: Parameter
    shrinkage: Parameter
    group_variance: Parameter
    group_cap: Parameter
    coalition: Parameter
    moments: Parameter


class Variance(TypedDict, total=False):
    """Of variance, sd."""

    estimator: str
    share: Parameter
    epsilon: Parameter
    expected_size: Parameter
    least_epsilon: Parameter
    tilt: Parameter
    where: Where | None
    by: str | Sequence[str]
    measure: str
    level: Parameter
    variance: Parameter
    shrinkage: Parameter
    group_variance: Parameter
    group_cap: Parameter
    coalition: Parameter
    moments: Parameter


class Difference(Mean, total=False):
    """Of difference."""

    of: str


class Histogram(TypedDict, total=False):
    """Of histogram, distribution, shares."""

    share: Parameter
    epsilon: Parameter
    expected_size: Parameter
    least_epsilon: Parameter
    tilt: Parameter
    where: Where | None
    by: str | Sequence[str]
    measure: str
    level: Parameter


class Quantile(Histogram, total=False):
    """Of quantile, median, describe."""

    candidates: int
    for_: str


class Count(TypedDict, total=False):
    """Of count."""

    share: Parameter
    until: Parameter
    epsilon: Parameter
    expected_size: Parameter
    least_epsilon: Parameter
    where: Where | None
    by: str | Sequence[str]
    level: Parameter


class Covariance(TypedDict, total=False):
    """Of covariance, correlation, table."""

    share: Parameter
    epsilon: Parameter
    expected_size: Parameter
    least_epsilon: Parameter
    tilt: Parameter
    where: Where | None
    by: str | Sequence[str]
    level: Parameter


class Regression(Covariance, total=False):
    """Of regression."""

    at: Parameter


class Change(TypedDict, total=False):
    """Of change, trend."""

    where: Where | None
    measure: str
    of: str
    level: Parameter
