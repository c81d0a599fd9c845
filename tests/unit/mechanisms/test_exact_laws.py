"""Laws of samplers by rational arithmetic: not close to what they should be, but equal.

A rational number stands for 1/e, so that probabilities are fractions. Both sides of each equation are
quotients of polynomials in it. Times all denominators they are polynomials, and those that agree at more
points than their degree are the same, also at 1/e: each test has more points than that.
"""

from collections import Counter
from fractions import Fraction
from functools import partial
from itertools import accumulate, combinations, product
from math import comb, factorial, prod
from types import SimpleNamespace
from typing import Any

import pytest
from dither.device import choices, exact, measures
from dither.device.choices import ChoiceRandomizer, ChoiceReports

from app.core.epsilon import MICRO
from app.core.noise import Hourglass
from app.mechanisms import hourglass, refined_gaussian, refined_laplace
from tests.support.decisions import one_round, power

FEW = [Fraction(place, 17) for place in range(1, 17)]
"""Points for degrees below 16."""

MANY = [Fraction(place, 65) for place in range(1, 65)]
"""Points for degrees below 64."""

RATES = [(1, 2), (1, 3), (2, 3)]
"""1/scale before and after a refinement."""

FORMER, FINER = range(-3, 4), range(-4, 5)
"""Noise that is refined, and what comes of it. The equations have degrees below 60 there."""


def laplace(p, z):
    return (1 - p) / (1 + p) * p ** abs(z)


# ------------------------------------------------------------------------------------- one decision


def _next(drawn, _):
    return next(drawn)


@pytest.mark.parametrize("bound", range(1, 34))
def test_a_number_below_a_bound_is_uniform(bound):
    """Each candidate is as likely: those below the bound are taken, all others lead to another one."""
    candidates = 1 << (bound - 1).bit_length()
    assert candidates < 2 * bound
    for candidate in range(candidates):
        drawn = iter([candidate, 0])
        assert exact.below(bound, partial(_next, drawn)) == (candidate if candidate < bound else 0)
        taken = bound == 1 or candidate < bound
        assert len(list(drawn)) == (2 if bound == 1 else 1) * taken


@pytest.mark.parametrize(("numerator", "denominator"), [(0, 1), (1, 1), (1, 3), (2, 3), (4, 5)])
def test_a_coin_falls_as_the_exponential_series_says(monkeypatch, numerator, denominator):
    """P(true, after k numbers at most) is sum_{j <= k} (-x)^j / j!, for each even k: e^-x in the limit."""
    x, found = Fraction(numerator, denominator), Fraction(0)
    for taken in range(12):
        asked: list[int] = []

        def below(bound, _, asked=asked, taken=taken):
            asked.append(bound)
            # The largest number that goes on, and the smallest that ends it.
            return numerator - (len(asked) <= taken)

        monkeypatch.setattr(exact, "below", below)
        true = exact._bernoulli_exp_unit(numerator, denominator, lambda count: 0)
        assert asked == [k * denominator for k in range(1, taken + 2)]
        goes_on = [Fraction(numerator, bound) for bound in asked]
        found += true * prod(goes_on[:-1]) * (1 - goes_on[-1])
        if taken % 2:
            assert found == sum((-x) ** j / factorial(j) for j in range(taken + 1))


@pytest.mark.parametrize("numerator", range(13))
@pytest.mark.parametrize("denominator", range(1, 5))
def test_coins_of_a_large_exponent_have_exponents_of_this_sum(monkeypatch, numerator, denominator):
    """All of them must be true, and the first that is not is the last one."""

    def flipped(fails: int | None) -> tuple[bool, list[Fraction]]:
        asked: list[Fraction] = []

        def coin(above, below, _):
            asked.append(Fraction(above, below))
            return len(asked) != fails

        monkeypatch.setattr(exact, "_bernoulli_exp_unit", coin)
        return exact.bernoulli_exp(numerator, denominator, lambda count: 0), asked

    true, asked = flipped(None)
    assert true
    assert sum(asked) == Fraction(numerator, denominator)
    assert max(asked) <= 1
    for fails in range(1, len(asked) + 1):
        assert flipped(fails) == (False, asked[:fails])


# ------------------------------------------------------------------------------------------ one draw


