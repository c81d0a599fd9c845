"""Commands of an admin over HTTP: studies."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer
from dither import Study

from app.cli.common import AsJson, print_json, print_table, show
from app.cli.editing import edited
from app.cli.http import DEFAULT_URL, StudyName, Token, Url, service
from app.cli.options import fields_of
from app.web.documents.study import StudyEditIn, StudyIn

studies = typer.Typer(no_args_is_help=True, help="Create, list, show, close and end studies.")


@studies.command("create")
@fields_of(StudyIn, argument="slug", unless="edit")
def create_study(
    fields: Mapping[str, Any],
    *,
    edit: Annotated[
        bool, typer.Option("--edit", help="Write it in $EDITOR, where each field says what it means.")
    ] = False,
    url: Url = DEFAULT_URL,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Make a study. What answers depend on is fixed from then on."""
    with service(url, token) as client:
        if edit:
            made = edited(StudyIn, fields, lambda written: client.create_study(**written))
        else:
            made = client.create_study(**fields)
    _show_study(made, as_json)


@studies.command("list")
def list_studies(
    series: Annotated[str | None, typer.Option(help="Only those of this series.")] = None,
    url: Url = DEFAULT_URL,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """List the studies that the token may see."""
    with service(url, token) as client:
        found = list(client.studies(series=series))
    if as_json:
        print_json([study.raw for study in found])
        return
    columns = {
        "slug": "study",
        "title": "question",
        "series": "series",
        "asks": "asks for",
        "relation": "relation",
    }
    rows = [{**study.raw, "asks": _in_short(study)} for study in found]
    print_table(rows, columns | {"trust": "trust", "state": "state"})


@studies.command("show")
def show_study(
    study: StudyName, url: Url = DEFAULT_URL, token: Token = None, as_json: AsJson = False
) -> None:
    """Show one study."""
    with service(url, token) as client:
        found = client.study(study)
    _show_study(found, as_json)


@studies.command("edit")
@fields_of(StudyEditIn)
def edit_study(
    fields: Mapping[str, Any],
    *,
    study: StudyName,
    url: Url = DEFAULT_URL,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Change what is said of a study, for people. What answers depend on is fixed."""
    with service(url, token) as client:
        found = client.edit_study(study, **fields)
    _show_study(found, as_json)


@studies.command("close")
def close_study(
    study: StudyName, url: Url = DEFAULT_URL, token: Token = None, as_json: AsJson = False
) -> None:
    """Take no more contributions; questions are still answered."""
    with service(url, token) as client:
        found = client.close_study(study)
    _show_study(found, as_json)


@studies.command("archive")
def archive_study(
    study: StudyName,
    reason: Annotated[str, typer.Option(help="For the audit trail.")],
    url: Url = DEFAULT_URL,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """End a study for good: no contribution, no new question, no session.

    Stored answers are still given. What people reserved in the study and have not spent is free again, for
    other studies.
    """
    with service(url, token) as client:
        found = client.archive_study(study, reason=reason)
    _show_study(found, as_json)


@studies.command("retire")
def retire_study(
    study: StudyName, url: Url = DEFAULT_URL, token: Token = None, as_json: AsJson = False
) -> None:
    """Give stored answers only, for good: no contribution, no new question, no session.

    What people reserved in the study stays reserved, also if they withdraw. It is for a study of which the
    ledger may have forgotten charges; end any other one with `archive`.
    """
    with service(url, token) as client:
        found = client.retire_study(study)
    _show_study(found, as_json)


def _in_short(study: Study) -> str:
    """The range, the choices, or the names of the measures."""
    if study.measures:
        return ", ".join(study.measures)
    return ", ".join(study.choices) or f"{show(study.lower)} to {show(study.upper)}"


def _asks_for(study: Study) -> list[dict[str, object]]:
    if study.choices:
        return [{"name": "choices", "value": ", ".join(study.choices)}]
    if not study.measures:
        return [{"name": "range", "value": f"{show(study.lower)} to {show(study.upper)}"}]
    return [
        {"name": f"choices of {name}", "value": ", ".join(one.choices)}
        if one.choices
        else {
            "name": f"range of {name}",
            "value": f"{show(one.lower)} to {show(one.upper)}"
            + (f", {one.dimension} coordinates" if one.dimension > 1 else ""),
        }
        for name, one in study.measures.items()
    ]


def _show_study(study: Study, as_json: bool) -> None:
    if as_json:
        print_json(study.raw)
        return
    rows: list[dict[str, object]] = [
        {"name": "study", "value": study.slug},
        {"name": "question", "value": study.title},
        {"name": "description", "value": study.description or None},
        {"name": "series", "value": study.series},
        *_asks_for(study),
        {"name": "relation", "value": study.relation},
        {"name": "trust", "value": study.trust},
        {"name": "epsilon", "value": f"{show(study.epsilon.min)} to {show(study.epsilon.max)}"},
        {"name": "default share", "value": study.default_share},
        {"name": "tilt", "value": study.tilt},
        {"name": "noise", "value": study.noise},
        {"name": "delta", "value": study.delta},
        {"name": "coordinates", "value": study.dimension},
        {"name": "local mechanism", "value": study.local_mechanism},
        {"name": "state", "value": study.state},
    ]
    labels = study.attributes.items()
    rows[-1:-1] = [{"name": f"attribute {name}", "value": ", ".join(own)} for name, own in labels]
    print_table(rows, {"name": "", "value": ""})
