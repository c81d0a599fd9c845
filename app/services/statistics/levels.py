r"""Whom an answer of a study is about whose number of people is secret, and what one of them can weigh.

A person who offers at least `least` weighs min(offer, `most`); who offers less, or can pay no more, is left
out in silence. Both ends are fixed before anything is read of people. Where they are equal, all weigh
the same, and the answer holds for those who take part whatever privacy and values have to do with each other.
Elsewhere weights lie in [f, c], and the distribution of values by weight differs from that of these people
in total variation by at most

.. math:: TV = \max_\theta \frac{\theta (1 - \theta) (c - f)}{\theta c + (1 - \theta) f}
    = \frac{\sqrt c - \sqrt f}{\sqrt c + \sqrt f},

see `app.estimators.deviations.uneven_at_most`. Both ends are public, so is TV, and a tilt times it enters
intervals and predictions.

*The choice.* Ends are levels: the epsilons that the study lists, else its least one times powers of two. Each
pair has a predicted error, from the number of people who offer at least each level: noise over the total
weight, the tilt times TV, and the scatter of people who weigh differently. Published noisy numbers say how
many, a number that is stated is one at the least level. Between two of them a power of epsilon is taken to
lead from one to the other. Beyond them no level is taken to have more weight: so no one is left out who is
known of.

*The first answer.* Where nothing is published of the middle level or a higher one, or what is published
promises nothing, a guess could be about no one. There the choice is left open, and the answer first measures
how many people offer each level, with a part of its share, see `app.services.statistics.offered`. What it
finds is published with it, so later answers need not ask again. Before that one guess is made, that all
levels are equally frequent, and for predictions alone.

Privacy: depends on the question, the study, and what is published. With and without a person it is the same
but through noisy answers, which were paid for. So the choice, and who is left out by it, is post-processing.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from app.core.attributes import label_of
from app.core.epsilon import MICRO, epsilon_to_json, round_down_to_significant, share_of
from app.core.errors import InvalidRequest
from app.core.release import NoisyLabels
from app.core.study import NO_LEAST, StudyDefinition
from app.estimators.accuracy import WORST_VARIANCE
from app.estimators.deviations import uneven_at_most
from app.estimators.weighing import unit_of, weight_of

USELESS = 0.3
"""Where the best predicted error is more than this part of the range, all people are asked: what is known of
their number is mostly noise."""

ASKS_FIRST = 5
"""One of this many parts of the share measures first who offers how much, where that is not known. Of a tenth
to a fourth it is the part with the smallest mean error, see docs/estimators.md."""

_LUCKY = 0.75
"""What of several noisy numbers the one that is chosen by is too large by, in standard deviations: so much
less is predicted for. Over 84 settings predicted errors are then 1.01 to 1.04 times the real ones, see
`tests/statistical/test_secret_levels.py`; without it .74 of them in studies of 300 people."""

_LESS = 0.1
"""Beyond what is known weight is taken to fall with this power of epsilon, either way."""

_MANY = 1e9
"""People who are taken to be there where nothing is known of their number: pairs are compared by offers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """Who takes part, and what they weigh at most.

    Attributes:
        least, most: What they offer at least, and what larger offers count as [micro-epsilon].
        floor, top: The same in the study's currency.
        size: People to predict for, as if all of them weighed the most; None where nothing is known of them.
        sizes: The same for each label of the question's attribute, in their order; empty where none is known.
        open: Whether the answer measures first who they are; then the ends stand for no one's offer.
    """

    least: int
    most: int
    floor: int
    top: int
    size: float | None = None
    sizes: tuple[float, ...] = ()
    open: bool = False

    @classmethod
    def of(cls, study: StudyDefinition, least: int | None = None, most: int | None = None) -> "Level":
        """Of a study; from its least to its largest epsilon if not given [micro-epsilon]."""
        least = round_down_to_significant(study.epsilon_min if least is None else least)
        most = max(least, study.epsilon_max if most is None else most)
        return cls(least=least, most=most, floor=study.amount(least), top=study.amount(most))

    def offer(self, amount: int, share: int, cap: int | None) -> int:
        """What a person who offers this much may be charged; arguments and result as of `share_of`."""
        return share_of(min(amount, self.top), share, cap) if amount >= self.floor else 0

    def with_labels(self, labels: Iterable[str], by: str, known: NoisyLabels | None) -> "Level":
        """With the number of people of each label to predict for, from published ones.

        Args:
            labels: The cells of the attributes.
            by: Names of the attributes.
            known: Noisy numbers of these labels; None for none. Of people at other ends they are scaled as
                those of all labels together.
        """
        if known is None or self.size is None or known.whole <= 0:
            return self
        alike = (known.least, known.most) == (epsilon_to_json(self.least), epsilon_to_json(self.most))
        scale = 1.0 if alike else self.size / known.whole
        counts = {label_of(group["where"], by): group["noisy_count"] for group in known.groups}
        return replace(self, sizes=tuple(max(1.0, scale * counts.get(label, 0.0)) for label in labels))

    def of_times(self, times: float) -> "Level":
        """With this many times the people to predict for."""
        size = None if self.size is None else times * self.size
        return replace(self, size=size, sizes=tuple(times * one for one in self.sizes))

    @property
    def equal(self) -> bool:
        """Whether all weigh the same."""
        return self.floor == self.top

    @property
    def about(self) -> str:
        """Whom an answer is about, in words."""
        if self.open:
            asked = f"1/{ASKS_FIRST} of the share first asks how many offer how much"
            return f"people who offered enough and can still pay: {asked}"
        return f"people who offered at least {epsilon_to_json(self.least):g} and can still pay"

    def number(self, noisy_count: float) -> str:
        """How many people weigh as much as this number of people who weigh the most, in words."""
        least, most = max(0, round(noisy_count)), max(0, round(noisy_count * self.most / self.least))
        return f"about {least:,}" if self.equal else f"about {least:,} to {most:,}"

    def document(self, answer: Mapping[str, Any]) -> dict[str, object]:
        """What an answer says of whom it is about, of all and in each of its groups."""
        count, groups = answer.get("noisy_count"), answer.get("groups")
        shown: dict[str, object] = {
            "about": self.about if count is None else f"{self.number(count)} {self.about}",
            "least_epsilon": epsilon_to_json(self.least),
            "most_epsilon": epsilon_to_json(self.most),
        }
        if groups:
            shown["groups"] = [
                {**group, "about": f"{self.number(counted)} people"}
                if (counted := group.get("noisy_count")) is not None
                else group
                for group in groups
            ]
        return shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbered:
    """A published noisy number of people.

    Attributes:
        least, most: Of whom, see `Level`; None of an answer from before answers said so [micro-epsilon].
        people: The number, each counted as what they weigh over the most.
        part: 1, or the part of all people that the question is expected to be about, of whom it is not.
        deviation: Of its noise, where it was measured to choose by; 0 of others [people].
    """

    least: int | None
    most: int | None
    people: float
    part: float = 1.0
    deviation: float = 0.0


