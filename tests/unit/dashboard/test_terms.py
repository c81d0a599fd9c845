"""One sentence of what people agree to, with the range, the step, and the odds of each privacy step."""

import json
from typing import Any

import pytest

from app.core.numbers import JsonNumber
from app.core.study import StudyDefinition
from app.dashboard import answer_form
from app.dashboard.terms import STEPS, agreed, step_sets
from app.web.documents.study import StudyIn


def study(**fields: Any) -> StudyDefinition:
    document = json.dumps({"slug": "s", "trust": ["central"], **fields})
    numbers = json.loads(document, parse_int=JsonNumber, parse_float=JsonNumber)
    return StudyIn.model_validate(numbers).definition()


NUMBER: dict[str, Any] = {"lower": 0, "upper": 120, "epsilons": [0.5, 1, 2]}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (NUMBER, ["a number from 0 to 120, kept in steps of 0.000000112; they trust this service "]),
        (NUMBER, ["right at most 63, 74 or 89 times in 100 instead of 50", "how many people take part is p"]),
        (NUMBER | {"trust": ["public"]}, ["everyone (without any noise); how many people"]),
        (NUMBER | {"trust": ["central", "local"]}, ["together) or no one (their own device adds"]),
        (NUMBER | {"upper": 1000000, "dimension": 3}, ["3 numbers, each from 0 to 1,000,000, kept in steps"]),
        (NUMBER | {"attributes": {"sex": ["f", "m"]}}, ["their sex (f or m)", "with which of these labels"]),
        (
            {"choices": ["red", "green", "blue"], "epsilons": [1]},
            ["one of red, green and blue;", "most 74 t"],
        ),
        (
            {"measures": {"age": {"lower": 18, "upper": 99}, "party": {"choices": ["a", "b"]}}},
            ["age (a number from 18 to 99, kept in steps of 0.0000000754) and party (one of a and b)"],
        ),
        # Where presence is secret, another answer is two steps away.
        (
            NUMBER | {"relation": "add_remove_one"},
            [
                "is theirs right at most 74, 89 or 99 times",
                "part is secret, too, and guessed right at most 63",
            ],
        ),
    ],
)
def test_the_sentence_says_what_is_asked_and_promised(fields: dict[str, Any], said: list[str]) -> None:
    sentence = agreed(study(**fields))
    for text in said:
        assert text in sentence
    assert sentence.endswith("; and none of this changes afterwards.")
    assert ("guess" in sentence) == (fields.get("trust") != ["public"])


def test_the_odds_of_a_set_of_steps_are_those_that_people_see() -> None:
    for name, _, odds in step_sets():
        offered = answer_form.steps(study(**NUMBER | {"epsilons": [float(one) for one in STEPS[name]]}))
        assert odds.replace(" or ", ", ").split(", ") == [str(one.of_answer) for one in offered]