@pytest.mark.parametrize("base", FEW)
@pytest.mark.parametrize(("numerator", "denominator"), [(1, 1), (1, 3), (2, 3), (3, 2)])
def test_a_geometric_draw_has_its_law(monkeypatch, base, numerator, denominator):
    """`base` stands for e^(-1 / denominator); degrees are below 16."""
    outcomes: dict[int, Fraction] = {}
    for u, v in product(range(denominator), range(12 // denominator)):
        coins: list[tuple[int, int]] = []

        def coin(above, below, _, coins=coins, v=v):
            coins.append((above, below))
            return len(coins) <= 1 + v

        monkeypatch.setattr(exact, "below", lambda bound, _, u=u: u)
        monkeypatch.setattr(exact, "_bernoulli_exp_unit", coin)
        drawn = exact.geometric(numerator, denominator, bits=lambda _: 0)
        # One coin keeps u, the others count v, the last of them against one more.
        assert coins == [(u, denominator), *[(1, 1)] * (v + 1)]
        kept = base**u / sum(base**place for place in range(denominator))
        chance = kept * (1 - base**denominator) * base ** (denominator * v)
        outcomes[drawn] = outcomes.get(drawn, 0) + chance
    for k in range(12 // numerator - 1):
        assert outcomes[k] == (1 - base**numerator) * base ** (numerator * k)


@pytest.mark.parametrize("base", FEW)
@pytest.mark.parametrize("rate", [1, 2])
def test_a_laplace_draw_has_its_law(monkeypatch, base, rate):
    """A geometric number and a sign, once more for a negative zero."""
    p, again = base**rate, Fraction(0)
    outcomes: dict[int, Fraction] = {}
    for size, sign in product(range(5), (0, 1)):
        sizes, signs = iter([size, 0]), iter([sign, 0])
        asked: list[Fraction] = []

        def geometric(numerator, denominator, bits, asked=asked, sizes=sizes):
            asked.append(Fraction(numerator, denominator))
            return next(sizes)

        monkeypatch.setattr(exact, "geometric", geometric)
        drawn = exact.discrete_laplace(1, rate, partial(next, signs))
        assert asked[0] == rate
        chance = (1 - p) * p**size / 2
        if len(asked) == 1:
            outcomes[drawn] = outcomes.get(drawn, 0) + chance
        else:
            again += chance
    for z in range(-4, 5):
        assert outcomes[z] / (1 - again) == laplace(p, z)


@pytest.mark.parametrize("base", FEW)
@pytest.mark.parametrize(("half", "step"), [(half, step) for half in (1, 2, 3) for step in range(half + 1)])
def test_the_level_of_an_hourglass_has_its_law(monkeypatch, base, half, step):
    """All places of a level are equally likely: `test_every_pair_has_its_place` finds each of them once."""
    shape = Hourglass(sensitivity=2 * half, epsilon=MICRO, step=step)
    monkeypatch.setattr("tests.support.decisions.MOST", 5)
    law = one_round(
        monkeypatch,
        hourglass,
        lambda: hourglass._draw_t(shape, lambda count: 0),
        restarts=lambda before, request: request == ("below", (8 * half,)) and len(before) > 0,
        base=base,
    )
    total = 2 * step + 1 + (4 * half + 4 * step + 2) * base / (1 - base) + 8 * half * (base / (1 - base)) ** 2
    for t in range(5):
        assert law.probability(t) == hourglass._cells(shape, t) * base**t / total


@pytest.mark.parametrize("sigma", range(1, 9))
def test_a_gaussian_draw_has_its_law(monkeypatch, sigma):
    """Exponents of a Laplace draw and of the coin that keeps it: x^2 / (2 sigma^2), and one for all x."""
    beside: set[Fraction] = set()
    for x in range(-4 * sigma, 4 * sigma + 1):
        exponents: list[Fraction] = []

        def laplace(numerator, denominator, _, x=x, exponents=exponents):
            exponents.append(Fraction(abs(x) * denominator, numerator))
            return x

        def keeps(numerator, denominator, _, exponents=exponents):
            exponents.append(Fraction(numerator, denominator))
            return len(exponents) > 2

        monkeypatch.setattr(exact, "discrete_laplace", laplace)
        monkeypatch.setattr(exact, "bernoulli_exp", keeps)
        assert exact.discrete_gaussian(sigma, lambda count: 0) == x
        assert exponents[:2] == exponents[2:], "what is not kept is drawn again"
        beside.add(sum(exponents[:2]) - Fraction(x * x, 2 * sigma * sigma))
    assert len(beside) == 1


# ------------------------------------------------------------------------------------------- reports


def law_of_choices(monkeypatch, count, power, true):
    """Probabilities of all reports of a choice, where another one's weight is one."""
    monkeypatch.setattr(choices, "ONE", 1)
    monkeypatch.setattr(ChoiceRandomizer, "range", lambda *_: ChoiceReports(count=count, power=power))
    found: Counter[int] = Counter()
    point = choices.choice_points(count)[true]
    for kept in (0, 1):
        draw = partial(ChoiceRandomizer(count).report, point, 1, {1: kept}.__getitem__)
        law = one_round(monkeypatch, choices, draw, restarts=lambda before, request: False)
        found.update({report: chance / 2 for report, chance in law.outcomes.items()})
    return found


@pytest.mark.parametrize(
    ("count", "power", "single"), [(2, 3, True), (3, 2, True), (5, 9, True), (7, 2, False)]
)
def test_a_report_of_a_choice_has_its_law_and_its_price(monkeypatch, count, power, single):
    laws = [law_of_choices(monkeypatch, count, power, true) for true in range(count)]
    shape = ChoiceReports(count=count, power=power)
    assert shape.is_single is single
    for true, law in enumerate(laws):
        assert sum(law.values()) == 1
        assert len(law) == (count if single else 2**count)
        for place in range(count):
            has = sum(chance for report, chance in law.items() if report >> place & 1)
            assert has == (shape.kept if place == true else shape.other)
    assert max(a[report] / b[report] for a in laws for b in laws for report in a) == power


@pytest.mark.parametrize(("count", "number"), [(1, 1), (3, 1), (3, 2), (4, 2), (4, 3), (5, 5)])
def test_each_set_of_measures_is_reported_as_often(monkeypatch, count, number):
    device: Any = SimpleNamespace(report=lambda point, epsilon, bits: point)
    law = one_round(
        monkeypatch,
        measures,
        lambda: tuple(measures.reports([device] * count, range(count), number * measures.EACH_WORTH)),
        restarts=lambda before, request: False,
    )
    assert law.outcomes == {
        chosen: Fraction(1, comb(count, number)) for chosen in combinations(range(count), number)
    }


# -------------------------------------------------------------------------------------- a refinement


class Exactly:
    """In place of bounds: the number itself."""

    def __init__(self, value):
        self.value = value

    def __mul__(self, other):
        return Exactly(self.value * other.value)

    def complement(self):
        return Exactly(1 - self.value)


def refined(monkeypatch, base, rate, finer, noise):
    """Probabilities of what `refine_laplace` makes of some noise, by its own weights, pieces and places."""
    with monkeypatch.context() as patched:
        patched.setattr(refined_laplace, "exp_bounds", lambda x, width: Exactly(power(base, x)))
        patched.setattr(refined_laplace, "_of_rates", refined_laplace._of_rates.__wrapped__)
        weights: Any = refined_laplace._weights
        refine: Any = refined_laplace.refine_laplace  # Takes 1/3 as it is, too.
        pieces, total = weights(abs(noise), Fraction(rate), Fraction(finer), 0)
        chances = [piece.value / total.value for piece in pieces]
        law = dict.fromkeys(FINER, Fraction(0))
        asked = []

        def place(piece, k):
            def geometric(numerator, denominator, bits):
                asked.append(Fraction(numerator, denominator))
                return k

            patched.setattr(refined_laplace, "_piece", lambda *arguments: piece)
            patched.setattr(refined_laplace, "geometric", geometric)
            return refine(noise, Fraction(1, rate), Fraction(1, finer), lambda count: 0)

        for piece, chance in enumerate([*chances, 1 - sum(chances)]):
            asked.clear()
            first = place(piece, 0)
            if not asked:
                law[first] += chance
                continue
            p = power(base, asked[0])
            # What repeats, repeats with the remainder by what the noise has room for.
            period = abs(noise) + 1 if piece == 1 else None
            if period is not None:
                assert all(place(piece, k) == place(piece, k + period) for k in range(3 * period))
            for k in range(period or len(FORMER) + len(FINER)):
                if (u := place(piece, k)) in law:
                    law[u] += chance * (1 - p) * p**k / (1 - p**period if period else 1)
    return law


def independent(monkeypatch, base, rate, finer, noise):
    """The fault: a draw that knows nothing of the one before, at the price of a refinement."""
    return {u: laplace(base**finer, u) for u in FINER}


def without_the_atom(monkeypatch, base, rate, finer, noise):
    """Another one: the former noise itself is never kept."""
    law = refined(monkeypatch, base, rate, finer, noise)
    r, p1, p2 = base ** (finer - rate), base**rate, base**finer
    atom = r ** (abs(noise) + 1) * (1 - p1 * p1) / (1 - p2 * p2)
    return {u: (chance - atom * (u == noise)) / (1 - atom) for u, chance in law.items()}


def losses(sampler, monkeypatch, base, rate, finer):
    """How many times as likely two answers are about one number as about the next one, at most."""
    p1 = base**rate
    both = {
        (z, u): laplace(p1, z) * chance
        for z in FORMER
        for u, chance in sampler(monkeypatch, base, rate, finer, z).items()
    }
    return [
        ratio
        for (z, u), chance in both.items()
        if (z + 1, u + 1) in both
        for ratio in (chance / both[z + 1, u + 1], both[z + 1, u + 1] / chance)
    ]


@pytest.mark.long
@pytest.mark.parametrize(("rate", "finer"), RATES)
def test_a_refinement_and_the_draw_before_it_have_the_law_of_a_chain(monkeypatch, rate, finer):
    """P(Z1 = z) P(Z2 = u | z) is P(Z2 = u) P(V = z - u), for all z and u: x cancels in the second factor."""
    for base in MANY:
        p1, p2 = base**rate, base**finer
        atom = p2 / p1 * ((1 - p1) / (1 - p2)) ** 2
        for z in FORMER:
            law = refined(monkeypatch, base, rate, finer, z)
            for u in FINER:
                v = (1 - atom) * laplace(p1, z - u) + (atom if u == z else 0)
                assert laplace(p1, z) * law[u] == laplace(p2, u) * v


@pytest.mark.parametrize("base", FEW[::5])
@pytest.mark.parametrize(("rate", "finer"), RATES)
def test_both_answers_together_cost_what_the_finer_one_does(monkeypatch, base, rate, finer):
    assert max(losses(refined, monkeypatch, base, rate, finer)) == 1 / base**finer


@pytest.mark.parametrize("fault", [independent, without_the_atom])
@pytest.mark.parametrize("base", FEW[::5])
@pytest.mark.parametrize(("rate", "finer"), RATES)
def test_control_another_draw_costs_more_than_a_refinement(monkeypatch, fault, base, rate, finer):
    assert max(losses(fault, monkeypatch, base, rate, finer)) > 1 / base**finer


VARIANCES = [Fraction(65 * 65), Fraction(70_001, 7), Fraction(123_456)]
PARTS = [parts for length in (1, 2, 3) for parts in product((100_000, 250_000, 333_333), repeat=length)]


def spent_by_draws(monkeypatch, variance, drawn):
    """What is lost by Gaussian draws of parts, as `more_gaussian` asks for them [mu^2 of a move by one]."""
    asked: list[int] = []

    def gaussian(sigma, _):
        asked.append(sigma)
        return 3

    monkeypatch.setattr(refined_gaussian, "discrete_gaussian", gaussian)
    noisy = 0
    for part in drawn:
        noisy = refined_gaussian.more_gaussian(noisy, 7, variance, part, lambda count: 0)
    assert noisy == sum(drawn) * 10, "each draw has the weight of its part"
    return sum(Fraction(1, sigma**2 - 9) for sigma in asked)


@pytest.mark.parametrize("variance", VARIANCES)
def test_gaussian_draws_of_parts_cost_what_all_of_them_do(monkeypatch, variance):
    for parts in PARTS:
        assert spent_by_draws(monkeypatch, variance, parts) <= sum(parts) / (variance * MICRO)


@pytest.mark.parametrize("variance", VARIANCES)
def test_control_gaussian_draws_of_all_so_far_cost_more_than_their_parts(monkeypatch, variance):
    """The same fault as above: a draw as fine as the refined answer, at the price of the difference."""
    for parts in PARTS:
        if len(parts) > 1:
            spent = spent_by_draws(monkeypatch, variance, list(accumulate(parts)))
            assert spent > sum(parts) / (variance * MICRO)
