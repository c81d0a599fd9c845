"""People by what they offer: columns against loops over records, which are written apart here."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from app.core.cohort import Cohort, Cohorts, Group, Groups
from app.core.epsilon import MICRO
from app.core.study import LocalMechanism, Relation, StudyDefinition, Trust
from app.services.statistics.crowds import Crowd
from app.services.statistics.questions import Ask, resolve

STUDY = StudyDefinition(
    slug="commute",
    title="Commute",
    lower=Decimal(0),
    upper=Decimal(120),
    relation=Relation.REPLACE_ONE,
    trust=frozenset(Trust),
    epsilon_min=10_000,
    epsilon_max=10 * MICRO,
    default_share=10_000,
    local_mechanism=LocalMechanism.LAPLACE,
)


@st.composite
def some_cohorts(draw: st.DrawFn) -> list[Cohort]:
    found = []
    for number in range(draw(st.integers(0, 12))):
        trust = draw(st.sampled_from(list(Trust)))
        epsilon = 0 if trust is Trust.PUBLIC else draw(st.sampled_from([100, 500_000, MICRO]))
        carried = draw(st.integers(0, max(0, epsilon - 1)))
        spent = epsilon if trust is Trust.LOCAL else draw(st.integers(carried, epsilon))
        found.append(
            Cohort(
                id=number + 1,
                trust=trust,
                epsilon=epsilon,
                carried=0 if trust is Trust.PUBLIC else carried,
                spent=spent,
                count=draw(st.integers(1, 9)),
                total=draw(st.integers(-(2**70), 2**70)),
                total_squares=draw(st.integers(0, 2**80)),
                reach=draw(st.sampled_from([None, 5, 9])) if trust is Trust.LOCAL else None,
            )
        )
    return found


def by_columns(cohorts: Sequence[Cohort]) -> Cohorts:
    """The same cohorts as the store reads them."""
    names = (
        "id",
        "trust",
        "epsilon",
        "carried",
        "spent",
        "count",
        "total",
        "total_squares",
        "reach",
        "segment",
    )
    return Cohorts({name: [getattr(one, name) for one in cohorts] for name in names}, len(cohorts))


@given(some_cohorts(), st.sampled_from([1, 10_000, MICRO]), st.sampled_from([None, 70_000]))
def test_groups_are_those_of_equal_offers(cohorts: list[Cohort], share: int, cap: int | None) -> None:
    resolved = resolve(STUDY, Ask(share=share, epsilon=cap))
    expected: dict[tuple[Trust, int, bool], list[Cohort]] = defaultdict(list)
    for one in cohorts:
        offer = min(one.epsilon * share // MICRO, cap or one.epsilon)
        able = one.trust is not Trust.CENTRAL or 0 < offer <= one.epsilon - one.spent
        said = {Trust.CENTRAL: offer, Trust.LOCAL: one.epsilon - one.carried, Trust.PUBLIC: 0}[one.trust]
        expected[one.trust, said, able].append(one)

    for given_as in (cohorts, by_columns(cohorts)):
        found = Crowd.of(STUDY, given_as, resolved)

        assert [(one.trust, one.epsilon, one.participates) for one in found.groups] == list(expected)
        assert found.members == tuple(map(tuple, expected.values()))
        assert found.people == sum(one.count for one in cohorts)
        assert found.left_out == sum(
            one.count for (_, _, able), members in expected.items() if not able for one in members
        )
        for group, total, squares, members in zip(
            found.groups, found.sums("total"), found.sums("total_squares"), expected.values(), strict=True
        ):
            assert group.count == sum(one.count for one in members)
            assert (total, squares) == (
                sum(one.total for one in members),
                sum(one.total_squares for one in members),
            )
            if group.reports is None:
                assert group.trust is not Trust.LOCAL
                continue
            reaches = [one.reach for one in members]
            known = [reach for reach in reaches if reach is not None]
            assert (group.reports.total, group.reports.total_squares) == (total, squares)
            assert group.reports.reach == (max(known) if len(known) == len(reaches) else None)


@given(some_cohorts(), st.sampled_from([1, MICRO]), st.data())
def test_some_of_a_crowd_are_grouped_as_they_would_be_alone(
    cohorts: list[Cohort], share: int, data: st.DataObject
) -> None:
    resolved = resolve(STUDY, Ask(share=share))
    several = [
        replace(one, silent=data.draw(st.integers(0, one.count))) if one.trust is Trust.LOCAL else one
        for one in cohorts
    ]
    places = data.draw(st.lists(st.sampled_from(range(len(several))), unique=True)) if several else []

    found = Crowd.of(STUDY, several, resolved).some(STUDY, places)

    alone = Crowd.of(STUDY, [several[place] for place in places], resolved)
    assert list(found.groups) == list(alone.groups)
    assert list(found.places) == list(alone.places)
    assert list(found.cohorts) == list(alone.cohorts)
    assert found.silent == alone.silent


@given(some_cohorts())
def test_records_are_what_their_columns_say(cohorts: list[Cohort]) -> None:
    columns = by_columns(cohorts)

    assert list(columns) == cohorts
    assert len(columns) == len(cohorts)
    assert columns[1:] == cohorts[1:]
    assert Cohorts.of(columns) is columns
    assert list(Cohorts.of(cohorts).column("reach")) == [one.reach for one in cohorts]


@given(some_cohorts())
def test_those_who_can_take_part_are_found_by_columns(cohorts: list[Cohort]) -> None:
    groups = list(Crowd.of(STUDY, cohorts, resolve(STUDY, Ask(share=MICRO))).groups)
    table = Groups.of([*groups, Group(trust=Trust.CENTRAL, epsilon=0, count=3)])

    for trust in Trust:
        able = [
            place
            for place, one in enumerate(groups)
            if one.trust is trust and (one.participates or trust is Trust.LOCAL)
        ]
        assert list(table.able(trust)) == able
        assert table.of_able(trust, "count") == [groups[place].count for place in able]
