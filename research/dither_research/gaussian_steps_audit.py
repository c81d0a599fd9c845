"""What the audit of privacy looks at of steps with Gaussian noise, and their planted bug."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np
from dither.device.gaussian import epsilon_at

from app.accounting.gaussian import effective_variance
from app.accounting.prices import normal_price
from app.core.epsilon import DELTA_UNIT, MICRO
from app.core.grid import GRID_SIZE
from app.core.study import Relation
from app.mechanisms.entropy import system_bits
from app.mechanisms.refined_gaussian import more_gaussian
from dither_research.privacy_audit import Cells, Subject, cells

SHARES = (0, 700_000, 800_000, 900_000, MICRO)
"""Those of a question after each of its steps [ppm]."""

SIGMA = float(GRID_SIZE)
"""At share 1: what a person moves the sum by."""

DELTA = DELTA_UNIT // 50
"""One that draws can show [1e-12]."""

EDGES = np.linspace(-2, 3, 51)


def gaussian_steps_subjects() -> Iterator[Subject]:
    """Four steps of one question, which draw what they add."""
    parts = [after - before for before, after in pairwise(SHARES)]
    yield _steps("gaussian steps together", parts)


def gaussian_steps_controls() -> Iterator[Subject]:
    """The same, but each step draws noise for all of its share, and is charged what it adds."""
    yield _steps("gaussian steps with noise for their whole shares", SHARES[1:], planted=True)


def _steps(name: str, parts: Sequence[int], *, planted: bool = False) -> Subject:
    """Answers that use these parts, at the price of the last share."""
    variance = effective_variance(SIGMA)
    price = normal_price([variance * MICRO / SHARES[-1]], Relation.REPLACE_ONE)
    cost = price(((0, 1, 0, 0),))

    def answer(value: int) -> float:
        # The weighted mean is sufficient: it is all that tells the two values from each other.
        noisy = 0
        for part in parts:
            noisy = more_gaussian(noisy, value, variance, part, system_bits)
        return noisy / sum(parts)

    def outputs(draws: int) -> tuple[Cells, Cells]:
        unit = np.array([SIGMA])
        one, other = (
            cells(np.array([[answer(value)] for _ in range(draws)]), unit, EDGES) for value in (0, GRID_SIZE)
        )
        return one, other

    return Subject(
        name=name,
        claimed=epsilon_at(Fraction(cost), DELTA) / MICRO,
        delta=DELTA / DELTA_UNIT,
        outputs=outputs,
        planted=planted,
    )
