r"""One answer from several noisy sums: the combination of the smallest worst-case error.

A question that is asked again and again has sums of disjoint parts of the people, each with weights and noise
of its own, beside people whose values are public and local reports. Let part p, weighed so that its weights
sum to one, put :math:`w_{ip}` on person i and have noise of variance :math:`N_p`, and let e_i be 1/n for
people who are there and 0 for those who have left. The answer :math:`\sum c_p y_p` with
:math:`\sum c_p = 1` has a variance of at most :math:`s \sum_i ((W c)_i - e_i)^2 + \sum_p c_p^2 N_p` about the
mean of the dataset. Where no person has left that is :math:`c^T M c` less s/n,

.. math:: M_{pq} = s \sum_i w_{ip} w_{iq} + [p = q] N_p,

smallest at :math:`c = M^{-1} 1 / 1^T M^{-1} 1`. A tilt and people who have left add the square of
:math:`B(c) = \frac12 \sum_i t_i |(W c)_i - e_i|` with t_i as `app.estimators.deviations` has it. By
Cauchy's inequality :math:`(\sum a_i)^2 = \min_\lambda \sum a_i^2 / \lambda_i` over :math:`\lambda` on the
simplex, attained at :math:`\lambda_i \propto a_i`: in turn the best lambda for c and the best c for lambda, a
quadratic problem, never raise the error, which is convex in c.

Parts are never subtracted: where the best combination would, the part is left out.

References:
    Koufogiannis, Han, Pappas, "Gradual release of sensitive data under differential privacy",
    arXiv:1504.00429 (what the sums are); the combination is generalized least squares.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from operator import mul, truediv
from typing import TypeAlias, TypeVar

import numpy as np
import scipy
from numpy.typing import NDArray

from app.core.cohort import Group, Groups
from app.core.grid import GRID_SIZE
from app.core.noise import NoNoise
from app.core.study import Trust
from app.estimators.anytime import Steps
from app.estimators.deviations import tilts_of
from app.estimators.interface import Linear, NotApplicable, Plan, Question
from app.estimators.linear import combine, sizes_of
from app.estimators.moments import with_both
from app.estimators.reports import noise_variance, stands_for

T = TypeVar("T")

_ROUNDS = 40

Matrix: TypeAlias = "NDArray[np.float64] | scipy.sparse.csr_array"
"""Of many parts sparse: a group is in few of them."""


@dataclass(frozen=True, slots=True)
class Weights:
    """For each group the weight of one of its people in each sum that they are in, by columns.

    Attributes:
        lengths: In how many sums the people of each group are.
        sums, weights: Which ones, by their places, and what they weigh there: of one group after the other.
    """

    lengths: Sequence[int]
    sums: Sequence[int]
    weights: Sequence[int]

    def by_group(self, values: Sequence[T]) -> Iterator[T]:
        """What groups have, one value each, for each of the weights."""
        if len(values) == len(self.lengths) and max(self.lengths, default=0) <= 1:
            return itertools.compress(values, self.lengths)
        each = zip(values, self.lengths, strict=True)
        return itertools.chain.from_iterable(itertools.starmap(itertools.repeat, each))

    def masses(self, counts: Sequence[int], pieces: int) -> list[int]:
        """What all people weigh together in each sum, by how many people are in each group."""
        found = [0] * pieces
        weighed = map(mul, self.weights, self.by_group(counts))
        for piece, mass in zip(self.sums, weighed, strict=True):
            found[piece] += mass
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """The sums that there are of central people, and the people that they are of.

    Attributes:
        groups: Central groups by what they weigh and whether they are there, then all others, length G.
        weights: Of their people in each sum.
        absent: Whether the people of a group have left, shape (G,).
        scales: Of the Laplace noise of each sum, length P [units of the sum].
        counted: What a noisy sum is divided by to be one, length P: see
            `app.mechanisms.refined_gaussian`; once if empty.
        normal: Whether noise is Gaussian: then `scales` are standard deviations.
        squares: By what the variance of the noise of squares is smaller there, length P; not at all if empty.
        steps: How they were drawn; None of sums of several questions.
        public_weight: Of a public person beside these, where public people are attached.
    """

    groups: Sequence[Group]
    weights: Weights
    absent: NDArray[np.bool_]
    scales: tuple[float, ...]
    public_weight: int
    counted: tuple[int, ...] = ()
    normal: bool = False
    squares: tuple[int, ...] = ()
    steps: Steps | None = None


def combination_plan(sums: Sums, linear: Linear, question: Question) -> Plan:
    """The plan that reads noisy sums which are there already, or are just being drawn.

    Args:
        sums: The sums.
        linear: How the estimator of the question weighs what is not in them.
        question: What is asked.

    Returns:
        A plan without queries: its `conclude` takes P noisy sums of values, the sum of all public values, P
        noisy sums of squares, and the sum of all public squares.

    Raises:
        NotApplicable: there is no sum, no person public, and no report.

    Privacy: post-processing of noisy sums, local reports and public values.
    """
    groups = Groups.of(sums.groups)
    sizes = sizes_of(groups)
    parts = _Parts.of(sums, linear, question)
    shares = parts.best(question, sizes, sums, linear.steering)
    pieces = len(sums.scales)
    # What each sum is multiplied by, and what the weights of people and reports come to.
    heard = parts.reports_from
    factors, public = _factors(shares, parts, sums)
    from_reports = np.arange(shares.size) >= heard
    person = np.asarray(parts.columns @ np.where(from_reports, 0.0, shares))
    reports = np.asarray(parts.columns @ np.where(from_reports, shares, 0.0)) if linear.reports else None
    each_noise = [
        float(factor) * scale / GRID_SIZE for factor, scale in zip(factors, sums.scales, strict=True)
    ]
    laplaces = () if sums.normal else tuple((noise, 1) for noise in each_noise if noise)
    variances = [noise * noise if sums.normal else 0.0 for noise in each_noise]
    normal, squares = math.fsum(variances), sums.squares or (1,) * pieces
    # All of them over one denominator: a position is one quotient of integers.
    counted = sums.counted or (1,) * pieces
    each = [*(factor / times for factor, times in zip(factors, counted, strict=True)), public]
    under = math.lcm(*(factor.denominator for factor in each))
    over = [factor.numerator * (under // factor.denominator) for factor in each]
    unit = under * GRID_SIZE

    def total(values: Sequence[int]) -> int:
        return sum(map(mul, over, values))

    plan = combine(
        groups,
        question,
        queries=(),
        noise=NoNoise(),
        person=person,
        laplaces=laplaces,
        normal=normal,
        read=lambda values: Fraction(total(values[: pieces + 1]), unit),
        reports=reports,
        variance=linear.variance,
        expected_variance=linear.expected_variance,
        shrinkage=linear.shrinkage,
        absent=sums.absent,
        always=None if sums.steps is None else (sums.steps, each_noise),
    )
    central = float(np.dot(sizes, person))
    if plan.conclude_within is None or central <= 0:
        return plan

    def moments(values: Sequence[int]) -> tuple[float, float]:
        first, second = total(values[: pieces + 1]) / unit, total(values[pieces + 1 :]) / unit
        return first / central - 0.5, second / central

    return with_both(
        replace(plan, conclude_within=None, by_parts=True),
        plan.conclude_within,
        groups,
        question,
        person=person / central,
        laplaces=tuple((scale / central, count) for scale, count in laplaces),
        normals=(normal / central**2, math.fsum(map(truediv, variances, squares)) / central**2),
        absent=sums.absent,
        moments=moments,
    )


def _factors(shares: NDArray[np.float64], parts: "_Parts", sums: Sums) -> tuple[list[Fraction], Fraction]:
    """What one unit of each sum, and of the sum of public values, adds to the answer."""
    pieces = len(sums.scales)
    factors = [
        Fraction(float(share)) / mass if mass else Fraction()
        for share, mass in zip(shares[:pieces], parts.masses, strict=True)
    ]
    if parts.public_apart:
        return factors, Fraction(float(shares[pieces])) / parts.public
    if not parts.public:
        return factors, Fraction()
    # Attached: what is left of every part beside its sum.
    weighed = sum(
        (Fraction(float(share)) * rest for share, rest in zip(shares[:pieces], parts.rests, strict=True)),
        Fraction(),
    )
    return factors, weighed / parts.public


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """Parts whose weights sum to one.

    Attributes:
        columns: Weight of one person of each group in each part, shape (G, B).
        noises: Variance of the noise of each part, shape (B,) [range width squared].
        masses: What a sum is divided by to be a part, length P.
        rests: The part of each of the first P parts that is public people's, exactly.
        public: Public people.
        public_apart: Whether they are a part of their own, the one behind the sums.
        reports_from: The first part of reports.
    """

    columns: Matrix
    noises: NDArray[np.float64]
    masses: tuple[Fraction, ...]
    rests: tuple[Fraction, ...]
    public: int
    public_apart: bool
    reports_from: int

    @classmethod
    def of(cls, sums: Sums, linear: Linear, question: Question) -> "_Parts":
        groups, pieces = Groups.of(sums.groups), len(sums.scales)
        counts = groups.column("count")
        known = groups.able(Trust.PUBLIC)
        local = groups.able(Trust.LOCAL) if linear.reports else ()
        public = sum(counts[place] for place in known)
        weights = sums.weights
        masses = weights.masses(counts, pieces)
        # Attached public people are in every part as they would be in one sum over all.
        total = sum(masses)
        attached = linear.attached and total > 0
        beside = sums.public_weight * public if attached else 0
        whole = [Fraction(mass) * (total + beside) / total if total else Fraction() for mass in masses]
        rests = [Fraction(beside, total + beside) if mass else Fraction() for mass in masses]
        apart = bool(known) and not attached
        # What one person of each group weighs in which parts. A quotient of integers is the nearest double.
        over, under = [mass.denominator for mass in whole], [mass.numerator for mass in whole]
        noises: list[float] = []
        for piece, scale in enumerate(sums.scales):
            spread = float(Fraction(scale) / (whole[piece] * GRID_SIZE)) ** 2 if whole[piece] else np.inf
            noises.append(spread if sums.normal else 2 * spread)
        heard: dict[int, dict[int, float]] = {}
        for place in known:
            heard[place] = {piece: float(rest) / public for piece, rest in enumerate(rests) if beside}
        if apart:
            for place in known:
                heard[place] = {pieces: 1 / public}
            noises.append(0.0)
        reports_from = len(noises)
        for number, place in enumerate(local):
            heard[place] = {reports_from + number: 1 / counts[place]}
            noises.append(noise_variance(groups[place], linear.expected_variance) / counts[place])
        # Rows of central groups, and behind them those of all others.
        of_mass = map(mul, weights.weights, map(over.__getitem__, weights.sums))
        entries = list(map(truediv, of_mass, map(under.__getitem__, weights.sums)))
        places, lengths = list(weights.sums), list(weights.lengths)
        for place, parts in sorted(heard.items()):
            entries += parts.values()
            places += parts
            lengths[place] = len(parts)
        shape = len(groups), len(noises)
        columns: Matrix
        if len(noises) == 1:
            # One part needs no sparse matrix, which takes longer to make than all else here.
            columns = np.zeros(shape)
            columns[np.flatnonzero(lengths), 0] = entries
        else:
            ends = list(itertools.accumulate(lengths, initial=0))
            columns = scipy.sparse.csr_array((entries, places, ends), shape=shape)
        return cls(
            columns=columns,
            noises=np.array(noises),
            masses=tuple(whole),
            rests=tuple(rests),
            public=public,
            public_apart=apart,
            reports_from=reports_from,
        )

    def best(
        self, question: Question, sizes: NDArray[np.float64], sums: Sums, variance: float
    ) -> NDArray[np.float64]:
        """See `best_shares`."""
        return best_shares(
            self.columns,
            self.noises,
            sizes,
            sums.absent,
            variance=variance,
            tilts=tilts_of(question.tilt, sums.absent),
            people=question.people or 0,
            stands=stands_for(sums.groups),
        )


def best_shares(
    columns: Matrix,
    noises: NDArray[np.float64],
    sizes: NDArray[np.float64],
    absent: NDArray[np.bool_],
    *,
    variance: float,
    tilts: NDArray[np.float64],
    people: int,
    stands: NDArray[np.float64],
) -> NDArray[np.float64]:
    """The share of each part in the combination, shape (B,); they sum to one.

    Args:
        columns: Weight of one person of each group in each part, shape (G, B).
        noises: Variance of the noise of each part, shape (B,).
        sizes: People in each group, shape (G,).
        absent: Whether they have left, shape (G,).
        variance: s, of one person.
        tilts: t of the people of each group, shape (G,).
        people: Those who are there, if they are more than those of the groups.
        stands: How many people a person of each group stands for, shape (G,), see
            `app.estimators.reports.stands_for`: those weigh what that one does, over their number.

    Raises:
        NotApplicable: there is no part.
    """
    used = np.flatnonzero(np.isfinite(noises))
    if not used.size:
        raise NotApplicable("No person can take part.")
    if noises.size == 1:
        return np.ones(1)
    equal = np.where(absent, 0.0, 1 / max(float(people), float(np.dot(sizes * stands, ~absent)), 1.0))
    problem = _Problem(columns, noises, sizes, equal, variance, tilts / 2, equal * stands)
    best = problem.best(used)
    # Steps towards the best shares may get stuck where people have left: what is better without them?
    if np.any(absent):
        whole = used[columns.T[used] @ np.where(absent, sizes, 0.0) == 0]
        if 0 < whole.size < used.size:
            best = min(best, problem.best(whole), key=problem.error)
    return best


class _Problem:
    """The error of shares of some parts, as `best_shares` has it, and the least one.

    Args:
        columns, noises, sizes, variance: See `best_shares`.
        equal: The weight that each person is due, shape (G,).
        pulls: Half of t of each group, shape (G,).
        due: What a person weighs whose group a tilt does not move, shape (G,).
    """

    def __init__(
        self,
        columns: Matrix,
        noises: NDArray[np.float64],
        sizes: NDArray[np.float64],
        equal: NDArray[np.float64],
        variance: float,
        pulls: NDArray[np.float64],
        due: NDArray[np.float64],
    ) -> None:
        self._columns, self._noises, self._sizes = columns, noises, sizes
        self._equal, self._variance, self._pulls, self._due = equal, variance, pulls, due

    def best(self, used: NDArray[np.int_]) -> NDArray[np.float64]:
        """The best shares of some of the parts, none below 0; shares of all."""
        while True:
            among = self._columns if used.size == self._noises.size else self._columns[:, used]
            shares = self._unsigned(among, self._noises[used])
            if float(shares.min()) >= 0:
                break
            used = np.delete(used, int(np.argmin(shares)))
        found = np.zeros(len(self._noises))
        found[used] = shares
        return found

    def error(self, shares: NDArray[np.float64]) -> float:
        """The error of shares of all parts."""
        used = np.flatnonzero(shares)
        return self._error(self._columns[:, used], self._noises[used], shares[used])

    def _moves(self, columns: Matrix, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        moved: NDArray[np.float64] = self._pulls * self._sizes * np.abs(columns @ shares - self._due)
        return moved

    def _error(self, columns: Matrix, noises: NDArray[np.float64], shares: NDArray[np.float64]) -> float:
        spread = self._variance * float(np.dot(self._sizes, (columns @ shares - self._equal) ** 2))
        return spread + float(np.dot(noises, shares**2)) + float(self._moves(columns, shares).sum()) ** 2

    def _unsigned(self, columns: Matrix, noises: NDArray[np.float64]) -> NDArray[np.float64]:
        """The best shares of some parts, of any sign."""
        if noises.size == 1:
            return np.ones(1)

        def solved(penalty: NDArray[np.float64]) -> NDArray[np.float64]:
            costs = self._variance * self._sizes + penalty
            matrix = (columns.T @ scipy.sparse.diags_array(costs) @ columns).toarray()
            matrix += np.diag(noises)
            # Parts without any error of their own would leave the matrix singular.
            matrix += np.diag(np.full(noises.size, 1e-14 * float(np.max(np.diag(matrix))) + 1e-300))
            due = columns.T @ (self._variance * self._sizes * self._equal + penalty * self._due)
            both = np.linalg.solve(matrix, np.stack([due, np.ones(noises.size)], axis=1))
            free, whole = both[:, 0], both[:, 1]
            shares: NDArray[np.float64] = free + whole * ((1 - float(free.sum())) / float(whole.sum()))
            return shares

        best = shares = solved(np.zeros_like(self._sizes))
        if not np.any(self._pulls):
            return best
        least = self._error(columns, noises, best)
        for _ in range(_ROUNDS):
            moved = self._moves(columns, shares)
            total = float(moved.sum())
            if total <= 1e-12:
                break
            # Groups that are not moved at all would otherwise never be moved again.
            rates = np.maximum(moved, 1e-6 * total) / total
            shares = solved((self._pulls * self._sizes) ** 2 / rates)
            error = self._error(columns, noises, shares)
            if error >= least * (1 - 1e-10):
                break
            best, least = shares, error
        return best
