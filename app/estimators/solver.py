"""The one module that knows cvxpy: optimal weights where there is no closed form.

A solver's answer is used for the proportions of the weights only. How much noise they need follows from the
weights themselves, and every constraint is checked again, exactly, when they become integers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.core.errors import InternalFault
from app.estimators.interface import NotApplicable

_TOLERANCE = 1e-10
_ROOM = 1e-9
"""Caps are lowered by this part, so that rounding to integers cannot exceed them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Constrained:
    r"""Minimize :math:`\sum_g (s_g + r_g) y_g^2 / n_g + 2 \eta^2` over shares y of the whole weight.

    With a tilt D, and n people in all, :math:`D^2 TV^2` is added, with TV half of
    :math:`\sum_g |y_g - n_g / n|` and of the part of the people who are in none of the groups.

    Attributes:
        counts: n_g, people in each group, shape (G,), above 0.
        costs: s_g + r_g, variance of one person's term, shape (G,), at least 0 [range width squared].
        epsilons: What one person can pay, shape (G,); infinite for who needs no protection [1].
        caps: (indices of groups, the most that their shares may add up to), limits in (0, 1].
        tilt: D [range widths].
        people: n; those in none of the groups weigh 0.
        stands: How many people a person of each group stands for, shape (G,), where not one.
    """

    counts: NDArray[np.float64]
    costs: NDArray[np.float64]
    epsilons: NDArray[np.float64]
    caps: Sequence[tuple[Sequence[int], float]]
    tilt: float = 0.0
    people: float = 0.0
    stands: NDArray[np.float64] | float = 1.0


def solve(problem: Constrained) -> NDArray[np.float64]:
    """The share of each group of the whole weight.

    Args:
        problem: At least one group.

    Returns:
        float64 array of shape (G,), at least 0, adds up to one; satisfies caps and proportions to 1e-8.

    Raises:
        NotApplicable: the caps leave a part of the weight unassigned.
        InternalFault: the solver did not say that its answer is optimal.

    Privacy: no data, no randomness. The answer is not trusted: see the module docstring.
    """
    import cvxpy  # takes a second to load, and few questions need it

    cp: Any = cvxpy  # its functions carry no types
    finite = np.isfinite(problem.epsilons)
    purchasing = problem.counts[finite] * problem.epsilons[finite]
    unit = float(purchasing.sum()) if finite.any() else 1.0
    share, eta = cp.Variable(problem.counts.size, nonneg=True), cp.Variable(nonneg=True)
    # eta is counted in 1 / unit, and everything in the error of shares by purchasing power or head count.
    terms = problem.costs / problem.counts
    noise = 2 / unit**2
    start = purchasing / unit if finite.any() else problem.counts / problem.counts.sum()
    terms_of_start = terms[finite] if finite.any() else terms
    scale = float(np.dot(terms_of_start, start**2)) + (noise if finite.any() else 0.0)
    if problem.tilt:
        # The tilt draws towards equal weights, whose error is the better guess where it is the smaller one.
        alike = problem.counts / problem.counts.sum()
        least = float(problem.epsilons.min())
        even = float(np.dot(terms, alike**2)) + (2 / (least * float(problem.counts.sum())) ** 2)
        started = np.where(finite, problem.counts * np.where(finite, problem.epsilons, 0.0) / unit, 0.0)
        scale = min(even, scale + problem.tilt**2 * float(np.abs(started - alike).sum() / 2) ** 2)
    if scale <= 0:
        scale = float(terms.max(initial=0.0)) or 1.0
    objective = cp.sum(cp.multiply(terms / scale, cp.square(share))) + noise / scale * cp.square(eta)
    if problem.tilt:
        equal = problem.counts * problem.stands / problem.people
        away = cp.norm1(share - equal) / 2 + max(1 - float(equal.sum()), 0.0) / 2
        objective += problem.tilt**2 / scale * cp.square(away)
    constraints = [cp.sum(share) == 1]
    if finite.any():
        constraints.append(share[finite] <= cp.multiply(purchasing / unit, eta))
    for members, limit in problem.caps:
        if len(members):
            constraints.append(cp.sum(share[list(members)]) <= limit * (1 - _ROOM))
    model = cp.Problem(cp.Minimize(objective), constraints)
    try:
        model.solve(solver=cp.CLARABEL, tol_gap_abs=_TOLERANCE, tol_gap_rel=_TOLERANCE, tol_feas=_TOLERANCE)
    except cp.SolverError as error:
        raise InternalFault("The solver failed.") from error
    if model.status == cp.INFEASIBLE:
        raise NotApplicable("The caps on the groups leave a part of the weight unassigned.")
    # OPTIMAL_INACCURATE has values too; they are not taken.
    if model.status != cp.OPTIMAL or share.value is None:
        raise InternalFault("The solver found no optimum.")
    found: NDArray[np.float64] = np.maximum(np.asarray(share.value, dtype=np.float64), 0.0)
    if not np.all(np.isfinite(found)) or abs(float(found.sum()) - 1) > 1e-6:
        raise InternalFault("The solver found no weights.")
    return found / float(found.sum())
