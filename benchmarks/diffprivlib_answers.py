"""diffprivlib's answers to the questions of `benchmarks.accuracy`, in its own environment (`make peers`).

Reads {"crowds": [{"values": ..., "lower": ..., "upper": ...}], "epsilon": ..., "bins": ..., "often": {...}},
how often by statistic, on standard input, and writes for each crowd the answers of each statistic, a list for
each draw. Nothing of the service is imported here.
"""

import json
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from diffprivlib import tools


def answers(crowd: dict[str, Any], wanted: dict[str, Any]) -> dict[str, list[list[float]]]:
    """The answers of one crowd."""
    values = np.array(crowd["values"])
    bounds = crowd["lower"], crowd["upper"]
    options = {"epsilon": wanted["epsilon"], "bounds": bounds}

    def histogram() -> Any:
        counts, _ = tools.histogram(values, epsilon=wanted["epsilon"], bins=wanted["bins"], range=bounds)
        return counts / len(values)

    made: dict[str, Callable[[], Any]] = {
        "mean": lambda: tools.mean(values, **options),
        "variance": lambda: tools.var(values, **options),
        "histogram": histogram,
        "median": lambda: tools.median(values, **options),
        "quantile .9": lambda: tools.quantile(values, 0.9, **options),
        "quartiles": lambda: tools.quantile(values, [0.25, 0.5, 0.75], **options),
    }
    return {name: drawn(made[name], often) for name, often in wanted["often"].items()}


def drawn(ask: Callable[[], Any], draws: int) -> list[list[float]]:
    """The answers; none where it fails, as it does for quantiles of values that are all equal."""
    try:
        return [np.atleast_1d(ask()).tolist() for _ in range(draws)]
    except RuntimeError:
        return []


def main() -> None:
    """Answer everything."""
    warnings.simplefilter("ignore")
    wanted = json.load(sys.stdin)
    json.dump([answers(crowd, wanted) for crowd in wanted["crowds"]], sys.stdout)


if __name__ == "__main__":
    main()
