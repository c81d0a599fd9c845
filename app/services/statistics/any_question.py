"""What every question has: whom it asks, and what it may take of them. Equal ones have equal digests."""

import hashlib
import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from app.core.cohort import Cohort
from app.core.epsilon import MICRO, share_of
from app.core.release import Asked
from app.core.reporting_range import INSIDE
from app.core.study import StudyDefinition
from app.services.statistics import levels
from app.services.statistics.label_weights import LabelWeights
from app.services.statistics.levels import ASKS_FIRST, Level, Numbered


@dataclass(frozen=True, slots=True, kw_only=True)
class AnyQuestion:
    """A question with every default filled in.

    Attributes:
        estimator: What answers.
        share: Part of each personal epsilon [ppm].
        epsilon: The most that any person may be charged, or None [micro-epsilon].
        cap: The same in the study's currency; of a secret count at most what all people can pay.
        expected_size, least_epsilon: add_remove_one: as asked, see `questions.Ask`.
        level: add_remove_one: who takes part, and what they weigh at most. No part of the question.
        asks_first: Whether a part of it measures first how many people offer how much, see
            `app.services.statistics.offered`. No part of the question.
        tilt: [ppm]; None in add_remove_one studies for that of the study.
        where: Of whom: the label of each attribute that it names; empty for all people.
        by: The attributes for each of whose cells it asks besides, with commas between; a cell is a label, or
            one of each. Empty for none.
        measure: Of which measure, in a study of several; empty in others.
        public: Whether it asks for the number of people where that is public: then it charges no one.
        label_weights: Of cells of `by` in a number that is read off several; without an answer for one that
            weighs anything there is nothing to read. No part of the question.
    """

    estimator: str
    share: int
    epsilon: int | None
    cap: int | None
    expected_size: float | None
    tilt: int | None
    least_epsilon: int | None = None
    level: Level | None = None
    asks_first: bool = False
    where: Mapping[str, str] = field(default_factory=dict)
    by: str = ""
    measure: str = ""
    public: bool = False
    label_weights: LabelWeights | None = None

    @property
    def known(self) -> float | None:
        """add_remove_one: the number of people that it states, or that is published; None without any."""
        level = self.level
        if self.expected_size is not None or level is None or level.size is None:
            return self.expected_size
        return level.size * level.most / level.least

    def at(self, share: int) -> Self:
        """The question for another share [ppm]; where people weigh alike, they pay alike."""
        alike = self.level if self.weighs_alike and self.epsilon is None else None
        return replace(self, share=share, cap=self.cap if alike is None else share_of(alike.floor, share))

    def of_times(self, times: float) -> Self:
        """The question with this many times the people to predict for."""
        size, level = self.expected_size, self.level
        return replace(
            self,
            expected_size=None if size is None else times * size,
            level=None if level is None else level.of_times(times),
        )

    def offer(self, amount: int) -> int:
        """What a person who offers this much may be charged [both in the study's currency]."""
        if self.level is None:
            return share_of(amount, self.share, self.cap)
        return self.level.offer(amount, self.share, self.cap)

    def least_offer(self, study: StudyDefinition) -> int:
        """What a person may be charged who offers the least of all who take part [the study's currency]."""
        return self.offer(study.least if self.level is None else self.level.floor)

    def share_taken(self, study: StudyDefinition) -> int:
        """The most that a release takes of any person's epsilon [ppm]; depends on question and study only.

        A cap takes most of those who offer least.
        """
        if self.cap is None:
            return self.share
        least = study.least if self.level is None or self.asks_first else self.level.floor
        return min(self.share, -(-self.cap * MICRO // max(1, least)))

    def most_taken(self, study: StudyDefinition) -> int:
        """The most that any person may be charged at any level [the study's currency]."""
        return share_of(study.amount(study.epsilon_max), self.share, self.cap)

    @property
    def first(self) -> Self:
        """What of it measures first how many people offer how much."""
        cap = None if self.cap is None else self.cap // ASKS_FIRST
        return replace(self, asks_first=False, share=self.share // ASKS_FIRST, cap=cap)

    @property
    def rest(self) -> Self:
        """What is left of it behind that: all of it, where nothing is measured first.

        Rounded down each, both together charge no one more than the whole may.
        """
        if not self.asks_first:
            return self
        first = self.first
        cap = None if self.cap is None or first.cap is None else self.cap - first.cap
        return replace(self, asks_first=False, share=self.share - first.share, cap=cap)

    def at_whole(self) -> Self:
        """The question for each person's whole epsilon."""
        cap = None if self.cap is None else self.cap * MICRO // self.share
        return replace(self, share=MICRO, cap=cap)

    def assumed_tilt(self, study: StudyDefinition) -> float:
        """The tilt, in [0, 1]."""
        return (study.assumed_tilt if self.tilt is None else self.tilt) / MICRO

    def assumed(self, study: StudyDefinition) -> int:
        """What an answer assumes of people, as a tilt [ppm]: nothing where all weigh the same."""
        equal = self.level is not None and self.offer(self.level.floor) == self.offer(self.level.top)
        return MICRO if equal else round(self.assumed_tilt(study) * MICRO)

    @property
    @abstractmethod
    def statistic(self) -> str:
        """What it is for, as its releases say it."""

    @property
    def adds_up(self) -> bool:
        """Whether, with `by`, the answer for all people is read off the noisy sums of labels."""
        return True

    @property
    def weighs_alike(self) -> bool:
        """Whether all people count the same, whatever they offer."""
        return False

    @property
    def hears(self) -> bool:
        """Whether reports of local people have a part in its answer."""
        return True

    def among(self, study: StudyDefinition, cohorts: Sequence[Cohort]) -> Sequence[Cohort]:
        """The cohorts of whom it asks. To all others it is as if they were not there: they pay nothing.

        Which segment a person is in is public in a replace_one study. In an add_remove_one study all that an
        answer to the question says of people is in noise that was drawn for a study of these people alone.
        """
        if not self.where:
            return cohorts
        segments = study.attributes.where(self.where)
        return [cohort for cohort in cohorts if cohort.segment % INSIDE in segments]

    @property
    def chooses(self) -> bool:
        """Whether the service chooses who takes part, where their number is secret."""
        return self.level is not None

    def leveled(
        self, study: StudyDefinition, published: Sequence[Numbered], level: Level | None = None
    ) -> Self:
        """The question with those who take part chosen, or given, see `app.services.statistics.levels`."""
        if self.level is None or not self.chooses:
            return self
        chosen = levels.choose_level(study, self._level_asked(study), published, level)
        return replace(self, level=chosen, asks_first=chosen.open)

    def offered(self, study: StudyDefinition, published: Sequence[Numbered]) -> Self:
        """The question with those who take part chosen, where how many offer how much was measured first."""
        asked = replace(self._level_asked(study), asks_first=False)
        return replace(self, level=levels.choose_level(study, asked, published))

    def _level_asked(self, study: StudyDefinition) -> levels.LevelAsked:
        alike = self.level if self.weighs_alike else None
        return levels.LevelAsked(
            share=self.share,
            cap=self.cap,
            tilt=self.assumed_tilt(study),
            least=self.least_epsilon if alike is None else alike.least,
            stated=self.expected_size,
            noises=study.attributes.size(self.by) if self.adds_up else 1,
            equal=self.weighs_alike,
            asks_first=True,
        )

    @abstractmethod
    def assumption(self, study: StudyDefinition) -> str | None:
        """What intervals assume of people, in words; None where a tilt has no place."""

    @property
    @abstractmethod
    def digest(self) -> bytes:
        """SHA-256 of the question with share and cap; without a tilt that of releases from before it."""

    @property
    @abstractmethod
    def by_parts(self) -> Asked:
        """The question apart from share and cap, and these two."""

    def asked(self) -> dict[str, object]:
        """Share, what is special to the statistic, caps and tilt, as JSON."""
        asked: dict[str, object] = {"share": self.share / MICRO, **self._special()}
        if self.epsilon is not None:
            asked["epsilon"] = self.epsilon / MICRO
        if self.expected_size is not None:
            asked["expected_size"] = self.expected_size
        if self.least_epsilon is not None:
            asked["least_epsilon"] = self.least_epsilon / MICRO
        if self.tilt is not None:
            asked["tilt"] = self.tilt / MICRO
        return asked

    @abstractmethod
    def _special(self) -> Mapping[str, object]:
        """What is special to the statistic, as JSON."""

    @property
    def of_whom_and_what(self) -> dict[str, object]:
        """Condition, attribute and measure, where there are any, as they stand on releases."""
        shown: dict[str, object] = {"where": dict(self.where)} if self.where else {}
        shown |= {"by": self.by} if self.by else {}
        return shown | {"measure": self.measure} if self.measure else shown

    @property
    def of_all(self) -> bool:
        """Whether it asks of all people, and of them together."""
        return not (self.where or self.by)


def digest_of(document: Mapping[str, object] | Sequence[object]) -> bytes:
    """SHA-256 of a document."""
    return hashlib.sha256(json.dumps(document, sort_keys=True, separators=(",", ":")).encode()).digest()
