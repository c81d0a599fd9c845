"""Audits of every mechanism on worst-case neighbors, and faults that they must catch.

Cells are fixed beforehand from the mechanism's own definition, so that the best event is among them: where
the two likelihoods stand in the largest ratio.
"""

from dataclasses import replace

import numpy as np
import pytest
from dither.device.gaussian import gaussian_sigma, micro_mu2
from dither.device.randomizers import LocalMechanism, randomizer
from dither.device.response import respond

from app.accounting.costs import group_costs
from app.core.errors import InternalFault
from app.core.grid import GRID_SIZE
from app.core.noise import DiscreteGaussian, DiscreteLaplace
from app.core.study import Relation
from app.estimators.interface import Query
from app.mechanisms.hourglass import hourglass
from dither_research.audit_bounds import audited_epsilon
from dither_research.staircase import draw_staircase, staircase
from tests.statistical import SAMPLE_SIZE
from tests.support.groups import central
from tests.support.noise import noise_source
from tests.support.reports import report_range

pytestmark = pytest.mark.statistical

EPSILON = 1_000_000
DELTA = 10**6
MISSED = 0.2
"""What an honest audit of epsilon = 1 may miss. Events of probability 0.1 and more have a relative standard
error of 2 %, twice, and the bound stands 4.9 of them off: it misses 0.07 to 0.11 and varies by 0.007 to
0.015, so that 0.2 is six standard deviations away. Each floor below is that far from what 8 to 60 audits on
fresh entropy found."""
MANY = 4 * SAMPLE_SIZE
"""Draws of the audits that are drawn in columns."""


@pytest.fixture
def source(request):
    return noise_source(request.node.nodeid)


def binned(values, width, most=40):
    return np.clip(np.floor_divide(values, width), -most, most).astype(np.int64)


# --------------------------------------------------------------------------------------- Laplace, Gaussian


