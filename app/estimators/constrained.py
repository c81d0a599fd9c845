"""The optimal mean under options that have no closed form: variances and caps of single groups."""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from app.core.cohort import Group, Groups
from app.core.errors import InternalFault
from app.core.noise import NoNoise
from app.core.study import Trust
from app.estimators.accuracy import WORST_VARIANCE
from app.estimators.calibration import Purse
from app.estimators.interface import NotApplicable, Plan, Question
from app.estimators.linear import linear_plan, participants
from app.estimators.reports import noise_variance, stands_for
from app.estimators.selectors import selected
from app.estimators.solver import Constrained, solve

_ATTEMPTS = 100

_UNPRIVATE_UNIT = 1 << 40
"""Weights of public people count the largest one in these, where no person central sets a unit."""


def constrained_plan(
    groups: Sequence[Group],
    question: Question,
    paid: Purse,
    *,
    bound: float,
    expected: float,
    group_variances: Mapping[str, float],
    group_caps: Mapping[str, float],
    shrink: bool,
) -> Plan:
    r"""The affine mean of the smallest error under bounds on single groups.

    Minimizes :math:`\sum_i s_i c_i^2` + the variance of all noise + the square of the tilt's bias, where each
    person has the bound of their group on the variance, and no named set of groups weighs more than its cap.

    Args:
        groups: All groups of the study.
        question: What is asked.
        paid: The noise, and what each person can weigh under it.
        bound, expected: Variance of all groups without their own, for intervals and for weights [range
            width squared].
        group_variances: Canonical selector -> variance [data's unit squared].
        group_caps: Canonical selector -> part of the whole weight, in (0, 1].
        shrink: Whether to draw the answer towards the middle as far as the noise warrants.

    Returns:
        The plan. Integer weights W_g <= the group's limit, proportions from the solver; the caps hold
        exactly for them.

    Raises:
        NotApplicable: no person can take part, or the caps leave a part of the weight unassigned.
        InternalFault: the solver failed, or its answer could not be turned into weights that satisfy
            every constraint.

    Privacy: W_g under the study's noise, at most the offer: the solver is not trusted with it.
    """
    central = participants(groups, Trust.CENTRAL)
    public = participants(groups, Trust.PUBLIC)
    local = participants(groups, Trust.LOCAL)
    limits = dict(zip(central, paid.limits, strict=True))
    members = [*(index for index in central if limits[index]), *public, *local]
    if not members:
        raise NotApplicable("No person can take part.")
    intervals, weighing = (
        _variances(groups, question, default, group_variances) for default in (bound, expected)
    )
    place = {index: position for position, index in enumerate(members)}
    capped = [(selected(key, groups, question.delta), cap) for key, cap in group_caps.items()]
    caps = [([place[index] for index in chosen if index in place], cap) for chosen, cap in capped]
    noises = {index: noise_variance(groups[index], float(weighing[index])) for index in local}
    shares = solve(
        Constrained(
            counts=np.array([groups[index].count for index in members], dtype=np.float64),
            costs=np.array([float(weighing[index]) + noises.get(index, 0.0) for index in members]),
            epsilons=np.array(
                [limits[index] / paid.unit if index in limits else math.inf for index in members]
            ),
            caps=caps,
            tilt=question.tilt,
            people=float(max(question.people or 0, Groups.of(groups).people)),
            stands=stands_for(groups)[members],
        )
    )
    person = np.zeros(len(groups))
    for index, share in zip(members, shares.tolist(), strict=True):
        person[index] = share / groups[index].count
    reports = np.zeros(len(groups))
    reports[local] = person[local]
    rest = 1 - _total(groups, reports)
    weights = _integers(person, limits, public)
    _tighten(groups, weights, rest, capped)
    noisy = any(weights[index] for index in central)
    plan = linear_plan(
        groups,
        question,
        weights=weights,
        noise=paid.noise if noisy else NoNoise(),
        report_weights=reports,
        variance=intervals,
        expected_variance=weighing,
        shrinkage=None if shrink else 1.0,
    )
    _check(groups, weights, reports, limits, capped)
    return plan


def _variances(
    groups: Sequence[Group], question: Question, default: float, entries: Mapping[str, float]
) -> NDArray[np.float64]:
    """The variance of each group; an entry with an epsilon counts more than one without."""
    found = np.full(len(groups), default)
    square = float(question.grid.width) ** 2
    for key in sorted(entries, key=lambda key: "@" in key):
        found[selected(key, groups, question.delta)] = min(entries[key] / square, WORST_VARIANCE)
    return found


def _integers(person: NDArray[np.float64], limits: Mapping[int, int], public: Sequence[int]) -> list[int]:
    """Integer weights in the proportions of `person`, as large as the limits allow, rounded down."""
    weights = [0] * len(person)
    # How much of a weight one limit's worth is: the largest, so that no person exceeds their limit.
    rates = [person[index] / limit for index, limit in limits.items() if limit and person[index] > 0]
    most = max((float(person[index]) for index in public), default=0.0)
    rate = max(rates, default=most / _UNPRIVATE_UNIT)
    if rate <= 0:
        return weights
    for index, limit in limits.items():
        weights[index] = min(limit, math.floor(person[index] / rate))
    for index in public:
        weights[index] = math.floor(person[index] / rate)
    return weights


def _total(groups: Sequence[Group], reports: NDArray[np.float64]) -> Fraction:
    """What all reports weigh together, exactly."""
    return sum(
        (Fraction(float(weight)) * group.count for weight, group in zip(reports, groups, strict=True)),
        Fraction(),
    )


def _tighten(
    groups: Sequence[Group],
    weights: list[int],
    rest: Fraction,
    group_caps: Sequence[tuple[Sequence[int], float]],
) -> None:
    """Lower the weights of capped groups until no cap is exceeded by the rounding of the others."""
    for _ in range(_ATTEMPTS):
        exceeded = False
        for chosen, cap in group_caps:
            capped = [index for index in chosen if weights[index]]
            inside = sum(weights[index] * groups[index].count for index in capped)
            mass = sum(weight * group.count for weight, group in zip(weights, groups, strict=True))
            if inside == 0 or rest * inside <= Fraction(cap) * mass:
                continue
            exceeded = True
            # inside' / (inside' + outside) = cap / rest
            factor = Fraction(cap) * (mass - inside) / ((rest - Fraction(cap)) * inside)
            for index in capped:
                weights[index] = math.floor(weights[index] * factor)
        if not exceeded:
            return


def _check(
    groups: Sequence[Group],
    weights: Sequence[int],
    reports: NDArray[np.float64],
    limits: Mapping[int, int],
    group_caps: Sequence[tuple[Sequence[int], float]],
) -> None:
    """Check every constraint on the weights that are really used, in fractions."""
    mass = sum(weight * group.count for weight, group in zip(weights, groups, strict=True))
    local = [Fraction(float(weight)) * group.count for weight, group in zip(reports, groups, strict=True)]
    rest = 1 - _total(groups, reports)
    shares = [
        part + (rest * Fraction(weight * group.count, mass) if mass else 0)
        for part, weight, group in zip(local, weights, groups, strict=True)
    ]
    if any(weights[index] > limit for index, limit in limits.items()) or min(weights, default=0) < 0:
        raise InternalFault("The solver's weights cost more than is offered.")
    for chosen, cap in group_caps:
        if sum((shares[index] for index in chosen), Fraction()) > Fraction(cap):
            raise InternalFault("The solver's weights exceed a cap.")
