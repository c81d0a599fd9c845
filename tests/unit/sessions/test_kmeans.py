"""K-means over noisy central sums and local reports: unbiased, guarded, and private as calibrated."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from app.core.epsilon import MICRO
from app.core.errors import InternalFault, InvalidRequest
from app.core.grid import GRID_SIZE
from app.mechanisms.randomized_response import KaryChannel
from app.sessions.kmeans import (
    ClusterRules,
    Clusters,
    advance,
    central_clusters,
    local_clusters,
    nearest,
    start,
)
from app.sessions.kmeans_protocol import RunningKMeans

RULES = ClusterRules(dimension=2, clusters=3, rounds=4, epsilon=5 * MICRO)
CENTERS = np.array([[-0.3, 0.0], [0.0, 0.2], [0.3, -0.1]])
RUNNING = RunningKMeans(rules=RULES, first=((1, 2), (3, 4), (5, 6)))


def clusters(counts, centers, *, variance=1e-6, count_error=1.0):
    counts = np.array(counts, dtype=float)
    return Clusters(
        counts=counts,
        sums=counts[:, np.newaxis] * np.array(centers, dtype=float),
        variances=np.full(len(counts), variance),
        count_errors=np.full(len(counts), count_error),
    )


# ------------------------------------------------------------------------------------------ price


def statistics(point, centers):
    """What one person adds to the counts and the sums."""
    counts, sums = np.zeros(3), np.zeros((3, 2))
    (index,) = nearest(np.array([point]), centers)
    counts[index], sums[index] = 1, point
    return np.concatenate([counts, sums.ravel()])


def test_replacing_a_person_moves_counts_and_sums_by_d_plus_2_at_most():
    """So noise of scale (d + 2) tau / epsilon costs epsilon over tau rounds; half of it would cost double."""
    corners = list(itertools.product((-0.5, 0.0, 0.5), repeat=2))
    moves = [
        np.abs(statistics(one, CENTERS) - statistics(other, CENTERS)).sum()
        for one in corners
        for other in corners
    ]
    assert max(moves) == RULES.dimension + 2
    assert RULES.rounds * max(moves) / (RULES.central_variance / 2) ** 0.5 == pytest.approx(5)


def test_erratum_uncentered_sums_move_by_twice_what_is_printed():
    """Published: b_T = (m d + 1) tau / epsilon where values are replaced. Next to the far corner of [0, 1]^d,
    across the border of two clusters, both counts move by 1 and all sums by nearly 1."""
    centers = np.array([[0.97, 0.97], [1.0, 1.0], [0.0, 0.0]])
    points = np.array([[0.984, 0.984], [0.986, 0.986]])
    near, far = nearest(points, centers).tolist()
    assert near != far
    moved = np.zeros((3, 3))
    moved[near] += np.array([1, *points[0]])
    moved[far] -= np.array([1, *points[1]])
    printed = 2 + 1
    assert np.abs(moved).sum() > 1.97 * printed
    centered = np.zeros((3, 3))
    centered[near] += np.array([1, *(points[0] - 0.5)])
    centered[far] -= np.array([1, *(points[1] - 0.5)])
    assert np.abs(centered).sum() <= RULES.dimension + 2


def test_the_printed_answer_is_the_same_channel():
    """Truth with (e^x - 1) / (K + e^x - 1), else any center evenly: right as printed."""
    x, size = RULES.epsilon_per_answer / MICRO, RULES.clusters
    kept = np.expm1(x) / (size + np.expm1(x))
    assert kept + (1 - kept) / size == pytest.approx(RULES.channel.truth)
    assert (1 - kept) / size == pytest.approx(RULES.channel.lie)


def test_erratum_the_center_nearest_to_the_report_is_not_nearest_to_the_person():
    """Published, line 7: assigned by the noised point, whose noise is many range widths here. Hardly more
    than a third would name their own center; the true point, which the main text means, always does."""
    random = np.random.default_rng(11)
    truth = random.integers(0, 3, 20_000)
    reports = CENTERS[truth] + random.laplace(0, RULES.report_scale, (truth.size, 2))
    assert np.array_equal(nearest(CENTERS[truth], CENTERS), truth)
    assert np.mean(nearest(reports, CENTERS) == truth) < 0.5


def test_a_local_person_spends_epsilon_over_the_report_and_all_answers():
    assert RULES.epsilon_per_answer * (RULES.rounds + 1) == RULES.epsilon
    assert RULES.dimension / RULES.report_scale == pytest.approx(1)
    assert RULES.channel == KaryChannel(categories=3, epsilon=MICRO)


@pytest.mark.parametrize(
    "wrong",
    [
        {"dimension": 0},
        {"clusters": 1},
        {"rounds": 0},
        {"rounds": 1000},
        {"epsilon": 4},
    ],
)
def test_rules_that_cannot_be_meant_are_refused(wrong):
    with pytest.raises(InvalidRequest):
        ClusterRules(**({"dimension": 2, "clusters": 3, "rounds": 4, "epsilon": MICRO} | wrong))


# -------------------------------------------------------------------------------------- estimates


def counted(reports):
    """Reports outside of the range count as their mean distance beyond its end."""
    return np.where(np.abs(reports) > 0.5, np.copysign(0.5 + RULES.report_scale, reports), reports)


def test_reports_outside_of_the_range_keep_their_mean_and_lose_variance():
    """Exactly, over a grid of 16 steps: whatever the value, and with no more variance than is stated."""
    terms = replace(RUNNING.terms, report_dimension=1, epsilon_report=MICRO)
    assert terms.report_beyond == GRID_SIZE  # b + 1/2 steps, rounded to even
    steps, scale = 16, 40.0
    ratio = math.exp(-1 / scale)
    places = np.arange(-3000, 3000 + steps + 1)
    beyond = 1 / (1 - ratio)
    counts = np.where(places < 0, -beyond, np.where(places > steps, steps + beyond, places))
    b = scale / steps
    stated = steps**2 * b**2 * (2 - math.exp(-0.5 / b))
    for value in range(steps + 1):
        chances = (1 - ratio) / (1 + ratio) * ratio ** np.abs(places - value)
        assert chances @ counts == pytest.approx(value, abs=1e-6)
        variance = chances @ (counts - value) ** 2
        assert variance < 1.02 * stated
        assert variance < 0.62 * (chances @ (places - value) ** 2)


def test_lies_are_corrected_for():
    """Expected answers of 500, 300 and 200 people, whose reports are exact, give their sums back."""
    true = np.array([500.0, 300.0, 200.0])
    truth, lie = RULES.channel.truth, RULES.channel.lie
    transitions = np.full((3, 3), lie) + (truth - lie) * np.eye(3)
    found = local_clusters(transitions @ true, transitions @ (true[:, np.newaxis] * CENTERS), RULES)
    assert np.allclose(found.counts, true)
    assert np.allclose(found.sums / found.counts[:, np.newaxis], CENTERS)


def test_control_without_the_correction_centers_are_pulled_together():
    true = np.array([500.0, 300.0, 200.0])
    truth, lie = RULES.channel.truth, RULES.channel.lie
    transitions = np.full((3, 3), lie) + (truth - lie) * np.eye(3)
    raw = (transitions @ (true[:, np.newaxis] * CENTERS)) / (transitions @ true)[:, np.newaxis]
    assert np.abs(raw - CENTERS).max() > 0.1


def test_the_stated_variances_are_those_of_simulated_reports():
    random = np.random.default_rng(7)
    people = (600, 300, 100)
    truth = np.repeat(np.arange(3), people)
    values = CENTERS[truth]
    sums, counts, stated, errors = [], [], [], []
    for _ in range(3000):
        reports = counted(values + random.laplace(0, RULES.report_scale, values.shape))
        lies = random.random(truth.size) >= RULES.channel.truth
        named = np.where(lies, (truth + random.integers(1, 3, truth.size)) % 3, truth)
        columns = [np.bincount(named, weights=reports[:, axis], minlength=3) for axis in (0, 1)]
        raw = np.stack(columns, axis=1).astype(np.float64)
        found = local_clusters(np.bincount(named, minlength=3).astype(float), raw, RULES)
        sums.append(found.sums)
        counts.append(found.counts)
        stated.append(found.variances)
        errors.append(found.count_errors)
    measured = np.var(sums, axis=0).mean(axis=1)
    assert np.allclose(measured / np.mean(stated, axis=0), 1, atol=0.12)
    assert np.allclose(np.mean(counts, axis=0), people, atol=5 * np.mean(errors) / np.sqrt(3000))
    assert np.all(np.std(counts, axis=0) < 1.15 * np.mean(errors, axis=0))


def test_central_sums_carry_the_calibrated_noise():
    found = central_clusters(np.ones(3), np.ones((3, 2)), RULES)
    assert np.allclose(found.variances, RULES.central_variance)


@pytest.mark.parametrize("read", [central_clusters, local_clusters])
def test_sums_of_another_session_are_refused(read):
    with pytest.raises(InternalFault):
        read(np.ones(2), np.ones((2, 2)), RULES)


# ---------------------------------------------------------------------------------------- rounds


def test_parts_are_combined_by_inverse_variance():
    first = clusters([100, 100, 100], CENTERS, variance=1e-6)
    second = clusters([100, 100, 100], CENTERS + 0.1, variance=3e-6)
    after = advance(start(RULES, CENTERS), (first, second))
    assert np.allclose(after.centers, CENTERS + 0.1 / 4)
    assert after.round == 2
    assert not after.finished


def test_larger_counts_weigh_by_their_square():
    """V = variance of the sum / N^2: weighing by the sums' noise instead would ignore the smaller part."""
    first = clusters([300, 300, 300], CENTERS)
    second = clusters([100, 100, 100], CENTERS + 0.1)
    assert np.allclose(advance(start(RULES, CENTERS), (first, second)).centers, CENTERS + 0.1 / 10)


