"""What `dither audit privacy` looks at of shares by labels that are sharpened, and their planted bug.

The noisy counts come out of the code that plans and takes steps (`app.services.shapes.steps`), with the
charges of both steps.
"""

from collections.abc import Iterator
from dataclasses import replace
from uuid import UUID

import numpy as np

from app.core.epsilon import MICRO
from app.core.errors import InternalFault
from app.core.piece import LastStep, Piece
from app.services.shapes import kinds as shape_kinds
from app.services.shapes import questions as shape_questions
from app.services.shapes.steps import ShapeStep, plan_step
from app.services.statistics.questions import Ask
from dither_research.histories import cohort_of
from dither_research.label_audit import BY_REGION, CHOICES, COMPANIONS, PERSON, SHARE
from dither_research.privacy_audit import STEPS, Cells, Subject, cells


def label_step_subjects() -> Iterator[Subject]:
    """Steps by labels as the service takes them."""
    yield _subject("shares by region in two steps, in one region")


def label_step_controls() -> Iterator[Subject]:
    """The planted bug."""
    yield _subject("steps of a label charged only for half of their moves", part=0.5, planted=True)


def _subject(name: str, *, part: float = 1.0, planted: bool = False) -> Subject:
    """A person of the first label makes either of two choices, of which shares are asked for in two steps.

    What is looked at are the noisy counts of both choices after the second step.

    Args:
        name: Of the subject.
        part: Of what it costs it claims.
        planted: Whether that is too little.
    """
    study = replace(BY_REGION, choices=CHOICES, epsilon_min=MICRO, epsilon_max=MICRO)
    steps: list[ShapeStep] = []
    pieces: list[Piece] = []
    before, paid = None, 0
    for share in (SHARE, MICRO):
        person = replace(cohort_of(PERSON, MICRO, [0]), spent=paid)
        beside = replace(cohort_of(2, MICRO, [0] * COMPANIONS, segment=1), spent=paid)
        ask = Ask(statistic=shape_questions.SHARES, by="region", share=share, tilt=0)
        step = plan_step(study, shape_kinds.resolve(study, ask), [person, beside], pieces, before)
        if step is None:
            raise InternalFault("Shares by labels are not answered by steps.")
        steps.append(step)
        pieces = step.draw(lambda piece: [0] * len(piece.sums))[0]
        before = LastStep(release=UUID(int=share), share=share, epoch=1)
        paid += {charge.cohort_id: charge.epsilon for charge in step.charges}[PERSON]

    def drawn(choice: int, draws: int) -> Cells:
        counts = {PERSON: [int(place == choice) for place in range(len(CHOICES))], 2: [0, COMPANIONS, 0]}

        def exact(piece: Piece) -> list[int]:
            (member,) = piece.members
            return [member.weight * count for count in counts[member.cohort_id]]

        values = np.empty((draws, 2))
        for draw in range(draws):
            first = {piece.number: piece for piece in steps[0].draw(exact)[0]}
            finer = [
                replace(piece, sums=first[piece.number].sums, scale=first[piece.number].scale)
                for piece in steps[1].pieces
            ]
            values[draw] = replace(steps[1], pieces=tuple(finer)).draw(exact)[0][0].sums[:2]
        return cells(values, np.full(2, float(pieces[0].members[0].weight)), STEPS)

    def outputs(draws: int) -> tuple[Cells, Cells]:
        return drawn(0, draws), drawn(1, draws)

    return Subject(
        name=name,
        claimed=part * paid / MICRO,
        outputs=outputs,
        planted=planted,
        effort=0.5,
    )
