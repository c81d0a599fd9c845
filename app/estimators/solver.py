"""The one module that knows a solver, Clarabel: optimal weights where there is no closed form.

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

_Row = tuple[tuple[Any, ...], Sequence[float] | NDArray[np.float64]]
"""Blocks of a few rows of the constraints, and what they may come to; blocks that are missing are zero."""


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
    import clarabel  # few questions need it
    from scipy import sparse

    finite = np.isfinite(problem.epsilons)
    purchasing = problem.counts[finite] * problem.epsilons[finite]
    unit = float(purchasing.sum()) if finite.any() else 1.0
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
    # Columns are the shares, eta and, with a tilt, TV and the distance of each share from an equal one.
    each, one = sparse.eye_array(problem.counts.size, format="csr"), np.ones((1, 1))
    every = np.ones((1, problem.counts.size))
    squares: list[Sequence[float] | NDArray[np.float64]] = [terms / scale, [noise / scale]]
    equal: list[_Row] = [((every,), [1.0])]
    less: list[_Row] = [((-each,), np.zeros(problem.counts.size)), ((None, -one), [0.0])]
    if problem.tilt:
        due = problem.counts * problem.stands / problem.people
        squares += [[problem.tilt**2 / scale], np.zeros(problem.counts.size)]
        equal.insert(0, ((None, None, -one, every / 2), [-max(1 - float(due.sum()), 0.0) / 2]))
        less += [((each, None, None, -each), due), ((-each, None, None, -each), -due)]
    if finite.any():
        less.append(((each[finite], -(purchasing / unit)[:, None]), np.zeros(purchasing.size)))
    for members, limit in problem.caps:
        if len(members):
            capped = np.zeros((1, problem.counts.size))
            capped[0, list(members)] = 1.0
            less.append(((capped,), [limit * (1 - _ROOM)]))
    curvature: NDArray[np.float64] = 2 * np.concatenate(squares)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = _TOLERANCE
    rows = [(*blocks, *(None,) * (len(squares) - len(blocks))) for blocks, _ in (*equal, *less)]
    solution = clarabel.DefaultSolver(
        sparse.diags_array(curvature, format="csc"),
        np.zeros(curvature.size),
        sparse.block_array(rows, format="csc"),
        np.concatenate([limits for _, limits in (*equal, *less)]),
        [
            clarabel.ZeroConeT(len(equal)),
            clarabel.NonnegativeConeT(sum(len(limits) for _, limits in less)),
        ],
        settings,
    ).solve()
    if solution.status == clarabel.SolverStatus.PrimalInfeasible:
        raise NotApplicable("The caps on the groups leave a part of the weight unassigned.")
    # AlmostSolved has values too; they are not taken.
    if solution.status != clarabel.SolverStatus.Solved:
        raise InternalFault(f"The solver found no optimum: {solution.status}.")
    found: NDArray[np.float64] = np.maximum(solution.x[: problem.counts.size], 0.0)
    if not np.all(np.isfinite(found)) or abs(float(found.sum()) - 1) > 1e-6:
        raise InternalFault("The solver found no weights.")
    return found / float(found.sum())
