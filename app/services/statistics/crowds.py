"""The people of a study as every statistic sees them: groups of equal offers."""

from collections.abc import Container, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import repeat
from operator import ge, sub
from typing import Any, TypeVar

from app.core.cohort import Cohort, Cohorts, Group, Groups, Reports
from app.core.errors import BudgetExhausted, InternalFault
from app.core.release import AllUsed, Charges
from app.core.reporting_range import INSIDE
from app.core.study import StudyDefinition, Trust
from app.services.statistics.any_question import AnyQuestion
from app.services.statistics.drafts import NOT_REPORTED
from app.services.work import checkpoint
from app.sessions.searched import Searched

T = TypeVar("T")
Q = TypeVar("Q", bound=AnyQuestion)

LOCAL = "local_reports_not_used"
"""Why local people have no part in some answers: these read values, and a report is a noisy number."""

SMALL = "label_too_small"
"""Why people of a label have no part in some: the middle of the range is nearer than any answer of theirs."""


@dataclass(frozen=True, kw_only=True)
class Crowd:
    """The cohorts of a study as groups of equal offers.

    Attributes:
        groups: What estimators see.
        cohorts: Whom they are made of.
        places: For each cohort the place of its group.
        labels: For each group the number of its label, of a question by labels that are secret; else empty.
        dry: Central people who cannot pay, where groups do not say it: see `app.services.shapes.steps`.
        small: Places of groups that could take part, and do not: their label is too small for an answer.
        searched: What finished searches say; the people who answered them are the last group then, without
            cohorts.
    """

    groups: Groups
    cohorts: Cohorts
    places: Sequence[int]
    labels: Sequence[int] = ()
    dry: int | None = None
    small: Set[int] = frozenset()
    searched: Searched | None = None

    @classmethod
    def of(
        cls,
        study: StudyDefinition,
        cohorts: Sequence[Cohort],
        question: AnyQuestion,
        taking_part: Container[int] | None = None,
    ) -> "Crowd":
        """Group cohorts by what they offer. A cohort takes part with its whole offer or not at all.

        Where the number of people is asked for, and public, all of them are in it, and offer nothing.

        Args:
            study: The study.
            cohorts: Its cohorts.
            question: What is asked of them.
            taking_part: Ids of the central cohorts that take part; None for those that can pay their offer.
        """
        here = Cohorts.of(cohorts)
        if question.public:
            everyone = Group(trust=Trust.PUBLIC, epsilon=0, count=sum(here.column("count")))
            return cls(groups=Groups.of([everyone]), cohorts=here, places=[0] * len(here))
        # Groups come in the order in which their first cohorts do.
        merged: dict[tuple[Trust, int, bool, int, int, bool], int] = {}
        key: tuple[Trust, int, bool, int, int, bool]
        secret = bool(question.by) and study.hides_people
        labels = _labels(study, question.by, here) if secret else (0,) * len(here)
        trusts, epsilons, carrieds = map(here.column, ("trust", "epsilon", "carried"))
        offers = {epsilon: question.offer(epsilon) for epsilon in set(epsilons)}
        if taking_part is None:
            # The most that they may have spent; below 0 for those who offer nothing.
            most = {epsilon: epsilon - offer if offer > 0 else -1 for epsilon, offer in offers.items()}
            everyone_able = map(ge, map(most.__getitem__, epsilons), here.column("spent"))
        else:
            everyone_able = map(taking_part.__contains__, here.column("id"))
        inside = map(ge, here.column("segment"), repeat(INSIDE))
        reported = here.column("reported")
        columns = trusts, epsilons, carrieds, list(everyone_able), labels, reported, list(inside)
        keys, firsts = _kinds(columns)
        kinds = zip(*(map(column.__getitem__, firsts) for column in columns), strict=True)
        place_of = {}
        for first, kind in zip(firsts, kinds, strict=True):
            trust, epsilon, carried, able, label, told, narrow = kind
            if trust is Trust.CENTRAL:
                key = trust, offers[epsilon], able, label, 0, False
            elif trust is Trust.LOCAL and question.hears:
                # The report itself was randomized with what was left of the epsilon. Devices that report more
                # measures are heard more often, also where each report has the same epsilon, and reports
                # inside a range have another law.
                key = trust, epsilon - carried, True, label, told, narrow
            else:
                key = trust, 0, trust is Trust.PUBLIC, label, 0, False
            place_of[keys[first]] = merged.setdefault(key, len(merged))
        return _grouped(
            study,
            here,
            list(map(place_of.__getitem__, keys)),
            [trust for trust, *_ in merged],
            [offer for _, offer, *_ in merged],
            [able for _, _, able, *_ in merged],
            labels=[label for _, _, _, label, *_ in merged] if secret else (),
            hears=question.hears,
        )

    def beside(self, searched: Searched | None) -> "Crowd":
        """The crowd with the people who answered searches; those who have a report, too, count once."""
        if searched is None:
            return self
        groups = [
            replace(group, count=max(0, group.count - searched.reporting))
            if group.trust is Trust.LOCAL
            else group
            for group in self.groups
        ]
        answered = Group(trust=Trust.LOCAL, epsilon=0, count=searched.people)
        return replace(self, groups=Groups.of([*groups, answered]), searched=searched)

    @classmethod
    def joined(cls, crowds: Sequence["Crowd"], small: Set[int] = frozenset()) -> "Crowd":
        """Crowds of disjoint people as one, their groups in order; those of `small` crowds take no part."""
        groups, cohorts, places, idle = list[Group](), list[Cohort](), list[int](), set[int]()
        for number, crowd in enumerate(crowds):
            places += [len(groups) + place for place in crowd.places]
            cohorts += crowd.cohorts
            for group in crowd.groups:
                if number in small and group.participates:
                    idle.add(len(groups))
                    group = replace(group, participates=False)
                groups.append(group)
        return cls(groups=Groups.of(groups), cohorts=Cohorts.of(cohorts), places=places, small=idle)

    def some(self, study: StudyDefinition, cohorts: Sequence[int]) -> "Crowd":
        """The crowd of some of its cohorts, by their places; they offer what they offer in it.

        Of a question for a mean in a replace_one study: the groups of one by secret labels are not divided.
        """
        # Groups come in the order in which their first cohorts do, as in `of`.
        here = [self.places[cohort] for cohort in cohorts]
        numbers = {place: number for number, place in enumerate(dict.fromkeys(here))}
        places = list(map(numbers.__getitem__, here))
        groups = self.groups.some(list(numbers))
        kinds = map(groups.column, ("trust", "epsilon", "participates"))
        return _grouped(study, self.cohorts.some(cohorts), places, *kinds)

    @cached_property
    def members(self) -> tuple[tuple[Cohort, ...], ...]:
        """For each group its cohorts."""
        return tuple(map(tuple, self._by_group(self.cohorts)))

    @cached_property
    def ids(self) -> list[list[int]]:
        """For each group the ids of its cohorts."""
        return self._by_group(self.cohorts.column("id"))

    def _by_group(self, values: Sequence[T]) -> list[list[T]]:
        found: list[list[T]] = [[] for _ in range(len(self.groups))]
        for place, value in zip(self.places, values, strict=True):
            found[place].append(value)
        return found

    def by_cohort(self, values: Sequence[T]) -> Iterator[tuple[int, T]]:
        """What groups have, one value each, by the id of every cohort."""
        return zip(self.cohorts.column("id"), map(values.__getitem__, self.places), strict=True)

    @property
    def people(self) -> int:
        """All people with a live contribution."""
        return self.groups.people

    @property
    def unable(self) -> int:
        """Central people who cannot pay what is asked."""
        return self._idle(Trust.CENTRAL) if self.dry is None else self.dry

    @property
    def of_small(self) -> int:
        """People of labels that are too small for an answer."""
        return sum(self.groups[place].count for place in self.small)

    @property
    def local(self) -> int:
        """Local people whose reports have no part in it."""
        return self._idle(Trust.LOCAL)

    def _idle(self, trust: Trust) -> int:
        groups = enumerate(self.groups.rows("trust", "participates", "count"))
        return sum(
            count
            for place, (tag, participates, count) in groups
            if tag is trust and not participates and place not in self.small
        )

    @property
    def silent(self) -> int:
        """The people who did not report the measure."""
        return sum(self.groups.column("silent"))

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

    def sums(self, name: str) -> list[int]:
        """For each group the sum of a field over its cohorts."""
        return _added_up(self.places, self.cohorts.column(name), len(self.groups))

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
        return [sum(column) for column in zip(*map(counts.__getitem__, self.ids[place]), strict=True)]

    def public_sums(self, counts: Mapping[int, Sequence[int]], length: int) -> list[int]:
        """What cohorts of public people add up to, of sums of that length."""
        public = [tag is Trust.PUBLIC for tag in self.groups.column("trust")]
        return self.weighed(public, counts, length)

    def weighed(self, weights: Sequence[int], counts: Mapping[int, Sequence[int]], length: int) -> list[int]:
        """Sums of that length of all people, each with the weight of the group. Raw: as `summed`."""
        found = [0] * length
        for cohort, weight in self.by_cohort(weights):
            if weight:
                for place, count in enumerate(counts[cohort]):
                    found[place] += weight * count
        return found

    def reported(self) -> frozenset[int]:
        """The cohorts of reports that have a part in it, also of those that are all of other measures."""
        able = [tag is Trust.LOCAL and part for tag, part in self.groups.rows("trust", "participates")]
        return frozenset(cohort for cohort, has_part in self.by_cohort(able) if has_part)

    @cached_property
    def in_order(self) -> tuple[Sequence[int], Sequence[int], Sequence[int]]:
        """Ids and counts of the cohorts, and the places of their groups, in the order of ids."""
        ids, counts = self.cohorts.column("id"), self.cohorts.column("count")
        order = sorted(range(len(ids)), key=ids.__getitem__)
        ordered = [[column[cohort] for cohort in order] for column in (ids, counts, self.places)]
        return ordered[0], ordered[1], ordered[2]

    def used(self) -> AllUsed:
        """Every cohort whose sums may be in the answer, in the order of ids."""
        ids, counts, places = self.in_order
        able = self.groups.column("participates")
        # What a central group offers; local and public people need not have anything left.
        offers = [
            epsilon if trust is Trust.CENTRAL else 0
            for trust, epsilon in self.groups.rows("trust", "epsilon")
        ]
        columns = {"cohort_id": ids, "count": counts, "offer": list(map(offers.__getitem__, places))}
        return AllUsed(columns, len(ids)).where(list(map(able.__getitem__, places)))

    def charges(self, costs: Sequence[int]) -> Charges:
        """What an answer costs each cohort, of what it costs a person of each group, in the order of ids.

        Raises:
            InternalFault: a cohort is in two groups, for example of two labels.
        """
        ids, _, places = self.in_order
        due = list(map(costs.__getitem__, places))
        charges = Charges({"cohort_id": ids, "epsilon": due}, len(ids)).where(due)
        if len(set(charges.column("cohort_id"))) < len(charges):
            raise InternalFault("A cohort is charged twice.")
        return charges


