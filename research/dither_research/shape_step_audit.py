"""What `dither audit privacy` looks at of two steps of histograms and means by coordinate."""

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

import numpy as np

from app.core.epsilon import MICRO
from app.core.grid import GRID_SIZE, square
from app.core.piece import LastStep
from app.services.shapes.kinds import resolve
from app.services.shapes.questions import HISTOGRAM
from app.services.shapes.steps import ShapeStep, plan_step
from app.services.statistics.questions import MEAN, Ask
from dither_research.histories import STUDY, cohort_of
from dither_research.privacy_audit import Cells, Subject

SHARES = (MICRO // 2, MICRO)
"""Of both steps."""


def stepped_subject(name: str, *, bins: int = 3, by_coordinate: bool = False, anew: bool = False) -> Subject:
    """A person of epsilon 2 who moves from one bin, or end of both coordinates, to the other: two steps.

    Args:
        name: Of the subject.
        bins: Of the histogram.
        by_coordinate: Whether it is a mean of values of two coordinates.
        anew: Whether the second answer has independent noise, charged as a refinement: the planted bug.
    """
    study, asked = STUDY, Ask(statistic=HISTOGRAM, tilt=0, parameters={"bins": str(bins)})
    one_end: tuple[int, ...] = (1, *(0,) * (bins - 1))
    other_end: tuple[int, ...] = one_end[::-1]
    if by_coordinate:
        study, asked = replace(STUDY, dimension=2), Ask(statistic=MEAN, tilt=0)
        # The number of people, both values, and both squares.
        one_end, other_end = ((1, end, end, square(end), square(end)) for end in (0, GRID_SIZE))
    questions = [resolve(study, replace(asked, share=share)) for share in SHARES]
    # Beside those whose sums are known: of one person alone a mean is the middle of the range.
    person = cohort_of(1, 2 * MICRO, [0] * 1_000)

    def planned(counts: Sequence[int]) -> tuple[ShapeStep, ShapeStep]:
        first = plan_step(study, questions[0], [person], [], None)
        if first is None:
            raise ValueError("such a question is answered by steps")
        paid = replace(person, spent=first.most)
        before = LastStep(release=UUID(int=1), share=SHARES[0], epoch=1)
        second = plan_step(study, questions[1], [paid], first.take({1: counts})[1].changed, before)
        if second is None:
            raise ValueError("such a question is answered by steps")
        return first, second

    def drawn(counts: Sequence[int], draws: int) -> Cells:
        found = np.empty(draws)
        first, second = planned(counts)
        weight = first.pieces[0].members[0].weight
        sums = len(first.pieces[0].sums)
        at_one, at_other, exact = (
            [weight * count for count in end[-sums:]] for end in (one_end, other_end, counts)
        )
        for place in range(draws):
            one = first.noise.drawn(first.pieces[0], 0, exact)
            other = replace(second.pieces[0], sums=one.sums, scale=0.0 if anew else one.scale)
            other = second.noise.drawn(other, SHARES[0], exact)
            # What both answers say for the second neighbor, were their noise independent.
            found[place] = sum(
                (abs(noisy - here) - abs(noisy - there)) / piece.scale
                for piece in (one, other)
                for noisy, here, there in zip(piece.sums, at_one, at_other, strict=True)
            )
        return np.digitize(found, np.linspace(-2.99, 2.99, 13))

    def outputs(draws: int) -> tuple[Cells, Cells]:
        return drawn(one_end, draws), drawn(other_end, draws)

    charged = sum(step.most for step in planned(one_end))
    return Subject(name=name, claimed=charged / MICRO, outputs=outputs, planted=anew)
