"""Steps of a question's shares: who pays what, over histories of people who come and go."""

from contextlib import contextmanager, suppress
from dataclasses import replace
from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.epsilon import MICRO
from app.core.errors import BudgetExhausted
from app.core.grid import GRID_SIZE
from app.core.study import Trust
from app.estimators.interface import UNIT_SCALE, NoContributions, NotApplicable
from app.mechanisms.laplace import MAX_SCALE
from app.services.statistics import whole_plans
from app.services.statistics.piece_noise import step_scale
from app.services.statistics.whole_plans import planned_share
from dither_research.histories import GAUSSIAN_STUDY, STUDY, History

EPSILON = st.integers(1, 4 * MICRO) | st.sampled_from([1, 7, 10_000, 333_000, MICRO])
VALUE = st.integers(0, GRID_SIZE)
PLACE = st.integers(0, 9)


QUESTIONS = [
    *((STUDY, name) for name in ("uniform", "adpm", "threshold", "auto")),
    *((GAUSSIAN_STUDY, name) for name in ("uniform", "adpm")),
]


@st.composite
def histories(draw):
    """Events, with a few shares that come back, so that what one question leaves just fits another one."""
    some = draw(st.lists(st.integers(1, MICRO - 1), min_size=1, max_size=3))
    shares = st.sampled_from([*some, *(MICRO - share for share in some), 15_624, MICRO // 2, MICRO])
    ask = st.tuples(st.just("ask"), shares, st.none() | EPSILON)
    join = st.tuples(st.just("join"), EPSILON, st.lists(VALUE, min_size=1, max_size=3))
    event = st.one_of(
        join,
        ask,
        st.tuples(st.just("ask"), shares, st.none()),
        st.tuples(st.just("spend"), PLACE, shares),
        st.tuples(st.just("leave"), PLACE),
        st.tuples(st.just("open"), VALUE),
    )
    return [draw(join), *draw(st.lists(event, min_size=2, max_size=14))]


def loss(piece, weight, study=STUDY):
    """What a member of that weight has lost by a piece, as an exact number [the study's currency]."""
    if study is GAUSSIAN_STUDY:
        # mu^2 = move^2 over a variance of V / share, V = unit^2 - 9.
        return Fraction(weight * GRID_SIZE) ** 2 * piece.share / (Fraction(piece.unit) ** 2 - 9)
    return Fraction(weight) * GRID_SIZE * MICRO / Fraction(step_scale(piece.unit, piece.share))


def hold(history, former, taken, share, cap):
    """What is true of the newest step of any history."""
    step, counts = history.steps[-1], {cohort.id: cohort.count for cohort in history.live}
    # Money: no cohort pays more than its epsilon, its share, or the cap; and what it pays is what it loses.
    for charge in step.charges:
        cohort = history.cohorts[charge.cohort_id]
        assert charge.epsilon > 0
        assert cohort.trust is Trust.CENTRAL
        assert cohort.spent <= cohort.epsilon
        paid = history.charged()[cohort.id]
        assert paid <= ceil(Fraction(cohort.epsilon * share, MICRO))
        assert cap is None or paid <= history.study.amount(cap)
    by_piece: dict[int, int] = {}
    lost: dict[int, Fraction] = {}
    places: dict[int, int] = {}
    for piece in history.pieces.values():
        if history.study is STUDY:
            assert 0 < piece.scale == step_scale(piece.unit, piece.share) <= MAX_SCALE
        for member in piece.members:
            exact = loss(piece, member.weight, history.study)
            # Rounding: up to the next micro-epsilon, by each piece once, however many steps it took.
            assert exact <= member.charged < exact + 1
            by_piece[member.cohort_id] = by_piece.get(member.cohort_id, 0) + member.charged
            lost[member.cohort_id] = lost.get(member.cohort_id, Fraction()) + exact
            places[member.cohort_id] = places.get(member.cohort_id, 0) + 1
            # Weights and counts are those of the first draw.
            assert counts.get(member.cohort_id, 0) <= member.count
    assert by_piece == history.charged()
    for cohort_id, paid in by_piece.items():
        assert lost[cohort_id] <= paid < lost[cohort_id] + places[cohort_id]
    # Only pieces without a loss are drawn finer, and what is frozen stays so.
    for piece in taken.changed:
        was = former.get(piece.number)
        if piece.number in step.finer:
            assert was is None or was.refinable
            assert all(counts.get(member.cohort_id) == member.count for member in piece.members)
            assert was is None or piece.scale < was.scale
        else:
            assert was is not None
            assert was.refinable
            assert piece == replace(was, refinable=False)
        if was is not None:
            assert [(one.cohort_id, one.weight, one.count) for one in was.members] == [
                (one.cohort_id, one.weight, one.count) for one in piece.members
            ]
    # Disjoint as far as they can still be refined; those who come since make one piece for each base.
    refinable = [
        member.cohort_id for piece in history.pieces.values() if piece.refinable for member in piece.members
    ]
    assert len(refinable) == len(set(refinable))
    bases = [piece.base for piece in history.pieces.values() if piece.number not in former]
    assert len(bases) == len(set(bases))
    for piece in history.pieces.values():
        assert piece.base + piece.share <= max(share, step.before.share if step.before else 0)
    # What is read is noted, so that the publication can see whether it still holds.
    read = {
        member.cohort_id
        for piece in history.pieces.values()
        if piece.number in step.finer
        for member in piece.members
    }
    assert {
        one.cohort_id: one.count for one in step.used if history.cohorts[one.cohort_id].trust is Trust.CENTRAL
    } == {cohort_id: counts[cohort_id] for cohort_id in read}


def play(study, estimator, events):
    history = History(study=study, estimator=estimator)
    for event in events:
        match event:
            case "join", epsilon, values:
                history.join(epsilon, values)
            case "open", value:
                history.join(0, [value], Trust.PUBLIC)
            case "leave", place if history.live:
                history.leave(history.live[place % len(history.live)].id)
            case "spend", place, share if history.live:
                cohort = history.live[place % len(history.live)]
                price = -(-cohort.epsilon * share // MICRO)
                history.spend(cohort.id, min(price, cohort.epsilon - cohort.spent))
            case "ask", share, cap:
                former = dict(history.pieces)
                with suppress(BudgetExhausted, NotApplicable):
                    step = history.plan(share, cap)
                    if step is not None:
                        _, taken = history.publish(step, share)
                        hold(history, former, taken, share, cap)


@pytest.mark.long
@pytest.mark.parametrize(("study", "estimator"), QUESTIONS)
@given(events=histories())
@settings(max_examples=150)
def test_whatever_happens_charges_are_losses_rounded_up_and_fit(study, estimator, events):
    play(study, estimator, events)


def crowd(*epsilons, study=STUDY, estimator="adpm", people=2_000):
    history = History(study=study, estimator=estimator)
    for epsilon in epsilons:
        history.join(epsilon, [3**18] * people)
    return history


@contextmanager
def weights_of(first):
    """All weights are planned as those of a question that begins with this share."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(whole_plans, "planned_share", lambda _: planned_share(first))
        yield


@pytest.mark.parametrize(("study", "estimator"), QUESTIONS)
@given(
    epsilons=st.lists(st.integers(MICRO // 50, 4 * MICRO), min_size=1, max_size=4),
    shares=st.lists(st.integers(15_625, MICRO), min_size=2, max_size=5, unique=True).map(sorted),
)
@settings(max_examples=25)
def test_any_steps_charge_to_the_micro_what_one_answer_at_the_last_share_does(
    study, estimator, epsilons, shares
):
    steps, once = (crowd(*epsilons, study=study, estimator=estimator) for _ in range(2))
    # With the same weights: those of the first step.
    with weights_of(shares[0]):
        for share in shares:
            steps.ask(share)
        once.ask(shares[-1])
    assert steps.charged() == once.charged()
    (piece,), (whole,) = steps.pieces.values(), once.pieces.values()
    assert (piece.scale, piece.members) == (whole.scale, whole.members)
    # Rounding: up, from the exact price of the weights.
    for member in piece.members:
        assert steps.charged()[member.cohort_id] == ceil(loss(piece, member.weight, study))


@given(share=st.integers(1, 14_900), epsilon=st.integers(MICRO // 100, 4 * MICRO))
@settings(max_examples=60)
def test_below_a_sixty_fourth_weights_are_coarser_and_never_cost_more(share, epsilon):
    """The noise would outgrow the sampler: weights are counted in units of 2, 4, 8 ..., rounded down."""
    small, once = (crowd(epsilon, estimator="uniform") for _ in range(2))
    try:
        small.ask(share)
    except (BudgetExhausted, NotApplicable):
        # A share of which nothing is left when it is rounded down.
        assert epsilon * share < 2 * MICRO
        return
    (piece,) = small.pieces.values()
    unit = round(UNIT_SCALE / piece.unit)
    assert unit > 1
    assert step_scale(2 * piece.unit, share) > MAX_SCALE >= piece.scale
    assert small.charged()[1] <= ceil(Fraction(epsilon * share, MICRO))
    small.ask(MICRO)
    once.ask(MICRO)
    assert once.charged()[1] - unit < small.charged()[1] <= once.charged()[1]


def test_a_piece_that_lost_a_person_is_frozen_and_its_people_pay_for_what_is_left():
    history = crowd(MICRO, MICRO)
    history.ask(MICRO // 5)
    first = history.pieces[1]
    history.leave(1)
    taken = history.ask(MICRO // 2)
    frozen, joined = history.pieces[1], history.pieces[2]
    assert {piece.number for piece in taken.changed} == {1, 2}
    assert frozen == replace(first, refinable=False)
    # Of one half, one fifth is paid: the new piece begins there, with three tenths of their whole weights.
    assert (joined.base, joined.share) == (MICRO // 5, 3 * MICRO // 10)
    assert [member.charged for member in joined.members] == [3 * MICRO // 10] * 2
    assert [member.weight for member in joined.members] == [MICRO] * 2
    assert [member.count for member in joined.members] == [1_999, 2_000]
    for share in (3 * MICRO // 4, MICRO):
        history.ask(share)
        assert history.pieces[1] == frozen
        assert history.charged() == {1: share, 2: share}
    assert sorted(history.pieces) == [1, 2]


@pytest.mark.parametrize("study", [STUDY, GAUSSIAN_STUDY])
def test_steps_after_a_person_left_charge_those_who_stay_what_they_charge_where_all_stay(study):
    """And the last answer is as good as the one of a single step after that person left."""
    stepwise, at_once, all_stay = (crowd(MICRO, MICRO // 3, study=study) for _ in range(3))
    # With the same weights in every piece: a piece that begins later is planned for its own share.
    with weights_of(MICRO // 5):
        for history in (stepwise, at_once, all_stay):
            history.ask(MICRO // 5)
        for history in (stepwise, at_once):
            history.leave(1)
        for tenth in range(3, 11):
            stepwise.ask(tenth * MICRO // 10)
            all_stay.ask(tenth * MICRO // 10)
            for cohort, paid in all_stay.charged().items():
                # What the first piece rounded up is taken off the weights in the second one.
                assert paid * (1 - 1e-4) <= stepwise.charged()[cohort] <= paid
        at_once.ask(MICRO)
    assert stepwise.charged() == pytest.approx(at_once.charged(), rel=1e-4)
    widths = [history.steps[-1].plan.interval_width() for history in (stepwise, at_once)]
    assert widths[0] == pytest.approx(widths[1], rel=1e-3)


def test_newcomers_and_those_who_stay_after_a_person_left_have_a_piece_each():
    history = crowd(MICRO)
    history.ask(MICRO // 5)
    history.leave(1)
    history.join(MICRO, [5] * 30)
    history.ask(MICRO // 2)
    assert [(piece.base, piece.share) for piece in history.pieces.values()] == [
        (0, MICRO // 5),
        (0, MICRO // 2),
        (MICRO // 5, 3 * MICRO // 10),
    ]
    history.ask(MICRO)
    assert history.charged() == {1: MICRO, 2: MICRO}


def test_newcomers_make_one_piece_and_no_other_person_pays():
    history = crowd(MICRO, MICRO // 2)
    history.ask(MICRO // 2)
    before = history.pieces[1]
    newcomers = [history.join(epsilon, [5] * 30) for epsilon in (MICRO, 333_000, 10_000)]
    taken = history.ask(MICRO // 2)
    assert [piece.number for piece in taken.changed] == [2]
    assert history.pieces[1] == before
    assert [member.cohort_id for member in history.pieces[2].members] == newcomers
    assert {charge.cohort_id for charge in history.steps[-1].charges} == set(newcomers)
    assert {one.cohort_id for one in history.steps[-1].used} == set(newcomers)


def test_without_newcomers_or_a_larger_share_nothing_is_drawn():
    history = crowd(MICRO)
    history.ask(MICRO // 2)
    taken = history.ask(MICRO // 4)
    assert taken.changed == ()
    assert history.steps[-1].charges == ()


def test_a_cap_bounds_the_sum_of_all_steps_and_is_reached():
    history = crowd(MICRO, MICRO)
    history.ask(MICRO // 2, cap=MICRO // 5)
    assert history.charged() == {1: MICRO // 5, 2: MICRO // 5}
    history.ask(9 * MICRO // 10, cap=3 * MICRO // 10)
    assert history.charged() == {1: 3 * MICRO // 10, 2: 3 * MICRO // 10}
    assert history.ask(MICRO, cap=MICRO // 20).changed == ()


def test_what_other_questions_left_is_used_to_the_last_micro():
    """Both questions round up. Who has a micro-epsilon less than the share costs weighs that much less."""
    history = crowd(10_000, estimator="uniform")
    history.spend(1, -(-10_000 * 876_550 // MICRO))
    history.ask(MICRO - 876_550)
    assert history.charged() == {1: 1_234}
    assert history.cohorts[1].spent == 10_000


def test_who_cannot_pay_closes_the_piece_and_the_others_go_on_in_another():
    history = crowd(MICRO, MICRO)
    history.ask(MICRO // 2)
    history.spend(2, MICRO // 4)
    history.ask(MICRO)
    assert not history.pieces[1].refinable
    assert [member.cohort_id for member in history.pieces[2].members] == [1]
    assert history.charged() == {1: MICRO, 2: MICRO // 2}
    assert history.steps[-1].crowd.unable == 2_000
    with pytest.raises(NoContributions):
        History().plan(MICRO)


def test_control_a_person_who_takes_the_place_of_another_one_is_seen():
    """`hold` would see a ledger that counts as many people as before, after one of them left."""
    history = crowd(MICRO)
    history.ask(MICRO // 2)
    former = dict(history.pieces)
    history.leave(1)
    lying = replace(history.cohorts[1], count=2_000)
    step = history.plan(MICRO)
    with_liar = {**history.cohorts, 1: lying}
    honest, history.cohorts = history.cohorts, with_liar
    forged = history.plan(MICRO)
    history.cohorts = honest
    assert 1 not in step.finer
    assert 1 in forged.finer
    _, taken = history.publish(forged, MICRO)
    with pytest.raises(AssertionError):
        hold(history, former, taken, MICRO, None)