def by_label(study: StudyDefinition, question: Q, cohorts: Sequence[Cohort]) -> list[tuple[Q, Crowd]]:
    """A question by an attribute as a question for each declared label, and the people who have it."""
    here = Cohorts.of(question.among(study, cohorts))
    found = []
    cells = study.attributes.cells(question.by).values()
    members = members_of(study, question.by, here).values()
    for cell, places in zip(cells, members, strict=True):
        checkpoint()
        own = replace(question, by="", where={**question.where, **cell})
        found.append((own, Crowd.of(study, here.some(places), own)))
    return found


def members_of(study: StudyDefinition, by: str, people: Cohorts) -> dict[str, list[int]]:
    """The places of the cohorts in each declared cell: of a label, or of one of several attributes each."""
    labels, number_of = list(study.attributes.cells(by)), _labels(study, by, people)
    members: dict[str, list[int]] = {label: [] for label in labels}
    for place, number in enumerate(number_of):
        members[labels[number]].append(place)
    return members


def _kinds(columns: Sequence[Sequence[Any]]) -> tuple[Sequence[Any], list[int]]:
    """What tells rows of columns apart, and the first row of each kind, in order."""
    # Years of epochs have many cohorts, and few that differ: most columns have one value.
    varied = [column for column in columns if column and column.count(column[0]) < len(column)]
    keys = varied[0] if len(varied) == 1 else list(zip(*(varied or columns[:1]), strict=True))
    # The last to be noted is the first row.
    return keys, sorted(dict(zip(reversed(keys), reversed(range(len(keys))), strict=True)).values())


