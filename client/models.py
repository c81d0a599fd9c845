"""Make the SDK's models of what the service answers from the OpenAPI document, and what it can be asked with.

`python client/models.py` (or `make sdk`) writes `dither/_answers.py`, `_plans.py` and `_documents.py`, and
`_questions.py` from the fields of questions. A test fails when they have drifted from these, and when a field
of an answer has no home in them.

A model has the fields of one schema, or those of all that an answer may have. Texts are those of the
document, in the words of Python. What the document cannot say stands in `MODELS`: what is an exact number,
which fields an answer may lack, and what a model can do.
"""

import keyword
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parent / "dither"
WIDTH = 110
NOTE = "# Made by client/models.py. Do not edit.\n"

RULES: Mapping[str, str] = {
    r"([;.] )left out\b": r"\1None",
    r"([;.] )Left out\b": r"\1None",
    r"^Left out\b": "None",
    r"\b[Nn]ull\b": "None",
    r"`range=found`": '`range="found"`',
    r"`simultaneous=true`": "`simultaneous=True`",
}
"""How the document's words are said in Python, in this order."""

LITERALS: Mapping[str, str] = {
    "Depth": "Depth",
    "EventType": "EventType",
    "Every": "Every",
    "InvitationKind": "InvitationKind",
    "InvitationState": "InvitationState",
    "Mode": "Mode",
    "SessionProtocol": "Protocol",
    "PublicationState": "PublicationState",
    "Relation": "Relation",
    "Role": "Role",
    "SessionState": "SessionState",
    "Threshold": "Threshold",
    "Trust": "Trust",
}
"""Enumerations that have a name in the SDK, by their schema."""

CLOSED = frozenset(
    {"EventType", "InvitationKind", "InvitationState", "PublicationState", "Role", "SessionState"}
)
"""Those of which an answer has no other value; a newer service may say more of the others."""

SECRET = frozenset({"assignment_key", "secret", "token", "urls"})
"""Fields that `repr` leaves out, as it leaves out `raw`."""

LONG = frozenset({"centres", "charges", "initial_centres", "path"})
"""Fields that would fill a screen."""

EMPTY: Mapping[str, str] = {"tuple": "()", "Mapping": "field(default_factory=dict, hash=False)"}
"""What stands for a list or a mapping that an answer lacks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A class of the SDK.

    Attributes:
        schemas: Those of the answers that it is for, the one whose words are taken first.
        bases: What it can do, by classes of `dither._tables`; or the model that it has more fields than.
        raw: Whether it keeps the whole document.
        exact: Names of fields that are read without rounding.
        needs: Names of fields without which an answer is refused; all that the schemas require if it is
            None. Former services may lack the others.
        lacks: What stands for a field that an answer lacks, where that is not None or empty.
        types: Types that are not those of the document.
        meaning: What it is, where that is not what the first schema says.
        like: The model that explains fields of the same name.
        more: Fields that the service does not say: their type and meaning.
    """

    schemas: tuple[str, ...]
    bases: tuple[str, ...] = ()
    raw: bool = False
    exact: frozenset[str] = frozenset()
    needs: frozenset[str] | None = None
    lacks: Mapping[str, str] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)
    meaning: str = ""
    like: str = ""
    more: Mapping[str, tuple[str, str]] = field(default_factory=dict)


def _model(schemas: str, *bases: str, exact: str = "", needs: str | None = None, **more: Any) -> Model:
    return Model(
        schemas=tuple(schemas.split()),
        bases=bases,
        exact=frozenset(exact.split()),
        needs=None if needs is None else frozenset(needs.split()),
        **more,
    )


SPREADS = {"variance": "Spread", "sd": "Spread"}