def first_deviations(study: StudyDefinition, share: int, cap: int | None) -> Mapping[int, float]:
    """The standard deviation of the number that is measured first, by the level that people offer at least.

    See `app.services.statistics.offered`.

    Args:
        study: An add_remove_one study.
        share, cap: Of what is measured first [ppm; the study's currency].

    Returns:
        [people], of levels of which the share buys something.
    """
    found, square = dict[int, float](), 0.0
    for level in reversed(levels_of(study)):
        if weight := weight_of(share_of(study.amount(level), share, cap), study.noise):
            square += 2 * (unit_of(study.noise) / weight) ** 2
            found[level] = math.sqrt(square)
    return found


def levels_of(study: StudyDefinition) -> tuple[int, ...]:
    """The epsilons at which people are distinguished, ascending [micro-epsilon].

    Those that the study lists, else its least one, and its double as long as it is admissible.
    """
    if study.epsilons:
        return tuple(sorted(study.epsilons))
    found = [round_down_to_significant(study.epsilon_min)]
    while 2 * found[-1] <= study.epsilon_max:
        found.append(2 * found[-1])
    return tuple(found)


def tilt_of(study: StudyDefinition, asked: int | None) -> int | None:
    """The tilt of a question [ppm], from the one that it states.

    In add_remove_one studies None for that of the study: questions from before they could have one keep their
    digests. There a tilt of 0 counts as one of a millionth.
    """
    if not study.hides_people:
        return study.tilt if asked is None else asked
    tilt = None if asked is None else max(asked, 1)
    return None if tilt == study.assumed_tilt else tilt


