"""A sizing is what the estimators themselves predict for people who are assumed."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest
from dither.device.gaussian import micro_mu2

from app.core.epsilon import MICRO
from app.core.errors import InvalidRequest
from app.core.study import LocalMechanism, Relation, StudyDefinition, Trust
from app.estimators import registry
from app.services.statistics.questions import Ask
from app.services.statistics.sizing import Sized, Sizing, size
from app.web.documents.sizing import read_sizing

STUDY = StudyDefinition(
    slug="minutes",
    title="Minutes",
    lower=Decimal(0),
    upper=Decimal(120),
    relation=Relation.REPLACE_ONE,
    trust=frozenset(Trust),
    epsilon_min=1,
    epsilon_max=1,
    default_share=MICRO // 10,
    local_mechanism=LocalMechanism.HYBRID,
)

WANTED = Sizing(study=STUDY, error=1.0, people=20_000, epsilon=MICRO // 2, share=MICRO // 10)


def ask_for(quantity: str, **changes: object) -> list[Sized]:
    return size(replace(WANTED, **{quantity: None, **changes}))  # type: ignore[arg-type]


@pytest.mark.parametrize("local", [Fraction(0), Fraction(3, 10)])
@pytest.mark.parametrize("quantity", ["people", "epsilon", "share"])
def test_what_is_asked_for_is_the_smallest_that_is_enough(quantity: str, local: Fraction):
    rows = ask_for(quantity, local=local)
    assert {row.estimator for row in rows} <= {one.name for one in registry.applicable(STUDY.relation)}
    assert len(rows) >= 6
    assert [row.chosen for row in rows] == [True] + [False] * (len(rows) - 1)
    for row in rows[:3]:
        found = getattr(row, quantity)
        assert row.predicted_error <= 1
        less = max(1, round(found * 0.98))
        again, short = (
            next(
                one
                for one in size(replace(WANTED, local=local, error=None, **{quantity: value}))
                if one.estimator == row.estimator
            )
            for value in (found, less)
        )
        assert again.predicted_error == pytest.approx(row.predicted_error, rel=1e-12)
        assert short.predicted_error > 1


def test_a_plain_mean_takes_as_many_people_as_its_formula_says():
    """2 W^2 / (n eps)^2 = 1 with W = 120 and eps = .05, solved for n; the population errs by W^2/4n more."""
    (row,) = ask_for("people", ask=Ask(estimator="uniform"))
    people = 120 * 2**0.5 / 0.05
    assert row.people == pytest.approx(people, abs=1.5)
    assert row.population_predicted_error == pytest.approx((1 + 120**2 / 4 / people) ** 0.5, rel=1e-3)


def test_gaussian_noise_takes_as_many_people_as_its_formula_says():
    """W^2 / (n^2 mu^2) = 1 with W = 120 and mu^2 that of (.5, 1e-6), of which .1 is used."""
    gaussian = replace(STUDY, delta=1_000_000, local_mechanism=LocalMechanism.GAUSSIAN)
    rows = ask_for("people", study=gaussian, ask=Ask(estimator="uniform"))
    people = 120 / (micro_mu2(MICRO // 2, 1_000_000) // 10 / MICRO) ** 0.5
    assert rows[0].people == pytest.approx(people, abs=1.5)
    # With one delta more or less, and with reports, it is still the smallest that is enough.
    for local in (Fraction(0), Fraction(3, 10)):
        best = ask_for("people", study=gaussian, local=local)[0]
        assert best.predicted_error <= 1
        fewer = size(
            replace(WANTED, study=gaussian, local=local, error=None, people=round(0.98 * (best.people or 0)))
        )
        assert next(one for one in fewer if one.estimator == best.estimator).predicted_error > 1
    assert ask_for("error", study=gaussian, epsilon=1) == [], "less than a millionth of mu^2"


def test_the_error_itself_can_be_asked_for_and_is_at_most_the_range():
    assert ask_for("error")[0].predicted_error < 1
    few = ask_for("error", people=2, epsilon=MICRO // 1000, ask=Ask(estimator="uniform"))
    assert few[0].predicted_error == 120


def test_where_nothing_is_enough_it_says_how_far_the_largest_gets():
    rows = ask_for("share", people=100)
    assert rows[0].share is None
    assert rows[0].predicted_error > 1
    assert not rows[0].chosen


def test_public_people_need_no_epsilon_and_a_known_variance_fewer_people():
    public = ask_for("epsilon", public=Fraction(1))
    assert public[0].epsilon == 1
    half = Fraction(1, 2)
    known = ask_for("people", local=half, ask=Ask(parameters={"variance": "100"}))
    assert known[0].people < ask_for("people", local=half)[0].people  # type: ignore[operator]


def test_a_secret_size_is_the_expected_one():
    rows = ask_for("people", study=replace(STUDY, relation=Relation.ADD_REMOVE_ONE))
    assert {row.estimator for row in rows} >= {"transformed", "hourglass"}
    (plain,) = ask_for(
        "people",
        study=replace(STUDY, relation=Relation.ADD_REMOVE_ONE),
        ask=Ask(estimator="transformed"),
    )
    assert plain.people == pytest.approx(2**0.25 * 120 / 0.05, abs=1.5)


FIELDS = {"lower": "0", "upper": "120", "error": "1", "epsilon": "0.5"}


def test_a_sizing_takes_the_usual_share_if_none_is_given():
    sizing = read_sizing(FIELDS)
    assert (sizing.asked, sizing.share) == ("people", MICRO // 10)
    assert read_sizing({**FIELDS, "people": "5"}).asked == "share"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"upper": "0"}, "upper"),
        ({"error": "0"}, "error"),
        ({"error": "NaN"}, "error"),
        ({"epsilon": "-1"}, "epsilon"),
        ({"people": "0"}, "people"),
        ({"people": "1.5"}, "people"),
        ({"share": "2"}, "share"),
        ({"local": "1.1"}, "local"),
        ({"local": "0.6", "public": "0.6"}, "public"),
        ({"local": "0.5", "relation": "add_remove_one"}, "relation"),
        ({"relation": "none"}, "relation"),
        ({"local_mechanism": "gaussian"}, "local_mechanism"),
        ({"noise": "gaussian"}, "delta"),
        ({"delta": "0.000001"}, "delta"),
        ({"noise": "gaussian", "delta": "1"}, "delta"),
        ({"noise": "gaussian", "delta": "0.000001", "local_mechanism": "hybrid"}, "local_mechanism"),
        ({"noise": "staircase"}, "noise"),
        ({"people": "5", "share": "0.1"}, "error"),
        ({"surprise": "1"}, "surprise"),
    ],
)
def test_bad_input_is_refused_by_its_field(changes: dict[str, str], field: str):
    with pytest.raises(InvalidRequest) as refusal:
        read_sizing({**FIELDS, **changes})
    assert field in {one.field for one in refusal.value.fields}


def test_one_quantity_must_be_asked_for():
    with pytest.raises(InvalidRequest):
        read_sizing({"lower": "0", "upper": "1", "error": "1"})
