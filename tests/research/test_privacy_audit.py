"""The audit of privacy: nothing of ours costs more than it claims, and every planted bug is caught.

Bounds are wrong with probability at most 1e-6 each. A planted bug is looked for up to four times, with twice
the draws each time (`judge`): the faintest is then missed less than once in 10^6 runs.
"""

import numpy as np
import pytest
from _pytest.mark import ParameterSet

from dither_research.choice_audit import choice_controls, choice_subjects
from dither_research.intake_audit import intake_subjects, without_range_check
from dither_research.label_audit import label_controls, label_subjects
from dither_research.measure_audit import measure_controls, measure_subjects
from dither_research.pair_audit import pair_controls, pair_subjects
from dither_research.privacy_audit import Cells, Subject, judge, off_grid_subject, subjects
from dither_research.privacy_controls import controls
from dither_research.shape_audit import shape_controls, shape_subjects
from tests.support.noise import draw_ahead

pytestmark = pytest.mark.statistical

SUBJECTS = [
    *subjects(),
    *shape_subjects(),
    *choice_subjects(),
    *label_subjects(),
    *measure_subjects(),
    off_grid_subject(),
    *intake_subjects(),
]
CONTROLS = [
    *controls(),
    *shape_controls(),
    *choice_controls(),
    *label_controls(),
    *measure_controls(),
    *intake_subjects(without_range_check, planted=True),
]

SAMPLERS = ("discrete laplace", "discrete gaussian")
"""Subjects of which every draw is a call of the sampler."""

COORDINATES = "staircase on each coordinate"
"""A control of which there is more to see than that it is caught."""


@pytest.fixture(autouse=True)
def ahead(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """All but the samplers, where they must cost no more than they claim, take draws that were made ahead."""
    subject = request.node.callspec.params.get("subject") if hasattr(request.node, "callspec") else None
    if subject is None or subject.name not in SAMPLERS:
        draw_ahead(monkeypatch)


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
def test_no_excess_over_a_claim_is_found(subject: Subject) -> None:
    assert not judge(subject, 2_000).exceeded


def planted(control: Subject) -> ParameterSet:
    """A control; a price that is wrong by label as without labels is looked for by the slow tests."""
    again = " by region" in control.name and "charged for 1/" in control.name
    return pytest.param(control, id=control.name, marks=[pytest.mark.slow] if again else [])


@pytest.mark.parametrize("control", [planted(one) for one in CONTROLS if one.name != COORDINATES])
def test_a_planted_bug_is_caught(control: Subject) -> None:
    assert judge(control, 20_000).exceeded


@pytest.mark.parametrize("pair", [*pair_subjects()], ids=lambda pair: pair.name)
def test_two_answers_together_are_not_found_to_cost_more_than_both_charges(pair: Subject) -> None:
    assert not judge(pair, 500).exceeded


@pytest.mark.parametrize("pair", [*pair_controls()], ids=lambda pair: pair.name)
def test_a_planted_bug_in_a_pair_of_answers_is_caught(pair: Subject) -> None:
    assert judge(pair, 10_000).exceeded


@pytest.mark.slow
@pytest.mark.parametrize("pair", [*pair_subjects()], ids=lambda pair: pair.name)
def test_in_a_hundred_thousand_pairs_nothing_above_the_claim_is_found(pair: Subject) -> None:
    verdict = judge(pair, 100_000)
    assert not verdict.exceeded
    # The audit sees most of what there is to see.
    assert verdict.audited > 0.75 * verdict.claimed


def faint(*, planted: bool, shift: float) -> tuple[Subject, list[int]]:
    """An output of two cells, whose second one only the second input has, if drawn often enough."""
    asked: list[int] = []

    def outputs(draws: int) -> tuple[Cells, Cells]:
        asked.append(draws)
        none = np.zeros(draws, dtype=np.int64)
        return none, (np.arange(draws) % 2 < shift * (draws >= 400)).astype(np.int64)

    return Subject(name="faint", claimed=1.0, outputs=outputs, planted=planted), asked


def test_a_planted_bug_is_looked_for_with_twice_the_draws_until_it_is_caught() -> None:
    control, asked = faint(planted=True, shift=1)
    assert judge(control, 100).exceeded
    assert asked == [100, 200, 400]


def test_a_planted_bug_that_is_none_is_given_up() -> None:
    control, asked = faint(planted=True, shift=0)
    assert not judge(control, 100).exceeded
    assert asked == [100, 200, 400, 800]


def test_what_claims_to_be_private_is_looked_at_once() -> None:
    subject, asked = faint(planted=False, shift=1)
    assert not judge(subject, 100).exceeded
    assert asked == [100]


def test_a_true_claim_is_nearly_reached() -> None:
    """An audit that sees nothing would pass everything: at 30,000 draws it must see three quarters."""
    laplace = next(subject for subject in SUBJECTS if subject.name == "discrete laplace")
    assert judge(laplace, 30_000).audited > 0.75 * laplace.claimed


def test_staircase_noise_on_each_coordinate_costs_about_twice_its_claim() -> None:
    (control,) = (one for one in CONTROLS if one.name == COORDINATES)
    assert judge(control, 30_000).audited > 1.45 * control.claimed


def test_intake_is_audited_with_a_document_of_each_kind():
    assert {subject.name for subject in intake_subjects()} == {
        "through intake, central, replace_one",
        "through intake, central, add_remove_one",
        "through intake, local",
    }