def _grouped(
    study: StudyDefinition,
    cohorts: Cohorts,
    places: Sequence[int],
    trusts: Sequence[Trust],
    offers: Sequence[int],
    ables: Sequence[bool],
    *,
    labels: Sequence[int] = (),
    hears: bool = True,
) -> Crowd:
    """Groups by trust, offer, whether they take part and label, each cohort being in that of its place."""
    counts, silent = (_added_up(places, cohorts.column(name), len(trusts)) for name in ("count", "silent"))
    if not hears:
        silent = [0] * len(trusts)
    columns: dict[str, Sequence[object]] = {
        "trust": trusts,
        "epsilon": offers,
        "count": list(map(sub, counts, silent)),
        "participates": ables,
        "reports": _reports(study, trusts, places, cohorts, numbers=hears and not study.choices),
        "silent": silent,
    }
    return Crowd(groups=Groups(columns, len(trusts)), cohorts=cohorts, places=places, labels=labels)


def _labels(study: StudyDefinition, by: str, cohorts: Cohorts) -> Sequence[int]:
    """The number of each cohort's cell."""
    places = study.attributes.places(by)
    return [places[segment % INSIDE] for segment in cohorts.column("segment")]


def _added_up(places: Sequence[int], values: Sequence[int], size: int) -> list[int]:
    """For each place the sum of its values, length `size`."""
    found = [0] * size
    for place, value in zip(places, values, strict=True) if any(values) else ():
        found[place] += value
    return found


