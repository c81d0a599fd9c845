r"""K-means over central people and local reports: what the server computes from noisy sums.

Values are points of :math:`[-1/2, 1/2]^d`: a study's ranges, centered, in units of their widths. Each round
the server publishes K centers.

- Central people are assigned to their nearest center exactly. Their K counts and K sums get Laplace noise of
  scale :math:`b_T = (d + 2) \tau / \epsilon` each. A person whose value is replaced leaves one cluster (1 and
  at most d / 2) and enters another, so all of them together move by at most d + 2 in L1 norm, and tau rounds
  cost epsilon. Uncentered values would need 2 (d + 1). A person who is added or removed moves them by half of
  that, which is what add_remove_one studies calibrate the noise to.
  In studies with Gaussian noise the counts and sums get that, of variance :math:`(2 + d/2) \tau / \mu^2`, or
  :math:`d \tau / \mu^2` above d = 4: the square of what one person moves them by in L2 norm, over the mu^2
  that epsilon is at the study's delta.
- Local people send their value once, with Laplace noise of scale :math:`b_L = d (\tau + 1) / \epsilon` on
  every coordinate, and each round their nearest center, computed from the true value, through k-ary
  randomized response of epsilon / (tau + 1): epsilon in all.

Reports that name center k hold people who were sent there by chance; without correction every center is
pulled to the mean of all people. With t the probability of the truth and l that of a lie,
:math:`N_k = (n_k - l n) / (t - l)` and :math:`S_k = (s_k - l s) / (t - l)` are unbiased.

*Reports outside of the range.* Laplace noise has no memory: how far beyond an end a report lies has the
mean b_L (:math:`1 / (1 - e^{-1/s})` for whole steps and the scale s), whatever the value and however the
person answers. So a coordinate beyond an end counts as that mean beyond it. Sums keep their expectation, to
half of a grid step, and lose the variance of that distance, b_L^2, of all who are outside: at least
:math:`e^{-1/(2 b_L)}` of them, so that a report has at most :math:`v = b_L^2 (2 - e^{-1/(2 b_L)})` (Rao and
Blackwell). Nor does one liar move a sum by more than 1 + 2 b_L. That is post-processing.

Both parts' centers :math:`S / N` are combined coordinate by coordinate by the inverse variances of their
noise, :math:`V_T = 2 b_T^2 / N_T^2` and :math:`V_L = v ((1 - 2 l) n_k + l^2 n) / ((t - l) N_k)^2`.

*Anchors.* Noise alone can carry a center through the whole range, where it is of no use and asks about no
one. So the place of a center counts as one more part, of the variance :math:`r^2 = K^{-2/d} / 12`: that of
a value which is spread evenly over one of K equal cells. With the precision :math:`Q = \sum 1 / V` of what
is heard, a center moves by :math:`Q / (Q + r^{-2})` of the way there: by nearly all of it where noise is
small, and hardly where it is not. That is the posterior mean for normal noise and a normal law of means
about the place, and :math:`(Q + r^{-2})^{-1/2}` the posterior standard deviation, at most r. It depends on
nothing but public numbers and the noisy sums.

References:
    Avent, Dubey, Korolova, PoPETs 2020, doi:10.2478/popets-2020-0062, Appendix E. As printed it halves the
    noise that replacing a value needs, weighs by the noise of a sum as if it were that of a mean, which
    leaves the central data unused, and does not correct for lies.
"""

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from app.core.epsilon import MICRO, amount_of
from app.core.errors import InternalFault, InvalidRequest
from app.core.study import MAX_DIMENSION, Relation
from app.mechanisms.randomized_response import KaryChannel, response_variance

