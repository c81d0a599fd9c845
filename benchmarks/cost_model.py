"""Models of what steps cost: sums of terms with coefficients that are not negative.

Least squares of relative errors, so that a small database counts as much as a large one.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import nnls

from benchmarks.points import Point

STEPS: Mapping[str, Sequence[str]] = {
    "first release": ("1", "cohorts", "people"),
    "release": ("1", "cohorts"),
    "release after new people": ("1", "cohorts"),
    "release by label": ("cohorts",),
    "contribution": ("1",),
    "session answer": ("1",),
    "budget of a person": ("1", "studies"),
    "figures of all people": ("1", "people", "contributions after the first"),
    "audit": ("1", "cohorts", "people", "contributions after the first"),
}
"""Steps that are counted one by one, and what they depend on. A page depends on studies and cohorts."""

PAGE_TERMS = ("1", "studies", "cohorts")
TABLES: Mapping[str, Sequence[str]] = {
    "subject": ("subject",),
    "contribution": ("contribution",),
    "cohort": ("cohort", "lineage"),
    "charge": ("charge",),
    "answer": ("answer", "enrolment"),
}
"""What has a row, and the tables in which it has one."""


@dataclass(frozen=True, kw_only=True)
class Model:
    """What something costs.

    Attributes:
        name: What.
        unit: Of the cost.
        coefficients: By term.
        ratios: Measured over modelled, at each point of the fit.
    """

    name: str
    unit: str
    coefficients: Mapping[str, float]
    ratios: Sequence[float]

    def at(self, variables: Mapping[str, float]) -> float:
        """The cost for these variables."""
        return sum(amount * variables[term] for term, amount in self.coefficients.items())

    def interval(self, variables: Mapping[str, float]) -> tuple[float, float]:
        """The cost, off by as much as the points of the fit were."""
        value = self.at(variables)
        return value * min(self.ratios), value * max(self.ratios)


@dataclass(frozen=True, kw_only=True)
class Compared:
    """A prediction, and what was measured."""

    unit: str
    predicted: float
    measured: float


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """One number of a point, and what it depends on.

    Attributes:
        unit: Of the number.
        terms: What it depends on.
        measured: The number; None where the point does not have it.
        variables: The terms' values.
    """

    unit: str
    terms: Sequence[str]
    measured: Callable[[Point], float | None]
    variables: Callable[[Point], Mapping[str, float]] = lambda point: point.size.variables


def quantities(points: Sequence[Point]) -> dict[str, Quantity]:
    """Everything that is modelled, by its name."""
    pages = {name for point in points for name in point.costs if name.startswith("page ")}
    made = {BATCHES: Quantity(unit="s", terms=BATCH_TERMS, measured=_batches("processor"))}
    made["batches, log"] = Quantity(unit="byte", terms=BATCH_TERMS, measured=_batches("wal"))
    for step, terms in STEPS.items():
        made[f"{step}, processor"] = Quantity(unit="s", terms=terms, measured=_step(step, "processor"))
        made[f"{step}, time"] = Quantity(unit="s", terms=terms, measured=_step(step, "seconds"))
    for page in sorted(pages):
        made[f"{page}, time"] = Quantity(unit="s", terms=PAGE_TERMS, measured=_step(page, "seconds"))
    for step in LOGGED:
        made[f"{step}, log"] = Quantity(unit="byte", terms=STEPS[step], measured=_step(step, "wal"))
    for row in TABLES:
        made[f"rows of {row}"] = _rows(row)
    return made


BATCHES = "batches, processor"
BATCH_TERMS = ("people", "contributions after the first")
LOGGED = ("first release", "release", "contribution", "session answer")


def _step(step: str, what: str) -> Callable[[Point], float | None]:
    return lambda point: getattr(point, what)(step) if step in point.costs else None


def _rows(row: str) -> Quantity:
    return Quantity(
        unit="byte",
        terms=("1", "rows"),
        measured=lambda point: sum(point.asked[table] for table in TABLES[row]),
        variables=lambda point: {"1": 1, "rows": point.rows[row]},
    )


def _batches(what: str) -> Callable[[Point], float]:
    def total(point: Point) -> float:
        steps = [step for step in point.costs if step.startswith("batch")]
        return sum(
            getattr(point, what)(step) * sum(cost.count for cost in point.costs[step]) for step in steps
        )

    return total


def fit(points: Sequence[Point]) -> dict[str, Model]:
    """A model of every quantity."""
    models = {}
    for name, quantity in quantities(points).items():
        rows, measured = [], []
        for point in points:
            value = quantity.measured(point)
            if value:
                variables = quantity.variables(point)
                rows.append([variables[term] for term in quantity.terms])
                measured.append(value)
        if measured:
            models[name] = _fitted(name, quantity, np.array(rows, float), np.array(measured, float))
    return models


def _fitted(name: str, quantity: Quantity, rows: Any, measured: Any) -> Model:
    # Columns of like size: a solver for people and seconds at once would stop early.
    scale = np.abs(rows).max(axis=0)
    scale[scale == 0] = 1
    relative = rows / measured[:, None] / scale
    amounts = nnls(relative, np.ones(len(measured)))[0] / scale
    return Model(
        name=name,
        unit=quantity.unit,
        coefficients=dict(zip(quantity.terms, map(float, amounts), strict=True)),
        ratios=[float(one) for one in measured / (rows @ amounts)],
    )


def compare(known: Sequence[Point], held_out: Point) -> dict[str, Compared]:
    """What models of some points predict for another one, beside what it measured."""
    models = fit(known)
    compared = {}
    for name, quantity in quantities(known).items():
        measured = quantity.measured(held_out)
        if measured and name in models:
            predicted = models[name].at(quantity.variables(held_out))
            compared[name] = Compared(unit=quantity.unit, predicted=predicted, measured=measured)
    return compared


def off(one: Compared) -> float:
    """By which factor a prediction was wrong."""
    return math.exp(abs(math.log(one.measured / one.predicted)))