def level_of(study: StudyDefinition, least: int | None) -> Level | None:
    """Who takes part in an answer of an add_remove_one study, as far as the question says; None of others.

    Raises:
        InvalidRequest: names `least_epsilon`.
    """
    if not study.hides_people:
        if least is not None:
            raise InvalidRequest.field("least_epsilon", NO_LEAST)
        return None
    if least is not None and not study.epsilon_min <= least <= study.epsilon_max:
        ends = f"{study.epsilon_min / MICRO:g} and {study.epsilon_max / MICRO:g}"
        raise InvalidRequest.field("least_epsilon", f"must be between {ends}, which people may offer")
    return Level.of(study, least)


def _middle(levels: Sequence[int]) -> tuple[int, float]:
    """The level that has the most weight where all are equally frequent, and the part of people who offer it.

    Up to the middle, where half of them do; of equal ones the least.
    """
    count = len(levels)
    place = max(range(count // 2 + 1), key=lambda one: levels[min(one, count - 1)] * (count - one))
    return levels[place], (count - place) / count


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelAsked:
    """What of a question the choice depends on.

    Attributes:
        share: [ppm].
        cap: The most that any person may be charged, or None [the study's currency].
        tilt: In [0, 1].
        least: What people must have offered, where the question says so [micro-epsilon].
        stated: The number of people that it states.
        equal: Whether all must weigh the same.
        asks_first: Whether the choice may be left open.
        noises: Independent noises in the sums that are read: labels.
    """

    share: int
    cap: int | None
    tilt: float
    least: int | None = None
    stated: float | None = None
    equal: bool = False
    asks_first: bool = False
    noises: int = 1


def choose_level(
    study: StudyDefinition, asked: LevelAsked, published: Sequence[Numbered], given: Level | None = None
) -> Level:
    """Whom a question is about, and what they weigh at most.

    Args:
        study: An add_remove_one study.
        asked: What of the question it depends on.
        published: Noisy numbers, the newest first.
        given: What was chosen before.

    Returns:
        The pair with the smallest predicted error; of equal ones that with the most people. `size` is
        predicted from what is known. An open one, where that is too little.

    Privacy: see the module.
    """
    crowd = _Crowd.of(study, asked, published)
    if given is not None:
        return crowd.sized(study, asked, given)
    least = round_down_to_significant(study.epsilon_min) if asked.least is None else asked.least
    lowest = Level.of(study, least, least)
    floors = crowd.levels if asked.least is None else (lowest.least,)
    tops = floors if asked.equal else sorted({lowest.least, *crowd.levels, study.epsilon_max})
    pairs = [Level.of(study, low, high) for low in floors for high in tops if high >= low]
    best = min(pairs, key=lambda one: crowd.error(study, asked, one), default=lowest)
    useless = asked.stated is None and crowd.error(study, asked, best) > USELESS
    if asked.asks_first and len(floors) > 1 and not crowd.complete and (useless or not crowd.above):
        return crowd.opened(study, asked, best)
    return crowd.sized(study, asked, lowest if useless else best)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Crowd:
    """How many people offer at least each level, as far as is known.

    Attributes:
        levels: [micro-epsilon].
        known: Epsilons that something is known or guessed of, ascending, with how many offer at least that.
        exact: Published numbers by their ends, where the newest one has both, and what is predicted for: less
            of those that are chosen by.
        guessed: Whether nothing is known.
        above: Whether something is known of the middle level or a higher one.
        complete: Whether something is known of each level.
    """

    levels: tuple[int, ...]
    known: tuple[tuple[int, float], ...]
    exact: dict[tuple[int, int], tuple[float, float]]
    guessed: bool
    above: bool
    complete: bool

    @classmethod
    def of(cls, study: StudyDefinition, asked: LevelAsked, published: Sequence[Numbered]) -> "_Crowd":
        levels, whole = levels_of(study), Level.of(study)
        found: dict[int, float] = {}
        exact: dict[tuple[int, int], tuple[float, float]] = {}
        for one in [one for one in published if one.part == 1] or published:
            least = whole.least if one.least is None else one.least
            most = whole.most if one.most is None else one.most
            people = max(one.people * one.part, 1.0)
            found.setdefault(least, people)
            exact.setdefault((least, most), (people, max(1.0, people - _LUCKY * one.deviation * one.part)))
        if asked.stated is not None:
            stated = whole.least if asked.least is None else asked.least
            found[stated] = asked.stated
            exact = {ends: numbers for ends, numbers in exact.items() if ends[0] != stated}
        guessed, (middle, part) = not found, _middle(levels)
        above, complete = max(found, default=0) >= middle, found.keys() >= set(levels)
        if guessed:
            found[middle] = _MANY
        elif not above:
            found[middle] = max(found.values()) * part
        # Who offers more offers less, too, whatever noise says.
        most_people, known = 0.0, list[tuple[int, float]]()
        for epsilon in sorted(found, reverse=True):
            most_people = max(most_people, found[epsilon])
            known.append((epsilon, most_people))
        return cls(
            levels=levels,
            known=tuple(reversed(known)),
            exact=exact,
            guessed=guessed,
            above=above,
            complete=complete,
        )

    def error(self, study: StudyDefinition, asked: LevelAsked, level: Level) -> float:
        """The predicted error of a mean, to compare pairs by [range widths]."""
        mass, floor, top = self._mass(study, asked, level)
        if mass <= 0:
            return math.inf
        bias = asked.tilt * uneven_at_most(top, floor)
        scatter = WORST_VARIANCE * (math.sqrt(top) - math.sqrt(floor)) ** 2 / mass if asked.tilt < 1 else 0.0
        return math.sqrt(math.sqrt(2) * asked.noises / mass**2 + scatter + bias**2)

    def sized(self, study: StudyDefinition, asked: LevelAsked, level: Level) -> Level:
        """The level with the number of people to predict for."""
        _, size = self.exact.get((level.least, level.most), (None, None))
        if size is None and not self.guessed:
            mass, _, top = self._mass(study, asked, level)
            size = max(1.0, mass / top) if top else None
        return replace(level, size=size)

    def opened(self, study: StudyDefinition, asked: LevelAsked, guess: Level) -> Level:
        """An open level: as of people who offer the most, with predictions as for a guess."""
        largest = round_down_to_significant(study.epsilon_max)
        level = Level.of(study, largest, largest)
        mass, (*_, top) = self._mass(study, asked, guess)[0], self._mass(study, asked, level)
        size = None if self.guessed or not top else max(1.0, mass / top)
        return replace(level, size=size, open=True)

    def _mass(self, study: StudyDefinition, asked: LevelAsked, level: Level) -> tuple[float, float, float]:
        """The total weight, and the ends of the weights of one person [epsilon, or mu]."""

        def weight(offer: int) -> float:
            return weight_of(level.offer(offer, asked.share, asked.cap), study.noise) / unit_of(study.noise)

        floor, top = weight(level.floor), weight(level.top)
        if exact := self.exact.get((level.least, level.most)):
            return exact[0] * top, floor, top
        mass, before = self._at(level.least) * floor, floor
        for one in self.levels:
            if one > level.least:
                own = weight(study.amount(one))
                mass += self._at(one) * (own - before)
                before = own
        return mass, floor, top

    def _at(self, epsilon: int) -> float:
        """How many people offer at least this."""
        low = max((one for one in self.known if one[0] <= epsilon), default=None)
        high = min((one for one in self.known if one[0] >= epsilon), default=None)
        if low is None or high is None:
            (end, people), power = (self.known[-1], 1 + _LESS) if high is None else (self.known[0], 1 - _LESS)
            return float(people * (end / epsilon) ** power)
        if low[0] == high[0]:
            return low[1]
        part = math.log(epsilon / low[0]) / math.log(high[0] / low[0])
        return float(low[1] ** (1 - part) * high[1] ** part)