ANSWERS: Mapping[str, Model] = {
    "Interval": _model("IntervalOut", needs="level lower upper"),
    "Statistic": _model("StatisticOut"),
    "Spread": _model("StatisticOut", "Statistic", "InWords", meaning="A variance or a standard deviation."),
    "Count": _model("CountOut"),
    "Quartile": _model("QuartileOut", like="Statistic"),
    "Coordinate": _model("CoordinateOut", types=SPREADS, like="Statistic"),
    "LineNumber": _model("WithIntervalOut"),
    "LinePoint": _model("PointOfLineOut"),
    "Line": _model("LineOut"),
    "Prediction": _model("PredictionOut"),
    "FoundRange": _model("FoundRangeOut"),
    "SearchesPart": _model("SearchesOut"),
    "SeriesAnswer": _model("WaveOut"),
    "Series": _model("SeriesOut", raw=True),
    "Bin": _model("ShareOfBinOut"),
    "ChoiceShare": _model("ShareOfChoiceOut"),
    "CellShare": _model("ShareOfCellOut"),
    "LabelAnswer": _model(
        "GroupOut HistogramOfLabelOut SharesOfLabelOut QuantileOfLabelOut CountOfLabelOut "
        "CovarianceOfLabelOut CoordinatesOfLabelOut DescriptionOfLabelOut CorrelationOfLabelOut "
        "RegressionOfLabelOut TableOfLabelOut",
        needs="where",
        types={"sd": "Spread"},
        like="Release",
    ),
    "Release": _model(
        "ReleaseOut CurrentReleaseOut ReleaseWithChargesOut HistogramReleaseOut SharesReleaseOut "
        "CoordinatesReleaseOut CountReleaseOut CovarianceReleaseOut QuantileReleaseOut DescriptionOut "
        "ClusterReleaseOut CorrelationReleaseOut RegressionReleaseOut TableReleaseOut",
        "Plotted",
        raw=True,
        exact="epsilon_max epsilon_max_total mu2_max mu2_max_total delta",
        needs="id study statistic estimator",
        lacks={"parameters": "None"},
        types=SPREADS | {"groups": "tuple[LabelAnswer, ...]"},
    ),
}
"""Answers."""

PLANS: Mapping[str, Model] = {
    "ExpectedRange": _model("ExpectedRangeOut"),
    "ExpectedValues": _model("ExpectedValuesOut"),
    "PlannedEstimator": _model(
        "PlannedOut",
        raw=True,
        exact="epsilon_max epsilon_max_total mu2_max",
        needs="estimator",
        lacks={"chosen": "None"},
    ),
    "Standing": _model("StandingOut"),
    "Newcomers": _model("NewcomersOut", exact="epsilon_max epsilon_max_total mu2_max"),
    "PlannedRefusal": _model("RefusalOut"),
    "Plan": _model("PlanOut", "PlanTable", raw=True, exact="tilt least_epsilon", needs="in_words estimators"),
    "PlannedQuestion": _model("PlannedQuestionOut", "Plan", exact="tilt least_epsilon epsilon_max mu2_max"),
    "Plans": _model("PlansOut", raw=True, exact="epsilon_max mu2_max"),
}
"""What an answer would be, and what it takes."""

AMOUNTS = "total reserved spent remaining"

