"""Whom an answer is about where the number of people is secret, chosen from what is public."""

import hashlib
import itertools
import json
import math
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.epsilon import MICRO
from app.core.errors import InvalidRequest
from app.core.grid import GRID_SIZE
from app.core.study import Relation, Study, StudyDefinition, StudyState, Trust
from app.estimators.deviations import uneven_at_most
from app.services.shapes import kinds as shape_kinds
from app.services.shapes.request import ShapeRequest
from app.services.statistics import planning
from app.services.statistics.any_request import AnyRequest
from app.services.statistics.crowds import Crowd
from app.services.statistics.levels import Level, LevelAsked, Numbered, choose_level, levels_of
from app.services.statistics.questions import Ask, resolve
from app.services.statistics.release_request import ReleaseRequest
from dither_research.histories import cohort_of

TIERS = tuple(round(one * MICRO) for one in (0.1, 0.25, 0.5, 1, 2, 4))
STUDY = StudyDefinition(
    slug="hours",
    title="Hours",
    lower=Decimal(0),
    upper=Decimal(1),
    relation=Relation.ADD_REMOVE_ONE,
    trust=frozenset({Trust.CENTRAL}),
    epsilon_min=TIERS[0],
    epsilon_max=TIERS[-1],
    epsilons=TIERS,
    default_share=MICRO // 10,
)
RANGE = replace(STUDY, epsilons=())
NOW, ASKER = datetime(2026, 1, 1, tzinfo=UTC), UUID(int=1)
ASKED = LevelAsked(share=MICRO // 10, cap=None, tilt=1.0)


def numbered(least: float, people: float, most: float | None = None) -> Numbered:
    return Numbered(
        least=round(least * MICRO), most=round((least if most is None else most) * MICRO), people=people
    )


def ends(level: Level) -> tuple[float, float]:
    return level.least / MICRO, level.most / MICRO


def test_levels_are_the_list_or_powers_of_two_between_the_ends() -> None:
    assert levels_of(STUDY) == TIERS
    assert levels_of(RANGE) == tuple(round(one * MICRO) for one in (0.1, 0.2, 0.4, 0.8, 1.6, 3.2))
    assert levels_of(replace(RANGE, epsilon_max=RANGE.epsilon_min)) == (RANGE.epsilon_min,)


def test_a_guess_is_about_the_middle_level() -> None:
    """Of equally frequent tiers 1 has 3/4 of the weight that the best one would have."""
    level = choose_level(STUDY, ASKED, ())
    assert ends(level) == (1, 1)
    assert level.size is None
    assert ends(choose_level(RANGE, ASKED, ())) == (0.8, 0.8)
    one = replace(STUDY, epsilons=TIERS[:1], epsilon_max=TIERS[0])
    assert ends(choose_level(one, ASKED, ())) == (0.1, 0.1)
    two = replace(RANGE, epsilon_max=2 * RANGE.epsilon_min)
    assert ends(choose_level(two, ASKED, ())) == (0.1, 0.1), "twice the weight of half of the people"


def test_published_numbers_move_it_to_where_the_weight_is() -> None:
    assert ends(choose_level(STUDY, ASKED, [numbered(1, 1500)])) == (1, 1), "nothing is known of more"
    assert ends(choose_level(STUDY, ASKED, [numbered(1, 20), numbered(0.1, 3000)])) == (0.1, 0.1)
    level = choose_level(STUDY, ASKED, [numbered(2, 900), numbered(1, 1000), numbered(4, 10)])
    assert (ends(level), level.size) == ((2, 2), 900)
    assert choose_level(STUDY, ASKED, [numbered(2, 900), numbered(2, 1)]).size == 900, "the newest one"
    # Of the least level alone: half of them are taken to offer the middle one.
    level = choose_level(STUDY, ASKED, [numbered(0.1, 3000)])
    assert ends(level) == (1, 1)
    assert level.size == pytest.approx(1500)


@given(people=st.floats(60, 1e6), least=st.sampled_from([1.0, 2.0, 4.0]))
def test_what_is_known_is_not_left_for_a_guess(people: float, least: float) -> None:
    assert ends(choose_level(STUDY, ASKED, [numbered(least, people)])) == (least, least)


def test_numbers_that_are_mostly_noise_leave_no_one_out() -> None:
    assert ends(choose_level(STUDY, ASKED, [numbered(1, 1)])) == (0.1, 0.1)


def test_noise_does_not_let_more_people_offer_more() -> None:
    level = choose_level(STUDY, ASKED, [numbered(2, 900), numbered(0.1, 20)])
    assert ends(level) == (2, 2)


def test_a_stated_number_is_one_at_the_least_level() -> None:
    stated = replace(ASKED, stated=6000.0)
    level = choose_level(STUDY, stated, ())
    assert ends(level) == (1, 1)
    assert level.size == pytest.approx(3000)
    # It stands in the place of what is published there, and beside what is published of others.
    level = choose_level(STUDY, stated, [numbered(4, 5000), numbered(0.1, 10)])
    assert (ends(level), level.size) == ((4, 4), 5000)
    asked = choose_level(STUDY, replace(stated, least=2 * MICRO), [numbered(2, 10)])
    assert (ends(asked), asked.size) == ((2, 2), 6000)


def test_a_choice_is_open_where_too_little_is_known() -> None:
    asked = replace(ASKED, asks_first=True)
    for known in ((), [numbered(0.1, 3000)], [numbered(0.5, 3000)], [numbered(4, 1)]):
        level = choose_level(STUDY, asked, known)
        assert level.open
        assert ends(level) == (4, 4), "the largest charge is planned"
        assert "1/5 of the share first asks" in level.about
    assert choose_level(STUDY, asked, ()).size is None
    # Predictions are for a guess: half of these people offer at least 1.
    assert choose_level(STUDY, replace(asked, stated=6000.0), ()).size == pytest.approx(3000 / 4)
    for known in ([numbered(1, 1500)], [numbered(one / MICRO, 1) for one in TIERS]):
        assert not choose_level(STUDY, asked, known).open
    assert not choose_level(STUDY, replace(asked, least=MICRO), ()).open
    assert not choose_level(STUDY, asked, (), Level.of(STUDY, MICRO, MICRO)).open


def test_a_small_tilt_lets_more_people_in_and_weighs_them_by_their_offers() -> None:
    asked, known = replace(ASKED, tilt=0.01), [numbered(0.1, 300)]
    level = choose_level(STUDY, asked, known)
    assert level.least < level.most
    # With none it is what tilts cost: a thousand times the people, and they weigh the same again.
    many = choose_level(STUDY, asked, [numbered(0.1, 3_000_000)])
    assert many.equal


def test_what_is_asked_for_is_what_is_answered() -> None:
    for least in (0.1, 0.3, 4):
        level = choose_level(STUDY, replace(ASKED, least=round(least * MICRO)), [numbered(1, 1000)])
        assert ends(level) == (least, least)


@given(floor=st.floats(0.01, 1), more=st.floats(1, 100), part=st.floats(0, 1), number=st.integers(1, 50))
def test_no_weights_between_the_ends_are_more_uneven(
    floor: float, more: float, part: float, number: int
) -> None:
    """Brute force over people at both ends, and one between; at the best part of them it is reached."""
    cap = floor * more
    for high, middle in itertools.product(range(number + 1), (0, 1)):
        weights = [cap] * high + [floor] * (number - high) + [floor + part * (cap - floor)] * middle
        total = math.fsum(weights)
        uneven = math.fsum(abs(one / total - 1 / len(weights)) for one in weights) / 2
        assert uneven <= uneven_at_most(cap, floor) + 1e-9
    best = math.sqrt(floor) / (math.sqrt(cap) + math.sqrt(floor))
    reached = best * (1 - best) * (cap - floor) / (best * cap + (1 - best) * floor)
    assert reached == pytest.approx(uneven_at_most(cap, floor), abs=1e-9)


@pytest.mark.parametrize("study", [STUDY, replace(STUDY, delta=10**6)], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("least", [0.1, 0.5, 4])
def test_neighbors_pay_by_their_own_offer_and_the_question_alone(
    study: StudyDefinition, least: float
) -> None:
    """Every set of at most two people on a small grid, and one more, who changes nothing for the others."""
    resolved = resolve(study, Ask(least_epsilon=round(least * MICRO), share=MICRO // 2)).leveled(study, ())
    assert resolved.level is not None
    offers = [study.amount(one) for one in (TIERS[0], MICRO // 2, 4 * MICRO)]
    charged: dict[int, int] = {}
    for size in (1, 2, 3):
        for offered in itertools.combinations_with_replacement(offers, size):
            cohorts = [cohort_of(number, offer, [GRID_SIZE // 3]) for number, offer in enumerate(offered, 1)]
            crowd = Crowd.of(study, cohorts, resolved)
            question = resolved.question(study, people=None)
            _, plan, _ = planning.choose(study, crowd, resolved, question)
            paid = {one.cohort_id: one.epsilon for one in planning.charges(plan, crowd, study)}
            for number, offer in enumerate(offered, 1):
                price = paid.get(number, 0)
                assert charged.setdefault(offer, price) == price
                assert price <= offer // 2
                assert (price > 0) is (offer >= study.amount(round(least * MICRO)))
    assert len({price for price in charged.values() if price}) == 1, "all who pay weigh the same"


def test_questions_that_exist_keep_their_digests() -> None:
    document = {"estimator": "auto", "parameters": {"level": "floor", "share": 0.1}, "statistic": "mean"}
    told = json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
    for published in ((), [numbered(1, 1500)]):
        resolved = resolve(STUDY, Ask()).leveled(STUDY, published)
        assert resolved.digest == hashlib.sha256(told).digest()
    shape = shape_kinds.resolve(STUDY, Ask(statistic="histogram"))
    assert shape.leveled(STUDY, [numbered(1, 1500)]).digest == shape.digest
    assert "least_epsilon" not in shape.asked()
    asked = shape_kinds.resolve(STUDY, Ask(statistic="histogram", least_epsilon=MICRO))
    assert asked.digest != shape.digest
    assert resolve(STUDY, Ask(least_epsilon=MICRO)).digest != resolve(STUDY, Ask()).digest


@pytest.mark.parametrize("kind", [ReleaseRequest, ShapeRequest])
def test_of_a_quota_a_cap_takes_what_it_takes_of_those_who_take_part(kind: type[AnyRequest]) -> None:
    statistic = "mean" if kind is ReleaseRequest else "histogram"
    ask = Ask(statistic=statistic, share=MICRO, epsilon=TIERS[0])
    request = kind.of(Study(id=1, definition=STUDY, state=StudyState.OPEN, created_at=NOW), ask, asker=ASKER)
    for least in (TIERS[0], MICRO):
        question = request.question.leveled(STUDY, (), Level.of(STUDY, least, 2 * MICRO))
        use = replace(request, question=question).use
        assert use is not None
        assert use.share == TIERS[0] * MICRO // least


@pytest.mark.parametrize("least", [MICRO // 20, 5 * MICRO])
def test_no_one_may_offer_what_is_outside_of_the_range(least: int) -> None:
    for statistic in ("mean", "sd"):
        with pytest.raises(InvalidRequest, match="least_epsilon"):
            resolve(STUDY, Ask(statistic=statistic, least_epsilon=least))
    for statistic in ("histogram", "count", "median"):
        with pytest.raises(InvalidRequest, match="least_epsilon"):
            shape_kinds.resolve(STUDY, Ask(statistic=statistic, least_epsilon=least))


def test_where_offers_are_public_there_is_no_such_question() -> None:
    public = replace(STUDY, relation=Relation.REPLACE_ONE)
    with pytest.raises(InvalidRequest, match="least_epsilon"):
        resolve(public, Ask(least_epsilon=MICRO))
    with pytest.raises(InvalidRequest, match="least_epsilon"):
        shape_kinds.resolve(public, Ask(statistic="histogram", least_epsilon=MICRO))


def test_a_number_of_people_is_one_of_people() -> None:
    alike = Level.of(STUDY, MICRO, MICRO)
    assert alike.document({"noisy_count": 1987.6})["about"] == (
        "about 1,988 people who offered at least 1 and can still pay"
    )
    unlike = Level.of(STUDY, MICRO // 2, 2 * MICRO)
    assert unlike.number(197.2) == "about 197 to 789"
    groups = alike.document({"groups": [{"noisy_count": -3.0}]})["groups"]
    assert groups == [{"noisy_count": -3.0, "about": "about 0 people"}]
    assert alike.document({})["about"] == "people who offered at least 1 and can still pay"
