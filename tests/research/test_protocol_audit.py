"""The audit of whole sessions: no person loses more than she agreed to, and faulty devices are caught.

What devices do is drawn from the operating system's entropy; each bound is wrong with probability at most
1e-6. A pass proves nothing; the prices do.
"""

from dataclasses import replace
from typing import Any

import pytest
from dither.device.exact import discrete_laplace
from dither.device.response import respond

from app.accounting.clusters import clusters_cost, clusters_noise
from app.core.epsilon import MICRO
from app.core.grid import GRID_SIZE
from app.sessions.search import Mode, Target
from dither_research.audited import device
from dither_research.privacy_audit import Subject, judge
from dither_research.protocol_audit import CENTRAL_RULES, LOCAL_RULES, protocol_subjects

pytestmark = pytest.mark.statistical

HONEST = {subject.name: subject for subject in protocol_subjects(device())}
SEARCHES = [f"whole {target.value}, {mode.value}" for target in Target for mode in Mode]
LOCAL, CENTRAL = "whole K-means, local person", "whole K-means, central person"


def faulty(name: str, **parts: Any) -> Subject:
    """The same session with another device, which must be caught."""
    found = {subject.name: subject for subject in protocol_subjects(replace(device(), **parts))}
    return replace(found[name], planted=True)


def eager(category: int, categories: int, epsilon: int) -> int:
    """Tells the truth as often as twice the price would allow."""
    return respond(category, categories, 2 * epsilon)


def test_every_protocol_and_mode_is_audited():
    assert set(HONEST) == {*SEARCHES, LOCAL, CENTRAL}


@pytest.mark.parametrize("name", HONEST)
def test_a_whole_run_shows_no_more_than_it_claims(name):
    assert not judge(HONEST[name], 2500).exceeded


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_is_seen_to_use_most_of_its_epsilon(name):
    """An audit that saw nothing would pass everything. Bounds are at least 5 standard deviations above .6."""
    assert judge(HONEST[name], 60_000).audited > 0.6


@pytest.mark.parametrize("name", SEARCHES)
def test_control_a_device_that_answers_at_twice_the_price_is_caught(name):
    assert judge(faulty(name, respond=eager), 10_000).exceeded


def test_control_a_report_with_an_eighth_of_its_noise_is_caught():
    """The report costs eight times its part of epsilon."""

    def report(points, epsilon):
        return [point + discrete_laplace(GRID_SIZE * MICRO, 4 * epsilon) for point in points]

    assert judge(faulty(LOCAL, report=report), 5000).exceeded


def test_control_a_device_that_names_the_nearest_center_itself_is_caught():
    assert judge(faulty(LOCAL, respond=lambda category, categories, epsilon: category), 2000).exceeded


def test_claims_are_all_that_a_person_agreed_to():
    for name in SEARCHES:
        assert HONEST[name].claimed == 1
    answers = LOCAL_RULES.rounds * LOCAL_RULES.epsilon_per_answer
    assert (LOCAL_RULES.epsilon_per_answer + answers) / MICRO == HONEST[LOCAL].claimed
    noise = clusters_noise(CENTRAL_RULES.cost_per_round, CENTRAL_RULES.sensitivity, clusters=2, dimension=1)
    price = clusters_cost(noise, CENTRAL_RULES.relation, clusters=2, dimension=1)
    assert HONEST[CENTRAL].claimed == CENTRAL_RULES.rounds * price / MICRO
    assert HONEST[CENTRAL].claimed == pytest.approx(CENTRAL_RULES.epsilon / MICRO)