DOCUMENTS: Mapping[str, Model] = {
    "EpsilonRange": _model("EpsilonRangeOut", exact="min max"),
    "Measure": _model("MeasureOut", exact="lower upper", needs="lower upper", lacks={"dimension": "1"}),
    "ReportingRange": _model("ReportingRangeOut"),
    "StudyText": _model("StudyTextOut"),
    "Study": _model(
        "StudyOut StudyMadeOut",
        "Shown",
        raw=True,
        exact="lower upper epsilons default_share tilt delta",
        needs="slug lower upper relation trust epsilon",
        lacks={
            "title": '""',
            "description": '""',
            "delta": "Decimal(0)",
            "noise": '"laplace"',
            "dimension": "1",
            "warnings": "()",
        },
    ),
    "Contribution": _model(
        "ContributionOut",
        exact="epsilon mu2 epsilon_used_at_most",
        needs="study subject trust",
        more={
            "status": (
                'Literal["created", "unchanged", "replaced"]',
                "Whether it was new, there already, or took another one's place.",
            )
        },
    ),
    "Amounts": _model("AmountsOut", exact=AMOUNTS),
    "GaussianAmounts": _model("GaussianOut", exact="delta"),
    "Promise": _model("PromiseOut", exact="epsilon delta"),
    "StudySpending": _model("StudyLineOut", exact="epsilon spent mu2 mu2_spent", needs="study spent"),
    "SessionSpending": _model("SessionLineOut", exact="epsilon spent", needs="session study epsilon spent"),
    "Budget": _model("BudgetOut", "Shown", raw=True, needs="subject epsilon"),
    "Account": _model("AccountOut", "Shown", raw=True),
    "Raise": _model(
        "RaiseOut",
        raw=True,
        exact="epsilon at_most new_people delta",
        needs="epsilon new_people",
        lacks={"delta": "Decimal(0)"},
    ),
    "Quota": _model("QuotaOut", exact="share"),
    "Token": _model("TokenOut", raw=True, needs="id name role created_at"),
    "NewToken": _model("NewTokenOut", "Token"),
    "TokenUsage": _model("UsageOut", raw=True, exact="used"),
    "Invitation": _model("InvitationOut", raw=True),
    "NewInvitation": _model("InvitationMadeOut", raw=True),
    "Webhook": _model("WebhookOut", raw=True),
    "NewWebhook": _model("NewWebhookOut", "Webhook"),
    "Schedule": _model("ScheduleOut", raw=True, exact="share until quota"),
    "Publication": _model("PublicationOut", raw=True),
    "Bounds": _model("BoundsOut"),
    "Session": _model(
        "SessionOut",
        raw=True,
        exact="epsilon_per_answer epsilon_total report_epsilon central_epsilon_per_round "
        "lower upper quantile",
        needs="id study protocol state rounds epsilon_per_answer epsilon_total answers_per_person "
        "lower upper grid_bits",
        lacks={"dimension": "1"},
        types={"path": "tuple[Mapping[str, object], ...]"},
    ),
}
"""Studies, budgets, tokens, links and sessions."""

MODULES: Mapping[str, tuple[str, Mapping[str, Model]]] = {
    "_answers.py": ("Answers.", ANSWERS),
    "_plans.py": ("Plans.", PLANS),
    "_documents.py": ("Studies, budgets, sessions, tokens and links.", DOCUMENTS),
}
MODELS = ANSWERS | PLANS | DOCUMENTS

CLASSES: Mapping[str, str] = {
    schema: name for name, model in reversed(MODELS.items()) for schema in model.schemas
}
"""The model of a schema."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field of a model: its annotation, its default as code or nothing, and what it means."""

    name: str
    kind: str
    default: str
    meaning: str


def fields_of(model: Model, schemas: Mapping[str, Any]) -> list[Field]:
    """The fields of a model, in the order of the document."""
    sources = [schemas[name] for name in model.schemas]
    names = list(dict.fromkeys(name for source in sources for name in source["properties"]))
    found = []
    for name in names:
        having = [source for source in sources if name in source["properties"]]
        said = [source["properties"][name] for source in having]
        required = len(having) == len(sources) and all(name in source["required"] for source in having)
        kinds = dict.fromkeys(kind for one in said for kind in _kinds(one, exact=name in model.exact))
        kind = model.types.get(name) or next(kind for kind in kinds if kind != "None")
        nullable = "None" in kinds or len(having) < len(sources)
        needed = (required if model.needs is None else name in model.needs) and not nullable
        default = "" if needed else model.lacks.get(name) or ("None" if nullable else _empty(kind))
        kind += " | None" if default == "None" else ""
        meaning = next((text for one in said if (text := one.get("description"))), "")
        found.append(Field(name=name, kind=kind, default=_hidden(name, default), meaning=in_python(meaning)))
    for name, (kind, meaning) in model.more.items():
        found.append(Field(name=name, kind=kind, default="", meaning=meaning))
    if model.raw:
        found.append(Field(name="raw", kind="Mapping[str, object]", default=_RAW, meaning=""))
    return found


_RAW = "field(repr=False, compare=False)"


def _empty(kind: str) -> str:
    """What stands for a field that an answer lacks and that is never null."""
    return "False" if kind == "bool" else EMPTY.get(kind.partition("[")[0], "None")


def _hidden(name: str, default: str) -> str:
    if name not in SECRET | LONG:
        return default
    return f"field(default={default}, repr=False)" if default else "field(repr=False)"


