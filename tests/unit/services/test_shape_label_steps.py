"""Steps by label: what a person pays, against all neighbors, and what is read off the same noisy sums."""

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.accounting.gaussian import effective_variance
from app.core.attributes import Attributes
from app.core.cohort import Cohort
from app.core.epsilon import MICRO
from app.core.piece import Piece
from app.core.study import StudyDefinition, Trust
from app.services.shapes.plans import ShapePlan
from app.services.shapes.questions import SHARES
from app.services.statistics.kept_ends import written
from app.services.statistics.questions import Ask
from tests.support.choices import study_of_choices
from tests.support.shape_chains import ShapeChain

CHOICES = 3
LABELS = ("north", "south", "east")
STUDY = study_of_choices(CHOICES, attributes=Attributes.of({"region": LABELS}))
GAUSSIAN = replace(STUDY, delta=1_000_000)


def cohort(number: int, segment: int, count: int, epsilon: float = 1, **more: Any) -> Cohort:
    central = Cohort(
        id=number,
        trust=Trust.CENTRAL,
        epsilon=round(epsilon * MICRO),
        carried=0,
        spent=0,
        count=count,
        total=0,
        total_squares=0,
        segment=segment,
    )
    return replace(central, **more)


class Asked(ShapeChain):
    """Shares of choices."""

    def __init__(self, study: StudyDefinition = STUDY, by: str = "region", tilt: int = 0) -> None:
        super().__init__(study, Ask(statistic=SHARES, by=by, tilt=tilt))


def loss(pieces: Sequence[Piece], person: int, gaussian: bool, choices: int) -> float:
    """The most that a person's choice moves all counts by: in scales, or squared in standard deviations."""
    counted = range(choices)[-len(pieces[0].sums) :]
    present = [tuple(int(one == choice) for one in counted) for choice in range(choices)]
    weights = [
        (member.weight, piece.scale)
        for piece in pieces
        for member in piece.members
        if member.cohort_id == person
    ]

    def moved(before: tuple[int, ...], after: tuple[int, ...]) -> float:
        steps = [abs(one - other) for one, other in zip(before, after, strict=True)]
        if gaussian:
            return float(
                sum((w * at) ** 2 / effective_variance(scale) for w, scale in weights for at in steps)
            )
        return sum(w * at / scale for w, scale in weights for at in steps)

    return max(moved(before, after) for before, after in product(present, present))