MIN_CLUSTERS = 2
MAX_CLUSTERS = 256
MAX_ROUNDS = 64

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRules:
    """What is fixed, and announced, before the first answer.

    Attributes:
        dimension: d, coordinates of a value.
        clusters: K.
        rounds: tau.
        epsilon: What taking part costs a person in all, at most [micro-epsilon].
        relation: The neighboring relation of central people; local ones are protected either way.
        delta: Of the study: above 0 central people pay in mu^2, and the noise of rounds is Gaussian [1e-12].
    """

    dimension: int
    clusters: int
    rounds: int
    epsilon: int
    relation: Relation = Relation.REPLACE_ONE
    delta: int = 0

    def __post_init__(self) -> None:
        _check("dimension", self.dimension, 1, MAX_DIMENSION)
        _check("clusters", self.clusters, MIN_CLUSTERS, MAX_CLUSTERS)
        _check("rounds", self.rounds, 1, MAX_ROUNDS)
        if self.epsilon <= self.rounds:
            raise InvalidRequest.field("epsilon", "leaves nothing for a single answer")
        if self.cost_per_round < 1:
            raise InvalidRequest.field("epsilon", "buys no round at the study's delta")

    @property
    def cost_per_round(self) -> int:
        """What a round costs a central person, rounded down [micro-epsilon, or 1e-6 of mu^2]."""
        return amount_of(self.epsilon, self.delta) // self.rounds

    @property
    def sensitivity(self) -> Fraction:
        """What one central person moves all counts and sums by, as `app.accounting.clusters` takes it."""
        if self.delta:
            moved = 1 + Fraction(self.dimension, 4)
            return moved if self.relation.hides_people else max(2 * moved, Fraction(self.dimension))
        moved = Fraction(self.dimension + 2)
        return moved * self.relation.moved / 2

    @property
    def central_variance(self) -> float:
        """Of the noise on every count and every coordinate of a sum [range widths squared]."""
        if self.delta:
            return float(self.sensitivity) * MICRO / self.cost_per_round
        return 2 * (float(self.sensitivity) * MICRO / self.cost_per_round) ** 2

    @property
    def epsilon_per_answer(self) -> int:
        """Of the report, and of each assignment, rounded down [micro-epsilon]."""
        return self.epsilon // (self.rounds + 1)

    @property
    def report_scale(self) -> float:
        """b_L, of the noise on every coordinate of a report [range widths]."""
        return self.dimension * MICRO / self.epsilon_per_answer

    @property
    def report_variance(self) -> float:
        """Of a coordinate of a report, as it counts, at most [range widths squared]."""
        return self.report_scale**2 * (2 - math.exp(-0.5 / self.report_scale))

    @property
    def anchor(self) -> float:
        """1 / r^2, the precision that the place of a center counts with [1 / range widths squared]."""
        return 12 * float(self.clusters ** (2 / self.dimension))

    @property
    def channel(self) -> KaryChannel:
        """What a local person's assignment goes through."""
        return KaryChannel(categories=self.clusters, epsilon=self.epsilon_per_answer)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clusters:
    """Noisy size and sum of every cluster, for one part of the people.

    Attributes:
        counts: float64 array of shape (K,), may be negative [people].
        sums: float64 array of shape (K, d) [range widths].
        variances: float64 array of shape (K,), noise variance of a coordinate of `sums`.
        count_errors: float64 array of shape (K,), standard deviation of `counts`.
    """

    counts: Floats
    sums: Floats
    variances: Floats
    count_errors: Floats


def central_clusters(counts: Floats, sums: Floats, rules: ClusterRules) -> Clusters:
    """What the noisy sums over central people say.

    Args:
        counts: float64 array of shape (K,): people per cluster, noise included.
        sums: float64 array of shape (K, d): sums of their values, noise included.
        rules: Of the session.

    Raises:
        InternalFault: the shapes do not fit the rules.

    Privacy: post-processing of noisy sums.
    """
    _check_shapes(counts, sums, rules)
    variance = np.full(rules.clusters, rules.central_variance)
    return Clusters(counts=counts, sums=sums, variances=variance, count_errors=np.sqrt(variance))


