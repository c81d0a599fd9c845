r"""Makes the tables of the local mechanism `optimal`: `python -m dither_research.optimal_reports`.

A row of a table is the law of a report about one of m + 1 evenly spaced inputs :math:`x_i`, a column one of
the reports :math:`y_j`. For one epsilon, a linear program finds the probabilities p with the least v such
that

.. math:: t_j \le p_{ij} \le e^\epsilon t_j, \quad \sum_j p_{ij} = 1, \quad \sum_j y_j p_{ij} = x_i, \quad
    \sum_j y_j^2 p_{ij} = x_i^2 + v - h^2 / 4,

h the distance of two inputs. A value between two of them is first moved to one of them at random, so that it
stays the same on average. That adds at most :math:`h^2 / 4` to the variance of its report, which is then at
most v, whatever the value. The program is solved for a little less than epsilon. What it finds becomes
integers, which a small integer program then moves so that sums and means are *exactly* right; `broken` says
in exact numbers what is still wrong, and no table is written of which it says anything.

Source: the least variance over all unbiased mechanisms is that of a linear program; arXiv:2510.11116,
arXiv:2505.15483. The integers are ours.
"""

import json
import math
from bisect import bisect_left
from fractions import Fraction
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from dither.device.optimal import TICKETS, UNIT, Table
from dither.device.randomizers import LocalMechanism, randomizer
from dither.device.shapes import HALF, POWER_BITS, power_of_e
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

from app.core.epsilon import MICRO
from dither_research.seeded import Floats

STEPS = {
    **dict.fromkeys((1.0, 1.25, 1.5, 1.75, 2.0), 8),
    **dict.fromkeys((2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0), 16),
    **dict.fromkeys((7.0, 8.0), 32),
}
"""m for each epsilon: twice as many would gain at most a hundredth, at 6 and more two."""

SLACK = 2e-4
"""Of epsilon, for the rounding to integers."""

LEAST = 1e-5
"""The least probability of a report."""

EVEN = 1e-6
"""How far the variances of two rows may be apart, relatively: they are stated as one number."""

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / "client" / "dither" / "device" / "optimal.json"
BROWSER = ROOT / "client" / "js" / "src" / "tables.ts"


def reports(epsilon: float) -> Floats:
    """Reports that a table may use, shape (J,) [half widths of the range, from its middle]."""
    end = (3 if epsilon < 2 else 2) * HALF // UNIT
    return np.arange(-end, end + 1) * UNIT / HALF


