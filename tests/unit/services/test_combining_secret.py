"""Combinations where it is secret who is there: what is kept, what is combined, and what neighbors share."""

import itertools
import json
from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

import pytest

from app.accounting.measurement import recorded
from app.core.epsilon import MICRO
from app.core.grid import GRID_SIZE
from app.core.study import Relation, StudyDefinition
from app.services.shapes import kinds
from app.services.shapes.descriptions import Description
from app.services.statistics import combining_secret, planning
from app.services.statistics.combining import Combination
from app.services.statistics.crowds import Crowd
from app.services.statistics.kept_sums import kept_of
from app.services.statistics.questions import Ask, resolve
from app.store.combined import Sources
from dither_research.histories import GAUSSIAN_STUDY, STUDY, cohort_of
from dither_research.measure_audit import HOUSEHOLD

SECRET = replace(STUDY, relation=Relation.ADD_REMOVE_ONE, epsilon_min=MICRO // 2, epsilon_max=MICRO)
GAUSSIAN = replace(
    GAUSSIAN_STUDY, relation=Relation.ADD_REMOVE_ONE, epsilon_min=MICRO // 2, epsilon_max=MICRO
)
ASKED = (
    Ask(),
    Ask(share=MICRO // 4),
    Ask(estimator="transformed", epsilon=MICRO // 4),
    Ask(statistic="describe", share=MICRO // 4),
)
NOISY = (10**16, 3 * 10**16)


def answered(
    study: StudyDefinition, offers: Sequence[tuple[int, int]], asks: Sequence[Ask] = ASKED
) -> tuple[Sources, list[dict[int, int]]]:
    """What is kept of answers about these people whose noise came to the same, and what they charged."""
    cohorts = [cohort_of(number, epsilon, [value]) for number, (epsilon, value) in enumerate(offers, start=1)]
    pieces, noises, costs, charged = [], [], [], []
    for ask in asks:
        if ask.statistic == "describe":
            made = kinds.make(study, kinds.resolve(study, ask), cohorts)
            assert isinstance(made, Description)
            piece = made.kept(((10**16, 10**16, 10**16), (), None))
            assert piece is not None
            assert piece.members == ()
            charged.append({charge.cohort_id: charge.epsilon for charge in made.charges()})
            costs.append(made.most)
            noises.append(json.loads(recorded(made.noise_json(), (), piece)))
            pieces.append(replace(piece, weighs=None))
            continue
        resolved = resolve(study, ask)
        crowd = Crowd.of(study, cohorts, resolved)
        question = resolved.question(study, people=None)
        estimator, plan, question = planning.choose(study, crowd, resolved, question)
        piece = kept_of(study, resolved, crowd, plan, NOISY, ())
        assert piece is not None
        assert piece.members == ()
        charges = planning.charges(plan, crowd, study)
        charged.append({charge.cohort_id: charge.epsilon for charge in charges})
        costs.append(planning.epsilon_max(study, estimator, question, []))
        # As the ledger gives it back.
        noises.append(json.loads(recorded(planning.noise_json(plan), (), piece)))
        pieces.append(replace(piece, weighs=None))
    releases = tuple(UUID(int=place) for place in range(len(pieces)))
    return Sources(
        releases=releases,
        pieces=tuple(pieces),
        newest=len(pieces),
        noises=tuple(noises),
        charged=tuple(costs),
    ), charged


def combined(study: StudyDefinition, sources: Sources) -> tuple[Sources, Combination]:
    chosen, level = combining_secret.chosen(study, sources)
    question = resolve(study, Ask()).leveled(study, (), level).question(study, people=None)
    return chosen, combining_secret.combine(study, question, chosen)


PEOPLE = [(epsilon, value) for epsilon in (MICRO // 2, MICRO) for value in (0, GRID_SIZE // 3, GRID_SIZE)]


@pytest.mark.long
@pytest.mark.parametrize("study", [SECRET, GAUSSIAN], ids=["laplace", "gaussian"])
def test_neighbors_have_the_same_combination_and_pay_the_same(study: StudyDefinition) -> None:
    """Every set of at most two people on a small grid, and one more: nothing differs but what they sum to."""
    kept, _ = answered(study, [])
    _, found = combined(study, kept)
    for before in itertools.chain.from_iterable(
        itertools.combinations_with_replacement(PEOPLE, size) for size in range(3)
    ):
        _, paid = answered(study, before)
        for person in PEOPLE:
            also, then = answered(study, [*before, person])
            assert also == kept
            assert [{**own, len(before) + 1: 0} for own in paid] == [
                {**own, len(before) + 1: 0} for own in then
            ]
            _, one = combined(study, also)
            assert one.conclusion == found.conclusion
            assert one.plan.predicted_error == found.plan.predicted_error
            assert (one.used, one.crowd.people, one.most_in_all) == ((), 0, found.most_in_all)


def test_what_it_has_charged_is_what_it_can_have_charged_at_most() -> None:
    sources, charged = answered(SECRET, [(MICRO, 0)], [Ask(share=MICRO // 3)] * 2)
    _, found = combined(SECRET, sources)
    assert found.most_in_all == sum(own[1] for own in charged)
    more = replace(sources, charged=(MICRO, MICRO))
    assert combined(SECRET, more)[1].most_in_all == MICRO


def test_answers_whose_interval_holds_whatever_people_give_are_not_mixed_with_others() -> None:
    """The newest one says of which kind they are."""
    both = [Ask(estimator=name, share=MICRO // 4) for name in ("transformed", "hourglass", "hourglass")]
    chosen, found = combined(SECRET, answered(SECRET, [], both)[0])
    assert [one.int for one in chosen.releases] == [1, 2]
    assert found.conclusion.interval.coverage == "at_least"
    chosen, found = combined(SECRET, answered(SECRET, [], both[::-1])[0])
    assert len(chosen.releases) == 3
    assert found.conclusion.interval.coverage == "worst_case"


def test_answers_about_other_people_than_the_newest_are_not_combined() -> None:
    """Who offered at least .5, and who offered at least 1."""
    mixed = [Ask(least_epsilon=least, share=MICRO // 4) for least in (MICRO // 2, MICRO, MICRO // 2, MICRO)]
    chosen, found = combined(SECRET, answered(SECRET, [], mixed)[0])
    assert [one.int for one in chosen.releases] == [1, 3]
    assert found.conclusion.interval.coverage == "at_least"
    _, level = combining_secret.chosen(SECRET, answered(SECRET, [], mixed[:3])[0])
    assert level.least == MICRO // 2


def test_a_description_does_not_say_whom_an_answer_is_about_where_there_is_a_mean() -> None:
    """Else it would take the place of a mean that took more of more people."""
    mean, low, high = (
        Ask(statistic=statistic, least_epsilon=least, share=MICRO // 4)
        for statistic, least in (("mean", MICRO // 2), ("describe", MICRO // 2), ("describe", MICRO))
    )
    chosen, level = combining_secret.chosen(SECRET, answered(SECRET, [], [mean, low, high])[0])
    assert [one.int for one in chosen.releases] == [0, 1]
    assert level.least == MICRO // 2
    _, level = combining_secret.chosen(SECRET, answered(SECRET, [], [low, high])[0])
    assert level.least == MICRO


def test_what_is_no_mean_of_all_people_is_not_kept() -> None:
    resolved = resolve(SECRET, Ask(share=MICRO // 4))
    crowd = Crowd.of(SECRET, [], resolved)
    _, plan, _ = planning.choose(SECRET, crowd, resolved, resolved.question(SECRET, people=None))
    assert kept_of(SECRET, resolved, crowd, plan, NOISY, ()) is not None
    pair = replace(SECRET, measures=HOUSEHOLD.measures, dimension=HOUSEHOLD.dimension)
    of_age = resolve(pair, Ask(share=MICRO // 4, measure="age"))
    kept = kept_of(pair.of_measure("age"), of_age, crowd, plan, NOISY, ())
    assert kept == kept_of(SECRET, resolved, crowd, plan, NOISY, ()), "as of one value"
    for some in ({"where": {"region": "north"}}, {"by": "region"}):
        assert kept_of(SECRET, replace(resolved, **some), crowd, plan, NOISY, ()) is None
    assert kept_of(SECRET, resolved, crowd, replace(plan, weighs=None), NOISY, ()) is None
    assert kept_of(SECRET, resolved, crowd, replace(plan, weighs=(1.0, 0.0)), NOISY, ()) is None
