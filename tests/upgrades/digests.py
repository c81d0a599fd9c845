"""The questions whose digests are kept: `python -m tests.upgrades.digests` adds those that are not yet.

The digest of a question finds its stored answer, and that of its family the steps and pieces of one. Another
digest is another question, which people pay for again: what is in the file is never written again.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

from app.core.attributes import Attributes
from app.core.measures import Measures
from app.core.study import Relation, Study, StudyDefinition, StudyState, Trust
from app.services.sessions import kmeans_release
from app.services.shapes.questions import of_shape
from app.services.shapes.request import ShapeRequest
from app.services.statistics.questions import Ask
from app.services.statistics.release_request import ReleaseRequest

FILE = Path(__file__).parent / "digests.json"

_REGIONS = Attributes(["region:north", "region:south", "age:young", "age:old"])
_MEASURES = Measures(["income:0:9000", "age:18:98", 'party:["red","green","blue"]', "place:0:1:2"])

_STUDIES: dict[str, dict[str, Any]] = {
    "numbers": {"attributes": _REGIONS, "tilt": 100_000},
    "untilted": {},
    "tiers": {"epsilons": (500_000, 1_000_000, 2_000_000), "epsilon_max": 2_000_000, "default_share": 50_000},
    "secret": {"relation": Relation.ADD_REMOVE_ONE, "attributes": _REGIONS},
    "gaussian": {"delta": 10_000_000, "attributes": _REGIONS, "tilt": 100_000},
    "secret-gaussian": {"delta": 10_000_000, "relation": Relation.ADD_REMOVE_ONE, "attributes": _REGIONS},
    "poll": {"choices": ("red", "green", "blue"), "upper": Decimal(2), "attributes": _REGIONS},
    "places": {"dimension": 2, "attributes": _REGIONS},
    "secret-places": {"dimension": 2, "relation": Relation.ADD_REMOVE_ONE},
    "measures": {"measures": _MEASURES, "dimension": 5, "upper": Decimal(1), "attributes": _REGIONS},
    "secret-measures": {
        "measures": Measures(["income:0:9000", "age:18:98"]),
        "dimension": 2,
        "upper": Decimal(1),
        "relation": Relation.ADD_REMOVE_ONE,
    },
}

_QUESTIONS: dict[str, tuple[dict[str, Any], ...]] = {
    "numbers": (
        {},
        {"statistic": "sum"},
        {"statistic": "variance"},
        {"statistic": "sd"},
        {"share": 250_000},
        {"share": 250_000, "epsilon": 100_000},
        {"epsilon": 99_000_000},
        {"tilt": 0},
        {"tilt": 1_000_000},
        {"estimator": "uniform"},
        {"estimator": "optimal", "parameters": {"shrinkage": "none"}},
        {"estimator": "optimal", "parameters": {"shrinkage": "minimax"}},
        {"estimator": "adpm"},
        {"estimator": "kvh", "parameters": {"variance": "worst_case"}},
        {"estimator": "pwh", "parameters": {"coalition": "0.2"}},
        {"estimator": "threshold"},
        {"parameters": {"variance": "120.5"}},
        {"parameters": {"shrinkage": "none"}},
        {"parameters": {"shrinkage": "noise"}},
        {"parameters": {"group_cap": "public:0.5", "group_variance": "central:4"}},
        {"parameters": {"range": "declared"}},
        {"parameters": {"range": "found"}},
        {"parameters": {"range": "found", "range_part": "0.3"}, "by": "region"},
        {"where": "region:north"},
        {"where": "age:old,region:south"},
        {"by": "region"},
        {"by": "region", "where": "age:old", "share": 400_000},
        {"statistic": "sd", "by": "age"},
        {"statistic": "histogram"},
        {"statistic": "histogram", "parameters": {"bins": "20"}},
        {"statistic": "distribution", "parameters": {"edges": "20,50,80"}},
        {"statistic": "histogram", "by": "region", "where": "age:young"},
        {"statistic": "median"},
        {"statistic": "median", "parameters": {"for": "interval"}},
        {"statistic": "median", "parameters": {"for": "estimate"}},
        {"statistic": "quantile", "parameters": {"q": "0.5"}},
        {"statistic": "quantile", "parameters": {"q": "0.9", "candidates": "50"}, "share": 300_000},
        {"statistic": "describe"},
        {"statistic": "describe", "by": "region", "tilt": 0},
        {"statistic": "count"},
    ),
    "untilted": (
        {},
        {"share": 1_000_000},
        {"statistic": "histogram"},
        {"statistic": "median"},
        {"parameters": {"range": "found"}},
    ),
    "tiers": ({}, {"epsilon": 30_000}, {"statistic": "median", "share": 200_000}),
    "secret": (
        {},
        {"expected_size": 1000.0},
        {"statistic": "variance"},
        {"statistic": "sd", "where": "region:north"},
        {"estimator": "transformed"},
        {"estimator": "hourglass", "parameters": {"level": "0.5"}},
        {"by": "region"},
        {"by": "region", "statistic": "variance"},
        {"statistic": "count"},
        {"statistic": "count", "epsilon": 1_000, "by": "region"},
        {"statistic": "histogram", "expected_size": 250.0},
        {"statistic": "describe"},
        {"parameters": {"range": "found"}},
    ),
    "gaussian": (
        {},
        {"share": 500_000, "epsilon": 200_000},
        {"estimator": "optimal", "parameters": {"coalition": "0.1"}},
        {"by": "age"},
        {"statistic": "histogram"},
        {"statistic": "median"},
    ),
    "secret-gaussian": ({}, {"statistic": "sd"}, {"statistic": "count"}, {"statistic": "distribution"}),
    "poll": (
        {"statistic": "shares"},
        {"statistic": "shares", "by": "region"},
        {"statistic": "shares", "where": "age:old", "tilt": 50_000},
    ),
    "places": ({}, {"statistic": "sd"}, {"by": "region"}, {"share": 300_000, "tilt": 100_000}),
    "secret-places": ({}, {"statistic": "variance"}),
    "measures": (
        {"measure": "income"},
        {"measure": "income", "statistic": "median"},
        {"measure": "age", "by": "region"},
        {"measure": "age", "parameters": {"range": "found"}},
        {"measure": "party", "statistic": "shares"},
        {"measure": "place"},
        {"statistic": "covariance", "parameters": {"measures": "age,income"}},
        {"statistic": "covariance", "parameters": {"measures": "income,age"}, "by": "age"},
    ),
    "secret-measures": (
        {"measure": "age"},
        {"statistic": "covariance", "parameters": {"measures": "income,age"}, "expected_size": 90.0},
    ),
}


def _study(name: str) -> Study:
    fields: dict[str, Any] = {
        "slug": name,
        "title": "A question",
        "lower": Decimal(0),
        "upper": Decimal(100),
        "relation": Relation.REPLACE_ONE,
        "trust": frozenset(Trust),
        "epsilon_min": 1_000,
        "epsilon_max": 5_000_000,
        "default_share": 100_000,
    }
    return Study(
        id=1,
        definition=StudyDefinition(**fields | _STUDIES[name]),
        state=StudyState.OPEN,
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
    )


def found() -> Iterator[dict[str, Any]]:
    """Every question with its digests, in order."""
    for name, questions in _QUESTIONS.items():
        study = _study(name)
        for given in questions:
            ask = Ask(**given)
            shown: dict[str, Any] = {"study": name, "question": given}
            if of_shape(study.definition, ask):
                shape = ShapeRequest.of(study, ask).question
                shown |= {"digest": shape.digest.hex(), "family": shape.by_parts.family.hex()}
            else:
                mean = ReleaseRequest.of(study, ask, asker=None).question
                shown |= {"digest": mean.digest.hex(), "family": mean.by_parts.family.hex()}
                shown["combined"] = mean.combined().family.hex()
            yield json.loads(json.dumps(shown))
    for number in (1, 2):
        digest = kmeans_release.question_digest(UUID(int=7), number).hex()
        yield {"study": "kmeans", "question": {"round": number}, "digest": digest}


def kept() -> list[dict[str, Any]]:
    """What the file holds."""
    return list(json.loads(FILE.read_text())) if FILE.exists() else []


def main() -> None:
    """Add what is new to the file."""
    rows = kept()
    known = [(row["study"], row["question"]) for row in rows]
    rows += [row for row in found() if (row["study"], row["question"]) not in known]
    FILE.write_text(as_text(rows))


def as_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """A line for each question."""
    return "[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n"


if __name__ == "__main__":
    main()