def solve(epsilon: float, steps: int, at: Floats, least: float) -> tuple[Floats, Floats]:
    """The linear program, for inputs up to the middle; the others mirror them.

    Args:
        epsilon: Above 0.
        steps: m.
        at: y, symmetric about 0, shape (J,).
        least: The least t.

    Returns:
        p of shape (m/2 + 1, J), and t of shape (J,).

    Raises:
        ValueError: there is no solution.
    """
    inputs, count, h = np.arange(steps // 2 + 1) * 2 / steps - 1, len(at), 2 / steps
    rows = len(inputs)
    each, none = sp.eye(rows * count), sp.csr_matrix((rows, count))
    of_report = sp.vstack([sp.eye(count)] * rows)
    private = sp.vstack(
        [
            sp.hstack([-each, of_report, sp.csr_matrix((rows * count, 1))]),
            sp.hstack([each, -math.exp(epsilon) * of_report, sp.csr_matrix((rows * count, 1))]),
        ]
    )
    moment = [sp.kron(sp.eye(rows), at[np.newaxis] ** power) for power in (0, 1, 2)]
    mirror = sp.csr_matrix(np.eye(count) - np.eye(count)[::-1])
    equal = sp.vstack(
        [
            sp.hstack([moment[0], none, sp.csr_matrix((rows, 1))]),
            sp.hstack([moment[1], none, sp.csr_matrix((rows, 1))]),
            sp.hstack([moment[2], none, -np.ones((rows, 1))]),
            sp.hstack([sp.csr_matrix((count, rows * count)), mirror, sp.csr_matrix((count, 1))]),
        ]
    )
    found = linprog(
        np.append(np.zeros(equal.shape[1] - 1), 1),
        A_ub=private.tocsr(),
        b_ub=np.zeros(private.shape[0]),
        A_eq=equal.tocsr(),
        b_eq=np.concatenate([np.ones(rows), inputs, inputs**2 - h * h / 4, np.zeros(count)]),
        bounds=[(0, None)] * (rows * count) + [(least, None)] * count + [(0, None)],
        method="highs",
    )
    if found.status != 0:
        raise ValueError(found.message)
    return found.x[: rows * count].reshape(rows, count), found.x[rows * count : -1]


def table(epsilon: float, steps: int) -> Table:
    """The table of one epsilon.

    Raises:
        ValueError: no table was found.
    """
    at = reports(epsilon)
    # Which reports are worth having, and then only these, none of them rare.
    _, least = solve(epsilon - SLACK, steps, at, 0)
    at = at[least > LEAST / 10]
    shares, _ = solve(epsilon - SLACK, steps, at, LEAST)
    columns = [round(y * HALF / UNIT) for y in at]
    rows = []
    for place, row in enumerate(shares):
        weights = [round(share * TICKETS) for share in row]
        mean = (2 * place - steps) * HALF // (steps * UNIT)
        rows.append(_exact(weights, columns, TICKETS, mean * TICKETS))
    made = Table(epsilon=round(epsilon * MICRO), until=0, steps=steps, reports=columns, rows=rows)
    hybrid = randomizer(LocalMechanism.HYBRID)
    until = made.epsilon + bisect_left(
        range(made.epsilon, 64 * MICRO), True, key=lambda one: hybrid.noise(one).worst < made.variance
    )
    return Table(epsilon=made.epsilon, until=until, steps=steps, reports=columns, rows=rows)


def _exact(weights: list[int], columns: list[int], total: int, mean: int) -> list[int]:
    """Weights that are moved as little as can be, so that their sum and their sum of reports are these."""
    count = len(weights)
    lacks = [total - sum(weights), mean - sum(w * y for w, y in zip(weights, columns, strict=True))]
    # A weight grows by one variable, and shrinks by another.
    ways = np.vstack([np.ones(count), np.array(columns, dtype=float)])
    found = milp(
        np.ones(2 * count),
        constraints=LinearConstraint(np.hstack([ways, -ways]), lacks, lacks),
        integrality=np.ones(2 * count),
        bounds=Bounds(0, 1000),
    )
    if found.x is None:
        raise ValueError(found.message)
    moved = np.round(found.x[:count] - found.x[count:]).astype(int)
    return [weight + int(step) for weight, step in zip(weights, moved, strict=True)]


def broken(one: Table) -> list[str]:
    """What a table promises and does not keep, in exact numbers; empty for one that is right."""
    found = []
    laws = [one.law(place) for place in range(one.steps + 1)]
    for place, law in enumerate(laws):
        where = Fraction(2 * place - one.steps, one.steps) * HALF
        if min(law.values()) <= 0 or sum(law.values()) != 1:
            found.append(f"row {place} is no law")
        if sum(share * report for report, share in law.items()) != where:
            found.append(f"row {place} is biased")
        variance = sum(share * report**2 for report, share in law.items()) - where**2
        if abs(variance / Fraction(one.variance - one.rounding) - 1) > EVEN:
            found.append(f"row {place} varies otherwise than stated")
    most = max(max(law[y] for law in laws) / min(law[y] for law in laws) for y in laws[0])
    if most * 2**POWER_BITS > power_of_e(2 * one.epsilon):
        found.append("two inputs differ by more than epsilon")
    hybrid = randomizer(LocalMechanism.HYBRID)
    if not hybrid.noise(one.until).worst <= one.variance <= hybrid.noise(one.until - 1).worst:
        found.append("hybrid reports are as good elsewhere")
    return found


def main() -> None:
    """Make all tables, for both clients."""
    made = [table(epsilon, steps) for epsilon, steps in STEPS.items()]
    wrong = [(one.epsilon, fault) for one in made for fault in broken(one)]
    if wrong:
        raise ValueError(str(wrong))
    fields = [[one.epsilon, one.until, one.steps, one.reports, one.rows] for one in made]
    text = json.dumps(fields, separators=(",", ":"))
    PYTHON.write_text(text + "\n", encoding="utf-8")
    BROWSER.write_text(
        "/** Tables of `optimal` reports, as the Python SDK has them (`optimal.json` there): epsilon,\n"
        " * until, steps, reports and rows of each. Made by `python -m dither_research.optimal_reports`. */\n"
        "export const TABLES: readonly (readonly [number, number, number, readonly number[],"
        " readonly (readonly number[])[]])[] =\n" + text.replace("]]],[", "]]],\n[") + ";\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
