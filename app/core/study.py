"""A study: one bounded numeric question."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache
from typing import TypeVar

from dither.device.choices import choice_points
from dither.device.gaussian import pure_epsilon
from dither.device.randomizers import LocalMechanism as LocalMechanism

from app.core.attributes import NO_ATTRIBUTES, Attributes
from app.core.epsilon import MICRO, amount_of, epsilon_of, round_down_to_significant
from app.core.grid import Grid
from app.core.measures import NO_MEASURES, VALUE, Measure, Measures
from app.core.reporting_range import ReportingRange
from app.core.texts import NO_TEXTS, StudyText, Texts

T = TypeVar("T")


class Relation(StrEnum):
    """What two neighboring datasets differ in."""

    REPLACE_ONE = "replace_one"
    """One person's value; the number of people is public (the papers' "swap")."""

    ADD_REMOVE_ONE = "add_remove_one"
    """One person's presence; the number of people is secret."""

    @property
    def hides_people(self) -> bool:
        """Whether the number of people is secret."""
        return self is Relation.ADD_REMOVE_ONE

    @property
    def moved(self) -> int:
        """How many records change: the cells that move where each record is in one."""
        return 1 if self.hides_people else 2


class Trust(StrEnum):
    """Whom a contributor trusts."""

    CENTRAL = "central"
    LOCAL = "local"
    PUBLIC = "public"


class Currency(StrEnum):
    """What a study counts privacy in, by the noise that its answers have."""

    LAPLACE = "laplace"
    """Pure epsilon."""

    GAUSSIAN = "gaussian"
    """mu^2, read as an epsilon at the study's delta."""

    @classmethod
    def at(cls, delta: int) -> "Currency":
        """What is counted where epsilons are read at a delta, 0 for none [1e-12]."""
        return cls.GAUSSIAN if delta else cls.LAPLACE

    @property
    def is_gaussian(self) -> bool:
        """Whether noise is Gaussian, and privacy counted in mu^2."""
        return self is Currency.GAUSSIAN

    @property
    def variance(self) -> int:
        """Of noise of scale, or of standard deviation, 1."""
        return 1 if self.is_gaussian else 2

    def mu2(self, amount: int) -> int | None:
        """An amount, where it counts mu^2; else None."""
        return amount if self.is_gaussian else None

    def of(self, *, laplace: T, gaussian: T) -> T:
        """Which of both it has."""
        return gaussian if self.is_gaussian else laplace

    def louder(self, share: int) -> float:
        """How many times as large the deviation of noise is at a share as at share 1 [ppm]."""
        times = MICRO / share
        return math.sqrt(times) if self.is_gaussian else times


class StudyState(StrEnum):
    """Life of a study."""

    OPEN = "open"
    """Takes contributions and answers."""

    CLOSED = "closed"
    """Takes no more contributions; still answers."""

    ARCHIVED = "archived"
    """Has ended: gives only the answers that are stored; what people reserved and did not spend is free."""

    RETIRED = "retired"
    """Gives only the answers that are stored; what people reserved in it is never freed."""


MAX_DIMENSION = 64
"""The most coordinates that a value may have."""

MAX_TIERS = 100
"""The most epsilons that a study may list as the only admissible ones."""

MAX_CHOICES = 50
"""The most choices that a study may offer: a set of them is an integer that a double holds."""

NO_SIZE = "applies to add_remove_one studies only: elsewhere the number of people is public"

