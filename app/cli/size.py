"""How many people, which epsilon or which share a wanted error takes; works without a service."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from app.cli.ask import Estimator, Parameters, parameters_of
from app.cli.common import AsJson, console, print_json, print_table, usage_error
from app.cli.http import number
from app.core.errors import InvalidRequest
from app.core.study import Currency, LocalMechanism, Relation
from app.services.statistics.sizing import size as sized
from app.web.documents.sizing import WORDS, SizingIn, SizingOut, read_sizing


def _option(name: str, metavar: str | None = "NUMBER") -> Any:
    return typer.Option(metavar=metavar, help=SizingIn.model_fields[name].description)


def size(
    between: Annotated[
        tuple[str, str], typer.Option("--range", metavar="LOWER UPPER", help="Range of a value.")
    ],
    error: Annotated[str | None, _option("error")] = None,
    people: Annotated[str | None, _option("people")] = None,
    epsilon: Annotated[str | None, _option("epsilon", "EPSILON")] = None,
    share: Annotated[str | None, _option("share", "SHARE")] = None,
    local: Annotated[str, _option("local", "PART")] = "0",
    public: Annotated[str, _option("public", "PART")] = "0",
    relation: Annotated[Relation, _option("relation", None)] = Relation.REPLACE_ONE,
    noise: Annotated[Currency, _option("noise", None)] = Currency.LAPLACE,
    delta: Annotated[str, _option("delta", "DELTA")] = "0",
    local_mechanism: Annotated[LocalMechanism | None, _option("local_mechanism", None)] = None,
    estimator: Estimator = None,
    parameter: Parameters = None,
    every: Annotated[bool, typer.Option("--all", help="Show every estimator that applies.")] = False,
    as_json: AsJson = False,
) -> None:
    """Say how many people, which epsilon or which share a wanted error takes: what is left out of these four.

    Plans are made for people who are assumed, by the estimators that answer; no service is needed. Errors are
    predicted for the most spread values, unless `--parameter variance=NUMBER` says more.
    """
    given: Mapping[str, str | None] = {
        "lower": between[0],
        "upper": between[1],
        "error": error,
        "people": people,
        "epsilon": epsilon,
        "share": share,
        "local": local,
        "public": public,
        "relation": relation.value,
        "noise": noise.value,
        "delta": delta,
        "local_mechanism": None if local_mechanism is None else local_mechanism.value,
    }
    fields = {
        name: text if name in WORDS else str(number(text, _named(name)))
        for name, text in given.items()
        if text is not None
    }
    try:
        sizing = read_sizing(fields, estimator=estimator, parameters=parameters_of(parameter))
        found = SizingOut.made_of(sizing, estimators=sized(sizing))
    except InvalidRequest as refusal:
        named = "; ".join(f"{_named(one.field)}: {one.reason}" for one in refusal.fields)
        raise usage_error(named or refusal.detail) from None
    if as_json:
        print_json(found.model_dump(mode="json"))
        return
    rows = found.estimators if every else found.estimators[:1]
    if not rows:
        console.print("No estimator has an answer for such people.")
        return
    columns = {"estimator": "estimator", "people": "people", "epsilon": "epsilon", "share": "share"}
    columns |= {"predicted_error": "predicted error"}
    if any(row.population_predicted_error is not None for row in rows):
        columns["population_predicted_error"] = "about the population"
    columns["epsilon_max"] = "largest charge"
    print_table([row.model_dump() for row in rows], columns)
    if sizing.asked != "error" and getattr(rows[0], sizing.asked) is None:
        console.print(f"No {sizing.asked} is enough: the row shows how far the largest one gets.")
    if len(found.estimators) > len(rows):
        console.print("`--all` shows the other estimators.")


def _named(field: str) -> str:
    """The option of a field."""
    return "--range" if field in ("lower", "upper") else f"--{field.replace('_', '-')}"
