"""`optimal`: personal epsilons, local reports and public data in one exact solution."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from app.accounting.gaussian import effective_variance, mu2_cost
from app.core.cohort import Group, Groups
from app.core.epsilon import MICRO
from app.core.grid import GRID_SIZE
from app.core.noise import DiscreteGaussian, Noise, NoNoise
from app.core.study import Currency, Relation, Trust
from app.estimators.accuracy import noise_shrinkage
from app.estimators.affine import AffineProblem, Solution, best_shrinkage
from app.estimators.calibration import purse
from app.estimators.constrained import constrained_plan
from app.estimators.interface import NotApplicable, Parameter, Plan, Question
from app.estimators.linear import Shrinkage, linear_plan, participants, sizes_of
from app.estimators.output_view import COALITION
from app.estimators.reports import VARIANCE, noise_variance, stands_for, variances
from app.estimators.selectors import GROUP_CAP, GROUP_VARIANCE, entries_of

SHRINK_NONE = "none"
SHRINK_NOISE = "noise"
SHRINK_MINIMAX = "minimax"


def parse_shrinkage(text: str) -> object:
    """The parameter `shrinkage`: none, noise or minimax.

    Raises:
        ValueError: anything else.
    """
    if text not in (SHRINK_NONE, SHRINK_NOISE, SHRINK_MINIMAX):
        raise ValueError("must be none, noise or minimax")
    return text


SHRINKAGE = Parameter(
    name="shrinkage",
    parse=parse_shrinkage,
    default=SHRINK_NOISE,
    description="How far answers are drawn towards the middle of the range: none; noise, as far as the noise "
    "alone warrants, which never leaves the interval; minimax, for the smallest worst-case error about the "
    "population's mean, which may be far outside of it.",
)


class Optimal:
    r"""The affine mean of the smallest worst-case error over all people: central, local and public.

    Weights are :math:`\eta \min(\epsilon_g, \tau)` for central people, :math:`\eta \tau` for public ones
    and :math:`\eta \tau s / (s + r_h)` for reports of noise variance r_h; those who offer more than tau
    pay tau. It is `adpm` where there are no reports, and `kvh` where all central people offer the same.
    """

    name: ClassVar[str] = "optimal"
    version: ClassVar[int] = 4
    relation: ClassVar[Relation] = Relation.REPLACE_ONE
    currencies: ClassVar[frozenset[Currency]] = frozenset(Currency)
    parameters: ClassVar[tuple[Parameter, ...]] = (
        VARIANCE,
        SHRINKAGE,
        GROUP_VARIANCE,
        GROUP_CAP,
        COALITION,
    )
    summary: ClassVar[str] = "Personal epsilons, local reports and public data in one exact optimum."

    def plan(self, groups: Sequence[Group], question: Question) -> Plan:
        r"""Plan a release.

        Args:
            groups: All groups of the study. Local ones with their `reports`.
            question: What is asked; parameters variance, shrinkage, group_variance, group_cap and
                coalition.

        Returns:
            The plan. Weights and predicted error use the known or estimated variance of the data, see
            `app.estimators.reports.variances`; intervals use the known one, otherwise the worst case. The
            answer is drawn towards the middle of the range by the factor a: `noise` (the default)
            minimizes :math:`a^2 N + (1 - a)^2 / 4`, which is invisible while the noise N is small;
            `minimax` minimizes the population_error over a and tau together, which beats it by about
            :math:`1 / \sqrt n` but moves the answer by that part of its distance from the middle even
            where there is no noise at all: far more than the noise where most values are at one end. With a
            tilt the weights minimize the error without shrinking, and minimax minimizes over a alone. With
            group_variance or group_cap there is no closed form: a solver finds the proportions, see
            `constrained_plan`, and minimax means noise.

        Raises:
            NotApplicable: there is no report, no person public, and no person central can take part.
            InternalFault: reports of a mechanism without a known variance.

        Privacy: min(epsilon_g, tau) for each central person. Reports and their estimated variance are
            post-processing of what is private already; shrinking is post-processing too.

        References:
            Chaudhuri, Courtade, arXiv:2305.09668, Algorithm 1; Avent, Dubey, Korolova, PoPETs 2020,
            Definition 4.1; see `app.estimators.affine` for what holds of both together.
        """
        groups = Groups.of(groups)
        local = participants(groups, Trust.LOCAL)
        bound, expected = variances([groups[index] for index in local], question)
        rule = question.parameters.get(SHRINKAGE.name, SHRINKAGE.default)
        own = entries_of(question.parameters.get(GROUP_VARIANCE.name))
        caps = entries_of(question.parameters.get(GROUP_CAP.name))
        if own or caps:
            return constrained_plan(
                groups,
                question,
                purse(groups.of_able(Trust.CENTRAL, "epsilon"), question),
                bound=bound,
                expected=expected,
                group_variances=own,
                group_caps=caps,
                shrink=rule != SHRINK_NONE,
            )
        solved = _solve(groups, question, expected, minimax=rule == SHRINK_MINIMAX)
        shrinkage = 1.0
        if rule == SHRINK_NOISE:
            shrinkage = noise_shrinkage(solved.solution.noise)
        elif rule == SHRINK_MINIMAX:
            of = solved.solution
            shrinkage = best_shrinkage(of.squares, of.noise, expected, bias=of.bias, tilt=question.tilt)
        return linear_plan(
            groups,
            question,
            weights=solved.weights,
            noise=solved.noise,
            report_weights=solved.reports,
            variance=bound,
            expected_variance=expected,
            shrinkage=shrinkage,
            attached=False,
            steering=expected,
            rule=_rule(rule, expected, question.tilt),
        )


def _rule(name: object, variance: float, tilt: float) -> Shrinkage:
    """How far any weights shrink."""

    def shrinkage(squares: float, noise: float, bias: float) -> float:
        if name == SHRINK_NONE:
            return 1.0
        if name == SHRINK_NOISE:
            return noise_shrinkage(noise)
        return best_shrinkage(squares, noise, variance, bias=bias, tilt=tilt)

    return shrinkage


@dataclass(frozen=True, slots=True, kw_only=True)
class _Solved:
    """A solution as integer weights of the one query, and weights of reports."""

    solution: Solution
    weights: list[int]
    reports: NDArray[np.float64]
    noise: Noise


def _solve(groups: Sequence[Group], question: Question, variance: float, *, minimax: bool) -> _Solved:
    """The optimum under the study's noise."""
    groups = Groups.of(groups)
    central = participants(groups, Trust.CENTRAL)
    public = participants(groups, Trust.PUBLIC)
    local = participants(groups, Trust.LOCAL)
    if not central and not public and not local:
        raise NotApplicable("No person can take part.")
    paid = purse(groups.of_able(Trust.CENTRAL, "epsilon"), question)
    sizes = sizes_of(groups)
    limits = np.array(paid.limits, dtype=np.float64)
    problem = AffineProblem(
        limits / paid.unit,
        sizes[central],
        public=float(sum(groups.of_able(Trust.PUBLIC, "count"))),
        noises=np.array([noise_variance(groups[index], variance) for index in local]),
        reports=sizes[local],
        tilt=question.tilt,
        people=float(max(question.people or 0, groups.people)),
        stands=stands_for(groups)[local],
    )
    solution = problem.minimax(variance) if minimax else problem.solve(variance)
    weights = [0] * len(groups)
    most = max(paid.limits, default=1)
    if math.isfinite(solution.tau):
        most = max(1, math.floor(solution.tau * paid.unit))
    if solution.eta:
        for index, limit in zip(central, paid.limits, strict=True):
            weights[index] = min(limit, most)
    if solution.public:
        for index in public:
            weights[index] = most
    reports = np.zeros(len(groups))
    reports[local] = solution.reports
    noisy = any(weights[index] for index in central)
    return _Solved(
        solution=solution, weights=weights, reports=reports, noise=paid.noise if noisy else NoNoise()
    )


def saturation(groups: Sequence[Group], question: Question) -> int | None:
    """The most that this estimator charges a person of these groups.

    Args:
        groups: All groups of a replace_one study.
        question: What is asked of them; all central people are assumed to be able to pay.

    Returns:
        The saturation point at share 1 of weights for the question's share, rounded up [the study's
        currency]. None where no person saturates: then every person pays what they offer.

    Privacy: epsilons, group sizes and local reports may be looked at under replace_one.
    """
    local = [groups[index] for index in participants(groups, Trust.LOCAL)]
    _, expected = variances(local, question)
    minimax = question.parameters.get(SHRINKAGE.name, SHRINKAGE.default) == SHRINK_MINIMAX
    try:
        solved = _solve(groups, question, expected, minimax=minimax)
    except NotApplicable:
        return None
    if math.isinf(solved.solution.tau):
        return None
    match solved.noise:
        case DiscreteGaussian(sigmas=(sigma,)):
            return mu2_cost((max(solved.weights) * GRID_SIZE) ** 2 / effective_variance(sigma))
        case _:
            return math.ceil(solved.solution.tau * question.louder * MICRO)
