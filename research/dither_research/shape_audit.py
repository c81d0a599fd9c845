"""What `dither audit privacy` looks at of histograms and quantiles, with their planted bugs."""

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from app.accounting.shape_prices import bins_cost, rank_range, ranks_cost
from app.core.epsilon import MICRO
from app.core.noise import DiscreteLaplace
from app.core.study import Relation
from app.estimators.ranks import Draw, RankPlan
from app.estimators.weighing import Weighing
from app.mechanisms.draw import draw
from app.mechanisms.permute_and_flip import choose
from dither_research.privacy_audit import STEPS, Cells, Subject, cells

WEIGHT = MICRO
FEW, MANY = 40, 800
"""Empty cells on either side of the target: so unequal, a draw shows nearly all of its price."""


def shape_subjects() -> Iterator[Subject]:
    """Histograms and draws by rank, on the neighbors that tell most."""
    for relation in Relation:
        moves = 2 if relation is Relation.REPLACE_ONE else 1
        yield bins_subject(f"histogram, {relation}", relation, scale=float(moves * MICRO))
    yield ranks_subject("quantile, one draw", draws=1)
    yield ranks_subject("quantile, three draws that share a price", draws=3)


def shape_controls() -> Iterator[Subject]:
    """Planted bugs: each claims the price that its careless programmer would."""
    yield bins_subject(
        "a histogram priced at 1 instead of 2", Relation.REPLACE_ONE, scale=float(MICRO), claimed=1.0
    )
    yield ranks_subject("quantile scores weighed by twice the weight of the price", draws=1, counted=2)


def bins_subject(name: str, relation: Relation, *, scale: float, claimed: float | None = None) -> Subject:
    """A person of one weight who moves from the first bin to the second one, or comes into it.

    Args:
        name: Of the subject.
        relation: The neighboring relation.
        scale: Of the noise of each bin.
        claimed: What a planted bug claims in place of the price.
    """
    noise = DiscreteLaplace(scales=(scale, scale))
    neighbors = [[WEIGHT, 0], [0, WEIGHT]] if relation is Relation.REPLACE_ONE else [[0, 0], [0, WEIGHT]]

    def outputs(draws: int) -> tuple[Cells, Cells]:
        first, second = (
            cells(
                np.array([np.add(counts, draw(noise, queries=2)) for _ in range(draws)], dtype=np.float64),
                np.full(2, float(WEIGHT)),
                STEPS,
            )
            for counts in neighbors
        )
        return first, second

    price = bins_cost(WEIGHT, noise, relation) / MICRO
    return Subject(
        name=name,
        claimed=price if claimed is None else claimed,
        outputs=outputs,
        planted=claimed is not None,
    )


def ranks_subject(name: str, *, draws: int, counted: int = 1) -> Subject:
    """A person who moves across the target, with few empty cells on the one side of it and many on the other.

    Args:
        name: Of the subject.
        draws: Draws that share a price of 1, all at the median.
        counted: How many times their weight people count in the scores; not once: a planted bug.
    """
    rank, last = Fraction(1, 2), FEW + MANY + 1
    scale = draws * rank_range(rank, Relation.REPLACE_ONE) * WEIGHT
    one = Draw(rank=rank, shift=0, scale=scale)
    plan = RankPlan(
        quantile=rank,
        cells=last,
        weighing=Weighing(relation=Relation.REPLACE_ONE, weights=(WEIGHT,)),
        draws=(one, None, None),
        people=None,
    )
    scores = []
    for mine in (last, 0):
        weights = [0] * (last + 1)
        # One person below the few cells, one between them and the many, one at the upper end; and mine.
        for place in (1, FEW + 1, last, mine):
            weights[place] += counted * WEIGHT
        scores.append(plan.scores(one, weights))
    edges = np.array([1, FEW + 1, FEW + 2, last])

    def outputs(number: int) -> tuple[Cells, Cells]:
        found = []
        for line in scores:
            drawn = np.array([[choose(line, scale) for _ in range(draws)] for _ in range(number)])
            label = np.zeros(number, dtype=np.int64)
            for column in np.digitize(drawn, edges).T:
                label = label * (edges.size + 1) + column
            found.append(label)
        return found[0], found[1]

    price = ranks_cost(WEIGHT, [(rank, scale)] * draws, Relation.REPLACE_ONE) / MICRO
    return Subject(name=name, claimed=price, outputs=outputs, planted=counted != 1)
