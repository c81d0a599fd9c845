r"""What people count for where an answer says how many of them are where: shares and ranks.

The answer is about a weighted distribution of values, c_i the weight of person i, in place of that of all
people. Two distributions differ the most in total variation, so a question's tilt bounds that here: the
values of those who weigh much and of those who weigh little differ in at most a part `tilt` of them. Then a
share, or a rank, is off by at most tilt TV, :math:`TV = \tfrac12 \sum |c_i - 1/n|`, by the same division of
:math:`\sum (c_i - 1/n)` into its two signs as in `app.estimators.deviations`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from app.core.cohort import Group
from app.core.epsilon import MAX_EPSILON, MICRO
from app.core.study import Currency, Relation, Trust
from app.estimators.affine import AffineProblem
from app.estimators.calibration import GAUSSIAN_UNIT, gaussian_weight
from app.estimators.deviations import Deviations, uneven_at_most
from app.estimators.interface import NotApplicable
from app.estimators.linear import participants, silent_of
from app.estimators.pivot import offered_weight
from app.estimators.reports import stands_for

NO_REPORTS: Mapping[int, float] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    r"""What weights are to make small, in the form :math:`v \sum w_i^2 + 2 \eta^2 + t^2 TV^2`.

    :math:`w_i \le \epsilon_i \eta` are weights that sum to one. An answer's own target, divided by what
    makes the coefficient of eta^2 a 2.

    Attributes:
        variance: v.
        tilt: t.
    """

    variance: float
    tilt: float

    def louder(self, times: float) -> "Target":
        """With noise of this many times the deviation: divided by its square, so that eta^2 has a 2."""
        return Target(variance=self.variance / times**2, tilt=self.tilt / times)


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighing:
    """The weights of a question.

    Attributes:
        relation: The neighboring relation.
        currency: What people offer.
        weights: Of one person of each group; 0 for those who take no part [an epsilon of 1 is `unit`].
        mass: replace_one: the weights of all people together [the same], without local people; 0 where that
            is secret.
        squares: replace_one: sum of c_i^2, c_i the weight over `mass`.
        uneven: replace_one: sum of (c_i - 1/n)^2 over all n people of the study.
        largest: replace_one: the largest c_i.
        reports: replace_one: c_i of one local person of each group; empty without reports. All others
            together weigh `private`.
        bias: The most that unequal weights move a share, within the question's tilt.
        cap, floor: add_remove_one: the most and the least that a person can weigh [the same].
        tilt: add_remove_one: the question's, in [0, 1].
        private: The part of the whole weight that central and public people have.
    """

    relation: Relation
    weights: tuple[int, ...]
    mass: int = 0
    squares: float = 0.0
    uneven: float = 0.0
    largest: float = 0.0
    reports: tuple[float, ...] = ()
    bias: float = 0.0
    cap: int = 1
    floor: int = 1
    tilt: float = 0.0
    private: float = 1.0
    currency: Currency = Currency.LAPLACE

    @classmethod
    def of(cls, weighed: Deviations, currency: Currency) -> "Weighing":
        """What an answer of a replace_one study is read with, if no more is drawn for it."""
        return cls(
            relation=Relation.REPLACE_ONE,
            weights=(),
            squares=weighed.about_population(),
            uneven=weighed.about_dataset(),
            largest=weighed.largest,
            bias=weighed.bias,
            currency=currency,
        )

    @property
    def is_public(self) -> bool:
        """Whether the number of people is public: in replace_one studies."""
        return not self.relation.hides_people

    @property
    def is_gaussian(self) -> bool:
        """Whether noise is Gaussian."""
        return self.currency.is_gaussian

    @property
    def is_equal(self) -> bool:
        """Whether all people of a secret number weigh the same."""
        return not self.is_public and self.floor == self.cap

    @property
    def unit(self) -> int:
        """The weight of an offer of epsilon 1, and under Gaussian noise of what is worth as much."""
        return unit_of(self.currency)


def unit_of(currency: Currency) -> int:
    """See `Weighing.unit`."""
    return currency.of(laplace=MICRO, gaussian=GAUSSIAN_UNIT)


def weight_of(offer: int, currency: Currency) -> int:
    """What an offer buys: itself, or what mu^2 buys, see `app.estimators.calibration.purse`."""
    return gaussian_weight(offer) if currency.is_gaussian else offer


def weigh_public(
    groups: Sequence[Group],
    people: int,
    target: Target,
    tilt: float,
    noises: Mapping[int, float] = NO_REPORTS,
    currency: Currency = Currency.LAPLACE,
) -> Weighing:
    """Weights min(epsilon, tau) for a study whose number of people is public.

    Args:
        groups: All groups of the study.
        people: n, everyone with a live contribution.
        target: What the weights make small.
        tilt: The question's, in [0, 1].
        noises: For each group whose reports have a part in the answer the variance of one report, in the unit
            of the target.
        currency: What groups offer.

    Returns:
        The weights. Public people weigh tau; where no person is central they weigh `MAX_EPSILON`, which
        makes noise negligible.

    Raises:
        NotApplicable: no person can take part.

    Privacy: depends on offers and group sizes, which are public under replace_one.
    """
    central, public = participants(groups, Trust.CENTRAL), participants(groups, Trust.PUBLIC)
    if not central and not public and not noises:
        raise NotApplicable("No person central or public can take part.")
    unit = unit_of(currency)
    limits = {index: weight_of(groups[index].epsilon, currency) for index in central}
    largest = max(limits.values(), default=MAX_EPSILON * unit // MICRO)
    saturated, reports = largest, np.zeros(len(groups))
    if central or noises:
        solution = AffineProblem(
            np.array(list(limits.values()), dtype=np.float64) / unit,
            np.array([groups[index].count for index in central], dtype=np.float64),
            public=sum(groups[index].count for index in public),
            noises=np.array(list(noises.values())),
            reports=np.array([groups[index].count for index in noises], dtype=np.float64),
            tilt=target.tilt,
            people=people,
            stands=stands_for(groups)[list(noises)],
        ).solve(target.variance)
        reports[list(noises)] = solution.reports
        if central and math.isfinite(solution.tau):
            saturated = max(1, math.floor(solution.tau * unit))
    weights = [0] * len(groups)
    for index, limit in limits.items():
        weights[index] = min(limit, saturated)
    for index in public:
        weights[index] = saturated
    # How unequal they are, over all people of the study.
    sizes = np.array([group.count for group in groups], dtype=np.float64)
    mass = sum(weight * group.count for weight, group in zip(weights, groups, strict=True))
    private = 1 - float(np.dot(sizes, reports)) if mass else 0.0
    shares = np.array([float(weight) for weight in weights]) * (private / max(mass, 1)) + reports
    weighed = Deviations.of(sizes, shares, people=people, tilt=tilt, silent=silent_of(groups))
    return replace(
        Weighing.of(weighed, currency),
        weights=tuple(weights),
        mass=mass,
        reports=tuple(reports.tolist()) if noises else (),
        private=private,
    )


def weigh_labels(labels: Sequence[tuple[int, Weighing]], people: int, tilt: float) -> Weighing:
    r"""What people count for where an answer for all is the mean of those for labels, by their people.

    Which part :math:`\pi_l` of the a people with an answer has each label is public. A person of label l
    weighs :math:`\pi_l` times what they weigh in it, and is due 1/n, which is :math:`\pi_l / n_l` less
    :math:`1/a - 1/n`. The other n - a people weigh nothing. In every label weights sum to one, those of
    people who have left among them, so those of people who are there come to at most what they are due, and

    .. math:: \sum_i (c_i - d_i)^2 \le \sum_l \pi_l^2 \sum_{i \in l} (c_{li} - d_{li})^2 + 1/a - 1/n,

    d_i being what a person is due, 0 for who has left; where no person has left the two sides are equal.

    A tilt moves the answer for label l by at most its own bias; leaving out m of n people moves that for all
    by at most tilt m / n.

    Args:
        labels: For each label with an answer its people and their weights; replace_one.
        people: n, those of labels without an answer too.
        tilt: The question's, in [0, 1].
    """
    answered = sum(count for count, _ in labels)
    parts, absent = [(count / answered, one) for count, one in labels], people - answered
    uneven = math.fsum(part**2 * one.uneven for part, one in parts)
    return Weighing(
        relation=Relation.REPLACE_ONE,
        weights=(),
        squares=math.fsum(part**2 * one.squares for part, one in parts),
        uneven=uneven + (1 / answered - 1 / people if absent else 0.0),
        largest=max(part * one.largest for part, one in parts),
        bias=math.fsum(part * one.bias for part, one in parts) + tilt * absent / people,
        currency=labels[0][1].currency,
    )


def weigh_secret(
    groups: Sequence[Group],
    *,
    cap: int,
    floor: int,
    currency: Currency = Currency.LAPLACE,
    tilt: float = 0.0,
) -> Weighing:
    """Weights for a study whose number of people is secret: everyone counts by their own offer.

    Args:
        groups: The groups; their sizes are not looked at.
        cap: The most that any person may be charged [the currency].
        floor: The least that any person offers who takes part [the currency].
        currency: What groups offer.
        tilt: The question's, in [0, 1].
    """
    most, least = max(weight_of(cap, currency), 1), max(weight_of(min(floor, cap), currency), 0)
    return Weighing(
        relation=Relation.ADD_REMOVE_ONE,
        weights=tuple(weight_of(offered_weight(group, cap), currency) for group in groups),
        bias=tilt * uneven_at_most(most, least),
        cap=most,
        floor=least,
        tilt=tilt,
        currency=currency,
    )
