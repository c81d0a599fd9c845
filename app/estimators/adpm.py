"""`adpm`: the affine estimator with the smallest worst-case error for personal epsilons."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from app.core.cohort import Group, Groups
from app.core.epsilon import MICRO
from app.core.noise import NoNoise
from app.core.study import Currency, Relation, Trust
from app.estimators.accuracy import WORST_VARIANCE
from app.estimators.affine import AffineProblem
from app.estimators.calibration import Purse, purse
from app.estimators.interface import NotApplicable, Parameter, Plan, Question
from app.estimators.linear import linear_plan, midpoint_plan, participants, sizes_of


def saturation_point(
    epsilons: NDArray[np.float64],
    counts: NDArray[np.float64],
    *,
    public: bool,
    variance: float = WORST_VARIANCE,
) -> float:
    r"""The epsilon beyond which more privacy budget does not lower the error.

    The optimal weights of :math:`J(w) = s2 \|w\|^2 + 2 \eta^2`, :math:`\eta = \max w_i / \epsilon_i`, are
    :math:`w_i \propto \min(\epsilon_i, \tau)`, where :math:`\tau` is the only root of
    :math:`\sum_{\epsilon_i < \tau} \epsilon_i (\tau - \epsilon_i) = 2 / s2`. With epsilons ascending and
    :math:`E_1, E_2` the prefix sums of :math:`\epsilon, \epsilon^2`: :math:`\tau_k = (E_2 + 2 / s2) / E_1`
    for the smallest k with :math:`\tau_k \le \epsilon_{k+1}`.

    Args:
        epsilons: float64 array of shape (K,), K >= 0, in (0, 1e150], in any order [1].
        counts: float64 array of shape (K,), people with each epsilon [people].
        public: Whether there are people with epsilon = infinity beside them.
        variance: s2, bound on the variance of the data [range width squared], at least 0.

    Returns:
        tau [1], right to about 1e-14 relative: all sums are of positive terms. Infinite where no person
        saturates: no root lies below the largest epsilon and no person is public.

    Privacy: epsilons and group sizes are public under replace_one; no data, no randomness.
    Cost: O(K log K).

    References:
        Chaudhuri, Courtade, "Mean Estimation Under Heterogeneous Privacy: Some Privacy Can Be Free",
        arXiv:2305.09668, Algorithm 1 (the problem; solved there numerically) and Table I (two groups).

    Examples:
        >>> saturation_point(np.array([0.1]), np.array([700.0]), public=True)  # R * 0.1, Table I
        0.2142857142857143
    """
    if epsilons.size == 0 or variance <= 0:
        return math.inf
    order = np.argsort(epsilons, kind="stable")
    ascending = epsilons[order]
    first = np.cumsum(counts[order] * ascending)
    second = np.cumsum(counts[order] * ascending**2)
    tau = (second + 2 / variance) / first
    following = np.append(ascending[1:], np.inf if public else -np.inf)
    (found,) = np.nonzero(tau <= following)
    return float(tau[found[0]]) if found.size else math.inf


def saturation(groups: Sequence[Group]) -> int | None:
    """The most that `adpm` charges a person of these groups.

    Args:
        groups: All groups of a replace_one study with Laplace noise; without a tilt.

    Returns:
        The saturation point [micro-epsilon], rounded up. None where no person saturates: then every person
        pays what they offer.

    Privacy: epsilons and group sizes are public under replace_one.
    """
    central = participants(groups, Trust.CENTRAL)
    limits = tuple(groups[index].epsilon for index in central)
    tau = _tau(groups, central, Purse(noise=NoNoise(), unit=MICRO, limits=limits))
    return None if math.isinf(tau) else math.ceil(tau)


class Adpm:
    r"""Affine mean with weights min(epsilon, tau): exact minimum of the worst-case error.

    Those who offer more than tau pay tau only: some privacy is free. Public people weigh like
    saturated ones. Where even the best weights promise a larger squared error than the middle of the
    range does, W^2 / 4, the answer is the middle, and free. Local reports are not used.
    """

    name: ClassVar[str] = "adpm"
    version: ClassVar[int] = 2
    relation: ClassVar[Relation] = Relation.REPLACE_ONE
    currencies: ClassVar[frozenset[Currency]] = frozenset(Currency)
    parameters: ClassVar[tuple[Parameter, ...]] = ()
    summary: ClassVar[str] = "Weights min(epsilon, tau): the smallest worst-case error for personal epsilons."

    def plan(self, groups: Sequence[Group], question: Question) -> Plan:
        """Plan a release; see `adpm_plan`, with the worst-case variance W^2 / 4."""
        return adpm_plan(groups, question)


def adpm_plan(groups: Sequence[Group], question: Question, *, variance: float = WORST_VARIANCE) -> Plan:
    r"""Plan an ADPM release under any bound on the variance.

    tau is rounded down to a whole micro-epsilon; J is flat at its minimum, so that costs nothing
    measurable.

    Args:
        groups: All groups of the study.
        question: What is asked.
        variance: s2, bound on the variance of the data [range width squared].

    Returns:
        Weight min(epsilon_g, tau) [micro-epsilon] on central people, tau on public ones, Laplace noise; for
        Gaussian noise with mu_g in place of epsilon_g, see `app.estimators.calibration.purse`. With a tilt
        tau is that of `app.estimators.tilted`. `midpoint_plan` if J > W^2 / 4. The two quarters
        of the paper differ: in J stands the variance bound, in the stopping rule the squared error of the
        midpoint.

    Raises:
        NotApplicable: no person is public, and no person central can take part.

    Privacy: min(epsilon_g, tau) for each central person, nothing at the midpoint. The rule looks at
        epsilons and group sizes only.

    References:
        Chaudhuri, Courtade, arXiv:2305.09668, Algorithm 1.
    """
    groups = Groups.of(groups)
    central = participants(groups, Trust.CENTRAL)
    public = participants(groups, Trust.PUBLIC)
    if not central and not public:
        raise NotApplicable("No person central or public can take part.")
    people = max(question.people or 0, sum(groups.column("count")))
    paid = purse(groups.of_able(Trust.CENTRAL, "epsilon"), question, fine=False)
    tau = _tau(groups, central, paid, variance, tilt=question.tilt, people=people)
    largest = max(paid.limits, default=0)
    saturated = max(1, math.floor(tau)) if math.isfinite(tau) else max(1, largest)
    weights = [0] * len(groups)
    for index, limit in zip(central, paid.limits, strict=True):
        weights[index] = min(limit, saturated)
    for index in public:
        weights[index] = saturated
    if variance <= 0 and public and not question.tilt:  # Known to be constant: only what is exact counts.
        for index in central:
            weights[index] = 0
    noise = paid.noise if any(weights[index] for index in central) else NoNoise()
    plan = linear_plan(groups, question, weights=weights, noise=noise, variance=variance, attached=False)
    if (plan.population_error or 0.0) > float(question.grid.width) / 2:
        # A first share may be noisy and the last one not: the rule looks at all that is offered.
        whole = replace(question, share=MICRO)
        if question.share == MICRO or adpm_plan(groups, whole, variance=variance).linear is None:
            return midpoint_plan(groups, question)
    return plan


def _tau(
    groups: Sequence[Group],
    central: Sequence[int],
    paid: Purse,
    variance: float = WORST_VARIANCE,
    *,
    tilt: float = 0.0,
    people: int = 0,
) -> float:
    """The weight at which some groups saturate, not rounded."""
    epsilons = np.array(paid.limits, dtype=np.float64) / paid.unit
    counts = sizes_of(groups)[list(central)]
    public = sum(Groups.of(groups).of_able(Trust.PUBLIC, "count"))
    if tilt and central:
        problem = AffineProblem(epsilons, counts, public=public, tilt=tilt, people=people)
        return problem.solve(variance).tau * paid.unit
    return saturation_point(epsilons, counts, public=public > 0, variance=variance) * paid.unit