@pytest.mark.parametrize("study", [STUDY, GAUSSIAN], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("share", [MICRO, 333_333])
@pytest.mark.parametrize("choices", [2, CHOICES])
def test_a_person_pays_for_the_counts_of_the_own_label_to_the_micro(
    study: StudyDefinition, share: int, choices: int
):
    """Brute force over the choice of a person before and after, in the counts of all labels."""
    study = replace(study_of_choices(choices, attributes=study.attributes), delta=study.delta)
    asked, people = Asked(study), [cohort(1, 0, 3), cohort(2, 1, 3, 0.4), cohort(3, 1, 2)]
    counts = {1: (1, 1, 1), 2: (3, 0, 0), 3: (0, 0, 2)}
    asked.step(share, people, {one: own[-choices:] for one, own in counts.items()})
    pieces = [*asked.pieces.values()]
    assert len(pieces) == 2, "one a label that has people"
    assert {len(piece.sums) for piece in pieces} == {1 if choices == 2 else choices}
    for one in people:
        charged, lost = asked.spent[one.id], MICRO * loss(pieces, one.id, study.delta > 0, choices)
        assert lost <= charged * (1 + 1e-9)
        assert charged <= lost + 1.001
        # The control: a label that is charged for half of its move.
        assert lost > charged / 2 + 1


@pytest.mark.parametrize("delta", [0, 1_000_000])
def test_a_question_that_was_begun_with_both_of_two_counts_goes_on_with_both(
    monkeypatch: pytest.MonkeyPatch, delta: int
):
    """As in versions up to 1.0: its first piece is refined, newcomers get the same, at the same prices."""
    study = replace(study_of_choices(2), delta=delta)
    people, counts = [cohort(1, 0, 4_000), cohort(2, 0, 900, 0.3)], {1: (3_000, 1_000), 2: (900, 0)}
    asked, anew = (Asked(study, by="") for _ in range(2))
    with monkeypatch.context() as former:
        for module in ("estimators.shares", "estimators.piece_shares", "services.shapes.steps"):
            former.setattr(f"app.{module}.counts_of", lambda bins, relation: bins)
        asked.step(MICRO // 4, people, counts)
    anew.step(MICRO // 4, people, counts)
    assert [len(one.pieces[1].sums) for one in (asked, anew)] == [2, 1]
    more, counted = [*people, cohort(3, 0, 2_000)], {**counts, 3: (500, 1_500)}
    steps = [one.step(MICRO, more, counted) for one in (asked, anew)]
    assert [{len(piece.sums) for piece in one.pieces.values()} for one in (asked, anew)] == [{2}, {1}]
    for one in (asked, anew):
        pieces = [*one.pieces.values()]
        assert len(pieces) == 2
        for person in more:
            lost = MICRO * loss(pieces, person.id, delta > 0, 2)
            assert lost <= one.spent[person.id] * (1 + 1e-9) <= lost + 1.01
        read = one.last["choices"]
        assert sum(share["share"] for share in read) == pytest.approx(1)
        assert read[0]["share"] == pytest.approx(4_400 / 6_900, abs=0.02)
    # Of Laplace noise the half of the variance is saved.
    noises = [step.whole.plan._variance for step in steps if isinstance(step.whole, ShapePlan)]
    left = [noise * (0.5 if both else 1.0) for noise, both in zip(noises, (True, False), strict=True)]
    assert left[1] / left[0] == pytest.approx(1 if delta else 0.5, rel=0.02)


def test_ten_steps_charge_what_one_answer_does_and_labels_what_a_question_without_them():
    people, counts = [cohort(1, 0, 300), cohort(2, 0, 50, 0.3)], {1: (100, 100, 100), 2: (50, 0, 0)}
    tenths, once, alone = Asked(), Asked(), Asked(by="")
    for tenth in range(1, 11):
        tenths.step(tenth * MICRO // 10, people, counts)
    once.step(MICRO, people, counts)
    alone.step(MICRO, people, counts)
    assert tenths.spent == once.spent == alone.spent


@given(
    epsilons=st.lists(st.sampled_from([0.1, 0.3, 1, 3]), min_size=2, max_size=4),
    sizes=st.lists(st.integers(200_000, 900_000), min_size=4, max_size=4),
    public=st.booleans(),
)
def test_the_whole_is_the_mean_of_labels_by_their_people(
    epsilons: list[float], sizes: list[int], public: bool
):
    """So many people that no share is moved into the simplex; with pieces, newcomers and public people."""
    asked = Asked()
    people = [
        cohort(at, at % 2, size, epsilon)
        for at, (epsilon, size) in enumerate(zip(epsilons, sizes, strict=False), 1)
    ]
    counts: dict[int, Sequence[int]] = {one.id: (one.count // 2, one.count // 4) for one in people}
    counts = {at: (*two, one.count - sum(two)) for (at, two), one in zip(counts.items(), people, strict=True)}
    asked.step(MICRO // 4, people, counts)
    more = [*people, cohort(9, 0, 300_000)]
    counts[9] = (150_000, 100_000, 50_000)
    if public:
        more.append(cohort(10, 1, 90, 0, trust=Trust.PUBLIC))
        counts[10] = (90, 0, 0)
    step = asked.step(MICRO // 2, more, counts)
    groups = [one for one in asked.last["groups"] if one["choices"] is not None]
    everyone = sum(one["people"] for one in groups)
    assert everyone == step.crowd.people == sum(one.count for one in more)
    for choice in range(CHOICES):
        shares = [one["people"] / everyone * one["choices"][choice]["share"] for one in groups]
        assert asked.last["choices"][choice]["share"] == pytest.approx(sum(shares), abs=1e-9)
    assert asked.last["groups"][2]["choices"] is None


def test_all_people_with_one_label_read_what_a_question_without_labels_reads():
    people = [cohort(1, 0, 3_000), cohort(2, 0, 500, 0.3), cohort(3, 0, 70, 0, trust=Trust.PUBLIC)]
    counts = {1: (1000, 1000, 1000), 2: (500, 0, 0), 3: (0, 0, 70)}
    by, alone = Asked(tilt=100_000), Asked(by="", tilt=100_000)
    steps = [asked.step(MICRO // 2, people, counts) for asked in (by, alone)]
    assert steps[0].predicted_error == pytest.approx(steps[1].predicted_error)
    pieces = [*alone.pieces.values()]
    label = steps[0].labels[0].plan
    assert label is not None
    published = json.loads(written(alone.last)[0])
    assert label.read(*label.beside(pieces, counts)) == published


def test_people_of_a_label_that_leave_are_counted_as_an_error_of_the_whole():
    """In the dataset's interval of the whole there is at least what those who left weigh in their label."""
    people, counts = [cohort(1, 0, 400), cohort(2, 1, 400)], {1: (400, 0, 0), 2: (0, 400, 0)}
    asked = Asked(tilt=50_000)
    asked.step(MICRO // 2, people, counts)
    stayed = [replace(people[0], count=200), people[1]]
    step = asked.step(MICRO, stayed, {1: (200, 0, 0), 2: (0, 400, 0)})
    plans = [one.plan for one in step.labels[:2]] + [step.whole]
    weights = [one.plan.weighing for one in plans if isinstance(one, ShapePlan)]
    parts = 200 / 600, 400 / 600
    assert weights[2].uneven == pytest.approx(
        sum(part**2 * one.uneven for part, one in zip(parts, weights[:2], strict=True))
    )
    assert weights[2].bias >= parts[0] * weights[0].bias > 0
    assert {one["interval"]["coverage"] for one in asked.last["choices"]} == {"worst_case"}
