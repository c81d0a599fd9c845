"""What a hybrid answer with Gaussian noise tells those who see nothing but the answer."""

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from app.accounting.amplification import LocalPart, amplify
from app.core.cohort import Group
from app.core.epsilon import delta_to_json, epsilon_to_json
from app.core.grid import GRID_SIZE, NotANumber
from app.core.numbers import to_decimal
from app.estimators.interface import Parameter, Question
from app.estimators.reports import ESTIMATED, VARIANCE, noise_of


def parse_share(text: str) -> object:
    """The parameter `coalition`: a number in [0, 1].

    Raises:
        ValueError: anything else.
    """
    try:
        share = float(to_decimal(text))
    except NotANumber:
        raise ValueError("must be a number") from None
    if not 0 <= share <= 1:
        raise ValueError("must be at least 0 and at most 1")
    return share


COALITION = Parameter(
    name="coalition",
    parse=parse_share,
    default=0.0,
    description="Share of the local people who may pool what they know of their own noise: for the guarantee "
    "against those who only see an answer with Gaussian noise.",
)


def output_guarantee(
    groups: Sequence[Group],
    question: Question,
    *,
    central: float,
    central_sigma: float,
    reports: NDArray[np.float64],
) -> Mapping[str, object]:
    """The guarantee against those who only see the answer, to be put beside it.

    Only noise that is Gaussian counts; dropping independent noise of other kinds makes the numbers larger,
    never too small. Where the weights follow a variance that was estimated from the reports, the answer is
    no longer a fixed sum of them, and there is no such guarantee.

    Args:
        groups: All groups of the study.
        question: What is asked; parameter `COALITION`.
        central: The largest weight of one central person in the estimate [1].
        central_sigma: Standard deviation of the curator's Gaussian noise in the estimate [range widths].
        reports: Weight of one report of each group, shape (G,) [1].

    Returns:
        amplification: delta, coalition, and the largest epsilon of a central and of a local person; null for
        who is not in the answer. Empty where there is no guarantee to give.

    Raises:
        InternalFault: a number is out of range.

    Privacy: reads public parameters only; the guarantee is never charged.
    """
    estimated = question.parameters.get(VARIANCE.name) == ESTIMATED and bool(np.any(reports))
    share = question.parameters.get(COALITION.name)
    if share is None or estimated or question.delta <= 0:
        return {}
    parts = [
        LocalPart(
            people=groups[index].count,
            weight=float(reports[index]),
            sigma=noise_of(groups[index]).gaussian / GRID_SIZE,
        )
        for index in np.flatnonzero(reports).tolist()
    ]
    amplified = amplify(
        central_weights=(central,) if central else (),
        central_sigma=central_sigma,
        local=parts,
        delta=question.delta,
        coalition_share=Fraction(str(share)),
    )
    sides = {"central": amplified.central, "local": amplified.local}
    return {
        "amplification": {
            "delta": delta_to_json(question.delta),
            "coalition": share,
            **{name: epsilon_to_json(max(costs)) if costs else None for name, costs in sides.items()},
        }
    }
