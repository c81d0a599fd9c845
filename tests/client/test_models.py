"""What answers are read into is made from the OpenAPI document, and has a place for all that they say."""

import importlib.util
import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import Any, get_args, get_type_hints

import dither
import pytest
from dither import _sessions
from dither._calls import Where
from dither._wire import Parameter, build

from app.core.question import FIELDS, STATISTICS, Kind
from app.estimators.registry import ESTIMATORS
from app.main import create_app
from app.settings import Settings
from app.web.documents.series import ASKED

SCRIPT = Path(dither.__file__).parents[1] / "models.py"

BY_HAND = {
    "RecordResult": dither.RecordResult,
    "RecordError": dither.FieldProblem,
    "BatchOut": dither.BatchResult,
    "RoundOut": _sessions.RoundReply,
}
"""What answers are read into that devices make, too."""

ELSEWHERE = {
    ("RecordResult", "row"): "`BatchResult.refusals`",
    ("RoundOut", "session"): "what was asked for",
    ("RoundOut", "rounds"): "`Session`",
    ("RoundOut", "answers"): "`Session`",
    ("RoundOut", "closes_at"): "the client waits for the next round, whenever that is",
    ("RoundOut", "epsilon_per_answer"): "`Session`; no round can change it",
    ("RoundOut", "threshold_value"): "`threshold`, which a device answers exactly",
}
"""Fields without a home of their own, and where what they say is."""

UNREAD = {
    "SaturationOut",
    "SessionAnswerOut",
    "KeysOut",
    "LinkOut",
    "PersonalChargeOut",
    "LedgerLineOut",
    "TrailLineOut",
    "LedgerReleaseOut",
    "OverviewOut",
    "ChainOut",
    "DaysOut",
    "HistogramOut",
    "EpsilonsOut",
    "StudiesFiguresOut",
    "CohortOut",
    "HealthOut",
}
"""Answers that no method of the SDK gives back."""


