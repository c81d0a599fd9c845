"""`transformed`: the mean when the number of people is secret too."""

import math
from collections.abc import Callable, Sequence
from typing import ClassVar

from app.core.cohort import Group
from app.core.epsilon import MICRO
from app.core.noise import DiscreteGaussian, DiscreteLaplace
from app.core.study import Currency, Relation
from app.estimators.accuracy import WORST_VARIANCE
from app.estimators.calibration import GAUSSIAN_SIGMA, GAUSSIAN_UNIT, gaussian_weight
from app.estimators.expected import missed
from app.estimators.interface import (
    UNIT_SCALE,
    Accuracy,
    Conclusion,
    Interval,
    Parameter,
    Plan,
    Query,
    Question,
)
from app.estimators.moments_secret import (
    MOMENT_SCALE,
    MomentReader,
    moment_queries,
    three_sums_pivot,
)
from app.estimators.pivot import (
    PivotReader,
    noise_at,
    offered_weight,
    two_sums_pivot,
    usual_noise,
)


def parse_moments(text: str) -> object:
    """The parameter `moments`: 1 or 2.

    Raises:
        ValueError: anything else.
    """
    if text not in ("1", "2"):
        raise ValueError("must be 1 or 2")
    return int(text)


MOMENTS = Parameter(
    name="moments",
    parse=parse_moments,
    default=1,
    description="2: the variance too, from three sums in place of two at the same price; the mean errs up to "
    "12 % more. Asking for variance or sd sets it.",
)


