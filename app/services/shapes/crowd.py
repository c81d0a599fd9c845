"""Whom a plan for the distribution of the values is made for: cohorts by what they offer."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

from app.core.cohort import Cohort, Cohorts, Group, Groups
from app.core.errors import BudgetExhausted
from app.core.release import Used
from app.core.study import StudyDefinition, Trust
from app.services.shapes.questions import ShapeQuestion
from app.services.statistics.drafts import NOT_REPORTED
from app.services.statistics.label_pieces import members_of
from app.services.statistics.questions import among
from app.services.work import checkpoint
from app.sessions.searched import Searched

LOCAL = "local_reports_not_used"
"""Why local people have no part in these answers: they read values, and a report is a noisy number."""

SMALL = "label_too_small"
"""Why people of a label have no part in them: the middle of the range is nearer than any answer of theirs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeCrowd:
    """The cohorts of a study as groups of equal offers.

    Attributes:
        groups: What plans see; without sums of reports.
        members: For each group its cohorts.
        dry: Central people who cannot pay, where groups do not say it: see `app.services.shapes.steps`.
        small: Places of groups that could take part, and do not: their label is too small for an answer.
        searched: What finished searches say; the people who answered them are the last group then.
    """

    groups: tuple[Group, ...]
    members: tuple[tuple[Cohort, ...], ...]
    dry: int | None = None
    small: Set[int] = frozenset()
    searched: Searched | None = None

    @classmethod
    def of(
        cls,
        cohorts: Sequence[Cohort],
        question: ShapeQuestion,
        searched: Searched | None = None,
        taking_part: Set[int] | None = None,
    ) -> "ShapeCrowd":
        """Group cohorts by what they offer. A cohort takes part with its whole offer or not at all.

        Of a question that is answered by steps those central cohorts take part that are named.
        Where the number of people is asked for, and public, all of them are in it, and offer nothing.
        The people who answered searches are a group without cohorts: what they said is published. Those of
        them who have a report, too, count once.
        """
        if question.public:
            everyone = Group(trust=Trust.PUBLIC, epsilon=0, count=sum(cohort.count for cohort in cohorts))
            return cls(groups=(everyone,), members=(tuple(cohorts),))
        merged: dict[tuple[Trust, int, bool, int], list[Cohort]] = {}
        for cohort in cohorts:
            offer, participates = 0, cohort.trust is Trust.PUBLIC
            if cohort.trust is Trust.LOCAL and question.choices:
                offer, participates = cohort.epsilon - cohort.carried, True
            if cohort.trust is Trust.CENTRAL:
                offer = question.offer(cohort.epsilon)
                able = offer <= cohort.epsilon - cohort.spent
                participates = offer > 0 and (able if taking_part is None else cohort.id in taking_part)
            told = cohort.reported if question.choices else 0
            merged.setdefault((cohort.trust, offer, participates, told), []).append(cohort)
        groups = tuple(
            Group(
                trust=trust,
                epsilon=offer,
                count=sum(cohort.count - (cohort.silent if question.choices else 0) for cohort in members),
                participates=participates,
                silent=sum(cohort.silent for cohort in members) if question.choices else 0,
            )
            for (trust, offer, participates, _), members in merged.items()
        )
        members = tuple(tuple(members) for members in merged.values())
        if searched is None:
            return cls(groups=groups, members=members)
        groups = tuple(
            replace(group, count=max(0, group.count - searched.reporting))
            if group.trust is Trust.LOCAL
            else group
            for group in groups
        )
        group = Group(trust=Trust.LOCAL, epsilon=0, count=searched.people)
        return cls(groups=(*groups, group), members=(*members, ()), searched=searched)

    @classmethod
    def joined(cls, crowds: Sequence["ShapeCrowd"], small: Set[int] = frozenset()) -> "ShapeCrowd":
        """Crowds of disjoint people as one, their groups in order; those of `small` crowds take no part."""
        groups, members, idle = list[Group](), list[tuple[Cohort, ...]](), set[int]()
        for number, crowd in enumerate(crowds):
            for group in crowd.groups:
                if number in small and group.participates:
                    idle.add(len(groups))
                    group = replace(group, participates=False)
                groups.append(group)
            members += crowd.members
        return cls(groups=tuple(groups), members=tuple(members), small=idle)

    @property
    def ids(self) -> list[list[int]]:
        """For each group the ids of its cohorts."""
        return [[cohort.id for cohort in own] for own in self.members]

    @property
    def people(self) -> int:
        """All people with a live contribution."""
        return Groups.of(self.groups).people

    @property
    def unable(self) -> int:
        """Central people who cannot pay what is asked."""
        if self.dry is not None:
            return self.dry
        return sum(
            group.count
            for place, group in enumerate(self.groups)
            if group.trust is Trust.CENTRAL and not group.participates and place not in self.small
        )

    @property
    def of_small(self) -> int:
        """People of labels that are too small for an answer."""
        return sum(self.groups[place].count for place in self.small)

    @property
    def local(self) -> int:
        """Local people whose reports have no part in it."""
        return sum(
            group.count
            for place, group in enumerate(self.groups)
            if group.trust is Trust.LOCAL and not group.participates and place not in self.small
        )

    @property
    def silent(self) -> int:
        """Local people who did not report the choice."""
        return sum(group.silent for group in self.groups)

    @property
    def why_left_out(self) -> Mapping[str, int]:
        """All who have no part in it, by the reason."""
        return {
            BudgetExhausted.code: self.unable,
            SMALL: self.of_small,
            LOCAL: self.local,
            NOT_REPORTED: self.silent,
        }

    @property
    def left_out(self) -> int:
        """All who have no part in it."""
        return sum(self.why_left_out.values())

    @property
    def reporting(self) -> tuple[int, ...]:
        """The groups of local people whose reports have a part in it."""
        return tuple(
            place
            for place, group in enumerate(self.groups)
            if group.trust is Trust.LOCAL and group.participates and group.count
        )

    def by_choice(self, counts: Mapping[int, Sequence[int]]) -> list[list[int]]:
        """For each of these groups how many of its reports have each choice in them, off those by cohort."""
        return [self.summed(counts, place) for place in self.reporting]

    def summed(self, counts: Mapping[int, Sequence[int]], place: int) -> list[int]:
        """What the cohorts of a group add up to. Raw: must not leave the services."""
        return [sum(column) for column in zip(*(counts[one.id] for one in self.members[place]), strict=True)]

    def public_sums(self, counts: Mapping[int, Sequence[int]], length: int) -> list[int]:
        """What cohorts of public people add up to, of sums of that length."""
        known = [
            counts[cohort.id]
            for group, members in zip(self.groups, self.members, strict=True)
            for cohort in members
            if group.trust is Trust.PUBLIC
        ]
        return [sum(column) for column in zip([0] * length, *known, strict=True)]

    def reported(self) -> frozenset[int]:
        """The cohorts of reports that have a part in it, also of those that are all of other measures."""
        return frozenset(
            cohort.id
            for group, members in zip(self.groups, self.members, strict=True)
            if group.trust is Trust.LOCAL and group.participates
            for cohort in members
        )

    def used(self) -> tuple[Used, ...]:
        """Every cohort whose counts are in the answer, in the order of ids."""
        used = (
            Used(
                cohort_id=cohort.id,
                count=cohort.count,
                offer=group.epsilon if group.trust is Trust.CENTRAL else 0,
            )
            for group, members in zip(self.groups, self.members, strict=True)
            if group.participates
            for cohort in members
        )
        return tuple(sorted(used, key=lambda cohort: cohort.cohort_id))


def by_label(
    study: StudyDefinition, question: ShapeQuestion, cohorts: Sequence[Cohort]
) -> list[tuple[ShapeQuestion, ShapeCrowd]]:
    """A question by an attribute as a question for each declared label, and the people who have it."""
    here = among(study, question.where, cohorts)
    found = []
    cells = study.attributes.cells(question.by).values()
    members = members_of(study, question.by, Cohorts.of(here)).values()
    for cell, places in zip(cells, members, strict=True):
        checkpoint()
        own = replace(question, by="", where={**question.where, **cell})
        found.append((own, ShapeCrowd.of([here[place] for place in places], own)))
    return found
