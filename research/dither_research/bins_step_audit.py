"""What `dither audit privacy` looks at of two steps of a histogram, with a planted bug."""

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

import numpy as np

from app.core.epsilon import MICRO
from app.core.piece import LastStep
from app.services.questions import Ask
from app.services.shape_questions import HISTOGRAM, resolve
from app.services.shape_steps import BinsStep, plan_step
from dither_research.histories import STUDY, cohort_of
from dither_research.privacy_audit import Cells, Subject

SHARES = (MICRO // 2, MICRO)
"""Of both steps."""


def stepped_bins_subject(name: str, *, anew: bool = False) -> Subject:
    """A person of epsilon 2 who moves from one bin to the other: both answers of two steps.

    Args:
        name: Of the subject.
        anew: Whether the second answer has independent noise, charged as a refinement: the planted bug.
    """
    asks = [Ask(statistic=HISTOGRAM, share=share, tilt=0, parameters={"bins": "2"}) for share in SHARES]
    questions = [resolve(STUDY, ask) for ask in asks]
    person = cohort_of(1, 2 * MICRO, [0])

    def planned(counts: Sequence[int]) -> tuple[BinsStep, BinsStep]:
        first = plan_step(STUDY, questions[0], [person], [], None)
        if first is None:
            raise ValueError("a histogram of a replace_one study is answered by steps")
        paid = replace(person, spent=first.most)
        before = LastStep(release=UUID(int=1), share=SHARES[0], epoch=1)
        second = plan_step(STUDY, questions[1], [paid], first.take({1: counts})[2].changed, before)
        if second is None:
            raise ValueError("a histogram of a replace_one study is answered by steps")
        return first, second

    def drawn(counts: Sequence[int], draws: int) -> Cells:
        found = np.empty(draws)
        first, second = planned(counts)
        weight = first.pieces[0].members[0].weight
        exact = [weight * count for count in counts]
        for place in range(draws):
            one = first.noise.drawn(first.pieces[0], 0, exact)
            other = replace(second.pieces[0], sums=one.sums, scale=0.0 if anew else one.scale)
            other = second.noise.drawn(other, SHARES[0], exact)
            # What both answers say for the second neighbor, were their noise independent.
            found[place] = sum(
                (abs(piece.sums[0] - weight) - abs(piece.sums[0])) / piece.scale
                + (abs(piece.sums[1]) - abs(piece.sums[1] - weight)) / piece.scale
                for piece in (one, other)
            )
        return np.digitize(found, np.linspace(-2.99, 2.99, 13))

    def outputs(draws: int) -> tuple[Cells, Cells]:
        return drawn((1, 0), draws), drawn((0, 1), draws)

    charged = sum(step.most for step in planned((1, 0)))
    return Subject(name=name, claimed=charged / MICRO, outputs=outputs, planted=anew)
