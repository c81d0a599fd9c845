"""Shares read off several noisy counts, beside one count and beside the closed form of two."""

import math

import numpy as np
import pytest

from app.core.cohort import Group, Groups
from app.core.epsilon import MICRO
from app.core.study import Currency, Trust
from app.estimators.choice_reports import report_noise
from app.estimators.combination import Sums
from app.estimators.piece_shares import combined_shares
from app.estimators.shares import SharesPlan, target_of
from app.estimators.weighing import weigh_public
from tests.support.weights import weights_of

BINS = 4


def sums_of(*pieces: tuple[int, int, float], others: tuple[Group, ...] = ()) -> Sums:
    """Disjoint pieces: people, what each weighs, and the scale of Laplace noise."""
    central = [Group(trust=Trust.CENTRAL, epsilon=0, count=people) for people, _, _ in pieces]
    return Sums(
        groups=Groups.of([*central, *others]),
        weights=weights_of(
            [*({place: weight} for place, (_, weight, _) in enumerate(pieces)), *({} for _ in others)]
        ),
        absent=np.zeros(len(pieces) + len(others), dtype=bool),
        scales=tuple(scale for _, _, scale in pieces),
        counted=(1,) * len(pieces),
        public_weight=0,
    )


@pytest.mark.parametrize("tilt", [0.0, 0.1])
def test_one_piece_is_read_as_one_answer_is(tilt: float) -> None:
    groups = [Group(trust=Trust.CENTRAL, epsilon=MICRO, count=200)]
    alone = SharesPlan(bins=BINS, weighing=weigh_public(groups, 200, target_of(BINS, tilt), tilt))
    counts = [5 * MICRO, 80 * MICRO, 95 * MICRO, 20 * MICRO + 17]
    one = combined_shares(BINS, sums_of((200, MICRO, alone.scale)), {}, tilt=tilt, currency=Currency.LAPLACE)
    assert one.predicted_error == pytest.approx(alone.predicted_error)
    assert one.interval_width == pytest.approx(alone.interval_width)
    read, expected = one.read_labels([(counts, ()), ([0] * BINS, ())]), alone.read(counts)
    for found, known in zip(read.bins, expected.bins, strict=True):
        assert found.share == pytest.approx(known.share)
        assert found.interval.lower == pytest.approx(known.interval.lower)
        assert found.population_interval.upper == pytest.approx(known.population_interval.upper)


def test_parts_weigh_inversely_to_their_errors() -> None:
    """Without a tilt: 1 / people + K 2 b^2 for a piece, 1 / people for public people, and reports' noise."""
    pieces = ((100, 3, 60.0), (40, 5, 20.0))
    others = (
        Group(trust=Trust.PUBLIC, epsilon=0, count=10),
        Group(trust=Trust.LOCAL, epsilon=MICRO, count=300),
    )
    noise = report_noise(BINS, MICRO)
    plan = combined_shares(
        BINS, sums_of(*pieces, others=others), {3: noise}, tilt=0.0, currency=Currency.LAPLACE
    )
    errors = [1 / n + BINS * 2 * (scale / (n * weight)) ** 2 for n, weight, scale in pieces]
    errors += [1 / 10, (1 + noise.total / (1 - 1 / BINS)) / 300]
    best = np.array([1 / error for error in errors]) / sum(1 / error for error in errors)
    (first, _), (second, _), (_, exact) = plan.parts
    found = [first, second, exact.weighing.private, exact.reported[0].part]
    assert found == pytest.approx(best.tolist())
    rest = 1 - 1 / BINS
    # About the 450 people who are there.
    whole = rest / BINS * (1 / sum(1 / error for error in errors) - 1 / 450)
    assert plan.predicted_error == pytest.approx(math.sqrt(whole))


def test_exact_counts_of_all_parts_are_read_as_they_are() -> None:
    sums = sums_of((50, 2, 1e-9), (50, 7, 1e-9), others=(Group(trust=Trust.PUBLIC, epsilon=0, count=20),))
    plan = combined_shares(BINS, sums, {}, tilt=0.1, currency=Currency.LAPLACE)
    read = plan.read_labels([([50, 20, 20, 10], ()), ([0, 350, 0, 0], ()), ([0, 0, 20, 0], ())])
    assert [one.share for one in read.bins] == pytest.approx(
        [25 / 120, 60 / 120, 30 / 120, 5 / 120], rel=1e-6
    )
