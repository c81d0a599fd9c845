"""The people of a study as estimators see them: groups of equal offers."""

from collections.abc import Container, Sequence
from dataclasses import dataclass
from itertools import repeat
from operator import ge, sub

from app.core.cohort import Cohort, Cohorts, Groups, Reports
from app.core.study import Relation, StudyDefinition, Trust
from app.services.statistics.questions import Resolved


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """The cohorts of a study as groups of equal offers.

    Attributes:
        groups: What estimators see.
        cohorts: Whom they are made of.
        places: For each cohort the place of its group.
        labels: For each group the number of its label, of a question by labels that are secret; else empty.
    """

    groups: Groups
    cohorts: Cohorts
    places: Sequence[int]
    labels: Sequence[int] = ()

    @classmethod
    def of(
        cls,
        study: StudyDefinition,
        cohorts: Sequence[Cohort],
        resolved: Resolved,
        taking_part: Container[int] | None = None,
    ) -> "Crowd":
        """Group cohorts by what they offer. A cohort takes part with its whole offer or not at all.

        Args:
            study: The study.
            cohorts: Its cohorts.
            resolved: What is asked of them.
            taking_part: Ids of the central cohorts that take part; None for those that can pay their offer.
        """
        here = Cohorts.of(cohorts)
        # Groups come in the order in which their first cohorts do.
        merged: dict[tuple[Trust, int, bool, int, int], int] = {}
        key: tuple[Trust, int, bool, int, int]
        secret = bool(resolved.by) and study.relation is Relation.ADD_REMOVE_ONE
        labels = _labels(study, resolved.by, here) if secret else repeat(0, len(here))
        trusts, epsilons, carrieds = map(here.column, ("trust", "epsilon", "carried"))
        offers = {epsilon: resolved.offer(epsilon) for epsilon in set(epsilons)}
        if taking_part is None:
            # The most that they may have spent; below 0 for those who offer nothing.
            most = {epsilon: epsilon - offer if offer > 0 else -1 for epsilon, offer in offers.items()}
            everyone_able = map(ge, map(most.__getitem__, epsilons), here.column("spent"))
        else:
            everyone_able = map(taking_part.__contains__, here.column("id"))
        # Years of epochs have many cohorts, and few that differ in these.
        reported = here.column("reported")
        kinds = list(zip(trusts, epsilons, carrieds, everyone_able, labels, reported, strict=True))
        place_of = {}
        for kind in dict.fromkeys(kinds):
            trust, epsilon, carried, able, label, told = kind
            if trust is Trust.CENTRAL:
                key = trust, offers[epsilon], able, label, 0
            elif trust is Trust.LOCAL:
                # The report itself was randomized with what was left of the epsilon. Devices that report more
                # measures are heard more often, also where each report has the same epsilon.
                key = trust, epsilon - carried, True, label, told
            else:
                key = trust, 0, True, label, 0
            place_of[kind] = merged.setdefault(key, len(merged))
        places = [place_of[kind] for kind in kinds]
        return _grouped(
            study,
            here,
            places,
            [trust for trust, *_ in merged],
            [offer for _, offer, *_ in merged],
            [able for _, _, able, *_ in merged],
            labels=[label for *_, label, _ in merged] if secret else (),
        )

    def some(self, study: StudyDefinition, cohorts: Sequence[int]) -> "Crowd":
        """The crowd of some of its cohorts, by their places; they offer what they offer in it.

        Of a replace_one study: the groups of a question by secret labels are not divided.
        """
        # Groups come in the order in which their first cohorts do, as in `of`.
        here = [self.places[cohort] for cohort in cohorts]
        numbers = {place: number for number, place in enumerate(dict.fromkeys(here))}
        places = list(map(numbers.__getitem__, here))
        groups = self.groups.some(list(numbers))
        kinds = map(groups.column, ("trust", "epsilon", "participates"))
        return _grouped(study, self.cohorts.some(cohorts), places, *kinds)

    @property
    def members(self) -> tuple[tuple[Cohort, ...], ...]:
        """For each group its cohorts."""
        found: list[list[Cohort]] = [[] for _ in self.groups]
        for place, cohort in zip(self.places, self.cohorts, strict=True):
            found[place].append(cohort)
        return tuple(map(tuple, found))

    @property
    def people(self) -> int:
        """All people with a live contribution."""
        return self.groups.people

    @property
    def left_out(self) -> int:
        """The people who cannot pay what is asked."""
        people = self.groups.rows("count", "participates", "trust")
        return sum(count for count, able, trust in people if not able and trust is not Trust.LOCAL)

    @property
    def silent(self) -> int:
        """The people who did not report the measure."""
        return sum(self.groups.column("silent"))

    def sums(self, name: str) -> list[int]:
        """For each group the sum of a field over its cohorts."""
        return _added_up(self.places, self.cohorts.column(name), len(self.groups))


def _grouped(
    study: StudyDefinition,
    cohorts: Cohorts,
    places: Sequence[int],
    trusts: Sequence[Trust],
    offers: Sequence[int],
    ables: Sequence[bool],
    *,
    labels: Sequence[int] = (),
) -> Crowd:
    """Groups by trust, offer, whether they take part and label, each cohort being in that of its place."""
    counts, silent = (_added_up(places, cohorts.column(name), len(trusts)) for name in ("count", "silent"))
    columns: dict[str, Sequence[object]] = {
        "trust": trusts,
        "epsilon": offers,
        "count": list(map(sub, counts, silent)),
        "participates": ables,
        "reports": _reports(study, trusts, places, cohorts),
        "silent": silent,
    }
    return Crowd(groups=Groups(columns, len(trusts)), cohorts=cohorts, places=places, labels=labels)


def _labels(study: StudyDefinition, by: str, cohorts: Cohorts) -> Sequence[int]:
    """The number of each cohort's cell."""
    return list(map(study.attributes.places(by).__getitem__, cohorts.column("segment")))


def _added_up(places: Sequence[int], values: Sequence[int], size: int) -> list[int]:
    """For each place the sum of its values, length `size`."""
    found = [0] * size
    for place, value in zip(places, values, strict=True) if any(values) else ():
        found[place] += value
    return found


def _reports(
    study: StudyDefinition, trusts: Sequence[Trust], places: Sequence[int], cohorts: Cohorts
) -> list[Reports | None]:
    """What each group has sent; None where it is not local."""
    found: list[Reports | None] = [None] * len(trusts)
    if Trust.LOCAL not in trusts:
        return found
    totals = _added_up(places, cohorts.column("total"), len(trusts))
    squares = _added_up(places, cohorts.column("total_squares"), len(trusts))
    reaches: dict[int, list[int | None]] = {}
    for place, reach in zip(places, cohorts.column("reach"), strict=True):
        reaches.setdefault(place, []).append(reach)
    for place, trust in enumerate(trusts):
        if trust is Trust.LOCAL:
            found[place] = Reports(
                mechanism=study.local_mechanism,
                total=totals[place],
                total_squares=squares[place],
                reach=_farthest(reaches[place]),
            )
    return found


def _farthest(reaches: Sequence[int | None]) -> int | None:
    known = [reach for reach in reaches if reach is not None]
    return max(known) if len(known) == len(reaches) else None
