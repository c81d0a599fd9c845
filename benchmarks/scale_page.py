"""docs/scale.md and its plot, from the points that `benchmarks.scale` has kept."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from benchmarks import cost_model
from benchmarks.cost_model import BATCHES, Compared, Model
from benchmarks.points import Point, Size, read

DIRECTORY = Path(__file__).parents[1] / "docs"
RESULT = DIRECTORY / "scale.json"
PLOT = DIRECTORY / "scale.png"
NOTE = "<!-- Made by `make docs` from scale.json, which `make bench-scale` measures. Do not edit. -->"

FURTHER = (10**8, 10**9)
"""People to whom the models are carried on."""

TERMS = {
    "1": "each",
    "people": "person",
    "contributions after the first": "further contribution of a person",
    "cohorts": "cohort",
    "labels": "label",
    "studies": "study",
    "rows": "row",
}
UNITS: Mapping[str, Sequence[tuple[float, str]]] = {
    "s": ((3_600, "h"), (60, "min"), (1, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")),
    "byte": ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B")),
}
TOLERATED = 1.5
"""Predictions that are off by more than this factor are named."""

CARRIED_ON = (
    BATCHES,
    "batches, log",
    "first release, time",
    "release, time",
    "contribution, processor",
    "session answer, processor",
    "budget of a person, time",
    "figures of all people, time",
    "audit, time",
    "rows of subject",
    "rows of contribution",
)
PLOTTED = (BATCHES, "first release, time", "release, time", "figures of all people, time", "audit, time")

TEMPLATE = Path(__file__).with_name("scale.md")
NEW = "batch of new people"


def page(result: Path = RESULT) -> str:
    """docs/scale.md."""
    points = read(result)
    largest, known = _split(points)
    compared = cost_model.compare(known, largest)
    models = cost_model.fit(points)
    two = next(point for point in points if point.size.workers == 2)
    one = next(point for point in points if point.size == Size(people=two.size.people))
    before = max((point for point in known if point.size.studies == 1), key=lambda point: point.size.people)
    single = [point.service_memory / 1e6 for point in points if point.size.workers == 1]
    beyond = [
        f"{name} ({one.measured / one.predicted:.2g})"
        for name, one in compared.items()
        if cost_model.off(one) > TOLERATED
    ]
    pieces = [(cost.service + cost.database) / cost.count for cost in largest.costs[NEW]]
    database = sum(cost.database for cost in largest.costs[NEW]) / largest.size.people
    return f"{NOTE}\n\n" + TEMPLATE.read_text(encoding="utf-8").format(
        people=_power(largest.size.people),
        known=_power(before.size.people),
        count=len(points),
        models=_models(models),
        two=_amount(two.processor("contribution"), "s"),
        one=_amount(one.processor("contribution"), "s"),
        two_answer=_amount(two.processor("session answer"), "s"),
        one_answer=_amount(one.processor("session answer"), "s"),
        two_memory=round(two.service_memory / 1e6),
        one_memory=round(one.service_memory / 1e6),
        measured=_measured(compared),
        rate=f"{largest.size.people / sum(cost.seconds for cost in largest.costs[NEW]):,.0f}",
        memory=round(largest.service_memory / 1e6),
        least=round(min(single)),
        most=round(max(single)),
        database=round(largest.database_memory / 1e6),
        beyond=", ".join(beyond) or "none",
        further=_further(models),
        piece=f"{largest.costs[NEW][0].count:,}",
        first=_amount(pieces[0], "s"),
        last=_amount(pieces[-1], "s"),
        hours=f"{pieces[-1] * 1e9 / 3600:.0f}",
        database_share=round(100 * database / largest.processor(NEW)),
        cohorts=int(largest.size.variables["cohorts"]),
        gigabytes=f"{sum(largest.filled.values()) / 1e9:.1f}",
        log_small=f"{before.wal(NEW):,.0f}",
        log_large=f"{largest.wal(NEW):,.0f}",
        log_single=f"{max(point.wal('contribution') for point in points):,.0f}",
    )


def _split(points: Sequence[Point]) -> tuple[Point, list[Point]]:
    largest = max(points, key=lambda point: point.size.people)
    return largest, [point for point in points if point is not largest]


def _models(models: Mapping[str, Model]) -> str:
    rows = []
    for name, model in models.items():
        parts = [
            f"{_amount(amount, model.unit)} a {TERMS[term]}" if term != "1" else _amount(amount, model.unit)
            for term, amount in model.coefficients.items()
            if amount > 0
        ]
        rows.append((name, " + ".join(parts), f"{min(model.ratios):.2g} to {max(model.ratios):.2g}"))
    return _table(("step", "costs", "measured over modelled"), rows)


def _measured(compared: Mapping[str, Compared]) -> str:
    return _table(
        ("step", "measured", "predicted", "ratio"),
        [
            (
                name,
                _amount(one.measured, one.unit),
                _amount(one.predicted, one.unit),
                f"{one.measured / one.predicted:.2g}",
            )
            for name, one in compared.items()
        ],
    )


def _further(models: Mapping[str, Model]) -> str:
    rows = []
    for name in CARRIED_ON:
        cells = []
        for people in FURTHER:
            variables = {**Size(people=people).variables, "rows": people}
            bounds = models[name].interval(variables)
            cells.append(" to ".join(_amount(bound, models[name].unit) for bound in bounds))
        rows.append((name, *cells))
    return _table(("step", *(f"{_power(people)} people" for people in FURTHER)), rows)


def _power(people: int) -> str:
    exponent = round(math.log10(people))
    return f"10^{exponent}" if 10**exponent == people else f"{people:,}"


def _amount(value: float, unit: str) -> str:
    """Two digits with a unit that suits: a model knows no more."""
    size, name = next((pair for pair in UNITS[unit] if value >= pair[0]), UNITS[unit][-1])
    number = value / size
    return f"{number:.2g} {name}" if number < 100 else f"{float(f'{number:.2g}'):,.0f} {name}"


def _table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(heading) + " |", "|---" * len(heading) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def plot(result: Path = RESULT, path: Path = PLOT) -> None:
    """Points and models of a few steps by people, on logarithmic axes."""
    points = read(result)
    models, quantities = cost_model.fit(points), cost_model.quantities(points)
    canvas = Figure(figsize=(7, 4.5), layout="constrained")
    axes = canvas.subplots()
    for number, name in enumerate(PLOTTED):
        ladder = [p for p in points if p.size == Size(people=p.size.people)]
        ladder.sort(key=lambda p: p.size.people)
        axes.plot(
            [p.size.people for p in ladder],
            [quantities[name].measured(p) or math.nan for p in ladder],
            "osD^v"[number],
            color=f"C{number}",
            label=name,
        )
        people = [p.size.people for p in ladder]
        further = [*people, *FURTHER]
        axes.plot(
            further,
            [models[name].at(Size(people=n).variables) for n in further],
            color=f"C{number}",
            linewidth=1,
        )
    axes.set(xscale="log", yscale="log", xlabel="people", ylabel="seconds")
    axes.axvline(max(p.size.people for p in points), color="0.7", linestyle=":", linewidth=1)
    axes.legend(fontsize=8)
    canvas.savefig(path, dpi=110, metadata={"Software": None})
