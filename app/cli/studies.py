"""Commands of an admin over HTTP: studies."""

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import click
import typer
from dither import Client, Measure, Study

from app.cli.common import (
    CommandFailed,
    notes,
    print_details,
    print_table,
    readable,
    show,
    usage_error,
)
from app.cli.editing import edited, read
from app.cli.http import StudyName
from app.cli.options import fields_of
from app.cli.service_commands import asks_service
from app.web.documents.study import StudyIn
from app.web.documents.study_change import StudyEditIn

studies = typer.Typer(no_args_is_help=True, help="Create, list, show, close and end studies.")


def _in_short(study: Study) -> str:
    """The range, the choices, or the names of the measures."""
    if study.measures:
        return ", ".join(study.measures)
    return ", ".join(study.choices) or f"{show(study.lower)} to {show(study.upper)}"


def _asks_for(study: Study) -> dict[str, object]:
    if study.choices:
        return {"choices": study.choices}
    if not study.measures:
        return {"range": _range(study)}
    return {
        f"choices of {name}" if one.choices else f"range of {name}": ", ".join(one.choices)
        or _range(one) + (f", {one.dimension} coordinates" if one.dimension > 1 else "")
        for name, one in study.measures.items()
    }


def _range(of: Study | Measure) -> str:
    kept = "" if of.step is None else f"; values are kept to {of.step:.3g}"
    return f"{show(of.lower)} to {show(of.upper)}{kept}"


def _inside(study: Study) -> str | None:
    found = study.reporting_range
    if found is None:
        return None
    outside = f"at most {found.outside_at_most:.1%} of those who answered its searches outside"
    return f"{show(found.lower)} to {show(found.upper)}; {outside}"


def _show_study(study: Study) -> None:
    for warning in study.warnings:
        notes.print(f"Warning: {warning}", markup=False)
    print_details(
        {
            "study": study.slug,
            "question": study.title,
            "description": study.description or None,
            "languages": ", ".join(study.texts) or None,
            "series": study.series,
            **_asks_for(study),
            "relation": study.relation,
            "trust": study.trust,
            "epsilon": ", ".join(map(show, study.epsilons))
            or f"{show(study.epsilon.min)} to {show(study.epsilon.max)}",
            "default share": study.default_share,
            "tilt": study.tilt,
            "noise": study.noise,
            "delta": study.delta,
            "coordinates": study.dimension,
            "local mechanism": study.local_mechanism,
            "reporting range": _inside(study),
            **{f"attribute {name}": own for name, own in study.attributes.items()},
            "state": study.state,
        }
    )


def _show_studies(found: Sequence[Study]) -> None:
    columns = {
        "slug": "study",
        "title": "question",
        "series": "series",
        "asks": "asks for",
        "relation": "relation",
    }
    rows = [{**study.raw, "asks": _in_short(study)} for study in found]
    print_table(rows, columns | {"trust": "trust", "state": "state"})


TextsOption = Annotated[
    str | None,
    typer.Option(
        metavar="JSON", help="What it says in other languages, by their codes; null forgets one that it said."
    ),
]


@studies.command("create")
@fields_of(StudyIn, argument="slug", spelled=("texts",), unless=("edit", "file"))
@asks_service(_show_study)
def create_study(
    client: Client,
    fields: Mapping[str, Any],
    *,
    texts: TextsOption = None,
    file: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Read it from a file, TOML as --edit writes it, or JSON; - is standard input. Options come "
            "first.",
        ),
    ] = None,
    edit: Annotated[
        bool, typer.Option("--edit", help="Write it in $EDITOR, where each field says what it means.")
    ] = False,
) -> Study:
    """Make a study. What answers depend on is fixed from then on."""
    if texts is not None:
        fields = {**fields, "texts": _object(texts)}
    if file is not None:
        with click.open_file(readable(file), encoding="utf-8") as opened:
            text = opened.read()
        try:
            fields = {**read(StudyIn, text, given=fields), **fields}
        except ValueError as mistake:
            raise CommandFailed(f"{file}: {mistake}") from None
    if edit:
        return edited(StudyIn, fields, lambda written: client.create_study(**written))
    return client.create_study(**fields)


@studies.command("list")
@asks_service(_show_studies)
def list_studies(
    client: Client,
    series: Annotated[str | None, typer.Option(help="Only those of this series.")] = None,
) -> list[Study]:
    """List the studies that the token may see."""
    return list(client.studies(series=series))


@studies.command("show")
@asks_service(_show_study)
def show_study(client: Client, study: StudyName) -> Study:
    """Show one study."""
    return client.study(study)


@studies.command("edit")
@fields_of(StudyEditIn, spelled=("texts",))
@asks_service(_show_study)
def edit_study(
    client: Client,
    fields: Mapping[str, Any],
    *,
    study: StudyName,
    texts: TextsOption = None,
) -> Study:
    """Change what is said of a study, for people. What answers depend on is fixed."""
    return client.edit_study(study, texts=None if texts is None else _object(texts), **fields)


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise usage_error('--texts takes a JSON object, such as {"de": {"title": "Wie weit?"}}')
    return found


@studies.command("close")
@asks_service(_show_study)
def close_study(client: Client, study: StudyName) -> Study:
    """Take no more contributions; questions are still answered."""
    return client.close_study(study)


@studies.command("narrow")
@asks_service(_show_study)
def narrow_study(
    client: Client,
    study: StudyName,
    lower: Annotated[str, typer.Option(metavar="ID", help="The finished search for its lower end.")],
    upper: Annotated[str, typer.Option(metavar="ID", help="The finished search for its upper end.")],
) -> Study:
    """Fix, for good, where devices of local people report: between what two searches for quantiles found.

    Reports are then about this range alone, and the narrower it is, the less noise they have. Values outside
    count as its nearer end.
    """
    return client.narrow_study(study, lower=lower, upper=upper)


@studies.command("archive")
@asks_service(_show_study)
def archive_study(
    client: Client, study: StudyName, reason: Annotated[str, typer.Option(help="For the audit trail.")]
) -> Study:
    """End a study for good: no contribution, no new question, no session.

    Stored answers are still given. What people reserved in the study and have not spent is free again, for
    other studies.
    """
    return client.archive_study(study, reason=reason)


@studies.command("retire")
@asks_service(_show_study)
def retire_study(client: Client, study: StudyName) -> Study:
    """Give stored answers only, for good: no contribution, no new question, no session.

    What people reserved in the study stays reserved, also if they withdraw. It is for a study of which the
    ledger may have forgotten charges; end any other one with `archive`.
    """
    return client.retire_study(study)
