"""The baselines of the heterogeneous paper that weigh every person at once."""

import math
from collections.abc import Sequence
from typing import ClassVar

from app.core.cohort import Group
from app.core.epsilon import MICRO
from app.core.noise import DiscreteLaplace, Noise, NoNoise
from app.core.study import Relation, Trust
from app.estimators.interface import UNIT_SCALE, NotApplicable, Parameter, Plan, Question
from app.estimators.linear import linear_plan, participants
from app.estimators.noises import FINE, FINE_SCALE


def _people(groups: Sequence[Group]) -> tuple[list[int], list[int]]:
    """Central and public participants; at least one of them."""
    central, public = participants(groups, Trust.CENTRAL), participants(groups, Trust.PUBLIC)
    if not central and not public:
        raise NotApplicable("No person central or public can take part.")
    return central, public


def _noise(central: Sequence[int], scale: float = UNIT_SCALE) -> Noise:
    return DiscreteLaplace(scales=(scale,)) if central else NoNoise()


def _offers(groups: Sequence[Group]) -> tuple[list[int], list[int]]:
    """Weights of what every person offers, and the central participants.

    Public people, whose epsilon is infinite, weigh like those who offer the most: the literal limit
    would ignore every other person.
    """
    central, public = _people(groups)
    weights = [0] * len(groups)
    for index in central:
        weights[index] = groups[index].epsilon
    most = max((groups[index].epsilon for index in central), default=1)
    for index in public:
        weights[index] = most
    return weights, central


class Proportional:
    r"""Weights in proportion to epsilon, the baseline called PropDPM. Local reports are not used."""

    name: ClassVar[str] = "proportional"
    version: ClassVar[int] = 1
    relation: ClassVar[Relation] = Relation.REPLACE_ONE
    parameters: ClassVar[tuple[Parameter, ...]] = ()
    summary: ClassVar[str] = "Weights in proportion to epsilon."

    def plan(self, groups: Sequence[Group], question: Question) -> Plan:
        """Plan a release.

        Args:
            groups: All groups of the study.
            question: What is asked.

        Returns:
            Weight epsilon [micro-epsilon] on central people, the largest one on public people, Laplace
            noise.

        Raises:
            NotApplicable: no person is public, and no person central can take part.

        Privacy: epsilon_g, the whole offer, for each central person.

        References:
            Chaudhuri, Courtade, arXiv:2305.09668, section IV, PropDPM.
        """
        weights, central = _offers(groups)
        return linear_plan(groups, question, weights=weights, noise=_noise(central))


class Stretching:
    r"""Every value drawn towards the middle by epsilon_i / epsilon_max, then the plain mean: biased.

    It is `proportional` drawn towards the middle of the range by the mean of those ratios. Local reports are
    not used.
    """

    name: ClassVar[str] = "stretching"
    version: ClassVar[int] = 1
    relation: ClassVar[Relation] = Relation.REPLACE_ONE
    parameters: ClassVar[tuple[Parameter, ...]] = ()
    summary: ClassVar[str] = "Values drawn towards the middle by how little their owner offers; biased."

    def plan(self, groups: Sequence[Group], question: Question) -> Plan:
        r"""Plan a release.

        :math:`1/2 + \frac1n \sum \frac{\epsilon_i}{\epsilon_{max}} (x_i - 1/2) + Lap(1 / (n \epsilon_{max}))`
        is 1/2 + a (P - 1/2) with P the answer of `proportional` and a the mean of the ratios.

        Args:
            groups: All groups of the study.
            question: What is asked.

        Returns:
            Weight epsilon [micro-epsilon] on central people, the largest one on public people, Laplace
            noise, and the shrinkage a. predicted_error is the worst case over the mean. The intervals are
            those of P, which has no bias, extended to the answer.

        Raises:
            NotApplicable: no person is public, and no person central can take part.

        Privacy: epsilon_g for each central person, for Laplace noise and any other whose loss grows with
            the distance. (It does not hold for any mechanism of epsilon_max: staircase noise would cost
            a person who is drawn halfway to the middle all of epsilon_max.)

        References:
            Alaggan, Gambs, Kermarrec, "Heterogeneous differential privacy", arXiv:1504.06998
            (stretching); Chaudhuri, Courtade, arXiv:2305.09668, Example 2 (its error).
        """
        weights, central = _offers(groups)
        sizes = [group.count if weight else 0 for group, weight in zip(groups, weights, strict=True)]
        total = sum(weight * size for weight, size in zip(weights, sizes, strict=True))
        return linear_plan(
            groups,
            question,
            weights=weights,
            noise=_noise(central),
            shrinkage=min(1.0, total / (sum(sizes) * max(weights))),
        )


class Fme:
    r"""Weights min(epsilon, 1 / sqrt(n - k)): Fallah et al.'s estimator, reconstructed.

    Reconstructed from what the heterogeneous paper reports of it; the original text was not at hand. Local
    reports are not used.
    """

    name: ClassVar[str] = "fme"
    version: ClassVar[int] = 1
    relation: ClassVar[Relation] = Relation.REPLACE_ONE
    parameters: ClassVar[tuple[Parameter, ...]] = ()
    summary: ClassVar[str] = "Weights min(epsilon, 1/sqrt(n-k)); reconstructed from reports of it."

    def plan(self, groups: Sequence[Group], question: Question) -> Plan:
        r"""Plan a release.

        With epsilons ascending, k is the smallest number of people with
        :math:`1 / \sqrt{n - k} < \epsilon_{k+1}` (strictly); it can only change between groups. Public people
        have an infinite epsilon and come last. Where there is no such k, weights are the epsilons.

        Args:
            groups: All groups of the study.
            question: What is asked.

        Returns:
            Weight min(epsilon, 1 / sqrt(n - k)) on every person central or public, Laplace noise.

        Raises:
            NotApplicable: no person is public, and no person central can take part.

        Privacy: min(epsilon_g, 1 / sqrt(n - k)) for each central person.

        References:
            Fallah, Makhdoumi, Malekian, Ozdaglar, EC 2022, theorem 1, by way of Chaudhuri, Courtade,
            arXiv:2305.09668, Example 1 and Table II.
        """
        central, public = _people(groups)
        order = sorted(central, key=lambda index: groups[index].epsilon)
        rest = sum(groups[index].count for index in (*central, *public))
        cap: float | None = None
        for index in order:
            if rest * groups[index].epsilon ** 2 > MICRO**2:
                cap = MICRO / math.sqrt(rest)
                break
            rest -= groups[index].count
        if cap is None and public:
            cap = MICRO / math.sqrt(rest)
        most = max((groups[index].epsilon for index in central), default=1) * FINE
        limit = most if cap is None else max(1, math.floor(cap * FINE))
        weights = [0] * len(groups)
        for index in central:
            weights[index] = min(groups[index].epsilon * FINE, limit)
        for index in public:
            weights[index] = limit
        return linear_plan(groups, question, weights=weights, noise=_noise(central, FINE_SCALE))
