r"""The one formula of all linear estimators of replace_one studies.

With weight c_i on person i (sum 1) the estimate is :math:`\sum c_i x_i` + noise. Its error is

- about the dataset mean :math:`\sum (c_i - 1/n) x_i` + noise,
- about the population mean :math:`\sum c_i (x_i - \mu)` + noise,

and for people drawn independently with variance at most s2 the first terms have variance at most
:math:`s2 \sum (c_i - 1/n)^2` and :math:`s2 \sum c_i^2`. Where all c_i = 1/n the first term vanishes and
the interval for the dataset mean is a pure quantile of the noise: its coverage is exact. Every other
interval covers at least what it states ("worst_case"): s2 bounds the variance, and half the largest
single contribution is added, because a sum of two-valued data is a lattice, not a Normal.

People are not drawn independently of what they weigh where those who ask for little privacy think
differently. With :math:`TV = \tfrac12 \sum |c_i - 1/n|`, the sum over all n people of the study,

.. math:: \sum_i (c_i - 1/n) x_i = TV \cdot (m_+ - m_-),

m_+ and m_- being means of the people who weigh more and less than 1/n (both parts of the c_i - 1/n sum to
TV). A question bounds the difference of the two by its tilt [range widths]: then weights move the mean by
at most tilt TV, which widens both intervals, and its square is in the predicted error. A tilt of 1 bounds
nothing: then this holds for any data whatever.

Plans predict both errors; estimators are compared by that about the dataset,

.. math:: J = s2 \Big(\sum_i c_i^2 - \frac1n\Big) + \mathrm{Var}(noise) + (\text{tilt} \cdot TV)^2,

which has the same optimum as that about the population: where the c_i sum to one, and s2 is the same for all,
the two differ by the constant s2 / n.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from operator import mul

import numpy as np
from numpy.typing import NDArray

from app.core.cohort import Group, Groups
from app.core.errors import InternalFault
from app.core.grid import GRID_SIZE
from app.core.noise import DiscreteGaussian, DiscreteLaplace, Noise, NoNoise
from app.core.study import Trust
from app.estimators import confidence
from app.estimators.accuracy import (
    WORST_VARIANCE,
    Anytime,
    PredictedErrors,
    interval,
    noise_shrinkage,
    worst_square_error,
)
from app.estimators.anytime import Steps
from app.estimators.deviations import Deviations
from app.estimators.every_level import Ends
from app.estimators.interface import Conclusion, Linear, Plan, Query, Question, SparseQuery
from app.estimators.output_view import output_guarantee
from app.estimators.quantiles import laplace_variance
from app.estimators.reports import farthest, inside_range, noise_of, noise_variance

Shrinkage = Callable[[float, float, float], float]
"""The factor for a sum of squared weights, a variance of noise and a bias."""


def participants(groups: Sequence[Group], trust: Trust) -> list[int]:
    """Indices of the groups of one trust tag that hold a person who can take part.

    Args:
        groups: All groups.
        trust: Which ones; central groups must also offer more than 0, local ones have sent reports.

    Returns:
        Indices into `groups`, ascending.
    """
    return list(Groups.of(groups).able(trust))


def sizes_of(groups: Sequence[Group]) -> NDArray[np.float64]:
    """People in each group, shape (G,)."""
    return np.array(Groups.of(groups).column("count"), dtype=np.float64)


def silent_of(groups: Sequence[Group]) -> NDArray[np.float64] | None:
    """People of each group whose devices reported other measures, shape (G,); None where none did."""
    silent = Groups.of(groups).column("silent")
    return np.array(silent, dtype=np.float64) if any(silent) else None


def linear_plan(
    groups: Sequence[Group],
    question: Question,
    *,
    weights: Sequence[int],
    noise: Noise,
    report_weights: Sequence[float] | NDArray[np.float64] | None = None,
    variance: float | NDArray[np.float64] = WORST_VARIANCE,
    expected_variance: float | NDArray[np.float64] | None = None,
    shrinkage: float | None = 1.0,
    attached: bool = True,
    steering: float | None = None,
    rule: Shrinkage | None = None,
) -> Plan:
    r"""The plan of a linear estimator with one query.

    The central and public part is the weighted mean T / sum_g W_g n_g of one noisy integer query; it
    enters with the share that the local reports leave, :math:`a = 1 - \sum_h m_h v_h`:

    .. math:: \hat\mu = a \frac{\sum_g W_g S_g + Z}{2^{30} \sum_g W_g n_g} + \sum_h v_h R_h / 2^{30}.

    Args:
        groups: All groups of the study, length G.
        question: What is asked.
        weights: G integers W_g >= 0 [micro-epsilon, if `noise` has UNIT_SCALE]; 0 for local groups.
        noise: Noise of the one query.
        report_weights: G weights v_h of a single report [1], 0 for groups that are not local. None for
            no local reports.
        variance: s2, bound on the variance of the data, of all people or of each group [range width squared].
        expected_variance: What to predict the error with, where that is not the bound [the same].
        shrinkage: What the distance of the answer from the middle is multiplied by; None for as far as the
            noise warrants, see `noise_shrinkage`.
        attached, steering: See `Linear`. Without a variance to steer by, a plan that weighs reports is asked
            as one, and others are steered by the worst case.
        rule: How far answers by parts shrink; as far as this one if not given.

    Returns:
        The plan. predicted_error is :math:`\sqrt{s2 \sum (c_i - 1/n)^2 + \mathrm{Var}(noise)}`, and where it
        shrinks the worst case over the mean, see `worst_square_error`; both with the question's tilt.
        population_error has :math:`s2 \sum c_i^2` in place of the first term.

    Raises:
        InternalFault: negative weights, weights that sum to nothing, noise that has no formula here.

    Privacy: costs W_g 2^30 / scale for each person of a central group; reads no data. Local reports are
        private already.
    """
    groups = Groups.of(groups)
    sizes = sizes_of(groups)
    local = np.zeros(len(groups)) if report_weights is None else np.array(report_weights, dtype=np.float64)
    share = 1.0 - float(np.dot(local, sizes))
    mass = sum(map(mul, weights, groups.column("count")))
    if min(weights, default=0) < 0 or float(local.min(initial=0.0)) < 0 or share < -1e-9:
        raise InternalFault("An estimator has negative weights.")
    if mass == 0:
        if abs(share) > 1e-9:
            raise InternalFault("The weights of an estimator do not sum to one.")
        share = 0.0
    share = max(share, 0.0)
    per_weight = share / mass if mass else 0.0
    laplace, normal = 0.0, 0.0
    match noise:
        case NoNoise():
            pass
        case DiscreteLaplace(scales=(scale,)):
            laplace = per_weight * scale * question.louder / GRID_SIZE
        case DiscreteGaussian(sigmas=(sigma,)):
            normal = (per_weight * sigma * question.louder / GRID_SIZE) ** 2
        case _:
            raise InternalFault("A linear estimator has no formula for this noise.")
    exact_share, hears = Fraction(share), bool(np.any(local))

    def central(values: Sequence[int]) -> Fraction:
        (value,) = values
        return exact_share * Fraction(value, mass) / GRID_SIZE if mass else Fraction()

    plan = combine(
        groups,
        question,
        queries=(Query(sum_weights=tuple(weights), count_weights=(0,) * len(groups)),),
        noise=noise,
        person=np.array(weights, dtype=np.float64) * per_weight,
        laplaces=((laplace, 1),),
        normal=normal,
        read=central,
        reports=local if hears else None,
        variance=variance,
        expected_variance=expected_variance,
        shrinkage=shrinkage,
    )
    expected = variance if expected_variance is None else expected_variance
    if not isinstance(variance, float) or not isinstance(expected, float) or (hears and steering is None):
        return plan
    linear = Linear(
        reports=hears,
        attached=attached,
        steering=WORST_VARIANCE if steering is None else steering,
        variance=variance,
        expected_variance=expected,
        shrinkage=rule or _as_before(shrinkage),
    )
    return replace(plan, linear=linear)


def _as_before(shrinkage: float | None) -> Shrinkage:
    return lambda _squares, noise, _bias: noise_shrinkage(noise) if shrinkage is None else shrinkage


def combine(
    groups: Sequence[Group],
    question: Question,
    *,
    queries: tuple[Query | SparseQuery, ...],
    noise: Noise,
    person: NDArray[np.float64],
    laplaces: Sequence[tuple[float, int]],
    read: Callable[[Sequence[int]], Fraction],
    normal: float = 0.0,
    reports: NDArray[np.float64] | None = None,
    variance: float | NDArray[np.float64] = WORST_VARIANCE,
    expected_variance: float | NDArray[np.float64] | None = None,
    shrinkage: float | Shrinkage | None = 1.0,
    absent: NDArray[np.bool_] | None = None,
    always: tuple[Steps, Sequence[float]] | None = None,
) -> Plan:
    """The plan of any linear estimator, from the weight of a single person of each group.

    Args:
        groups: All groups of the study, length G.
        question: What is asked.
        queries, noise: See `Plan`.
        person: Weight of one person in what `read` returns, shape (G,); with `reports` it sums to 1 [1].
        laplaces: (scale, how many) of the Laplaces in what `read` returns [range widths].
        read: The position of the central and public part from the noisy values, reports not included.
        normal: Variance of all other noise in it [range width squared].
        reports: Weight of one report of each group, shape (G,), or None.
        variance, expected_variance, shrinkage: See `linear_plan`.
        absent: Groups of people who have left since their values were summed, shape (G,): they weigh, and
            are not among those whose mean the dataset has.
        always: How the noise in `read` was drawn step by step, and what each sum's comes to there, see
            `app.estimators.anytime`; None of an answer without steps.

    Returns:
        The plan.

    Privacy: reads no data; what it costs is decided by the queries and the noise.
    """
    # One variance for all groups, or one for each: a bound for the interval, an expectation for the plan.
    groups = Groups.of(groups)
    sizes = sizes_of(groups)
    expected = variance if expected_variance is None else expected_variance
    # Keep the weights and the noise of the central part alone: what an observer without reports sees.
    parts, bounded = list(laplaces), 0.0
    alone, curator = person, normal
    # Add the noise of reports by its law: Laplace exactly, other noise by its variance. What is neither
    # Laplace nor normal is bounded too, and its deviation widens the step of the interval.
    if reports is not None:
        person = person + reports
        for index in np.flatnonzero(reports).tolist():
            group, weight = groups[index], float(reports[index])
            noisy = noise_of(group)
            if noisy.laplace:
                parts.append((weight * noisy.laplace / GRID_SIZE, group.count))
                continue
            of_report = noise_variance(group, float(np.broadcast_to(expected, sizes.shape)[index]))
            normal += group.count * weight**2 * of_report
            if not noisy.gaussian:
                bounded = max(bounded, weight * math.sqrt(of_report))
    # The estimate errs by its noise, and by weights that differ from 1/n. People of the study who are in
    # no group weigh 0, so their whole 1/n counts as a deviation, with the largest variance of any group.
    weighed = Deviations.of(
        sizes,
        person,
        people=question.people or 0,
        tilt=question.tilt,
        absent=absent,
        silent=silent_of(groups),
    )
    squares, spread = sizes * person**2, normal + laplace_variance(parts)
    # None asks for the shrinkage that suits this much noise, a rule for the one that suits these weights.
    if shrinkage is None:
        shrinkage = noise_shrinkage(spread)
    elif callable(shrinkage):
        shrinkage = shrinkage(float(squares.sum()), spread, weighed.bias)
    errors = PredictedErrors(
        grid=question.grid,
        laplaces=tuple(parts),
        normal=normal,
        dataset_variance=weighed.about_dataset(variance),
        dataset_step=weighed.farthest / 2 + bounded,
        population_variance=weighed.about_population(variance),
        population_step=weighed.largest / 2 + bounded,
        # With equal weights only noise is left, whose law is known: the interval is exact.
        exact=weighed.equal and bounded == 0,
        bias=weighed.bias,
        shrinkage=shrinkage,
        anytime=None
        if always is None
        else Anytime(
            steps=always[0],
            noises=tuple(always[1]),
            laplaces=tuple(parts[len(laplaces) :]),
            normal=normal - curator,
        ),
    )

    # After the draw: the position from noisy sums and reports, the guarantee, the interval.
    def conclude(values: Sequence[int], bounds: Sequence[Ends] = ()) -> Conclusion:
        position = read(values)
        if reports is not None:
            position += report_position(groups, reports)
        facts: dict[str, object] = {}
        if curator or isinstance(noise, DiscreteGaussian):
            priced = [trust is Trust.CENTRAL for trust in groups.column("trust")]
            facts |= output_guarantee(
                groups,
                question,
                central=float(alone[priced].max(initial=0.0)),
                central_sigma=math.sqrt(curator),
                reports=np.zeros(len(groups)) if reports is None else reports,
            )
        if reports is not None:
            facts |= inside_range(groups, reports, question.grid)
        within = [
            (float(np.sum(np.minimum(variance, most) * squares)), risk)
            for most, risk in bounds or [(WORST_VARIANCE, 0.0)] * len(confidence.levels())
        ]
        return errors.conclude(position, facts, bounds=within)

    # One liar moves the answer by the weight of one report times how far it can lie.
    one_report = None
    if reports is not None and np.any(reports):
        moves = (
            float(reports[index]) * farthest(groups[index]) for index in np.flatnonzero(reports).tolist()
        )
        one_report = float(question.grid.width) * errors.shrinkage * max(moves)

    # Before the draw: the error that plans are ranked by, for any data of the expected variance.
    # Who has left may have had any value, and who is in no group the largest variance of any.
    worst = partial(
        worst_square_error,
        noise=spread,
        shrinkage=shrinkage,
        bias=weighed.bias,
        tilt=question.tilt if absent is None or not absent.any() else 1.0,
    )
    kinds: NDArray[np.float64] | float = expected
    if not isinstance(expected, float):
        kinds = np.append(expected, np.max(expected, initial=0.0))
    moved = weighed.moved(shrinkage)
    width, square = float(question.grid.width), worst(moved, variances=kinds)
    drawn = float(np.sum(kinds * moved)) + shrinkage**2 * spread
    population = worst(shrinkage**2 * squares, variances=expected)
    expecting = replace(errors, population_variance=float(np.sum(expected * squares)))
    return Plan(
        queries=queries,
        noise=noise,
        predicted_error=width * math.sqrt(square),
        population_error=width * math.sqrt(population),
        bias=width * math.sqrt(max(0.0, square - drawn)),
        bound=errors.dataset_bound,
        population_bound=expecting.population_bound,
        conclude=conclude,
        one_report=one_report,
        interval_width=errors.interval_width,
        anytime_width=None if always is None else errors.anytime_width,
        conclude_within=conclude,
    )


def report_position(groups: Sequence[Group], weights: NDArray[np.float64]) -> Fraction:
    """The weighted sum of reports, exact for the doubles that the weights are.

    Args:
        groups: All groups, length G.
        weights: Weight of one report of each group, shape (G,).

    Returns:
        The sum [range widths].

    Privacy: post-processing of local reports.
    """
    position = Fraction()
    for index in np.flatnonzero(weights).tolist():
        reports = groups[index].reports
        if reports is not None:
            position += Fraction(float(weights[index])) * reports.position(groups[index].count)
    return position


def midpoint_plan(groups: Sequence[Group], question: Question) -> Plan:
    r"""The answer that uses no data: the middle of the range, off by at most half its width.

    Args:
        groups: All groups of the study.
        question: What is asked.

    Returns:
        A plan without weights and without noise, which costs nothing. Both errors are W / 2, all of it bias.

    Privacy: depends on no data.

    References:
        Chaudhuri, Courtade, arXiv:2305.09668, Algorithm 1, last step.
    """
    grid = question.grid
    half = Fraction(1, 2)

    def conclude(values: Sequence[int]) -> Conclusion:
        whole = [1.0] * len(confidence.levels())
        return Conclusion(
            estimate=grid.to_unit(half),
            standard_error=0.0,
            interval=interval(grid, half, whole, "worst_case"),
            population_interval=interval(grid, half, whole, "worst_case"),
            details={"midpoint": True},
        )

    return Plan(
        queries=(SparseQuery(size=len(groups), terms=()),),
        noise=NoNoise(),
        predicted_error=float(grid.width) / 2,
        population_error=float(grid.width) / 2,
        bias=float(grid.width) / 2,
        conclude=conclude,
    )
