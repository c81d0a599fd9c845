r"""What a chain of two answers tells about one person, by brute force over neighbors and outputs.

Pieces are those that `plan_step` makes, with the charges of both steps, between which a person leaves and
others come. The range is made a few steps wide, and weights and scales are divided by what leaves every price
as it is: a person who moves a sum by d steps loses d over the scale. The law of a refinement is that of the
code's four pieces (`_weights`). Sums of different pieces, and of values and of squares, have independent
noise, and what other people add to them is the same for both neighbors: the largest ratio of all answers is
the product of the largest ones of each sum, over its one or two answers.
"""

import math
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product
from uuid import UUID

import pytest

from app.accounting.gaussian import effective_variance
from app.core.epsilon import MICRO
from app.core.grid import GRID_SIZE
from app.core.grid import square as square_of
from app.core.piece import LastStep, Piece
from app.mechanisms.refined_gaussian import part_sigma
from app.mechanisms.refined_laplace import _weights
from app.services.shapes.kinds import resolve
from app.services.shapes.steps import ShapeStep, plan_step
from app.services.statistics.piece_noise import LaplaceBins, step_scale
from app.services.statistics.questions import Ask
from dither_research.histories import GAUSSIAN_STUDY, STUDY, History, cohort_of

GRID = 8
"""Steps of the small range."""

BEYOND = 12
"""Outputs are enumerated this far beyond both values, which is beyond every one of the laws' edges."""

POINTS = range(GRID + 1)


