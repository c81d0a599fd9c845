"""Commands of an analyst: what an answer would cost, and the answer."""

import inspect
import keyword
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from typing import Annotated, Any
from urllib.parse import parse_qsl

import typer
from dither import Client, NoGain, Release, SaysNothing, Series

from app.cli.answers import interval_text, show_release
from app.cli.common import AsJson, console, moment, print_json, print_table, usage_error
from app.cli.http import DEFAULT_URL, StudyName, Token, Url, number, service
from app.cli.service_commands import Command, asks_service, option, with_options
from app.cli.tree import COMMANDS
from app.core.question import ALLOW_WORSE, FIELDS, FRESH, STATISTICS, Field, Kind
from app.web.documents.release import about, error_of


def _option(name: str, field: Field) -> Any:
    """A field as an option, which need not be given."""
    written = f"--{name.replace('_', '-')}"
    match field.kind:
        case Kind.FLAG:
            return Annotated[bool, typer.Option(written, help=field.help)]
        case Kind.LABELS:
            return Annotated[list[str] | None, typer.Option(written, metavar=field.metavar, help=field.help)]
        case Kind.WHOLE:
            return Annotated[int | None, typer.Option(written, metavar=field.metavar, help=field.help)]
        case _:
            return Annotated[str | None, typer.Option(written, metavar=field.metavar, help=field.help)]


def in_python(name: str) -> str:
    """A field as the name of a parameter, which `for` cannot be."""
    return f"{name}_" if keyword.iskeyword(name) else name


Estimator = _option("estimator", FIELDS["estimator"])
Fresh = Annotated[bool, typer.Option("--fresh", help=FRESH.help)]
AllowWorse = Annotated[bool, typer.Option("--allow-worse", help=ALLOW_WORSE.help)]
Parameters = Annotated[
    list[str] | None,
    typer.Option(
        "--parameter",
        "-p",
        metavar="NAME=VALUE",
        help="A parameter of the estimator; may be repeated. variance=estimated, worst_case or a number; "
        "shrinkage=noise, minimax or none; noise=best, laplace or gaussian; group_variance and "
        "group_cap=TRUST:NUMBER or TRUST@EPSILON:NUMBER, with commas between; coalition=SHARE; in "
        "add_remove_one studies hourglass_level=floor or an epsilon, and moments=1 or 2.",
    ),
]

OPTIONS: Mapping[str, Any] = {
    name: _option(name, field) for name, field in FIELDS.items() if field.metavar or field.kind is Kind.FLAG
} | {
    "statistic": _option("statistic", replace(FIELDS["statistic"], help=f"One of {', '.join(STATISTICS)}.")),
    "parameter": Parameters,
}
"""The options of a question, by the names of its parameters over the wire; none for what has one value."""


def _options(statistic: str) -> Sequence[str]:
    """The options of a statistic: its fields, and parameters where it has estimators.

    A difference is one of means: of what else it is one over HTTP, plans say.
    """
    asked = STATISTICS[statistic]
    own = [name for name in asked.fields if name in OPTIONS and (name != "of" or name in asked.needs)]
    return [*own, "parameter"] if "estimator" in own else own


def asks(names: Sequence[str], needed: Any = None, needs: Sequence[str] = ()) -> Callable[[Command], Command]:
    """Give a command the options of a question; it gets what they ask as `question`.

    Typer reads the signature, so the options stand there in place of `question`.

    Args:
        names: Names in `OPTIONS`, in the order of the help.
        needed: Annotation of an argument that says what must be said, in place of options, if there is one.
        needs: The options that it stands for.
    """

    def decorate(command: Command) -> Command:
        @wraps(command)
        def run(**given: Any) -> None:
            words = given.pop("needed", None) or []
            asked = question_of(taken=needs, **{name: given.pop(in_python(name)) for name in names})
            command(question=_needed(needs, words, asked) | asked, **given)

        question = [] if needed is None else [option("needed", needed)]
        question += [
            option(in_python(name), OPTIONS[name], False if name == "simultaneous" else None)
            for name in names
        ]
        shown: list[inspect.Parameter] = []
        for one in inspect.signature(command).parameters.values():
            shown += question if one.name == "question" else [one]
        return with_options(run, shown)

    return decorate


def _needed(needs: Sequence[str], words: Sequence[str], asked: Collection[str]) -> dict[str, str]:
    """What must be said of a statistic, from the words behind the study's name."""
    options = " and ".join(f"--{name}" for name in needs)
    if not words:
        if missing := [f"--{name}" for name in needs if name not in asked]:
            raise usage_error(f"give {' and '.join(missing)}")
        return {}
    if any(name in asked for name in needs):
        raise usage_error(f"give {options} once")
    said = [",".join(words)] if tuple(needs) == ("measures",) else words
    if len(said) != len(needs):
        raise usage_error(f"give {options}, not {' '.join(words)!r}")
    return dict(zip(needs, said, strict=True))


