"""`python -m benchmarks [section ...] [--quick] [--json]`."""

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from app.logging import configure_logging
from benchmarks import (
    accuracy,
    answers,
    batches,
    coverage,
    dashboard,
    days,
    epochs,
    fleet,
    former,
    former_releases,
    growth,
    hostile,
    largest,
    levels,
    mathematics,
    memory,
    posts,
    refine,
    releases,
    scale,
    solver,
)
from benchmarks.report import Ratio, print_json, print_table

SECTIONS: Mapping[str, Callable[..., list[Ratio]]] = {
    "post": posts.run,
    "former": former.run,
    "former-releases": former_releases.run,
    "answer": answers.run,
    "fleet": fleet.run,
    "batch": batches.run,
    "release": releases.run,
    "levels": levels.run,
    "epochs": epochs.run,
    "days": days.run,
    "dashboard": dashboard.run,
    "hostile": hostile.run,
    "largest": largest.run,
    "memory": memory.run,
    "solver": solver.run,
    "coverage": coverage.run,
    "accuracy": accuracy.run,
    "mathematics": mathematics.run,
    "refine": refine.run,
    "growth": growth.run,
    "scale": scale.run,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the chosen sections; exit status 1 where a goal is missed and that was asked to count."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("sections", nargs="*", choices=[*SECTIONS, []], help="which; all if none is given")
    parser.add_argument("--quick", action="store_true", help="a smoke test: too short to judge by")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    parser.add_argument("--strict", action="store_true", help="exit status 1 if a goal is missed")
    parser.add_argument("--largest", type=int, help="people in the largest database of `scale`")
    parser.add_argument("--result", type=Path, help="file in which `scale` keeps and finds its points")
    parser.add_argument("--commit", help="the version that `former` and `former-releases` compare with")
    parser.add_argument("--only", choices=accuracy.COMPARISONS, help="one comparison of `accuracy`")
    options = parser.parse_args(arguments)
    configure_logging()
    notes = Console(stderr=True)
    ratios: list[Ratio] = []
    for section in options.sections or SECTIONS:
        started = time.monotonic()
        own: Mapping[str, Any] = {
            "scale": {"largest": options.largest, "result": options.result},
            "former": {"commit": options.commit},
            "former-releases": {"commit": options.commit},
            "accuracy": {"only": options.only},
        }.get(section, {})
        ratios += SECTIONS[section](quick=options.quick, **own)
        notes.print(f"{section}: {time.monotonic() - started:.0f} s", style="dim")
    if options.json:
        print_json(ratios)
    else:
        print_table(ratios, Console())
    return int(options.strict and any(ratio.met is False for ratio in ratios))


if __name__ == "__main__":
    sys.exit(main())
