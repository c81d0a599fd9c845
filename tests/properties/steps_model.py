"""How shares of a question add up, as a plain model: person by person, in whole numbers.

A person moves a sum by at most 2^30 times what they weigh. Under Laplace noise of scale b at share 1 that
loses weight * 2^30 / b of epsilon, under Gaussian noise of parameter sigma weight^2 * 2^60 / (sigma^2 - 9)
of mu^2. A share of it, rounded up, is what a sum and all that it was sharpened from have cost.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol

import numpy as np

from app.core.cohort import Group
from app.core.epsilon import MICRO
from app.core.grid import GRID_SIZE
from app.core.noise import DiscreteGaussian, DiscreteLaplace, Noise
from app.core.study import Currency, Trust
from app.estimators.calibration import GAUSSIAN_SIGMA
from app.estimators.combination import Sums, combination_plan
from app.estimators.interface import Estimator, NotApplicable, Plan, Question
from app.services.statistics.questions import Resolved
from tests.support.weights import weights_of

Stay = tuple[str, int]
"""A person from one contribution to the next: who comes back is new to all sums."""


class Holder(Protocol):
    """What somebody holds, as `ledger_model.Line`."""

    trust: Trust
    epsilon: int
    stay: int

    @property
    def remaining(self) -> int: ...


@dataclass(frozen=True)
class Planned:
    """A plan, and whom it was made for: names and group, side by side."""

    names: list[list[str]]
    groups: list[Group]
    estimator: Estimator
    plan: Plan
    question: Question


class Money:
    """What weights cost in a currency, under the noise to which all weights of a study are brought."""

    def __init__(self, currency: Currency) -> None:
        self.normal = currency is Currency.GAUSSIAN
        self._one = (
            Fraction(GRID_SIZE**2 * MICRO) / (Fraction(GAUSSIAN_SIGMA) ** 2 - 9)
            if self.normal
            else Fraction(1)
        )

    def loss(self, weight: int, share: int) -> Fraction:
        """Of a person with this weight [millionths]."""
        return self._one * (weight**2 if self.normal else weight) * share / MICRO

    def weight(self, cost: int, share: int) -> int:
        """The largest that loses at most this much."""
        most = math.floor(cost * MICRO / (self._one * share))
        return math.isqrt(most) if self.normal else most

    def brought(self, weight: int, noise: Noise) -> int | None:
        """A weight of a plan under the noise of all, rounded down; None under another kind of noise."""
        match noise:
            case DiscreteLaplace() if not self.normal:
                return int(weight * GRID_SIZE * MICRO / Fraction(noise.scales[0]))
            case DiscreteGaussian() if self.normal:
                return int(weight * Fraction(GAUSSIAN_SIGMA) / Fraction(noise.sigmas[0]))
        return None

    def scale(self, share: int) -> float:
        """Of the noise: of Laplace noise, or the standard deviation."""
        if self.normal:
            return math.sqrt((GAUSSIAN_SIGMA**2 - 9) * MICRO / share + 9)
        return float(GRID_SIZE * MICRO * Fraction(MICRO, share))


@dataclass(frozen=True)
class Part:
    """A noisy sum: what everybody in it weighs, the share it has used, and whether it may be sharpened.

    Its base is what everybody in it had given the question before, in sums that may not be sharpened.
    """

    weights: Mapping[Stay, int]
    share: int
    money: Money
    sharp: bool = False
    base: int = 0

    def paid(self, stay: Stay, share: int | None = None) -> int:
        """What somebody has paid for it, or would have by a share."""
        return math.ceil(self.money.loss(self.weights[stay], self.share if share is None else share))


@dataclass(frozen=True)
class Chain:
    """What a question has by its steps.

    Attributes:
        parts: In the order in which they began.
        share: Of the last step.
        number: Its release.
        arrivals: How many contributions the study had seen by then.
    """

    parts: tuple[Part, ...]
    share: int
    number: int
    arrivals: int


@dataclass(frozen=True)
class Step:
    """A step that can be taken.

    Attributes:
        parts: As it leaves them.
        prices: What each person pays.
        drawn: Whether any noise is.
        left_out: People who cannot pay.
        width: Of the interval.
    """

    parts: tuple[Part, ...]
    prices: Mapping[str, int]
    drawn: bool
    left_out: int
    width: float


def step(
    money: Money,
    resolved: Resolved,
    there: Mapping[str, Holder],
    former: Chain | None,
    plan: Callable[[Resolved, Mapping[str, int], set[str]], Planned | str],
    span: float,
    refusals: tuple[str, str],
) -> Step | str | None:
    """The step of a question to its share.

    Args:
        money: Of the study's currency.
        resolved: The question with that share.
        there: Who is there.
        former: What the question has.
        plan: Plans a question for offers, of which these are paid; or says why not.
        span: The width of the range.
        refusals: What is said where no person can pay, and where there is no answer.

    Returns:
        The step, or the word for why there is none; None where the plan has no noisy sum.
    """
    share, cap, exhausted, no_answer = resolved.share, resolved.cap, *refusals
    central = {(name, line.stay): line for name, line in there.items() if line.trust is Trust.CENTRAL}
    paid: Counter[Stay] = Counter()
    given: Counter[Stay] = Counter()
    for part in former.parts if former else ():
        paid.update({stay: part.paid(stay) for stay in part.weights})
        given.update(dict.fromkeys(part.weights, part.share))
    # 1. A sum that has all its people, who can all pay, becomes sharper; otherwise it never does again.
    parts: list[Part] = []
    settled: set[Stay] = set()
    prices: Counter[str] = Counter()
    for part in former.parts if former else ():
        now = part
        if not part.sharp:
            goes_to = min([share - part.base, *_most(part, cap, paid)])
            due = {stay: part.paid(stay, goes_to) - part.paid(stay) for stay in part.weights}
            whole = part.weights.keys() <= central.keys()
            if whole and goes_to <= part.share:
                settled |= part.weights.keys()
            elif whole and all(cost <= central[stay].remaining for stay, cost in due.items()):
                now = replace(part, share=goes_to)
                settled |= part.weights.keys()
                prices.update({name: cost for (name, _), cost in due.items()})
            else:
                now = replace(part, sharp=True)
        parts.append(now)
    drawn = any(now.share > was.share for now, was in zip(parts, former.parts if former else (), strict=True))
    # 2. The others pay what they owe, if they can.
    owed: dict[Stay, int] = {}
    left_out = 0
    for stay, line in central.items():
        offer = min(line.epsilon * share // MICRO, line.epsilon if cap is None else cap)
        owes = offer - paid[stay]
        if stay in settled or given[stay] >= share or (offer and owes <= 0):
            continue
        if 0 < owes <= line.remaining:
            owed[stay] = owes
        else:
            left_out += 1
    # 3. Weights are those of a whole answer.
    most = None if cap is None else cap * MICRO // share
    offers = {
        name: line.epsilon if most is None else min(line.epsilon, most) for (name, _), line in central.items()
    }
    paying = {name for name, stay in central if (name, stay) in owed or (name, stay) in paid}
    planned = plan(replace(resolved, share=MICRO, cap=most), offers, paying)
    if isinstance(planned, str):
        return planned
    of_groups = _weights(planned.plan, money)
    linear = planned.plan.linear
    if of_groups is None or linear is None:
        return None
    weights = {name: weight for names, weight in zip(planned.names, of_groups, strict=True) for name in names}
    apart = bool(parts) and not linear.attached
    if not apart and resolved.estimator == "uniform" and not money.normal:
        weights |= dict.fromkeys(paying, min((offers[name] for name in paying), default=0))
    # 4. Those who owe make new sums, one for all who have given as much before, which go on from there.
    for base in sorted({given[stay] for stay in owed}):
        joining = {stay: owes for stay, owes in owed.items() if given[stay] == base}
        if apart:
            weights = _alone({name: offers[name] for name, _ in joining}, planned, len(there), money)
        new: dict[Stay, int] = {}
        for stay, owes in joining.items():
            weight = weights[stay[0]]
            loss = money.loss(weight, share - base)
            if base or loss > central[stay].remaining:
                weight = min(weight, money.weight(min(math.floor(loss), owes), share - base))
            if weight:
                new[stay] = weight
        if new:
            drawn = True
            parts.append(Part(weights=new, share=share - base, money=money, base=base))
            prices.update({stay[0]: parts[-1].paid(stay) for stay in new})
    if not drawn and (former is None or (left_out and former.share < share)):
        return exhausted
    public = [
        weight for group, weight in zip(planned.groups, of_groups, strict=True) if group.trust is Trust.PUBLIC
    ]
    sums = _sums(parts, central.keys(), planned.groups, max(public, default=0), money)
    try:
        answer = combination_plan(sums, linear, planned.question)
    except NotApplicable:
        return no_answer
    width = span if answer.interval_width is None else answer.interval_width()
    return Step(parts=tuple(parts), prices=+prices, drawn=drawn, left_out=left_out, width=width)


def _weights(plan: Plan, money: Money) -> list[int] | None:
    weights = (
        [money.brought(weight, plan.noise) for weight in plan.queries[0].sum_weights]
        if plan.queries
        else [None]
    )
    found = [weight for weight in weights if weight is not None]
    return found if plan.linear is not None and len(found) == len(weights) else None


def _alone(offers: Mapping[str, int], planned: Planned, people: int, money: Money) -> dict[str, int]:
    """Newcomers weigh what they would among themselves; if they would not be asked, what they offer."""
    each = Counter(offers.values())
    groups = [Group(trust=Trust.CENTRAL, epsilon=offer, count=count) for offer, count in each.items()]
    tilt = min(1.0, planned.question.tilt * math.sqrt(people / len(offers)))
    question = replace(planned.question, people=len(offers), tilt=tilt)
    try:
        weights = _weights(planned.estimator.plan(groups, question), money)
    except NotApplicable:
        weights = None
    if weights is None:
        return {name: money.weight(offer, MICRO) for name, offer in offers.items()}
    of_offer = dict(zip(each, weights, strict=True))
    return {name: of_offer[offer] for name, offer in offers.items()}


def _most(part: Part, cap: int | None, paid: Mapping[Stay, int]) -> Iterable[int]:
    """The share at which each member has paid the cap."""
    if cap is None:
        return []
    return [
        math.floor((cap - paid[stay] + part.paid(stay)) * MICRO / part.money.loss(weight, MICRO))
        for stay, weight in part.weights.items()
    ]


def _sums(
    parts: list[Part], here: Iterable[Stay], groups: list[Group], public_weight: int, money: Money
) -> Sums:
    """For the width of the interval, which is tested elsewhere: everybody is a group of their own."""
    gone = {stay for part in parts for stay in part.weights} - set(here)
    people = [*((False, stay) for stay in here), *((True, stay) for stay in sorted(gone))]
    alike = Counter(
        (
            absent,
            tuple((place, part.weights[stay]) for place, part in enumerate(parts) if stay in part.weights),
        )
        for absent, stay in people
    )
    others = [group for group in groups if group.trust is not Trust.CENTRAL]
    return Sums(
        groups=(*(Group(trust=Trust.CENTRAL, epsilon=0, count=count) for count in alike.values()), *others),
        weights=weights_of([*(dict(weighs) for _, weighs in alike), *({} for _ in others)]),
        absent=np.array([absent for absent, _ in alike] + [False] * len(others), dtype=np.bool_),
        scales=tuple(money.scale(part.share) for part in parts),
        counted=tuple(part.share if money.normal else 1 for part in parts),
        normal=money.normal,
        public_weight=public_weight,
    )