NO_LEAST = "applies to add_remove_one studies only: elsewhere a question weighs people by their offers"
"""Why a question cannot say what people must have offered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyDefinition:
    """What an admin fixes when the study is made; only its title and description are changed afterwards.

    Attributes:
        slug: Address of the study.
        title: The question, for people.
        description: More about it, for people; may be empty.
        series: Slug of the series that it belongs to, as the weeks of a recurring survey do; None for none.
        lower, upper: Range of a value, in the data's unit.
        relation: The neighboring relation that is promised.
        trust: Accepted trust tags.
        epsilon_min, epsilon_max: The least and the largest admissible personal epsilon [micro-epsilon].
        epsilons: The only admissible ones, in their order; empty where all in that range are [micro-epsilon].
        default_share: Part of each personal epsilon that a release uses by default [ppm].
        tilt: How far the mean of people who ask for little privacy may differ from that of the others, for
            questions that do not say [ppm of the range]; see `assumed_tilt`.
        delta: At which epsilons are read in studies with Gaussian noise; 0 with Laplace noise [1e-12].
        dimension: Coordinates of a value, each in the range; 1 for a number.
        local_mechanism: Randomizer for local reports, `GAUSSIAN` in studies of one number with Gaussian noise
            and only there. `HYBRID` is the most accurate of the others, and its reports have a range; reports
            of vectors are `LAPLACE` ones.
        attributes: What each contribution says of its owner, in declared labels. Public in replace_one
            studies, as secret as presence in add_remove_one studies.
        choices: What people choose one of, in a study that asks for a choice: a value is the number of one,
            from 0 on, which is also its place in the range. Empty in a study of numbers.
        measures: The numbers and choices that it asks each person for, in a study of several: the coordinates
            of a value, each on the grid of its own range; one measure may have several. `dimension` is then
            that of all together, and lower and upper are 0 and 1. One alone is the value with a name of its
            own, and has the range, the choices and the dimension of the study.
        reporting_range: The part of the range in which devices of local people report; None until an admin
            fixes it, once.
    """

    slug: str
    title: str
    lower: Decimal
    upper: Decimal
    relation: Relation
    trust: frozenset[Trust]
    epsilon_min: int
    epsilon_max: int
    epsilons: tuple[int, ...] = ()
    default_share: int
    tilt: int = 0
    delta: int = 0
    dimension: int = 1
    local_mechanism: LocalMechanism = LocalMechanism.HYBRID
    description: str = ""
    series: str | None = None
    attributes: Attributes = NO_ATTRIBUTES
    choices: tuple[str, ...] = ()
    measures: Measures = NO_MEASURES
    reporting_range: ReportingRange | None = None

    @property
    def hides_people(self) -> bool:
        """Whether it is secret who takes part, and with that how many people there are: add_remove_one."""
        return self.relation.hides_people

    @property
    def noise(self) -> Currency:
        """The noise of its answers, and so the currency that people offer and pay in."""
        return Currency.at(self.delta)

    def amount(self, epsilon: int) -> int:
        """What an offer [micro-epsilon] is in its currency, rounded down."""
        return amount_of(epsilon, self.delta)

    @property
    def assumed_tilt(self) -> int:
        """The tilt of questions that do not say [ppm of the range].

        An add_remove_one study whose tilt is 0 has none: its answers assume nothing, as if it were 1. Unequal
        weights are a choice there, not a need.
        """
        return self.tilt or (MICRO if self.hides_people else 0)

    @property
    def least(self) -> int:
        """The least that a person offers: epsilons are kept with three digits [the study's currency]."""
        return self.amount(round_down_to_significant(self.epsilon_min))

    def epsilon(self, amount: int) -> int:
        """An amount in its currency as an epsilon at its delta, rounded up [micro-epsilon]."""
        return epsilon_of(amount, self.delta)

    def randomized_with(self, amount: int) -> int:
        """What reports that cost an amount were randomized with, in the unit of the local mechanism.

        Where answers are Gaussian and reports are not, mu^2 pays for pure epsilon.
        """
        pure = self.delta and self.local_mechanism is not LocalMechanism.GAUSSIAN
        return pure_epsilon(amount) if pure else amount

    @property
    def one_measure(self) -> str:
        """What the value of a study of one measure is called; empty in a study of several."""
        return "" if self.measures.several else next(iter(self.measures.named), VALUE)

    def of_measure(self, name: str) -> "StudyDefinition":
        """The study of one of its measures alone, what people offer as it is; itself for none."""
        if not name:
            return self
        one = self.measures.named[name]
        return replace(self, lower=one.lower, upper=one.upper, choices=one.choices, dimension=one.dimension)

    def admits(self, epsilon: int) -> bool:
        """Whether a person may offer this [micro-epsilon]; a list has what it is rounded down to."""
        if self.epsilons:
            return round_down_to_significant(epsilon) in self.epsilons
        return self.epsilon_min <= epsilon <= self.epsilon_max

    @property
    def not_admitted(self) -> str:
        """Why another epsilon is refused."""
        if self.epsilons:
            return f"must be one of {', '.join(f'{one / MICRO:g}' for one in self.epsilons)}"
        return f"must be between {self.epsilon_min / MICRO:g} and {self.epsilon_max / MICRO:g}"

    @property
    def outside_range(self) -> str:
        """Why a value is refused that does not lie in the range."""
        return f"outside the study's range, {self.lower:f} to {self.upper:f}"

    @property
    def grid(self) -> Grid:
        """The study's grid."""
        return _grid(self.lower, self.upper)

    @property
    def step(self) -> float | None:
        """How far apart the values are that are kept; None of choices, and of several measures."""
        return None if self.measures.several else Measure(self.lower, self.upper, self.choices).step

    @property
    def may_narrow(self) -> bool:
        """Whether reports of its local people may have a range of their own: one number is asked for."""
        return Trust.LOCAL in self.trust and self.dimension == 1 and not self.choices

    @property
    def names(self) -> frozenset[str]:
        """What people read besides the title: names of measures and attributes, and all labels."""
        return frozenset(name for names in self.read_together for name in names)

    @property
    def read_together(self) -> Sequence[Sequence[str]]:
        """What people tell apart by its name alone: all measures and attributes, and the labels of each."""
        choices = [self.choices, *(one.choices for one in self.measures.named.values())]
        return [
            [*self.measures.named, *self.attributes.labels],
            *choices,
            *(tuple(labels) for labels in self.attributes.labels.values()),
        ]

    @property
    def choice_points(self) -> tuple[int, ...]:
        """The grid point of each choice."""
        return choice_points(len(self.choices)) if self.choices else ()


@lru_cache(maxsize=256, typed=True)
def _grid(lower: Decimal, upper: Decimal) -> Grid:
    """The grid of a range: an answer by labels asks for it some hundred times."""
    return Grid(lower, upper)


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """A stored study, with what it says in other languages: that is changed as its title is."""

    id: int
    definition: StudyDefinition
    state: StudyState
    created_at: datetime
    texts: Texts = NO_TEXTS

    def said_in(self, language: str) -> StudyText:
        """What people read who read a language; its own title and description where there are no others."""
        found, own = self.texts.of(language), self.definition
        return StudyText(
            title=found.title or own.title,
            description=own.description if found.description is None else found.description,
            labels=found.labels,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyLine:
    """A study in a list, with the moments that people look for.

    Attributes:
        closed_at: When it took contributions for the last time; None while it is open.
        released_at: Of its last release; None for none.
    """

    study: Study
    closed_at: datetime | None
    released_at: datetime | None


NOT_OF_CHOICES = "is for numbers, and this is a choice: ask for its shares"
"""Why choices have no mean and no distribution."""


def assumption(tilt: int) -> str:
    """What an interval assumes of people, in words.

    Args:
        tilt: [ppm of the range].

    >>> assumption(0)
    "holds if the mean of those who ask for little privacy does not differ from the others'"
    """
    if tilt >= 1_000_000:
        return "holds however privacy and values go together"
    means = "holds if the mean of those who ask for little privacy"
    if tilt == 0:
        return f"{means} does not differ from the others'"
    return f"{means} differs from the others' by at most {tilt / 10_000:g} % of the range"