def _reports(
    study: StudyDefinition, trusts: Sequence[Trust], places: Sequence[int], cohorts: Cohorts, *, numbers: bool
) -> list[Reports | None]:
    """What each group has sent; None where it is not local, or sends no numbers that are heard."""
    found: list[Reports | None] = [None] * len(trusts)
    if Trust.LOCAL not in trusts or not numbers:
        return found
    totals = _added_up(places, cohorts.column("total"), len(trusts))
    squares = _added_up(places, cohorts.column("total_squares"), len(trusts))
    reaches: dict[int, list[int | None]] = {}
    inside = set[int]()
    for place, reach, segment in zip(places, *map(cohorts.column, ("reach", "segment")), strict=True):
        reaches.setdefault(place, []).append(reach)
        if segment >= INSIDE:
            inside.add(place)
    if inside and study.reporting_range is None:
        raise InternalFault("There are reports inside a range that the study does not have.")
    for place, trust in enumerate(trusts):
        if trust is Trust.LOCAL:
            found[place] = Reports(
                mechanism=study.local_mechanism,
                total=totals[place],
                total_squares=squares[place],
                reach=_farthest(reaches[place]),
                inside=study.reporting_range if place in inside else None,
            )
    return found


def _farthest(reaches: Sequence[int | None]) -> int | None:
    known = [reach for reach in reaches if reach is not None]
    return max(known) if len(known) == len(reaches) else None
