"""`quantile`: one value off a tree of noisy counts; its plan, its price and what is read of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from app.core.grid import GRID_SIZE, Grid
from app.core.plain import plain
from app.core.question import CELLS, MOST_CELLS
from app.core.study import StudyDefinition, Trust
from app.estimators.cell_counts import WholeNumbers
from app.estimators.quantile_tree import TreePlan
from app.estimators.searched_ranks import Beside
from app.estimators.tree_levels import Aim
from app.services.shapes.parameters import AIM, read_aim, read_rank, read_whole
from app.services.shapes.parts import Part, of_whole, part_of
from app.services.shapes.plans import priced, weigh
from app.services.shapes.priced_plan import WeighedPlan
from app.services.shapes.questions import MEDIAN, QUANTILE, ShapeQuestion
from app.services.shapes.trees import Grown, Tree
from app.services.statistics import says_nothing
from app.services.statistics.crowds import Crowd
from app.services.statistics.questions import Ask


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantilePlan(WeighedPlan[Grown]):
    """One quantile, priced, for one crowd.

    Attributes:
        plan: Of the tree; it errs in ranks, parts of all people.
        grid: Of the study.
    """

    name, answers = QUANTILE, (QUANTILE, MEDIAN)
    whole_draws = True
    summary = "Read off noisy counts of cells that come nearer to it level by level, with an interval."
    parts_of_document = ("estimate", "interval", "population_interval")

    plan: TreePlan
    grid: Grid

    @classmethod
    def own(cls, study: StudyDefinition, ask: Ask, parameters: Mapping[str, str]) -> Mapping[str, Any]:
        """See `ShapeEstimator`."""
        rank = Fraction(1, 2) if ask.statistic == MEDIAN else read_rank("q", parameters)
        asked = tree_asked(parameters)
        return asked | {"quantile": rank, "special": {"q": float(rank), **asked["special"]}}

    @classmethod
    def of_crowd(
        cls, study: StudyDefinition, question: ShapeQuestion, crowd: Crowd, part: Part = int
    ) -> "QuantilePlan":
        """See `ShapeEstimator`; with the people who answered searches, if there are any."""
        rank = question.quantile or Fraction(1, 2)
        beside = None if crowd.searched is None else crowd.searched.beside(float(rank))
        plan = tree_of(study, question, crowd, (rank,), part, beside)
        costs, most = priced(crowd, plan)
        return cls(crowd=crowd, plan=plan, costs=costs, most=most, grid=study.grid)

    def of_labels(
        self, study: StudyDefinition, question: ShapeQuestion, crowd: Crowd, labels: Sequence[object]
    ) -> "QuantilePlan":
        """See `OneShape`: a tree of its own."""
        return self.of_crowd(study, question, crowd, of_whole)

    @property
    def joined(self) -> str:
        """What a plan says of searches that it joins in; empty without them."""
        if self.plan.beside is None:
            return ""
        people, weight = self.plan.beside.people, self.plan.searched_weight
        who = (
            "1 person who answered searches has"
            if people == 1
            else f"{people} people who answered searches have"
        )
        return f" {who} {weight:.0%} of the weight, and pay nothing."

    @property
    def part_told(self) -> float:
        """The width that quantiles are compared by is not that of their interval."""
        return says_nothing.width_of(self.predicted_error)

    @property
    def trees(self) -> tuple[Tree, ...]:
        """The one that it is read off."""
        return (Tree(crowd=self.crowd, plan=self.plan),)

    def noisy(self, counts: Mapping[int, Sequence[int]], grown: Sequence[Grown] = ()) -> Grown:
        """The levels of the tree: their noise is in."""
        (levels,) = grown
        return levels

    def read(self, *drawn: Grown) -> dict[str, object]:
        """The value that the levels of the tree say."""
        (levels,) = drawn
        (found,) = self.plan.read(self.grid, levels)
        answer: dict[str, object] = plain(found)
        if self.plan.beside is not None:
            answer["searches"] = {"people": self.plan.beside.people, "weight": self.plan.searched_weight}
        return answer


def tree_asked(parameters: Mapping[str, str]) -> dict[str, Any]:
    """The fields of `ShapeQuestion` that all quantiles have.

    A value belongs to the cell of the first candidate that is not below it.
    """
    cells = read_whole("candidates", parameters.get("candidates", str(CELLS)), 10, MOST_CELLS)
    starts = tuple((2 * cell * GRID_SIZE + cells) // (2 * cells) + 1 for cell in range(cells))
    aim = read_aim(parameters)
    special: dict[str, object] = {"candidates": cells}
    return {
        "starts": starts,
        "aim": aim,
        "special": special if aim is Aim.INTERVAL else special | {AIM: aim},
    }


def tree_of(
    study: StudyDefinition,
    question: ShapeQuestion,
    crowd: Crowd,
    quantiles: Sequence[Fraction],
    part: Part,
    beside: Beside | None = None,
) -> TreePlan:
    """The tree that quantiles are read off; free where the people are public and none of them pays.

    Args:
        study, question, crowd: What is asked of whom.
        quantiles: The ranks.
        part: What of an offer it may take.
        beside: The people who answered searches, the last group.

    Raises:
        NotApplicable: no person central or public is there.
    """
    weighing = weigh(study, question, part_of(crowd, part), part, beside)
    pays = any(
        weight and group.trust is Trust.CENTRAL
        for weight, group in zip(weighing.weights, crowd.groups, strict=True)
    )
    return TreePlan(
        quantiles=tuple(quantiles),
        weighing=weighing,
        aim=question.aim,
        people=question.size,
        beside=beside,
        free=not study.hides_people and not pays,
        whole=WholeNumbers.of(study.grid),
    )