def local_clusters(counts: Floats, sums: Floats, rules: ClusterRules) -> Clusters:
    """What local people's assignments and reports say, corrected for lies.

    Args:
        counts: float64 array of shape (K,): how many named each center.
        sums: float64 array of shape (K, d): sums of their reports, those outside of the range as they count.
        rules: Of the session.

    Returns:
        Unbiased counts and sums.

    Raises:
        InternalFault: the shapes do not fit the rules.

    Privacy: post-processing of local reports and answers.
    """
    _check_shapes(counts, sums, rules)
    channel = rules.channel
    lie, contrast = channel.lie, channel.contrast
    people = float(counts.sum())
    reports = rules.report_variance * ((1 - 2 * lie) * counts + lie * lie * people)
    return Clusters(
        counts=(counts - lie * people) / contrast,
        sums=(sums - lie * sums.sum(axis=0)) / contrast,
        variances=reports / contrast**2,
        count_errors=np.full(
            rules.clusters, math.sqrt(people * response_variance(channel, 1 / rules.clusters))
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Clustering:
    """A session under way.

    Attributes:
        rules: Fixed at the start.
        centers: float64 array of shape (K, d), what the open round asks about [range widths]. The first
            ones are public: they depend on no value.
        round: The round that is open, from 1; after the last one rounds + 1.
        errors: float64 array of shape (K,), posterior standard deviation of a coordinate of each center, as
            far as that comes of the noise of its sum; NaN where no one had a say [range widths].
    """

    rules: ClusterRules
    centers: Floats
    round: int = 1
    errors: Floats = field(default_factory=lambda: np.zeros(0))

    @property
    def finished(self) -> bool:
        """Whether every round is closed."""
        return self.round > self.rules.rounds


def start(rules: ClusterRules, centers: Floats) -> Clustering:
    """Open the first round.

    Args:
        rules: Of the session.
        centers: float64 array of shape (K, d) in [-1/2, 1/2]; they must not depend on any person's value.

    Raises:
        InvalidRequest: there are not K points of the domain.
    """
    fits = centers.shape == (rules.clusters, rules.dimension)
    if not (fits and bool(np.all(np.abs(centers) <= 0.5))):
        raise InvalidRequest.field("centres", "must be one point of the range for each cluster")
    return Clustering(rules=rules, centers=np.array(centers, dtype=np.float64))


def nearest(points: Floats, centers: Floats) -> NDArray[np.intp]:
    """The nearest center of every point; the first of equals.

    Args:
        points: float64 array of shape (n, d).
        centers: float64 array of shape (K, d).

    Returns:
        intp array of shape (n,).

    Privacy: what is found for a point depends on nothing but that point and the centers, to the last bit. A
        matrix product would be quicker, but rounds a row by its place among the others.
    """
    distances = np.zeros((len(points), len(centers)))
    for axis in range(centers.shape[1]):
        distances += np.square(points[:, axis, np.newaxis] - centers[:, axis])
    found: NDArray[np.intp] = np.argmin(distances, axis=1)
    return found


def advance(clustering: Clustering, parts: tuple[Clusters, ...]) -> Clustering:
    """Close the open round.

    A part has a say about a center where its count exceeds that count's standard deviation. Where no part
    has, the center stays; else its place is one more part. What comes out is moved into the domain.

    Args:
        clustering: An unfinished session.
        parts: Central people, local people, or both.

    Returns:
        The session with its next centers.

    Raises:
        InternalFault: the session is finished.

    Privacy: post-processing.
    """
    if clustering.finished:
        raise InternalFault("a round cannot be closed like this")
    rules = clustering.rules
    precisions = np.zeros(rules.clusters)
    weighted = rules.anchor * clustering.centers
    for part in parts:
        heard = part.counts > np.maximum(part.count_errors, 0.5)
        counts = np.where(heard, part.counts, 1.0)
        precision = np.where(heard, counts**2 / part.variances, 0.0)
        precisions += precision
        weighted += (precision / counts)[:, np.newaxis] * part.sums
    known = precisions > 0
    precisions += rules.anchor
    centers = clustering.centers.copy()
    centers[known] = np.clip(weighted[known] / precisions[known, np.newaxis], -0.5, 0.5)
    errors = np.full(rules.clusters, np.nan)
    errors[known] = 1 / np.sqrt(precisions[known])
    return replace(clustering, centers=centers, round=clustering.round + 1, errors=errors)


def _check(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise InvalidRequest.field(name, f"must be between {low} and {high}")


def _check_shapes(counts: Floats, sums: Floats, rules: ClusterRules) -> None:
    if counts.shape != (rules.clusters,) or sums.shape != (rules.clusters, rules.dimension):
        raise InternalFault("The sums are not those of this session.")