class Transformed:
    r"""The ratio s1 / (s1 + s2) of two noisy sums, s1 = sum (x - l) / W and s2 = sum (u - x) / W.

    One person adds x to the first sum and 1 - x to the second, so both together move by exactly 1 and
    one epsilon protects both. Each person counts with the epsilon they offer, a_i.

    Nothing but the two noisy sums depends on who is there: weights depend on a person's own offer,
    the noise on nothing, predicted error and intervals on the question and the noisy sums. Local
    reports are not used: a report hides a value, not that a person sent one.
    """

    name: ClassVar[str] = "transformed"
    version: ClassVar[int] = 3
    relation: ClassVar[Relation] = Relation.ADD_REMOVE_ONE
    currencies: ClassVar[frozenset[Currency]] = frozenset(Currency)
    parameters: ClassVar[tuple[Parameter, ...]] = (MOMENTS,)
    summary: ClassVar[str] = "Ratio of two noisy sums, one epsilon for both; hides how many people there are."

    def plan(self, groups: Sequence[Group], question: Question) -> Plan:
        r"""Plan a release.

        With T1 = sum_g a_g S_g and T2 = sum_g a_g (2^30 n_g - S_g), both plus discrete Laplace noise
        of scale UNIT_SCALE. The intervals are those p that the pivot (1 - p) T1 - p T2 does not
        reject (Fieller): its noise is (1 - p) Lap - p Lap, whose law is known exactly.

        Args:
            groups: The groups; their sizes are not looked at.
            question: What is asked. People offer between `floor` and `cap`.

        Returns:
            The plan. predicted_error is see `predicted_error`, with n = expected_size people at
            epsilon = cap and :math:`2^{1/4} / \epsilon` for the noise of one of them; at most W / 2,
            the error of the midpoint, which is also the prediction where no size is expected.

            The interval is for the mean of those who take part; who could not pay stays secret
            in this relation. Where floor = cap it covers at least its level; otherwise it is widened by the
            worst case of unequal weights, and by the tilt. The answer's `details` hold noisy_count: the noisy
            total weight / cap, the number of people where all offer the cap and a lower value otherwise.

        In a study with Gaussian noise a person weighs the mu of their offer in place of its epsilon. The move
        of both sums, (a q, a (2^30 - q)), is longest in L2 norm at the ends of the range, a 2^30: the same mu
        pays for both.

        With the parameter moments = 2 there are three sums in place of two, see
            `app.estimators.moments_secret`: the mean errs up to 12 % more, and the answer has a variance.

        Privacy: a person at q moves T1 by a q and T2 by a (2^30 - q), together a 2^30: costs a
            micro-epsilon under adding or removing one person. Values were checked to lie in the range
            when they arrived. No output depends on the exact number of people.

        References:
            Kulesza, Suresh, Wang, "Mean estimation in the add-remove model of differential privacy",
            arXiv:2312.06658v1, Algorithm 3. Negative sums are replaced by 0 before the ratio, both 0 give
            the midpoint (the printed ratio turns s1 = 1, s2 = -3 into the wrong end).
        """
        weights = tuple(offered_weight(group, question.cap) for group in groups)
        if question.currency.is_gaussian:
            weights = tuple(map(gaussian_weight, weights))
            most, least = gaussian_ends(question)
            # Quarters of weights under noise of one sum are whole ones under four times the noise.
            three = question.parameters.get(MOMENTS.name) == 2
            return Plan(
                queries=moment_queries(tuple(weight // 4 for weight in weights))
                if three
                else complementary_queries(weights),
                noise=DiscreteGaussian(sigmas=(GAUSSIAN_SIGMA,) * (3 if three else 2)),
                predicted_error=predicted_error(question, mean_of(question)),
                conclude=reader(question),
                weighs=(most, min(least, most)),
                spread=_spread(question, most) if three else None,
            )
        cap = max(question.cap, 1) / MICRO
        if question.parameters.get(MOMENTS.name) == 2:
            return Plan(
                queries=moment_queries(weights),
                noise=DiscreteLaplace(scales=(MOMENT_SCALE,) * 3),
                predicted_error=predicted_error(question, mean_of(question)),
                conclude=reader(question),
                weighs=(cap, floor_of(question)),
                spread=_spread(question, cap),
            )
        return Plan(
            queries=complementary_queries(weights),
            noise=DiscreteLaplace(scales=(UNIT_SCALE, UNIT_SCALE)),
            predicted_error=predicted_error(question, mean_of(question)),
            conclude=reader(question),
            weighs=(cap, floor_of(question)),
        )


def reader(question: Question, sums: int = 1) -> Callable[[Sequence[int]], Conclusion]:
    """What reads the noisy sums of a question.

    Args:
        question: What is asked; nothing else is known.
        sums: How many noisy sums of disjoint people each of them is the sum of.
    """
    return _reader(question, sums).conclude


def mean_of(question: Question) -> PivotReader:
    """What reads the mean off them."""
    found = _reader(question, 1)
    return found.mean if isinstance(found, MomentReader) else found


def joint_reader(question: Question, labels: int) -> Callable[[Sequence[int]], tuple[Interval, Interval]]:
    """What reads intervals of the mean off the same sums that hold at once for this many labels."""
    return _reader(question, 1, labels).intervals


def _reader(question: Question, sums: int, labels: int = 1) -> MomentReader | PivotReader:
    grid, cap = question.grid, max(question.cap, 1) / MICRO
    three, floor = question.parameters.get(MOMENTS.name) == 2, floor_of(question)
    normal = question.currency.is_gaussian
    if normal:
        cap, floor = gaussian_ends(question)
    pivot = (three_sums_pivot if three else two_sums_pivot)(sums, normal=normal)
    reader = MomentReader if three else PivotReader
    return reader(grid=grid, cap=cap, floor=min(floor, cap), pivot=pivot, labels=labels, tilt=question.tilt)


def gaussian_ends(question: Question) -> tuple[float, float]:
    """The most and the least that a person can weigh under Gaussian noise [mu]."""
    step = 4 if question.parameters.get(MOMENTS.name) == 2 else 1
    most, least = (
        gaussian_weight(max(end, 1)) // step * step / GAUSSIAN_UNIT for end in (question.cap, question.floor)
    )
    return most, least


def complementary_queries(weights: tuple[int, ...]) -> tuple[Query, Query]:
    """The weighted sums of x and of 1 - x.

    Args:
        weights: What one person of each group weighs in both.

    Returns:
        Two queries; a person moves them by w q and w (2^30 - q).
    """
    return (
        Query(sum_weights=weights, count_weights=(0,) * len(weights)),
        Query(sum_weights=tuple(-weight for weight in weights), count_weights=weights),
    )


def floor_of(question: Question) -> float:
    """The smallest offer of those who take part [epsilon]."""
    return max(min(question.floor, question.cap), 0) / MICRO


def predicted_error(question: Question, reader: PivotReader, mass: float | None = None) -> float:
    r"""The leading term of the error at the expected size, at most that of the midpoint.

    The squares add up of the noise over the total weight A, that at the mean that is published, or
    `usual_noise`; of what weights can move the mean by, within the tilt; and, of a tilt below 1, of people
    drawn with other weights, whose variance is at most
    :math:`\tfrac14 (\sqrt c - \sqrt f)^2 / A`.

    Args:
        question: What is asked.
        reader: What reads the noisy sums.
        mass: The weight of one person at the cap [epsilon, or mu]; the cap if not given.

    Returns:
        The error [data's unit]; that of the midpoint where no size is expected.

    Privacy: depends on the question and what is published alone.
    """
    width, mean = float(question.grid.width), question.expected.mean
    if question.expected_size is None or question.expected_size <= 0:
        return width / 2
    total = (reader.cap if mass is None else mass) * question.expected_size
    drawn = WORST_VARIANCE * reader.inequality / total if question.tilt < 1 else 0.0
    noise = (usual_noise(reader.pivot) if mean is None else noise_at(reader.pivot, mean)) / total
    return width * min(0.5, math.sqrt(noise**2 + drawn + reader.bias**2))


def _spread(question: Question, cap: float) -> Callable[[], Accuracy]:
    r"""The leading term of the error of a variance off three sums, for the values that are expected.

    The coefficients of their noise, of variance 2 over the total weight, are :math:`(1 - p)^2 - v`,
    :math:`p (1 - p) + v` and :math:`p^2 - v`. What bounds leave of it is seen, see `app.estimators.expected`.

    Args:
        question: What is asked.
        cap: The most that a person can weigh [epsilon, or mu].

    Privacy: depends on the question and what is published alone.
    """
    size, worst, bias = question.expected_size, WORST_VARIANCE, mean_of(question).bias
    # Weights move a mean of squares about a point by the bias, and that point.
    moved = bias + bias**2
    p, v = question.expected.place, question.expected.spread
    unit, noise = float(question.grid.width), math.inf
    if size and size > 0:
        scales = (1 - p) ** 2 - v, p * (1 - p) + v, p * p - v
        noise = min(worst, math.sqrt(2 * sum(scale**2 for scale in scales)) / cap / size)

    def accuracy() -> Accuracy:
        if noise == math.inf:
            return Accuracy(error=unit**2 * worst, half_width=None, root_error=unit * math.sqrt(worst))
        error, root_error = missed(v, math.hypot(noise, moved), noise)
        return Accuracy(error=unit**2 * error, half_width=None, root_error=unit * root_error)

    return accuracy