@pytest.fixture(scope="module")
def script() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("models", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["models"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules["models"]


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return create_app(Settings()).openapi()


def answers(document: Mapping[str, Any]) -> set[str]:
    """The schemas of whole answers, and of the items of pages."""
    found = set()
    for operations in document["paths"].values():
        for operation in operations.values():
            for status, response in operation["responses"].items():
                if status.startswith("2"):
                    schema = response.get("content", {}).get("application/json", {}).get("schema", {})
                    found |= set(named(schema, document, pages=True))
    return found


def named(schema: Mapping[str, Any], document: Mapping[str, Any], *, pages: bool = False) -> Iterator[str]:
    """The objects that a schema refers to."""
    for one in schema.get("anyOf", [schema]):
        if "items" in one:
            yield from named(one["items"], document)
        if isinstance(one.get("additionalProperties"), dict):
            yield from named(one["additionalProperties"], document)
        name = one.get("$ref", "").rpartition("/")[2]
        properties = document["components"]["schemas"].get(name, {}).get("properties")
        if pages and properties and "next_cursor" in properties and name.startswith("PageOut_"):
            yield from named(properties["items"], document)
        elif properties:
            yield name


def sample(schema: Mapping[str, Any], document: Mapping[str, Any]) -> Any:
    """What such an answer may say, nothing of it null, empty or false."""
    if "anyOf" in schema:
        return sample(schema["anyOf"][0], document)
    if "$ref" in schema:
        return sample(document["components"]["schemas"][schema["$ref"].rpartition("/")[2]], document)
    if "enum" in schema or "const" in schema:
        return schema.get("const") or schema["enum"][-1]
    match schema["type"]:
        case "object":
            if "properties" in schema:
                return {name: sample(one, document) for name, one in schema["properties"].items()}
            values = schema.get("additionalProperties")
            return {"north": sample(values, document) if isinstance(values, dict) else "x"}
        case "array":
            items = schema.get("prefixItems") or [schema["items"]]
            return [sample(one, document) for one in items]
        case "string":
            moments = {"date-time": "2030-01-31T12:00:00Z", "date": "2030-01-31"}
            return moments.get(schema.get("format", ""), "created")
        case kind:
            return {"integer": 7, "number": Decimal("1.5"), "boolean": True}[kind]


def homeless(name: str, kind: Any, script: ModuleType, document: Mapping[str, Any]) -> list[str]:
    """The fields of an answer whose values are nowhere in what it is read into."""
    schema = document["components"]["schemas"][name]
    said = sample(schema, document)
    more = {field: "created" for field in ("status",) if kind is dither.Contribution}
    read = build(kind, said | more)
    lost = []
    for field, one in schema["properties"].items():
        value = getattr(read, field, None)
        if value in (None, (), {}) and (name, field) not in ELSEWHERE:
            lost.append(f"{name}.{field}")
        for inner in set(named(one, document)) & script.CLASSES.keys():
            lost += homeless(inner, getattr(dither, script.CLASSES[inner]), script, document)
    return lost


def test_the_models_are_what_the_script_makes(script: ModuleType, document: Mapping[str, Any]) -> None:
    for path, text in script.modules(document).items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name} has drifted: `make sdk`"


def test_every_field_of_every_answer_has_a_home(script: ModuleType, document: Mapping[str, Any]) -> None:
    found = answers(document)
    assert found >= UNREAD
    lost = []
    for name in sorted(found - UNREAD):
        kind = BY_HAND.get(name) or getattr(dither, script.CLASSES[name])
        lost += homeless(name, kind, script, document)
    assert lost == []
    assert len(found - UNREAD) > 20


def test_a_field_without_a_home_is_found(script: ModuleType, document: Mapping[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    planted = {"type": "number", "title": "Planted"}
    changed = dict(document, components={"schemas": dict(schemas)})
    for name in ("GroupOut", "QuotaOut", "ChargeOut"):
        own = schemas[name]
        changed["components"]["schemas"][name] = own | {
            "properties": own["properties"] | {"planted": planted}
        }
    kinds = {"GroupOut": dither.LabelAnswer, "TokenOut": dither.Token, "ReleaseOut": dither.Release}
    lost = {field for name, kind in kinds.items() for field in homeless(name, kind, script, changed)}
    # What a cohort paid is a mapping, which holds whatever comes.
    assert lost == {"GroupOut.planted", "QuotaOut.planted"}


def test_every_model_has_its_class_and_says_what_its_schema_says(
    script: ModuleType, document: Mapping[str, Any]
) -> None:
    schemas = document["components"]["schemas"]
    for name, model in script.MODELS.items():
        kind = getattr(dither, name)
        own = {field.name for field in fields(kind)}
        said = {field for schema in model.schemas for field in schemas[schema]["properties"]}
        assert own == said | model.more.keys() | ({"raw"} if "raw" in own else set()), name
        # What is written down of fields is of fields that there are.
        assert model.exact | (model.needs or set()) | model.lacks.keys() | model.types.keys() <= own, name


def test_what_a_former_service_leaves_out_is_no_fault(script: ModuleType) -> None:
    for name, model in script.MODELS.items():
        kind = getattr(dither, name)
        needed = {field.name for field in fields(kind) if field.default is field.default_factory is MISSING}
        if model.needs is not None:
            assert needed <= model.needs | model.more.keys() | {"raw"}, name


@pytest.mark.parametrize(
    ("text", "python"),
    [
        ("Why; null where all could.", "Why; None where all could."),
        ("Who they are. Left out elsewhere.", "Who they are. None elsewhere."),
        ("Those who are left out.", "Those who are left out."),
        ("With `range=found`: it.", 'With `range="found"`: it.'),
    ],
)
def test_the_words_of_the_document_are_said_in_python(script: ModuleType, text: str, python: str) -> None:
    assert script.in_python(text) == python


TYPES = {Kind.TEXT: str, Kind.LABELS: str | Sequence[str], Kind.FLAG: bool, Kind.WHOLE: int}
"""Of fields; numbers are any of `Parameter`, and `where` may be a mapping."""

IN_PYTHON = {"first": "measures", "second": "measures", "for_": "for"}
"""What methods call fields otherwise."""

OF_STUDIES = {"change": ASKED, "trend": ASKED}
"""What is asked of a series of studies."""


@pytest.mark.parametrize("statistic", [*STATISTICS, *OF_STUDIES])
def test_a_method_takes_every_field_of_its_statistic_by_its_type(
    statistic: str, document: Mapping[str, Any]
) -> None:
    wanted = set(STATISTICS[statistic].fields if statistic in STATISTICS else OF_STUDIES[statistic])
    if "estimator" in wanted:
        wanted |= {one.name for estimator in ESTIMATORS.values() for one in estimator.parameters}
    for client in (dither.Client, dither.AsyncClient):
        taken = dict(inspect.signature(getattr(client, statistic)).parameters)
        (besides,) = get_args(taken.pop("parameters").annotation)
        typed = get_type_hints(besides)
        apart = taken.keys() - {"self", "study"}
        assert not apart & typed.keys()
        assert {IN_PYTHON.get(name, name) for name in apart | typed.keys()} == wanted
        for name, kind in typed.items():
            field = FIELDS.get(IN_PYTHON.get(name, name))
            said = Parameter if field is None else TYPES.get(field.kind, Parameter)
            assert kind == (Where | None if name == "where" else said), name


def test_what_could_be_a_key_still_can() -> None:
    line = dither.StudySpending(study="commute", spent=Decimal(1), attributes={"region": "north"})
    assert hash(line) == hash(dither.StudySpending(study="commute", spent=Decimal(1)))
