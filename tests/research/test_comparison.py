"""Comparing estimators: profiles, local reports by the million, and simulated releases."""

import math

import numpy as np
import pytest

from app.core.epsilon import MICRO, amount_of
from app.core.grid import GRID_SIZE
from app.core.study import LocalMechanism, Relation, Trust
from app.mechanisms.local_reports import report_noise
from dither_research.comparison import Setting, compare_all
from dither_research.estimators import applicable
from dither_research.people import Bernoulli, Beta
from dither_research.profiles import PROFILES, Block, ProfileError, block, read_profile, scaled
from dither_research.reporting import randomize, report_sums
from dither_research.results import untracked
from dither_research.seeded import seeded
from tests.statistical import Z
from tests.support.reports import report_range

MECHANISMS = list(LocalMechanism)


def delta_of(mechanism):
    return 10**6 if mechanism is LocalMechanism.GAUSSIAN else 0


# --------------------------------------------------------------------------------------- profiles


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("people", [1, 7, 1000, 123_457])
def test_a_scaled_profile_has_as_many_people_as_asked_for(name, people):
    blocks = scaled(PROFILES[name][1], people)
    assert sum(one.count for one in blocks) == people
    assert all(one.count == int(one.count) >= 1 for one in blocks)


def test_the_built_in_profiles_are_those_that_are_promised():
    assert set(PROFILES) >= {
        *("uniform-1", "two-groups", "log-uniform-high", "log-uniform-low", "hybrid-1-percent", "mixed")
    }
    trusts = {one.trust for one in PROFILES["mixed"][1]}
    assert trusts == set(Trust)


def test_a_profile_is_read_from_a_file(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("count,trust,epsilon\n30,central,0.12345\n20,local,1\n5,public,\n")
    assert read_profile(path) == (
        Block(trust=Trust.CENTRAL, epsilon=123_000, count=30),
        Block(trust=Trust.LOCAL, epsilon=MICRO, count=20),
        Block(trust=Trust.PUBLIC, epsilon=0, count=5),
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("trust,epsilon\ncentral,1\n", "header"),
        ("trust,epsilon,count\n", "no person"),
        ("trust,epsilon,count\nnobody,1,3\n", "line 2: trust"),
        ("trust,epsilon,count\ncentral,x,3\n", "line 2: epsilon is not a number"),
        ("trust,epsilon,count\ncentral,0,3\n", "line 2: epsilon is out of range"),
        ("trust,epsilon,count\ncentral,1e-9,3\n", "line 2: epsilon must be at least"),
        ("trust,epsilon,count\ncentral,1,0.5\n", "line 2: count is out of range"),
        ("trust,epsilon,count\ncentral,1\n", "line 2: count is not a number"),
    ],
)
def test_a_file_that_is_no_profile_is_refused_with_the_place(tmp_path, text, reason):
    path = tmp_path / "people.csv"
    path.write_text(text)
    with pytest.raises(ProfileError, match=reason):
        read_profile(path)


def test_a_file_that_is_no_text_is_refused(tmp_path):
    path = tmp_path / "people.csv"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ProfileError, match="cannot be read"):
        read_profile(path)


# ---------------------------------------------------------------------------------------- reports


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("epsilon", [500_000, 2_000_000])
@pytest.mark.parametrize("value", [0.0, 0.3, 1.0])
def test_simulated_reports_have_the_mean_the_variance_and_the_range_of_the_products(
    mechanism, epsilon, value
):
    size, delta = 60_000, delta_of(mechanism)
    reports = randomize(mechanism, epsilon, delta, np.full(size, value), seeded("reports"))
    variance = report_noise(mechanism, amount_of(epsilon, delta)).at(value * GRID_SIZE) / GRID_SIZE**2
    assert abs(reports.mean() - value) < Z * math.sqrt(variance / size)
    assert reports.var() == pytest.approx(variance, rel=Z * math.sqrt(5 / size))
    reach = report_range(mechanism, epsilon, delta)
    assert reports.min() * GRID_SIZE >= reach.lower - 1
    assert reports.max() * GRID_SIZE <= reach.upper + 1


@pytest.mark.long
@pytest.mark.parametrize("mechanism", [LocalMechanism.LAPLACE, LocalMechanism.HYBRID])
def test_sums_of_many_reports_have_the_moments_of_sums_of_few(mechanism, monkeypatch):
    law, count, runs = Beta(2, 3), 2000, 3000
    few = report_sums(mechanism, MICRO, 0, law, count, runs, seeded("few"))
    monkeypatch.setattr("dither_research.reporting._MOST_DRAWN", 0)
    many = report_sums(mechanism, MICRO, 0, law, count, runs, seeded("many"))
    for one, other in zip(few, many, strict=True):
        assert other.mean() == pytest.approx(one.mean(), abs=7 * one.std() / math.sqrt(runs))
        assert other.std() == pytest.approx(one.std(), rel=0.1)
    assert np.allclose(np.corrcoef(few), np.corrcoef(many), atol=0.1)


# ------------------------------------------------------------------------------------- comparison


def setting(*blocks, relation=Relation.REPLACE_ONE, runs=400, law=None):
    return Setting(
        profile=blocks,
        law=law or Bernoulli(),
        relation=relation,
        mechanism=LocalMechanism.LAPLACE,
        delta=0,
        runs=runs,
    )


@pytest.mark.long
def test_every_estimator_that_applies_errs_as_it_predicts_on_worst_case_data():
    """400 runs: the mean square is right to sqrt(5 / 400), its root to half of that; four times."""
    found, refused = compare_all(
        setting(block(Trust.CENTRAL, 0.2, 300), block(Trust.CENTRAL, 1, 200)), untracked
    )
    names = {one.estimator for one in found}
    assert names | set(refused) == {one.name for one in applicable(Relation.REPLACE_ONE)}
    assert set(refused) == {"lm_only"}
    for one in found:
        if one.estimator != "stretching":  # Predicts its bias at the worst mean.
            assert one.simulated == pytest.approx(one.predicted, rel=2 * math.sqrt(5 / 400))
        assert one.coverage >= 0.9
        assert one.most_charged <= MICRO
    assert [one.predicted for one in found] == sorted(one.predicted for one in found)
    assert found[0].predicted == min(one.predicted for one in found)


@pytest.mark.long
def test_reports_are_new_in_every_run():
    found, _ = compare_all(
        setting(block(Trust.CENTRAL, 1, 20), block(Trust.LOCAL, 1, 400), runs=200, law=Beta(1, 1)), untracked
    )
    (reports,) = [one for one in found if one.estimator == "lm_only"]
    expected = math.sqrt((1 / 12 + 2) / 400)
    assert reports.simulated == pytest.approx(expected, rel=0.2)
    assert reports.most_charged == 0


@pytest.mark.long
def test_a_secret_number_of_people_is_compared_about_their_own_mean():
    found, _ = compare_all(
        setting(block(Trust.CENTRAL, 0.5, 500), relation=Relation.ADD_REMOVE_ONE, runs=150), untracked
    )
    assert {one.estimator for one in found} == {one.name for one in applicable(Relation.ADD_REMOVE_ONE)}
    (transformed,) = [one for one in found if one.estimator == "transformed"]
    # At a mean of 1/2 the variance is half of the worst case.
    assert transformed.simulated == pytest.approx(transformed.predicted / math.sqrt(2), rel=0.35)
    assert all(one.coverage >= 0.87 for one in found)
