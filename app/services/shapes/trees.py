"""Trees of noisy counts of some people: what each level asks of the database, and its noise."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.estimators.quantile_tree import TreePlan
from app.estimators.tree_levels import Drawn
from app.mechanisms.draw import draw
from app.services.statistics.crowds import Crowd
from app.services.work import checkpoint

Grown = Sequence[Drawn]
"""The levels of a tree that are drawn."""

Cells = Sequence[tuple[int, ...] | None]
"""Of each tree where the cells of its next level begin, all but the first one [grid steps]; None: it has
all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A tree that an answer is read off.

    Attributes:
        crowd: Whose values it counts.
        plan: Its cells and noise.
    """

    crowd: Crowd
    plan: TreePlan

    @property
    def sizes(self) -> dict[int, int]:
        """The people of each cohort that has a weight in it, by the cohort's id."""
        weights = self.crowd.by_cohort(self.plan.weighing.weights)
        counts = self.crowd.cohorts.column("count")
        return {cohort: count for (cohort, weight), count in zip(weights, counts, strict=True) if weight}

    def level(self, place: int, starts: tuple[int, ...], counts: Mapping[int, Sequence[int]]) -> Drawn:
        """The counts of a level with exact noise. Draws entropy.

        Args:
            place: Which level, from 0 on.
            starts: Where its cells begin.
            counts: For each cohort in it its people by cell; those of no person may be left out.
        """
        counted, cells = defaultdict(tuple, counts), len(starts) + 1
        weighted = self.crowd.weighed(self.plan.weighing.weights, counted, cells)
        noise = draw(self.plan.noise_of(place, len(weighted)), queries=self.plan.sums(len(weighted)))
        return self.plan.drawn(starts, weighted, noise)


def next_cells(trees: Sequence[Tree], grown: Sequence[Grown]) -> Cells:
    """Where the cells of the next level of each tree begin."""
    found: list[tuple[int, ...] | None] = []
    for tree, levels in zip(trees, grown, strict=True):
        checkpoint()
        found.append(tree.plan.starts(levels) if len(levels) < tree.plan.levels else None)
    return found


def grow(
    trees: Sequence[Tree],
    grown: Sequence[Grown],
    cells: Cells,
    counts: Sequence[Mapping[int, Sequence[int]]],
) -> list[Grown]:
    """Every tree with one more level. Draws entropy.

    Args:
        trees: Of the answer.
        grown: Their levels so far.
        cells: As `next_cells` has them.
        counts: For each tree its people by cohort and cell.
    """
    taller: list[Grown] = []
    for tree, levels, starts, own in zip(trees, grown, cells, counts, strict=True):
        checkpoint()
        taller.append(levels if starts is None else (*levels, tree.level(len(levels), starts, own)))
    return taller
