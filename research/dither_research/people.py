"""Simulated people: laws of data on [0, 1], and groups of them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol

import numpy as np

from app.core.cohort import Group, Reports
from app.core.epsilon import MICRO
from app.core.grid import Grid
from app.core.study import LocalMechanism, Relation, Trust
from app.estimators.interface import Question
from dither_research.seeded import Floats, Random

UNIT = Grid(Decimal(0), Decimal(1))
"""Data live on [0, 1]; the papers' centered ranges are shifted, which changes no error."""

_PEOPLE_AT_ONCE = 4_000_000
_FEW = 64


class Law(Protocol):
    """The law of one person's value in [0, 1]."""

    @property
    def mean(self) -> float:
        """Mean."""

    @property
    def variance(self) -> float:
        """Variance."""

    def draw(self, size: tuple[int, ...], random: Random) -> Floats:
        """Independent values.

        Args:
            size: Shape of the answer.
            random: The source.
        """


@dataclass(frozen=True, slots=True)
class Beta:
    """Beta(alpha, beta); Beta(1, 1) is uniform."""

    alpha: float
    beta: float

    @property
    def mean(self) -> float:
        """Mean."""
        return self.alpha / (self.alpha + self.beta)

    @property
    def variance(self) -> float:
        """Variance."""
        total = self.alpha + self.beta
        return self.alpha * self.beta / (total * total * (total + 1))

    def draw(self, size: tuple[int, ...], random: Random) -> Floats:
        """Independent values."""
        return random.beta(self.alpha, self.beta, size)


@dataclass(frozen=True, slots=True)
class Bernoulli:
    """1 with probability p, else 0: of all laws of a mean the one that varies most."""

    p: float = 0.5

    @property
    def mean(self) -> float:
        """Mean."""
        return self.p

    @property
    def variance(self) -> float:
        """Variance."""
        return self.p * (1 - self.p)

    def draw(self, size: tuple[int, ...], random: Random) -> Floats:
        """Independent values."""
        return (random.random(size) < self.p).astype(np.float64)


def draw_sums(law: Law, count: int, runs: int, random: Random) -> Floats:
    """Sums over `count` people, for many runs.

    Args:
        law: Of one value.
        count: People.
        runs: Sums.
        random: The source.

    Returns:
        float64 array of shape (runs,). Exact for coins and for up to 64 people; for more it is Normal with
        the exact mean and variance, which is what a mean square error depends on.
    """
    if isinstance(law, Bernoulli):
        return random.binomial(count, law.p, runs).astype(np.float64)
    if count <= _FEW:
        step = max(1, _PEOPLE_AT_ONCE // max(count, 1))
        parts = [
            law.draw((min(step, runs - start), count), random).sum(axis=1) for start in range(0, runs, step)
        ]
        return np.concatenate(parts)
    spread = math.sqrt(count * law.variance)
    return count * law.mean + spread * random.standard_normal(runs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A random sample of a group, for many runs.

    Attributes:
        count: How many are in it, float64 array of shape (runs,).
        total: The sum of their values.
        whole: The sum of all values of the group.
    """

    count: Floats
    total: Floats
    whole: Floats


def draw_sample(law: Law, count: int, share: float, runs: int, random: Random) -> Sample:
    """Each person enters independently with probability `share`.

    Args:
        law: Of one value.
        count: People.
        share: In [0, 1].
        runs: Samples.
        random: The source.
    """
    if share == 1:
        total = draw_sums(law, count, runs, random)
        return Sample(count=np.full(runs, float(count)), total=total, whole=total)
    if count <= _FEW:
        values = law.draw((runs, count), random)
        inside = random.random((runs, count)) < share
        return Sample(
            count=inside.sum(axis=1).astype(np.float64),
            total=(values * inside).sum(axis=1),
            whole=values.sum(axis=1),
        )
    inside_count = random.binomial(count, share, runs).astype(np.float64)
    parts = [
        size * law.mean + np.sqrt(size * law.variance) * random.standard_normal(runs)
        for size in (inside_count, count - inside_count)
    ]
    return Sample(count=inside_count, total=parts[0], whole=parts[0] + parts[1])


def micro(epsilon: float) -> int:
    """An epsilon in micro-epsilon, to the nearest, at least 1."""
    return max(1, round(epsilon * MICRO))


def central(epsilon: float, count: int = 1) -> Group:
    """People who trust the curator up to an epsilon."""
    return Group(trust=Trust.CENTRAL, epsilon=micro(epsilon), count=count)


def public(count: int) -> Group:
    """People whose values are known."""
    return Group(trust=Trust.PUBLIC, epsilon=0, count=count)


def local(epsilon: float, count: int) -> Group:
    """People who added Laplace noise to their values themselves."""
    reports = Reports(mechanism=LocalMechanism.LAPLACE, total=0, total_squares=0)
    return Group(trust=Trust.LOCAL, epsilon=micro(epsilon), count=count, reports=reports)


def ask(
    groups: Sequence[Group], *, delta: int = 0, parameters: Mapping[str, object] | None = None
) -> Question:
    """The question for the mean of these groups on [0, 1], under replace_one.

    Args:
        groups: The groups.
        delta: Of a study with Gaussian noise, whose groups offer mu^2 [1e-12].
        parameters: Of the estimator, parsed.
    """
    offers = [group.epsilon for group in groups if group.trust is Trust.CENTRAL]
    return Question(
        relation=Relation.REPLACE_ONE,
        grid=UNIT,
        cap=max(offers, default=1),
        floor=min(offers, default=1),
        delta=delta,
        people=sum(group.count for group in groups),
        parameters=parameters or {},
    )
