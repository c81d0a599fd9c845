"""Trees of counts grown with real noise, without a database."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from app.estimators.quantile_tree import TreePlan
from app.estimators.tree_levels import Drawn
from app.mechanisms.draw import draw
from app.services.shapes.trees import Grown, Tree, grow, next_cells


def by_cell(values: NDArray[np.int64], starts: Sequence[int]) -> list[int]:
    """How many values are in each cell."""
    places = np.searchsorted(np.array(starts, dtype=np.int64), values, side="right")
    return [int(count) for count in np.bincount(places, minlength=len(starts) + 1)]


def grown(plan: TreePlan, people: Sequence[NDArray[np.int64]]) -> list[Drawn]:
    """All levels of a tree; people by group, each with their grid points."""
    drawn: list[Drawn] = []
    for level in range(plan.levels):
        starts = plan.starts(drawn)
        counts = [0] * (len(starts) + 1)
        for weight, values in zip(plan.weighing.weights, people, strict=True):
            if weight:
                counts = [
                    one + weight * own for one, own in zip(counts, by_cell(values, starts), strict=True)
                ]
        noise = draw(plan.noise_of(level, len(counts)), queries=plan.sums(len(counts)))
        drawn.append(plan.drawn(starts, counts, noise))
    return drawn


def all_grown(trees: Sequence[Tree], values: Mapping[int, NDArray[np.int64]]) -> Sequence[Grown]:
    """All levels of all trees of an answer; grid points by the cohort's id."""
    found: Sequence[Grown] = [()] * len(trees)
    for _ in range(max((tree.plan.levels for tree in trees), default=0)):
        cells = next_cells(trees, found)
        counts = [
            {cohort: by_cell(values[cohort], starts or ()) for cohort in tree.sizes if cohort in values}
            for tree, starts in zip(trees, cells, strict=True)
        ]
        found = grow(trees, found, cells, counts)
    return found
