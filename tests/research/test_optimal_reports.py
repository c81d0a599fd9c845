"""The tables of `optimal` reports: private, unbiased, as noisy as stated, and optimal."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest
from dither.device import optimal
from dither.device.numbers import GRID_SIZE, MICRO
from dither.device.optimal import TICKETS, UNIT, Table, optimal_table, tables
from dither.device.randomizers import LocalMechanism, randomizer
from dither.device.shapes import HALF
from hypothesis import given
from hypothesis import strategies as st

from dither_research.optimal_reports import BROWSER, PYTHON, ROOT, STEPS, broken

HYBRID, OPTIMAL = randomizer(LocalMechanism.HYBRID), randomizer(LocalMechanism.OPTIMAL)
TABLES = pytest.mark.parametrize("table", tables(), ids=lambda one: str(one.epsilon))


@TABLES
def test_a_table_keeps_what_it_promises(table: Table) -> None:
    assert broken(table) == []


def rows_with(table: Table, place: int, moves: dict[int, int]) -> Table:
    """The table with some weights of one row moved."""
    rows = [list(row) for row in table.rows]
    for column, move in moves.items():
        rows[place][column] += move
    return replace(table, rows=rows)


FAULTS: dict[str, tuple[str, Callable[[Table], Table]]] = {
    "a weight too many": ("no law", lambda one: rows_with(one, 1, {0: 1})),
    "a weight in the next place": ("biased", lambda one: rows_with(one, 1, {2: 1, 3: -1})),
    "weights moved out": ("varies otherwise", lambda one: rows_with(one, 0, out(one))),
    "half as rare": ("more than epsilon", lambda one: replace(one, epsilon=one.epsilon - 1000)),
    "as good everywhere": ("elsewhere", lambda one: replace(one, until=one.until + MICRO)),
}


def out(table: Table) -> dict[int, int]:
    """Moves of a row that leave its sum and mean: from the second reports on both sides outwards."""
    last, size = len(table.reports) - 1, 1 << 16
    return {0: size, 1: -size, last - 1: -size, last: size}


@pytest.mark.parametrize("fault", FAULTS)
def test_control_what_is_wrong_is_found(fault: str) -> None:
    said, plant = FAULTS[fault]
    assert any(said in one for one in broken(plant(tables()[4]))), broken(plant(tables()[4]))


@given(st.sampled_from(tables()), st.tuples(*[st.integers(0, GRID_SIZE)] * 2))
def test_a_report_is_unbiased_private_and_no_noisier_than_stated_whatever_the_value(
    table: Table, points: tuple[int, int]
) -> None:
    laws = [mixed(table, point - HALF) for point in points]
    for point, law in zip(points, laws, strict=True):
        assert sum(share * report for report, share in law.items()) == point - HALF
        variance = sum(share * report**2 for report, share in law.items()) - (point - HALF) ** 2
        # Weights of 2^-32 make rows of a table differ in the last digits.
        assert (1 - 1e-6) * (table.variance - table.rounding) <= variance <= table.variance * (1 + 1e-15)
    most = max(max(laws[0][y] / laws[1][y], laws[1][y] / laws[0][y]) for y in laws[0])
    assert math.log(most) <= table.epsilon / MICRO


def mixed(table: Table, offset: int) -> dict[int, Fraction]:
    """The law of the report of a value."""
    place, rest = divmod(offset + HALF, GRID_SIZE // table.steps)
    share = Fraction(rest, GRID_SIZE // table.steps)
    laws = table.law(place), table.law(min(place + 1, table.steps))
    return {report: (1 - share) * laws[0][report] + share * laws[1][report] for report in laws[0]}


@TABLES
def test_a_device_draws_by_the_table(table: Table) -> None:
    """Every row, and every ticket where the report changes; and each of the values that it moves."""
    step = GRID_SIZE // table.steps

    def drawn(offset: int, moved: int, ticket: int) -> int:
        given = iter([(step.bit_length() - 1, moved), (optimal.TICKET_BITS, ticket)])

        def bits(count: int) -> int:
            wanted, value = next(given)
            assert wanted == count
            return value

        return OPTIMAL.draw(offset, table.epsilon, bits)

    for place in range(table.steps + 1):
        first = 0
        for report, share in table.law(place).items():
            last = first + int(share * TICKETS) - 1
            assert {drawn(place * step - HALF, step - 1, at) for at in (first, last)} == {report}
            first = last + 1
        assert first == TICKETS
    # A third of the way to the next input: so many of the moves go there.
    offset, third = -HALF, step // 3
    ends = [np.cumsum([int(share * TICKETS) for share in table.law(place).values()]) for place in (0, 1)]
    apart = next(int(min(pair)) for pair in zip(*ends, strict=True) if pair[0] != pair[1])
    stays, goes = (drawn(offset + third, step - third - less, apart) for less in (1, 0))
    assert [stays, goes] == [drawn(place * step - HALF, 0, apart) for place in (0, 1)]
    assert stays != goes


def test_the_variance_is_below_that_of_hybrid_reports_as_promised() -> None:
    promised = {1: 0.96, 2: 0.86, 3: 0.74, 4: 0.62}
    for epsilon, most in promised.items():
        assert OPTIMAL.noise(epsilon * MICRO).worst <= most * HYBRID.noise(epsilon * MICRO).worst


def test_a_report_is_never_noisier_than_a_hybrid_one() -> None:
    for epsilon in range(50_000, 12 * MICRO, 7_919):
        assert OPTIMAL.noise(epsilon).worst <= HYBRID.noise(epsilon).worst
    assert optimal_table(999_999) is None
    assert OPTIMAL.noise(999_999) == HYBRID.noise(999_999)
    assert OPTIMAL.range(64 * MICRO) == HYBRID.range(64 * MICRO)


def test_one_liar_of_a_thousand_moves_a_mean_by_at_most_a_five_hundredth() -> None:
    """From the value at the other end of the range, at epsilon 1 [widths of the range]."""
    assert OPTIMAL.range(MICRO).upper / GRID_SIZE / 1000 <= 0.0020


@pytest.mark.parametrize(("epsilon", "steps"), [(1, 8), (2, 8), (4, 16)])
def test_a_table_is_within_a_fiftieth_of_the_best_for_its_inputs(epsilon: int, steps: int) -> None:
    """Beside another program and solver, with reports further out: the worst variance, no symmetry."""
    inputs = np.arange(steps + 1) * 2 / steps - 1
    at = np.arange(-48, 49) / 16 * (1.0 if epsilon == 1 else 0.6)
    shares, least = cp.Variable((steps + 1, len(at))), cp.Variable((1, len(at)))
    floor, worst = np.ones((steps + 1, 1)) @ least, cp.Variable()
    problem = cp.Problem(
        cp.Minimize(worst),
        [
            *(least >= 0, shares >= floor, shares <= math.exp(epsilon) * floor),
            *(shares @ np.ones(len(at)) == 1, shares @ at == inputs, shares @ at**2 - inputs**2 <= worst),
        ],
    )
    problem.solve(solver=cp.CLARABEL)
    table = optimal_table(epsilon * MICRO)
    assert table is not None
    ours = (table.variance - table.rounding) / HALF**2
    assert worst.value is not None
    assert worst.value * (1 - 1e-6) <= ours <= worst.value * 1.02


def test_the_docs_say_how_much_is_gained() -> None:
    parts = [table.variance / HYBRID.noise(table.epsilon).worst for table in tables()]
    row = "| part of hybrid's | " + " | ".join(f"{part:.2f}".lstrip("0") for part in parts) + " |"
    assert row in (ROOT / "docs" / "estimators.md").read_text()


def test_both_clients_have_the_same_tables() -> None:
    text = BROWSER.read_text().partition("=\n")[2].rstrip(";\n")
    assert json.loads(text) == json.loads(PYTHON.read_text())
    assert [one.epsilon for one in tables()] == [round(epsilon * MICRO) for epsilon in STEPS]
    assert all(one.reports[-1] * UNIT < 1.5 * GRID_SIZE for one in tables())
