r"""What `dither audit privacy` looks at of pairs of answers to one question, and their planted bugs.

Pairs come out of the code that plans and takes steps (`app.services.statistics.steps`), with the charges that
it makes. What is looked at are the noisy sums that stand behind the answers: everything else is
post-processing. One person has either end of the range as their value, beside companions whose values are
known and who may leave.

Cells are those of a statistic of two noisy sums y, y', in units of what the person moves them by. With
g(y, s) = s (|y - 1| - |y|) for a draw that costs s, the log-likelihood ratio of the two neighbors is

- g(y, s) + g(y', s') for two independent draws that cost s and s';
- g(y', s') for a draw and its refinement: y tells nothing more;
- g(y, s) + g(y', s') - g(y + L, s) for a refinement after companions left whose values come to L: what is
  taken for the first noise is y + L less the value.

An honest pair of steps is looked at with the statistics that show a planted bug best.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from dither.device.gaussian import epsilon_at
from numpy.typing import NDArray

from app.core.cohort import Cohort
from app.core.epsilon import DELTA_UNIT, MICRO
from app.core.grid import GRID_SIZE
from app.core.piece import Piece
from app.core.study import Relation, StudyDefinition
from app.estimators.interface import UNIT_SCALE, Conclusion, Interval, Plan
from app.services.statistics import kept_sums, planning
from app.services.statistics.crowds import Crowd
from app.services.statistics.questions import Ask, resolve
from app.services.statistics.steps import MeanStep, take
from dither_research.histories import GAUSSIAN_STUDY, STUDY, History, cohort_of
from dither_research.privacy_audit import Cells, Subject

Floats = NDArray[np.float64]
Statistic = Callable[[Floats, Floats], Floats]

EPSILON = 3 * MICRO // 2
"""Of every person [micro-epsilon, or 1e-6 of mu^2]. With this and the next two 8,000 pairs show a bug."""

FIRST, LAST = 7 * MICRO // 10, MICRO
"""The shares of the two steps [ppm]."""

LEAVERS = 20
"""Companions, with the upper end of the range as their value."""

EDGES = np.linspace(-3, 3, 9) * (EPSILON / MICRO)

DELTA = DELTA_UNIT // 10
"""Of Gaussian noise: one that draws can show [1e-12]."""

GAUSSIAN_FIRST = 9 * MICRO // 10
"""The share of the first step with Gaussian noise [ppm]."""

GAUSSIAN_EDGES = np.linspace(-2, 4, 25)
NEIGHBORS = ((0,), (0, GRID_SIZE))
"""Values of those who are there."""

SECRET_EDGES = np.linspace(3, 27, 9)
PERSON, COMPANIONS = 1, 2
ANYWHERE = Interval(level=1.0, lower=0.0, upper=1.0, coverage="worst_case")
NOTHING = Conclusion(estimate=0.0, standard_error=0.0, interval=ANYWHERE, population_interval=ANYWHERE)


def _gain(y: Floats, share: int) -> Floats:
    return np.asarray((np.abs(y - 1) - np.abs(y)) * (share / MICRO * EPSILON / MICRO))


def _apart(first: Floats, second: Floats) -> Floats:
    return _gain(first, FIRST) + _gain(second, LAST)


def _left(first: Floats, second: Floats) -> Floats:
    return _apart(first, second) - _gain(first + LEAVERS, FIRST)


def _rejoined(first: Floats, second: Floats) -> Floats:
    return _gain(first, FIRST) + _gain(second, LAST - FIRST)


def _combined(first: Floats, second: Floats) -> Floats:
    return _gain(first, LAST // 2) + _gain(second, LAST // 2)


def _solved(first: Floats, second: Floats) -> Floats:
    """Below 0 for the value 0 and above for 1, where a fresh answer has half of the noise of the steps."""
    return 2 * (2 * first - second) - 1


def pair_subjects() -> Iterator[Subject]:
    """Pairs of answers as the service makes them."""
    yield steps_subject("a step and its refinement", _apart)
    yield steps_subject("a step and its refinement, as after a leaver", _left)
    yield steps_subject("a step, a leaver, the next step", _rejoined, between=_leave)
    yield fresh_subject("a fresh answer and a refined one, combined", _combined)
    yield gaussian_subject("a step and its refinement with gaussian noise")
    yield secret_subject("two answers of secret people, combined")


def pair_controls() -> Iterator[Subject]:
    """Planted bugs: priced as refinements, which they are not."""
    yield steps_subject(
        "a second draw priced as a refinement", _apart, plant=_forget_the_first, planted=True, effort=0.8
    )
    yield steps_subject(
        "a refinement after people left", _left, between=_leave_unseen, planted=True, effort=0.8
    )
    yield fresh_subject(
        "a fresh answer with noise in common with a refined one, combined", _solved, shared=True
    )
    yield gaussian_subject(
        "a gaussian step that draws all of its share again", plant=_forget_the_share, planted=True, effort=1.6
    )
    yield secret_subject("two answers of secret people, weighed by how many there are", counted=True)


def _stay(history: History) -> None:
    """Who was there is there."""


def _leave(history: History) -> None:
    history.leave(COMPANIONS)


def _leave_unseen(history: History) -> None:
    """A ledger that counts as many people as before."""
    before = history.cohorts[COMPANIONS]
    for _ in range(LEAVERS):
        history.leave(COMPANIONS)
    history.cohorts[COMPANIONS] = replace(history.cohorts[COMPANIONS], count=before.count)


def _as_planned(step: MeanStep) -> MeanStep:
    return step


def _forget_the_first(step: MeanStep) -> MeanStep:
    """Nothing says any more that there is noise to be lowered."""
    return replace(step, pieces=tuple(replace(piece, scale=0.0) for piece in step.pieces))


def _forget_the_share(step: MeanStep) -> MeanStep:
    """The same with Gaussian noise, where a step draws what its share adds."""
    return replace(step, had={})


def steps_subject(
    name: str,
    statistic: Statistic,
    *,
    between: Callable[[History], None] = _stay,
    plant: Callable[[MeanStep], MeanStep] = _as_planned,
    planted: bool = False,
    effort: float = 1,
) -> Subject:
    """Two steps of a question's shares.

    Args:
        name: Of the subject.
        statistic: What cells are made of.
        between: What happens between the steps.
        plant: What a bug makes of the second step.
        planted: Whether it must be caught.
        effort: See `Subject`.
    """

    def outputs(draws: int) -> tuple[Cells, Cells]:
        one, other = (
            np.digitize(statistic(*_noisy_sums(_Steps.of(value, between, plant), draws)), EDGES)
            for value in (0, GRID_SIZE)
        )
        return one, other

    return Subject(
        name=name,
        claimed=_Steps.of(0, between, plant).charged / MICRO,
        outputs=outputs,
        planted=planted,
        effort=effort,
    )


def gaussian_subject(
    name: str,
    *,
    plant: Callable[[MeanStep], MeanStep] = _as_planned,
    planted: bool = False,
    effort: float = 1,
) -> Subject:
    """Two steps with Gaussian noise, of which the second answer is sufficient: it averages both draws."""

    def outputs(draws: int) -> tuple[Cells, Cells]:
        one, other = (
            np.digitize(_noisy_sums(made(value), draws)[1], GAUSSIAN_EDGES) for value in (0, GRID_SIZE)
        )
        return one, other

    def made(value: int) -> _Steps:
        return _Steps.of(value, _stay, plant, first=GAUSSIAN_FIRST, study=GAUSSIAN_STUDY)

    return Subject(
        name=name,
        claimed=epsilon_at(Fraction(made(0).charged), DELTA) / MICRO,
        delta=DELTA / DELTA_UNIT,
        outputs=outputs,
        planted=planted,
        effort=effort,
    )


def fresh_subject(name: str, statistic: Statistic, *, shared: bool = False) -> Subject:
    """A fresh answer at half of the epsilon, and one at the other half in two steps: all that is combined.

    Args:
        name: Of the subject.
        statistic: What cells are made of.
        shared: Whether the fresh answer has half of the noise of the steps in place of its own, a bug.
    """

    def made(value: int) -> _Steps:
        return _Steps.of(value, _stay, _as_planned, first=LAST // 4, last=LAST // 2)

    def outputs(draws: int) -> tuple[Cells, Cells]:
        one, other = (np.digitize(statistic(*both(value, draws)), EDGES) for value in (0, GRID_SIZE))
        return one, other

    def both(value: int, draws: int) -> tuple[Floats, Floats]:
        stepped, truth = _noisy_sums(made(value), draws)[1], value / GRID_SIZE
        return truth + (stepped - truth) / 2 if shared else _fresh_sums(value, draws), stepped

    plan, people = _history(0).plan_fresh(LAST // 2)
    charged = {one.cohort_id: one.epsilon for one in planning.charges(plan, people, STUDY)}[PERSON]
    claimed = (charged + made(0).charged) / MICRO
    return Subject(name=name, claimed=claimed, outputs=outputs, planted=shared, effort=0.1 if shared else 1)


def _fresh_sums(value: int, draws: int) -> Floats:
    """The same of as many answers with noise of their own."""
    plan, people = _history(value).plan_fresh(LAST // 2)
    weight = plan.queries[0].sum_weights[0]
    sums: list[int] = []

    def conclude(values: Sequence[int]) -> Conclusion:
        sums.append(values[0])
        return NOTHING

    for _ in range(draws):
        planning.answer(replace(plan, conclude=conclude), people)
    return np.array(sums, dtype=np.float64) / (weight * GRID_SIZE) - LEAVERS


def secret_subject(name: str, *, counted: bool = False) -> Subject:
    """Two answers of a study where it is secret who is there: the sums that are kept of both.

    The person is there, with the upper end of the range, or not, beside one companion at the lower end.

    Args:
        name: Of the subject.
        counted: Whether sums are divided by how many people are there, a bug.
    """
    share = LAST // 6 if counted else LAST // 2
    study = replace(STUDY, relation=Relation.ADD_REMOVE_ONE, epsilon_min=EPSILON, epsilon_max=EPSILON)
    resolved = resolve(study, Ask(estimator="transformed", share=share))

    def planned(*values: int) -> tuple[Plan, Crowd]:
        people = Crowd.of(study, [cohort_of(PERSON, EPSILON, values)], resolved)
        question = resolved.question(study, people=None)
        return planning.choose(study, people, resolved, question)[1], people

    def kept(draws: int, *values: int) -> Floats:
        plan, people = planned(*values)
        pieces = (
            kept_sums.kept_of(study, resolved, people, plan, planning.noisy(plan, people), ())
            for _ in range(draws)
        )
        sums = np.array([piece.first for piece in pieces if piece is not None], dtype=np.float64)
        # The person moves a sum by their offer, of which a unit is one epsilon.
        return sums / UNIT_SCALE / (share / MICRO * EPSILON / MICRO) / (len(values) if counted else 1)

    def outputs(draws: int) -> tuple[Cells, Cells]:
        one, other = (_secret_cells(kept(draws, *people), kept(draws, *people)) for people in NEIGHBORS)
        return one, other

    def _secret_cells(first: Floats, second: Floats) -> Cells:
        statistic = np.abs(first) + np.abs(second) if counted else _combined(first, second)
        found: Cells = np.digitize(statistic, SECRET_EDGES if counted else EDGES)
        return found

    charged = max(charge.epsilon for charge in planning.charges(*planned(0, GRID_SIZE), study))
    return Subject(
        name=name, claimed=2 * charged / MICRO, outputs=outputs, planted=counted, effort=0.8 if counted else 1
    )


def _history(value: int, study: StudyDefinition = STUDY) -> History:
    history = History(study=study)
    for values in ([value], [GRID_SIZE] * (LEAVERS if study is STUDY else 0)):
        history.join(EPSILON, values)
    return history


@dataclass(frozen=True, slots=True, kw_only=True)
class _Steps:
    """Two steps that can be taken again and again.

    Attributes:
        first, second: The steps. What the second one starts from is put in its place for each pair.
        cohorts, cohorts_then: Those of the first step, and those of the second one.
        charged: What both charge the person [micro-epsilon].
    """

    first: MeanStep
    second: MeanStep
    cohorts: tuple[Cohort, ...]
    cohorts_then: tuple[Cohort, ...]
    charged: int

    @classmethod
    def of(
        cls,
        value: int,
        between: Callable[[History], None],
        plant: Callable[[MeanStep], MeanStep],
        *,
        first: int = FIRST,
        last: int = LAST,
        study: StudyDefinition = STUDY,
    ) -> "_Steps":
        history = _history(value, study)
        cohorts = tuple(history.live)
        history.ask(first)
        between(history)
        cohorts_then = tuple(history.live)
        history.ask(last)
        one, other = history.steps
        return cls(
            first=_silent(one),
            second=_silent(plant(other)),
            cohorts=cohorts,
            cohorts_then=cohorts_then,
            charged=history.charged()[PERSON],
        )


def _noisy_sums(steps: _Steps, draws: int) -> tuple[Floats, Floats]:
    """The person's part of the two sums drawn last, one of each step [what they can move it by]."""
    pairs = np.empty((2, draws))
    for place in range(draws):
        _, taken = take(steps.first, steps.cohorts)
        drawn = {piece.number: piece for piece in taken.changed}
        pairs[0, place] = _without_companions(steps.first, taken.changed[-1], steps.cohorts)
        pieces = tuple(
            replace(piece, sums=known.sums) if (known := drawn.get(piece.number)) else piece
            for piece in steps.second.pieces
        )
        _, taken = take(replace(steps.second, pieces=pieces), steps.cohorts_then)
        pairs[1, place] = _without_companions(steps.second, taken.changed[-1], steps.cohorts_then)
    return pairs[0], pairs[1]


def _without_companions(step: MeanStep, piece: Piece, cohorts: Sequence[Cohort]) -> float:
    totals = {cohort.id: cohort.total for cohort in cohorts}
    weights = {member.cohort_id: member.weight for member in piece.members}
    mine = weights.pop(PERSON)
    theirs = sum(weight * totals[cohort_id] for cohort_id, weight in weights.items())
    return (piece.first / step.noise.counted(piece.share) - theirs) / (mine * GRID_SIZE)


def _silent(step: MeanStep) -> MeanStep:
    """A step that draws and reads no answer from it, which is post-processing and takes longer."""
    return replace(step, plan=replace(step.plan, conclude=lambda _: NOTHING))