def _kinds(said: Mapping[str, Any], *, exact: bool) -> Iterator[str]:
    """The types that a property may have, "None" among them."""
    if "anyOf" in said:
        for one in said["anyOf"]:
            yield from _kinds(one, exact=exact)
    elif "$ref" in said:
        yield _named(said["$ref"].rpartition("/")[2])
    else:
        yield _plain(said, exact=exact)


def _named(schema: str) -> str:
    if schema in CLOSED:
        return LITERALS[schema]
    if schema in CLASSES:
        return CLASSES[schema]
    return "str" if schema in LITERALS | dict.fromkeys(STRINGS) else "Mapping[str, object]"


STRINGS = ("Currency", "LocalMechanism", "StudyState")
"""Enumerations that have no name in the SDK."""


_TUPLE = r"\btuple\b"


def _plain(said: Mapping[str, Any], *, exact: bool) -> str:
    match said.get("type"):
        case "array":
            items = [said["prefixItems"][0]] if "prefixItems" in said else [said["items"]]
            return f"tuple[{next(_kinds(items[0], exact=exact))}, ...]"
        case "object":
            values = said.get("additionalProperties")
            inner = next(_kinds(values, exact=exact)) if isinstance(values, dict) else "object"
            # A mapping is handed on as it is, with lists in it.
            return f"Mapping[str, {re.sub(_TUPLE, 'Sequence', inner).replace(', ...]', ']')}]"
        case "number":
            return "Decimal" if exact else "float"
        case "string":
            return {"date-time": "datetime", "date": "date"}.get(said.get("format", ""), "str")
        case kind:
            return {"integer": "int", "boolean": "bool", "null": "None"}[str(kind)]


def in_python(text: str) -> str:
    """The document's words as the SDK says them.

    >>> in_python("Who they are; left out where that is secret.")
    'Who they are; None where that is secret.'
    """
    for pattern, replacement in RULES.items():
        text = re.sub(pattern, replacement, text)
    return text


def _class(name: str, model: Model, schemas: Mapping[str, Any]) -> str:
    fields = fields_of(model, schemas)
    known = {one for base in model.bases if base in MODELS for one in _names(MODELS[base], schemas)}
    own = [one for one in fields if one.name not in known]
    meant = {one.name: one.meaning for one in fields_of(MODELS[model.like], schemas)} if model.like else {}
    explained = [one for one in own if one.meaning and not meant.get(one.name)]
    lines = ["@dataclass(frozen=True, slots=True, kw_only=True)"]
    lines.append(f"class {name}({', '.join(model.bases)}):" if model.bases else f"class {name}:")
    lines += _docstring(model.meaning or schemas[model.schemas[0]]["description"], model.like, explained)
    lines += [f"    {one.name}: {one.kind}" + (f" = {one.default}" if one.default else "") for one in own]
    return "\n".join(lines) + "\n"


def _names(model: Model, schemas: Mapping[str, Any]) -> list[str]:
    return [one.name for one in fields_of(model, schemas)]


def _docstring(text: str, like: str, explained: Sequence[Field]) -> list[str]:
    head, *rest = [re.sub(r"\s+", " ", part) for part in in_python(text).split("\n\n")]
    lines = [f'    """{head}']
    for part in rest:
        lines += ["", *_wrapped(part, "    ", "    ")]
    if like:
        lines += ["", f"    Other fields are as in `{like}`."]
    if explained:
        lines += ["", "    Attributes:"]
    for one in explained:
        lines += _wrapped(f"{one.name}: {one.meaning}", " " * 8, " " * 12)
    lines[-1] += '"""' if len(lines) == 1 else ""
    return lines if len(lines) == 1 else [*lines, '    """', ""]


def _wrapped(text: str, first: str, rest: str) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def module(name: str, schemas: Mapping[str, Any]) -> str:
    """The text of a module, formatted."""
    meaning, models = MODULES[name]
    body = "\n\n".join(_class(one, model, schemas) for one, model in models.items())
    literals = [
        f"{alias} = Literal[{', '.join(f'{text!r}' for text in schemas[schema]['enum'])}]\n"
        f'"""{schemas[schema]["description"]}"""'
        for schema, alias in LITERALS.items()
        if name == "_documents.py"
    ]
    return formatted(name, "\n\n".join([f'"""{meaning}"""', *_imports(name), *literals, body]))