def laplace_audit(source, scale, move):
    noise = DiscreteLaplace(scales=(scale,))
    first, second = (source.draws(noise, MANY)[:, 0] for _ in range(2))
    return audited_epsilon(binned(first, GRID_SIZE // 4), binned(second + move, GRID_SIZE // 4)).epsilon


def test_laplace_noise_shows_no_more_than_it_costs(source):
    found = laplace_audit(source, float(GRID_SIZE), GRID_SIZE)
    assert 1 - MISSED < found <= 1


def test_control_half_the_laplace_noise_is_caught(source):
    assert laplace_audit(source, GRID_SIZE / 2, GRID_SIZE) > 1.5


def test_control_a_missing_clamp_is_caught(source):
    """A value at twice the range, which should have been refused when it arrived."""
    assert laplace_audit(source, float(GRID_SIZE), 2 * GRID_SIZE) > 1.5


def gaussian_audit(source, sigma, move):
    noise = DiscreteGaussian(sigmas=(sigma,))
    first, second = (source.draws(noise, MANY)[:, 0] for _ in range(2))
    bins = binned(first, GRID_SIZE // 2), binned(second + move, GRID_SIZE // 2)
    return audited_epsilon(*bins, delta=DELTA / 1e12).epsilon


def test_gaussian_noise_shows_no_more_than_it_costs(source):
    sigma = float(gaussian_sigma(micro_mu2(EPSILON, DELTA)))
    found = gaussian_audit(source, sigma, GRID_SIZE)
    assert 0.1 < found <= 1  # its loss is largest far out, where hardly any draw falls


def test_control_a_quarter_of_the_gaussian_noise_is_caught(source):
    assert gaussian_audit(source, float(gaussian_sigma(micro_mu2(EPSILON, DELTA))) / 4, GRID_SIZE) > 1.5


# --------------------------------------------------------------------------------------- staircase


def levels(values, noise):
    magnitude = np.abs(values)
    return np.where(magnitude < noise.step, 0, 1 + (magnitude - noise.step) // noise.sensitivity)


def stairs(source, noise, size):
    return np.array([draw_staircase(noise, source.bits) for _ in range(size)], dtype=np.int64)


def staircase_audit(source, noise, move, claimed=None):
    """Cells: by how many steps the two neighbors' likelihoods differ."""
    first, second = (stairs(source, noise, SAMPLE_SIZE) for _ in range(2))
    claimed = claimed or noise
    cells = [levels(v - move, claimed) - levels(v, claimed) for v in (first, second + move)]
    return audited_epsilon(*cells).epsilon


def test_a_staircase_shows_no_more_than_it_costs(source):
    found = staircase_audit(source, staircase(GRID_SIZE, EPSILON), GRID_SIZE)
    assert 1 - MISSED < found <= 1


def test_control_a_staircase_of_half_the_sensitivity_is_caught(source):
    shape = staircase(GRID_SIZE // 2, EPSILON)
    assert staircase_audit(source, shape, GRID_SIZE) > 1.5


def test_erratum_shrinking_the_data_does_not_protect_under_a_staircase(source):
    """Published: shrink a half-privacy person's data by half, then any eps_max-private mechanism will do. The
    half move still costs a whole epsilon. Ours has no price for it."""
    shape = staircase(GRID_SIZE, EPSILON)
    found = staircase_audit(source, shape, GRID_SIZE // 2)
    assert found > 0.5 + MISSED  # published: .5
    assert found <= 1
    half = Query(sum_weights=(1, 2), count_weights=(0, 0))
    with pytest.raises(InternalFault):
        group_costs([half], shape, Relation.REPLACE_ONE, [central(1), central(1)])  # type: ignore[arg-type]  # on purpose


def test_laplace_noise_does_protect_data_that_were_shrunk(source):
    assert laplace_audit(source, float(GRID_SIZE), GRID_SIZE // 2) <= 0.5


def test_erratum_a_staircase_on_each_of_two_queries_costs_twice(source):
    """Published: Laplace noise on the pair may be replaced by staircase noise. One person at the middle of
    the range moves both queries, and both moves may cross a step. Ours refuses the pair."""
    shape = staircase(GRID_SIZE, EPSILON)
    move = GRID_SIZE // 2
    size = 2 * SAMPLE_SIZE
    cells = []
    for shift in (0, move):
        differences = np.zeros(size, dtype=np.int64)
        for _ in range(2):
            values = stairs(source, shape, size) + shift
            differences = differences + levels(values - move, shape) - levels(values, shape)
        cells.append(differences)
    found = audited_epsilon(cells[0], cells[1]).epsilon
    assert 2 - 2 * MISSED < found <= 2
    pair = [Query(sum_weights=(1,), count_weights=(0,)), Query(sum_weights=(-1,), count_weights=(1,))]
    for relation in Relation:
        with pytest.raises(InternalFault):
            group_costs(pair, shape, relation, [central(1)])  # type: ignore[arg-type]  # on purpose


# --------------------------------------------------------------------------------------- hourglass


def hourglass_levels(values, noise):
    u, rest = np.divmod(values[:, 0] + values[:, 1], noise.sensitivity)
    v = (values[:, 0] - values[:, 1]) // 2
    blocks = np.maximum(-((noise.step + np.abs(u) * noise.half - np.abs(v)) // noise.sensitivity), 0)
    return np.where(rest == 0, np.abs(u) + 2 * blocks, 10**6)


def hourglass_audit(source, noise, person, claimed=None):
    """A person at some grid point appears. Cells: the change of the level; none is off the lattice."""
    claimed = claimed or noise
    move = np.array([person, GRID_SIZE - person])
    first, second = (source.draws(noise, SAMPLE_SIZE) for _ in range(2))
    cells = [
        hourglass_levels(values - move, claimed) - hourglass_levels(values, claimed)
        for values in (first, second + move)
    ]
    return audited_epsilon(*cells).epsilon


@pytest.mark.parametrize("person", [0, GRID_SIZE // 2, GRID_SIZE])
def test_an_hourglass_shows_no_more_than_it_costs(source, person):
    found = hourglass_audit(source, hourglass(GRID_SIZE, EPSILON), person)
    assert 1 - MISSED < found <= 1


def test_control_an_hourglass_of_half_the_noise_is_caught(source):
    shape = hourglass(GRID_SIZE, EPSILON)
    found = hourglass_audit(source, replace(shape, epsilon=2 * EPSILON), GRID_SIZE // 2)
    assert found > 1.5


def test_control_a_person_of_half_a_unit_shows_in_an_hourglass(source):
    """Half a unit leaves the noise's lattice: an outsider sees it outright. Its price is refused."""
    shape = hourglass(2 * GRID_SIZE, EPSILON)
    assert hourglass_audit(source, shape, GRID_SIZE // 2) > 5
    pair = [Query(sum_weights=(1,), count_weights=(0,)), Query(sum_weights=(-1,), count_weights=(1,))]
    with pytest.raises(InternalFault):
        group_costs(pair, shape, Relation.ADD_REMOVE_ONE, [central(1)])


# --------------------------------------------------------------------------------------- answers and reports


def response_audit(source, epsilon, categories=3):
    cells = [
        np.array([respond(truth, categories, epsilon, source.bits) for _ in range(SAMPLE_SIZE)])
        for truth in (0, 1)
    ]
    return audited_epsilon(*cells).epsilon


def test_answers_show_no_more_than_they_cost(source):
    assert 1 - MISSED < response_audit(source, EPSILON) <= 1


def test_control_answers_of_twice_the_price_are_caught(source):
    assert response_audit(source, 2 * EPSILON) > 1.5


def report_cells(reports, mechanism, epsilon):
    """A hundred cells across the range, or across 8 scales around the grid where there is no end."""
    if mechanism in ("laplace", "gaussian"):
        return binned(reports, GRID_SIZE // 2)
    allowed = report_range(LocalMechanism(mechanism), epsilon)
    width = (allowed.upper - allowed.lower) // 100 + 1
    return (reports - allowed.lower) // width


def report_audit(source, mechanism, epsilon, points=(0, GRID_SIZE)):
    delta = DELTA if mechanism == "gaussian" else 0
    device = randomizer(mechanism, delta)
    cells = []
    for point in points:
        reports = [device.report(point, epsilon, source.bits) for _ in range(SAMPLE_SIZE)]
        cells.append(report_cells(np.array(reports), mechanism, epsilon))
    return audited_epsilon(*cells, delta=delta / 1e12).epsilon


@pytest.mark.parametrize("mechanism", LocalMechanism)
def test_local_reports_show_no_more_than_they_cost(source, mechanism):
    found = report_audit(source, mechanism, EPSILON)
    assert (0.02 if mechanism == "gaussian" else 0.65) < found <= 1


@pytest.mark.parametrize("mechanism", [name for name in LocalMechanism if name != "gaussian"])
def test_control_local_reports_of_twice_the_price_are_caught(source, mechanism):
    assert report_audit(source, mechanism, 2 * EPSILON) > 1.3


@pytest.mark.parametrize("mechanism", LocalMechanism)
def test_control_local_reports_without_randomness_are_caught(mechanism):
    """A device that sends the value itself."""
    cells = [np.full(SAMPLE_SIZE, report_cells(np.array([p]), mechanism, EPSILON)[0]) for p in (0, GRID_SIZE)]
    assert audited_epsilon(*cells).epsilon > 5


# --------------------------------------------------------------------------------------- the grid


def residues(values, bits=6):
    return values % 2**bits


@pytest.mark.parametrize(
    "noise",
    [
        DiscreteLaplace(scales=(float(GRID_SIZE),)),
        DiscreteGaussian(sigmas=(float(GRID_SIZE),)),
    ],
    ids=lambda noise: type(noise).__name__,
)
def test_low_bits_do_not_tell_neighbors_apart(source, noise):
    """Values that differ in their last bits only."""
    first, second = (source.draws(noise, SAMPLE_SIZE)[:, 0] + value for value in (12_345, 12_378))
    assert audited_epsilon(residues(first), residues(second)).epsilon < 0.05


def test_control_noise_that_is_rounded_to_even_steps_is_caught(source):
    noise = DiscreteLaplace(scales=(float(GRID_SIZE),))
    first, second = (source.draws(noise, SAMPLE_SIZE)[:, 0] // 64 * 64 + value for value in (12_345, 12_378))
    assert audited_epsilon(residues(first), residues(second)).epsilon > 5


def test_control_floating_point_noise_gives_its_value_away(source):
    """Mironov's attack in its simplest form: 1 + noise and 1/3 + noise do not hit the same doubles."""
    noise = source.people.laplace(0.0, 1.0, (2, SAMPLE_SIZE))
    first, second = 1.0 + noise[0], 1 / 3 + noise[1]
    cells = [((values - 1.0) + 1.0 == values).astype(np.int64) for values in (first, second)]
    assert audited_epsilon(*cells).epsilon > 0.05


def test_hourglass_noise_stays_on_its_lattice(source):
    """Anywhere else a person's part of a unit would show; here whole people only."""
    values = source.draws(hourglass(GRID_SIZE, EPSILON), 1000)
    assert np.all(values.sum(1) % GRID_SIZE == 0)
