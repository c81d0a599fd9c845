"""The rules of the ledger at their limits: what fits to the last micro is stored, and one more is refused."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from app.core.contribution import Offer, Outcome
from app.core.ledger import Entry, Holding, decide, entry, same_value
from app.core.study import Trust

SENDER, OTHER = UUID(int=1), UUID(int=2)
OFFER = Offer(subject=b"s" * 32, sender=SENDER, trust=Trust.CENTRAL, asked=700, epsilon=700, value=5)
REPORT = replace(OFFER, trust=Trust.LOCAL)
LIVE = Holding(
    live=True,
    trust=Trust.CENTRAL,
    epsilon=700,
    carried=0,
    value=5,
    vector=None,
    epoch=1,
    sender=SENDER,
)
GONE = replace(LIVE, live=False, epsilon=300, value=None)


@pytest.mark.parametrize(("holding", "more"), [(None, 700), (GONE, 400)])
def test_what_fits_the_room_to_the_last_micro_is_reserved_and_no_more(holding: Holding | None, more: int):
    spent = 700 - more
    outcomes, row = decide([OFFER], holding, room=more)
    assert outcomes == [Outcome.CREATED]
    assert row is not None
    assert (row.epsilon, row.carried) == (700, spent)
    assert decide([OFFER], holding, room=more - 1) == ([Outcome.BUDGET_EXHAUSTED], None)


def test_a_public_value_takes_no_room():
    public = replace(OFFER, trust=Trust.PUBLIC, epsilon=0)
    outcomes, row = decide([public], GONE, room=0)
    assert outcomes == [Outcome.CREATED]
    assert row is not None
    assert (row.epsilon, row.carried) == (300, 300)


def test_of_several_offers_the_first_that_can_be_is_stored_and_the_others_are_compared_with_it():
    other = replace(OFFER, value=6)
    outcomes, row = decide([replace(OFFER, epsilon=900), OFFER, OFFER, other], None, room=800)
    assert outcomes == [
        Outcome.BUDGET_EXHAUSTED,
        Outcome.CREATED,
        Outcome.UNCHANGED,
        Outcome.CONTRIBUTION_EXISTS,
    ]
    assert row is not None
    assert row.value == 5


@pytest.mark.parametrize(
    ("offer", "outcome"),
    [
        (OFFER, Outcome.UNCHANGED),
        (replace(OFFER, sender=OTHER), Outcome.CONTRIBUTION_EXISTS),
        (replace(OFFER, value=6), Outcome.CONTRIBUTION_EXISTS),
        (replace(OFFER, epsilon=699), Outcome.CONTRIBUTION_EXISTS),
        (replace(OFFER, segment=1), Outcome.CONTRIBUTION_EXISTS),
        (REPORT, Outcome.CONTRIBUTION_EXISTS),
    ],
)
def test_only_the_sender_of_a_value_is_told_that_it_is_there(offer: Offer, outcome: Outcome):
    assert decide([offer], LIVE, room=0) == ([outcome], None)
    assert same_value(LIVE, offer) is (outcome is Outcome.UNCHANGED)
    assert not same_value(GONE, offer)


@pytest.mark.parametrize(
    ("offer", "spent", "refused"),
    [
        (OFFER, 700, None),
        (OFFER, 701, Outcome.EPSILON_BELOW_SPENT),
        (REPORT, 699, None),
        (REPORT, 700, Outcome.EPSILON_BELOW_SPENT),
        (replace(REPORT, bounded=True), 0, None),
        (replace(REPORT, bounded=True), 1, Outcome.REPORT_AFTER_SPENDING),
        (replace(REPORT, drawn_at_most=400), 300, None),
        (replace(REPORT, drawn_at_most=400), 299, Outcome.IMPOSSIBLE_REPORT),
        (replace(OFFER, drawn_at_most=400), 0, None),
    ],
)
def test_an_offer_has_to_leave_what_its_kind_needs(offer: Offer, spent: int, refused: Outcome | None):
    found: Any = entry(offer, spent=spent)
    assert found is refused if refused else isinstance(found, Entry)