def square(point):
    """`app.core.grid.square` on the small range: about its middle, in grid steps, rounded down."""
    return (point - GRID // 2) ** 2 // GRID


@cache
def log_laplace(scale, noise):
    p = math.exp(-1 / scale)
    return math.log((1 - p) / (1 + p)) - abs(noise) / scale


@cache
def shares(noise, scale, finer):
    """Of the pieces of the law below 0, up to the first noise, beyond it, and of the atom there."""
    pieces, total = _weights(noise, 1 / scale, 1 / finer, 256)
    found = [Fraction(piece.lower, total.lower) for piece in pieces]
    return *map(float, found), float(1 - sum(found))


@cache
def log_refined(noise, result, scale, finer):
    """The law of `refine_laplace`, given what it takes for the first noise."""
    if noise < 0:
        return log_refined(-noise, -result, scale, finer)
    q, log_r = math.exp(-1 / scale - 1 / finer), float(1 / scale - 1 / finer)
    below, inside, beyond, atom = shares(noise, scale, finer)
    if result < 0:
        return math.log(below * (1 - q)) + (-result - 1) * math.log(q)
    if result > noise:
        return math.log(beyond * (1 - q)) + (result - noise - 1) * math.log(q)
    part = math.expm1(log_r) / math.expm1((noise + 1) * log_r) * math.exp(result * log_r)
    return math.log(inside * part + atom * (result == noise))


def log_fresh(noise, result, scale, finer):
    """A planted bug: the second noise is independent of the first one."""
    return log_laplace(finer, result)


def log_joint(outputs, value, scales, law, left):
    """Of one or two answers about a value; `left` is what those added to the first who have left since."""
    first, *then = (output - value for output in outputs)
    found = log_laplace(scales[0], first)
    return found + sum(law(first + left, result, *scales) for result in then)


@cache
def loss(move, scales, law=log_refined, left=0):
    """The largest log-ratio of all outputs, of a value and one that is `move` steps above, either way."""
    reach = range(-BEYOND, abs(move) + BEYOND + 1)
    return max(
        abs(log_joint(outputs, 0, scales, law, left) - log_joint(outputs, abs(move), scales, law, left))
        for outputs in product(reach, repeat=len(scales))
    )


def person_loss(chains, law=log_refined):
    """Over all neighbors, from the scales of each piece that the person is in [micro-epsilon]."""
    return MICRO * max(
        sum(
            loss(one - other, scales, law) + loss(square(one) - square(other), scales, law)
            for scales in chains
        )
        for one, other in product(POINTS, POINTS)
    )


class Recorded(History):
    """A history that notes with which scales each piece was drawn."""

    def __init__(self, **given):
        super().__init__(**given)
        self.scales = {}

    def publish(self, step, share):
        found = super().publish(step, share)
        for number in step.finer:
            self.scales.setdefault(number, []).append(self.pieces[number].scale)
        return found

    def chains(self, cohort_id):
        """The scales of each piece that a cohort is in, in units of what one grid step moves it by."""
        return [
            tuple(Fraction(scale) * GRID / (member.weight * GRID_SIZE) for scale in self.scales[piece.number])
            for piece in self.pieces.values()
            for member in piece.members
            if member.cohort_id == cohort_id
        ]


def two_steps(estimator, leaver):
    """A third, then nine tenths; newcomers between them, and perhaps a leaver, with chains and charge."""
    history, gone = Recorded(estimator=estimator), None
    for epsilon in (MICRO, 700_001):
        history.join(epsilon, [5 * GRID_SIZE // 8] * 2_000)
    history.ask(333_333)
    if leaver:
        gone = history.chains(1), history.charged()[1]
        history.leave(1)
    history.join(MICRO, [GRID_SIZE] * 2_000)
    history.ask(900_000)
    return history, gone


@pytest.mark.parametrize("leaver", [False, True])
@pytest.mark.parametrize("estimator", ["uniform", "adpm"])
def test_both_answers_together_cost_what_was_charged_to_the_micro(estimator, leaver):
    history, gone = two_steps(estimator, leaver)
    people = [(history.chains(cohort), charge) for cohort, charge in history.charged().items()]
    assert len(people) == 3
    # Without a leaver one piece was drawn twice; with one it was not, and those who stayed are in two.
    drawn = sorted(tuple(map(len, chains)) for chains, _ in people)
    assert drawn == ([(1,), (1, 1), (1, 1)] if leaver else [(1,), (2,), (2,)])
    for chains, charge in [*people, *([gone] if gone else [])]:
        lost = person_loss(chains)
        assert lost <= charge + 1e-6
        # Rounded up, by each piece once.
        assert charge < lost + len(chains) + 1e-6


def test_a_chain_costs_what_its_last_answer_alone_does():
    scales = Fraction(24), Fraction(9)
    for move in POINTS:
        assert loss(move, scales) == pytest.approx(loss(move, scales[1:]), abs=1e-12)
        assert loss(move, scales) == pytest.approx(move / 9, abs=1e-12)


def test_control_an_independent_second_draw_costs_more_than_the_charge():
    history, _ = two_steps("uniform", False)
    for cohort in (1, 2):
        chains = history.chains(cohort)
        (one, other), charge = chains[0], history.charged()[cohort]
        lost = person_loss(chains, log_fresh)
        assert lost == pytest.approx(MICRO * float(GRID / one + GRID / other))
        assert lost > 1.3 * charge


@pytest.mark.parametrize("left", [-GRID, 1, GRID])
def test_control_a_refinement_after_a_person_left_costs_more_than_the_charge(left):
    history, _ = two_steps("uniform", False)
    (scales,), charge = history.chains(1), history.charged()[1]
    assert MICRO * loss(GRID, scales, log_refined, left) > 1.02 * charge


def bins_loss(chains, law=log_refined, moved=2):
    """Of counts by bin, `moved` of which a neighbor moves by their weight, over all outputs of both steps."""
    return MICRO * moved * sum(loss(weight, scales, law) for weight, scales in chains)


@pytest.mark.parametrize("moved", [1, 2])
@pytest.mark.parametrize("weight", range(1, 7))
@pytest.mark.parametrize(("first", "last"), [(MICRO // 10, MICRO), (MICRO // 3, MICRO // 2), (MICRO, MICRO)])
def test_two_steps_of_counts_by_bin_cost_what_the_last_one_does(weight, first, last, moved):
    """Weights of a few units, and noise as much smaller, which leaves every price as it is."""
    noise, unit = LaplaceBins(moved), 9.0
    scales = tuple(Fraction(step_scale(unit, share)) for share in dict.fromkeys((first, last)))
    charged = noise.price(unit, last)(weight)
    lost = bins_loss([(weight, scales)], moved=moved)
    assert lost <= charged + 1e-6 * charged
    assert lost > 0.9 * charged
    if len(scales) > 1:
        # Noise that is drawn anew, and a price of half of what moves, are not covered.
        assert bins_loss([(weight, scales)], log_fresh, moved) > 1.05 * charged
        assert lost > 0.75 * charged > charged / 2


SHARES = pytest.mark.parametrize("shares", [(333_333, 900_000), (100_000, MICRO)])


def steps_by_coordinate(study, shares, epsilon):
    """The steps of a mean of two coordinates, of 2,000 people in one piece, and what they pay in all."""
    study, before, paid = replace(study, dimension=2), None, 0
    steps: list[ShapeStep] = []
    pieces: list[Piece] = []
    for share in shares:
        people = replace(cohort_of(1, epsilon, [0] * 2_000), spent=paid)
        question = resolve(study, Ask(statistic="mean", share=share))
        step = plan_step(study, question, [people], pieces, before)
        assert step is not None
        steps.append(step)
        pieces = [*step.take({1: (2_000, 0, 0, 0, 0)})[1].changed]
        before = LastStep(release=UUID(int=1), share=share, epoch=1)
        paid += step.most
    return steps, pieces[0], paid


@SHARES
@pytest.mark.parametrize("epsilon", [MICRO, 700_001])
def test_two_steps_of_two_coordinates_cost_what_was_charged_to_the_micro(shares, epsilon):
    """All neighbors on the small range in both coordinates, and in each all outputs of both steps."""
    steps, piece, charged = steps_by_coordinate(STUDY, shares, epsilon)
    (member,) = piece.members
    scales = tuple(
        Fraction(step_scale(step.pieces[0].unit, step.pieces[0].share)) * GRID / (member.weight * GRID_SIZE)
        for step in steps
    )

    def person(law=log_refined, coordinates=2):
        of_one = {
            (one, other): loss(one - other, scales, law) + loss(square(one) - square(other), scales, law)
            for one, other in product(POINTS, POINTS)
        }
        return MICRO * max(map(sum, product(of_one.values(), repeat=coordinates)))

    assert charged == member.charged
    assert person() <= charged + 1e-6
    assert charged < person() + 1 + 1e-6
    # Controls: the price of one coordinate, and noise that is drawn anew.
    assert charged > 1.9 * person(coordinates=1)
    assert person(log_fresh) > 1.05 * charged


@SHARES
def test_two_gaussian_steps_of_two_coordinates_cost_what_was_charged_to_the_micro(shares):
    """mu^2 of all draws, over all neighbors at ends, quarters and their next grid points."""
    steps, piece, charged = steps_by_coordinate(GAUSSIAN_STUDY, shares, MICRO)
    (member,) = piece.members
    variance, parts = effective_variance(piece.unit), (shares[0], shares[1] - shares[0])
    first, second = (
        sum(1 / effective_variance(part_sigma(variance / finer, part)) for part in parts) for finer in (1, 4)
    )
    near = (0, 1, GRID_SIZE // 4, GRID_SIZE // 2, 3 * GRID_SIZE // 4, GRID_SIZE - 1, GRID_SIZE)
    of_one = [
        member.weight**2 * ((a - b) ** 2 * first + (square_of(a) - square_of(b)) ** 2 * second)
        for a, b in product(near, near)
    ]
    lost = MICRO * max(map(sum, product(of_one, repeat=2)))
    assert (len(steps), charged) == (2, member.charged)
    assert lost <= charged < lost + 1 + 1e-6
    assert charged > 1.9 * MICRO * max(of_one)