@pytest.mark.parametrize("noise", [0.01, 1.0, 100.0])
def test_the_place_of_a_center_counts_as_one_more_part(noise):
    """Of three in two dimensions it has the variance of values over a third of the range: 1 / (12 * 3)."""
    after = advance(
        start(RULES, CENTERS),
        (clusters([100, 100, 100], CENTERS + 0.1, variance=(100 * noise) ** 2),),
    )
    heard = noise**-2 / (noise**-2 + 36)
    assert np.allclose(after.centers, CENTERS + 0.1 * heard)
    assert np.allclose(after.errors, (noise**-2 + 36) ** -0.5)
    assert np.all(after.errors < 1 / 6)


def sessions(people, random):
    """Where sessions end whose people are about the public centers: of local people, and of central ones."""
    ends = []
    truth = np.arange(people) % 3
    for _ in range(min(200, 3_000_000 // people)):
        values = CENTERS[truth] + random.normal(0, 0.03, (people, 2))
        reports = counted(values + random.laplace(0, RULES.report_scale, values.shape))
        states = [start(RULES, CENTERS), start(RULES, CENTERS)]
        while not states[0].finished:
            named = nearest(values, states[0].centers)
            lies = random.random(people) >= RULES.channel.truth
            named = np.where(lies, (named + random.integers(1, 3, people)) % 3, named)
            counts, sums = summed(reports, named)
            states[0] = advance(states[0], (local_clusters(counts, sums, RULES),))
            counts, sums = summed(values, nearest(values, states[1].centers))
            scale = (RULES.central_variance / 2) ** 0.5
            counts, sums = counts + random.laplace(0, scale, 3), sums + random.laplace(0, scale, (3, 2))
            states[1] = advance(states[1], (central_clusters(counts, sums, RULES),))
        ends.append([state.centers for state in states])
    return np.array(ends).swapaxes(0, 1)


def summed(values, named):
    """Counts and sums by center."""
    columns = [np.bincount(named, weights=values[:, axis], minlength=3) for axis in (0, 1)]
    return np.bincount(named, minlength=3).astype(float), np.stack(columns, axis=1)


@pytest.mark.parametrize("people", [150, 1_500, 150_000])
def test_no_noise_carries_centers_through_the_range(people):
    """They begin where their people are. Of very many, the local ones are heard, too."""
    random = np.random.default_rng(people)
    local, central = sessions(people, random)
    off = [float(np.sqrt(np.square(found - CENTERS).mean())) for found in (local, central)]
    assert max(off) < 0.15, "noise alone carries them by .47 and .37 where people are few"
    if people == 150_000:
        assert off[0] < 0.05


@pytest.mark.parametrize("count", [-50.0, 0.0, 0.4, 9.9])
def test_a_count_within_its_noise_says_nothing(count):
    part = clusters([count, 100, 100], CENTERS + 0.05, count_error=10.0)
    after = advance(start(RULES, CENTERS), (part,))
    assert np.allclose(after.centers[0], CENTERS[0])
    assert np.allclose(after.centers[1:], CENTERS[1:] + 0.05)


def test_centers_stay_in_the_domain():
    after = advance(start(RULES, CENTERS), (clusters([100, 100, 100], 9 * CENTERS),))
    assert np.all(np.abs(after.centers) <= 0.5)


def test_without_anybody_centers_stay():
    after = advance(start(RULES, CENTERS), ())
    assert np.array_equal(after.centers, CENTERS)


def test_a_finished_session_takes_no_more_rounds():
    state = start(RULES, CENTERS)
    for _ in range(RULES.rounds):
        state = advance(state, ())
    assert state.finished
    with pytest.raises(InternalFault):
        advance(state, ())


@pytest.mark.parametrize("centers", [np.zeros((2, 2)), np.zeros((3, 1)), CENTERS + 0.6, CENTERS * np.nan])
def test_first_centers_must_be_points_of_the_domain(centers):
    with pytest.raises(InvalidRequest):
        start(RULES, centers)


def test_the_nearest_center_is_the_nearest():
    random = np.random.default_rng(3)
    points = random.uniform(-0.5, 0.5, (500, 2))
    distances = ((points[:, np.newaxis] - CENTERS) ** 2).sum(axis=2)
    assert np.array_equal(nearest(points, CENTERS), distances.argmin(axis=1))