def _also(text: str) -> dict[str, Any]:
    """A question that is written as in an address."""
    try:
        return dict(parse_qsl(text, strict_parsing=True))
    except ValueError:
        raise usage_error("--also must be name=value, several with & between") from None


def _show_plans(
    study: str, questions: Sequence[dict[str, Any]], url: str, token: str | None, as_json: bool
) -> None:
    """Show what several questions take, and all of them together."""
    with service(url, token) as client:
        found = client.plan_several(study, questions)
    if as_json:
        print_json(found.raw)
        return
    rows = [
        {
            "question": "&".join(f"{name}={value}" for name, value in asked.items()) or "statistic=mean",
            "charges": f"{one.epsilon_max:g}",
            "plan": one.in_words,
        }
        for asked, one in zip(questions, found.questions, strict=True)
    ]
    print_table(rows, {"question": "question", "charges": "largest charge", "plan": "what it gives"})
    console.print(f"Together they charge a person at most {found.epsilon_max:g}.", highlight=False)


@asks([name for name in OPTIONS if name != "simultaneous"])
def plan(
    study: StudyName,
    question: dict[str, Any],
    fresh: Fresh = False,
    every: Annotated[bool, typer.Option("--all", help="Show every estimator that applies.")] = False,
    also: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE&...",
            help="Another question, as 'statistic=median&share=.2'; may be repeated. Shows what all of them "
            "cost together.",
        ),
    ] = None,
    url: Url = DEFAULT_URL,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Show what stands, and what more would give and cost. Nothing is spent."""
    if also:
        asked = question | ({"fresh": True} if fresh else {})
        _show_plans(study, [asked, *map(_also, also)], url, token, as_json)
        return
    with service(url, token) as client:
        found = client.plan(study, fresh=fresh, **question)
    if as_json:
        print_json(found.raw)
        return
    console.print(f"{found.in_words[0].upper()}{found.in_words[1:]}.", highlight=False, markup=False)
    every_row = found.estimators
    if not every_row:
        return
    rows = every_row if every else [row for row in every_row if row.chosen]
    columns = {"estimator": "estimator", "predicted_error": "predicted error"}
    if any(row.predicted_error_at_tilt_0 is not None for row in rows):
        columns["predicted_error_at_tilt_0"] = "at tilt 0"
    columns |= {"epsilon_max": "largest charge", "answers_left": "answers left"}
    if any(row.one_report_moves is not None for row in rows):
        columns["one_report_moves"] = "one report moves it by at most"
    if any(row.gain is not None for row in rows):
        columns["gain"] = "gain if the range is right"
    columns["statistics"] = "says, for that price"
    print_table([{name: getattr(row, name) for name in columns} for row in rows], columns)
    statistic, of_coordinates = question.get("statistic") or "mean", rows[0].estimator == "coordinates"
    unit, error = error_of(statistic, of_coordinates=of_coordinates)
    console.print(f"A predicted error is the root mean square {error}, {unit}.", highlight=False)
    if found.assumption is not None:
        console.print(f"An interval {found.assumption}.", highlight=False)
    if any(row.gain is not None for row in rows):
        console.print("Where a part r of the range is found, the gain is at most 1 / r² times as much.")
    if len(every_row) > len(rows):
        console.print("`--all` shows the other estimators.")


def _argument(metavar: str, option: str) -> Any:
    return Annotated[
        list[str] | None,
        typer.Argument(metavar=f"[{metavar}]", help=f"In place of {option}, as it is there."),
    ]


_WORDS = {"between": "NAME:LABEL,LABEL", "q": "PART", "measures": "NAME NAME", "of": "OF", "on": "ON"}

NEEDED: Mapping[str, Any] = {
    name: _argument(" ".join(map(_WORDS.__getitem__, one.needs)), " and ".join(map("--{}".format, one.needs)))
    for name, one in STATISTICS.items()
    if one.needs
}
"""What must be said of a statistic, as an argument."""


@contextmanager
def _all_the_same(study: str, question: Mapping[str, Any]) -> Iterator[None]:
    """Say which command makes an answer that is refused for what it would be."""
    try:
        yield
    except (NoGain, SaysNothing) as refusal:
        words = ["dither", "release", study]
        for name, value in question.items():
            written = f"--{name.replace('_', '-')}"
            if value is True:
                words.append(written)
            else:
                words += [written, str(value)] if name in OPTIONS else ["--parameter", f"{name}={value}"]
        refusal.add_note(f"It is made all the same by: {shlex.join([*words, '--allow-worse'])}")
        raise


def _answer(statistic: str) -> Command:
    """The command that shows the answer for a statistic."""

    @asks(_options(statistic), NEEDED.get(statistic), STATISTICS[statistic].needs)
    @asks_service(show_release, saves=True)
    def read(client: Client, study: StudyName, question: dict[str, Any]) -> Release:
        pair = question.pop("measures", None)
        names = () if pair is None else pair.split(",")
        if len(names) not in (0, 2):
            raise usage_error("give the names of two measures, as NAME NAME or as --measures NAME,NAME")
        found: Release
        with _all_the_same(
            study, {"statistic": statistic, **({"measures": pair} if pair else {}), **question}
        ):
            found = getattr(client, statistic)(study, *names, **question)
        return found

    read.__doc__ = STATISTICS[statistic].summary
    return read


ANSWERS: Mapping[str, Command] = {statistic: _answer(statistic) for statistic in STATISTICS}
"""A command for every statistic."""


def _show_series(found: Series) -> None:
    rows = [
        {
            "study": one.study,
            "study made": moment(one.created_at),
            "estimate": one.estimate,
            "interval": interval_text(one.interval),
            "release": one.release,
        }
        for one in found.answers
    ]
    print_table(rows, {name: name for name in rows[0]})
    console.print(f"{found.statistic}: {found.in_words}", highlight=False, markup=False)


def _of_series(statistic: str) -> Command:
    """The command that reads a statistic off a series."""

    @asks(["where", "measure", "level"])
    @asks_service(_show_series)
    def read(client: Client, study: StudyName, question: dict[str, Any]) -> Series:
        found: Series = getattr(client, statistic)(study, **question)
        return found

    read.__doc__ = COMMANDS[statistic].summary
    return read


change = _of_series("change")
trend = _of_series("trend")


@asks(list(OPTIONS))
@asks_service(show_release, saves=True)
def release(
    client: Client,
    study: StudyName,
    question: dict[str, Any],
    key: Annotated[
        str | None,
        typer.Option(
            help="Idempotency key: the same key and question is the same release, never a second one."
        ),
    ] = None,
    allow_worse: AllowWorse = False,
    fresh: Fresh = False,
) -> Release:
    """Sharpen an answer: a larger share charges the difference; see `dither plan` and `dither mean`."""
    with _all_the_same(study, question | ({"fresh": True} if fresh else {})):
        return client.release(study, idempotency_key=key, allow_worse=allow_worse, fresh=fresh, **question)


def _show_releases(found: Sequence[Release]) -> None:
    rows = [
        {
            "made": moment(release.created_at),
            "release": release.id,
            "statistic": release.statistic,
            "about": about(release.raw),
            "estimator": release.estimator,
            "estimate": release.estimate,
            "interval": interval_text(release.interval),
            "epsilon": release.epsilon_max,
        }
        for release in found
    ]
    names = ("release", "made", "statistic", "about", "estimator", "estimate", "interval")
    print_table(rows, {name: name for name in names} | {"epsilon": "largest charge"})


@asks_service(_show_releases, saves=True)
def releases(client: Client, study: StudyName) -> list[Release]:
    """List the answers that were published. Reading them is free."""
    return list(client.releases(study))


def question_of(
    *,
    parameter: list[str] | None = None,
    taken: Collection[str] = (),
    simultaneous: bool = False,
    **named: str | int | list[str] | None,
) -> dict[str, Any]:
    """The question's parameters, as they go over the wire.

    Args:
        parameter: What `--parameter` gives, each NAME=VALUE.
        taken: Names that it may not give besides those of the options.
        simultaneous: Whether the intervals hold together.
        **named: Other options by their names; None where they are left out.
    """
    question: dict[str, Any] = {"simultaneous": True} if simultaneous else {}
    for name, text in named.items():
        if text is None or text == []:
            continue
        if isinstance(text, list):
            question[name] = ",".join(text)
        elif isinstance(text, int) or FIELDS[name].kind in (Kind.TEXT, Kind.NUMBERS):
            question[name] = text
        else:
            question[name] = number(text, "--" + name.replace("_", "-"))
    return question | parameters_of(parameter, taken=(*question, *taken))


def parameters_of(given: list[str] | None, *, taken: Collection[str] = ()) -> dict[str, str]:
    """What `--parameter NAME=VALUE` gives, by name."""
    parameters: dict[str, str] = {}
    for item in given or ():
        name, equals, value = item.partition("=")
        if not (equals and name.isidentifier()) or name in parameters or name in taken:
            raise usage_error(f"--parameter: {item!r} is not a NAME=VALUE of its own")
        parameters[name] = value
    return parameters
