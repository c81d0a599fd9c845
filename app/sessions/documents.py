"""A search as a JSON document, and back. What is stored once can be restored by every later version."""

from collections.abc import Mapping
from typing import Any

from app.core.errors import InternalFault
from app.sessions.response import Tally
from app.sessions.search import Mode, Rules, Search, Step, Target, Threshold

FORMAT = 1
"""Grows when the shape of the document changes; the older ones stay readable."""


def search_document(search: Search) -> dict[str, object]:
    """The JSON object of a search. Floats survive exactly; grid points and counts are integers."""
    rules = search.rules
    return {
        "format": FORMAT,
        "rules": {
            "target": rules.target.value,
            "mode": rules.mode.value,
            "threshold": rules.threshold.value,
            "rounds": rules.rounds,
            "epsilon": rules.epsilon,
            "participants": rules.participants,
            "failure_exponent": rules.failure_exponent,
            "quantile": rules.quantile,
        },
        "lower": search.lower,
        "upper": search.upper,
        "steps": [
            {
                "lower": step.lower,
                "upper": step.upper,
                "threshold": step.threshold,
                "answers": step.tally.answers,
                "positives": step.tally.positives,
                "fraction": step.fraction,
                "believed": step.believed,
            }
            for step in search.steps
        ],
    }


def restore_search(document: Mapping[str, Any]) -> Search:
    """The search that a document was made from.

    Raises:
        InternalFault: it was not made by `search_document`.
    """
    try:
        if document["format"] != FORMAT:
            raise InternalFault("A stored search has a format of a newer version.")
        rules = document["rules"]
        return Search(
            rules=Rules(
                target=Target(rules["target"]),
                mode=Mode(rules["mode"]),
                threshold=Threshold(rules["threshold"]),
                rounds=rules["rounds"],
                epsilon=rules["epsilon"],
                participants=rules["participants"],
                failure_exponent=rules["failure_exponent"],
                quantile=rules["quantile"],
            ),
            lower=document["lower"],
            upper=document["upper"],
            steps=tuple(_step(step) for step in document["steps"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InternalFault("A stored search cannot be read.") from error


def _step(step: Mapping[str, Any]) -> Step:
    return Step(
        lower=step["lower"],
        upper=step["upper"],
        threshold=step["threshold"],
        tally=Tally(answers=step["answers"], positives=step["positives"]),
        fraction=step["fraction"],
        believed=step["believed"],
    )