def formatted(name: str, text: str) -> str:
    """The text of a module as it is written."""
    path = str(PACKAGE / name)
    for command in (("check", "--fix-only", "--select", "I,F401"), ("format",)):
        text = subprocess.run(  # noqa: S603  # ruff, on our own text
            [sys.executable, "-m", "ruff", *command, "--quiet", "--stdin-filename", path, "-"],
            input=text,
            capture_output=True,
            text=True,
            cwd=PACKAGE.parents[1],
            check=True,
        ).stdout
    return NOTE + text


def _imports(name: str) -> Iterator[str]:
    """What a module may need; ruff removes what it does not."""
    answers = "" if name == "_answers.py" else "from dither._answers import Interval\n"
    yield (
        "from collections.abc import Mapping, Sequence\n"
        "from dataclasses import dataclass, field\n"
        "from datetime import date, datetime\n"
        "from decimal import Decimal\n"
        "from typing import Literal\n\n"
        f"{answers}"
        "from dither._tables import InWords, PlanTable, Plotted, Shown\n"
    )


APART = ("standardize", "edges", "bins")
"""Fields that methods take in the words of Python, as those without which there is no answer."""


def asked_with() -> Mapping[str, Mapping[str, str]]:
    """By statistic the fields that its method takes by their own names, with their types."""
    from app.core.question import FIELDS, STATISTICS, Kind
    from app.estimators.registry import ESTIMATORS
    from app.web.documents.series import ASKED

    kinds = {Kind.TEXT: "str", Kind.LABELS: "str | Sequence[str]", Kind.FLAG: "bool", Kind.WHOLE: "int"}
    types = {name: kinds.get(one.kind, "Parameter") for name, one in FIELDS.items()} | {
        "where": "Where | None"
    }
    own = [one.name for estimator in ESTIMATORS.values() for one in estimator.parameters]
    asked = {name: (one.fields, one.needs) for name, one in STATISTICS.items()}
    asked |= dict.fromkeys(("change", "trend"), (ASKED, ()))
    return {
        statistic: {
            f"{name}_" if name in keyword.kwlist else name: types.get(name, "Parameter")
            for name in (*fields, *(own if "estimator" in fields else ()))
            if name not in (*APART, *needs)
        }
        for statistic, (fields, needs) in asked.items()
    }


def questions() -> str:
    """The text of the module of what methods are asked with, formatted."""
    classes: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for statistic, fields in asked_with().items():
        classes.setdefault(tuple(fields.items()), []).append(statistic)
    made: list[tuple[str, Sequence[tuple[str, str]]]] = []
    parts = []
    for fields, statistics in classes.items():
        # A class extends the largest former one of whose fields it has every one.
        base, known = max(
            (one for one in made if set(one[1]) <= set(fields)),
            key=lambda one: len(one[1]),
            default=("TypedDict", ()),
        )
        name = named(statistics[0])
        made.append((name, fields))
        own = "".join(f"    {one}: {kind}\n" for one, kind in fields if (one, kind) not in known)
        parts.append(f'class {name}({base}, total=False):\n    """Of {", ".join(statistics)}."""\n\n{own}')
    body = "\n\n".join(parts)
    head = '"""What statistics can be asked with besides: see the reference of the service."""\n'
    imports = (
        "from collections.abc import Sequence\nfrom typing import TypedDict\n",
        "from dither._calls import Where",
        "from dither._wire import Parameter\n",
    )
    return formatted("_questions.py", "\n".join([head, *imports, body]))


def named(statistic: str) -> str:
    """The class of what a statistic can be asked with."""
    return statistic.title()


def modules(document: Mapping[str, Any]) -> Mapping[Path, str]:
    """Every module that is made, and its text."""
    made = {name: module(name, document["components"]["schemas"]) for name in MODULES}
    return {PACKAGE / name: text for name, text in {**made, "_questions.py": questions()}.items()}


def main() -> None:
    """Write the modules."""
    from app.main import create_app
    from app.settings import Settings

    for path, text in modules(create_app(Settings()).openapi()).items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
