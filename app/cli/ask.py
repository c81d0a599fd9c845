"""Commands of an analyst: what an answer would cost, and the answer."""

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import wraps
from typing import Annotated, Any

import typer
from dither import Client, Release

from app.cli.answers import interval_text, show_release
from app.cli.common import AsJson, console, moment, print_json, print_table, usage_error
from app.cli.http import DEFAULT_URL, StudyName, Token, Url, number, service
from app.cli.service_commands import Command, asks_service, option, with_options
from app.cli.tree import COMMANDS
from app.web.documents.release import about, error_of


def _text(metavar: str, meaning: str) -> Any:
    """An option that need not be given."""
    return Annotated[str | None, typer.Option(metavar=metavar, help=meaning)]


Estimator = Annotated[
    str | None, typer.Option(help="Which estimator; by default the one with the smallest predicted error.")
]
Fresh = Annotated[
    bool, typer.Option("--fresh", help="Answer with noise of its own, at the full price of the share.")
]
Parameters = Annotated[
    list[str] | None,
    typer.Option(
        "--parameter",
        "-p",
        metavar="NAME=VALUE",
        help="A parameter of the estimator; may be repeated. variance=estimated, worst_case or a number; "
        "shrinkage=noise, minimax or none; noise=best, laplace or gaussian; group_variance and "
        "group_cap=TRUST:NUMBER or TRUST@EPSILON:NUMBER, with commas between; coalition=SHARE; in "
        "add_remove_one studies level=floor or an epsilon, and moments=1 or 2. Of a mean: range=found, and "
        "range_part. Of other statistics: edges, bins, q, candidates.",
    ),
]

OPTIONS: Mapping[str, Any] = {
    "statistic": _text(
        "STATISTIC",
        "mean (the default), sum, variance, sd, histogram, distribution, quantile, median, describe, shares, "
        "count or covariance.",
    ),
    "edges": _text(
        "NUMBERS",
        "Where bins begin and end, with commas between; what they leave of the range is bins, too.",
    ),
    "bins": Annotated[
        int | None,
        typer.Option(metavar="NUMBER", help="Equal bins over the range; 10 if there are no edges."),
    ],
    "candidates": Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER", help="Changes no answer any more: another number is another question; 1000."
        ),
    ],
    "estimator": Estimator,
    "share": _text("SHARE", "Part of each personal epsilon to use, in (0, 1]."),
    "until": _text("NUMBER", "In place of a share: the smallest one for which half of the interval is this."),
    "epsilon": _text("EPSILON", "The largest charge to a person."),
    "expected_size": _text("NUMBER", "add_remove_one studies: what to take for the secret number of people."),
    "least_epsilon": _text(
        "EPSILON", "add_remove_one studies: the least that people must have offered to take part."
    ),
    "tilt": _text(
        "PART",
        "How far the mean of those who ask for little privacy may differ from the others', as a part of the "
        "range.",
    ),
    "where": Annotated[
        list[str] | None,
        typer.Option(metavar="NAME:LABEL", help="Only people with this label; may be repeated."),
    ],
    "by": _text("NAME", "Answer for each label of this attribute, too."),
    "simultaneous": Annotated[
        bool, typer.Option("--simultaneous", help="Of labels: also intervals that hold for all at once.")
    ],
    "standardize": _text(
        "NAME:LABEL=SHARE,...",
        "Weigh the answers for the labels of an attribute by their known shares of the population.",
    ),
    "between": _text("NAME:LABEL,LABEL", "Of a difference: the first label less the second."),
    "measure": _text("NAME", "Of which measure, in a study of several measures."),
    "parameter": Parameters,
}
"""The options of a question, by the names of its parameters over the wire."""

MEAN = (
    "estimator share until epsilon expected_size least_epsilon tilt where by simultaneous standardize "
    "measure parameter"
)
"""The options of a mean and of what is read off it."""

SHAPE = "share epsilon expected_size least_epsilon tilt where by measure"
"""The options that the questions about a distribution share."""


def _asks(names: str, arguments: Mapping[str, Any] | None = None) -> Callable[[Command], Command]:
    """Give a command the options of a question; it gets what they ask as `question`.

    Typer reads the signature, so the options stand there in place of `question`.

    Args:
        names: Names in `OPTIONS`, with blanks between, in the order of the help.
        arguments: Annotations of the arguments that are parameters of the question as they are.
    """
    options, own = names.split(), dict(arguments or {})

    def decorate(command: Command) -> Command:
        @wraps(command)
        def run(**given: Any) -> None:
            said = {name: given.pop(name) for name in own}
            asked = question_of(taken=said, **{name: given.pop(name) for name in options})
            command(question=said | asked, **given)

        question = [option(name, kind, inspect.Parameter.empty) for name, kind in own.items()]
        question += [
            option(name, OPTIONS[name], False if name == "simultaneous" else None) for name in options
        ]
        shown: list[inspect.Parameter] = []
        for one in inspect.signature(command).parameters.values():
            shown += question if one.name == "question" else [one]
        return with_options(run, shown)

    return decorate


@_asks(
    "statistic estimator share until epsilon expected_size least_epsilon tilt where by standardize between "
    "measure parameter"
)
def plan(
    study: StudyName,
    question: dict[str, Any],
    fresh: Fresh = False,
    every: Annotated[bool, typer.Option("--all", help="Show every estimator that applies.")] = False,
    url: Url = DEFAULT_URL,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Show what stands, and what more would give and cost. Nothing is spent."""
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


def _answer(statistic: str, names: str, **arguments: Any) -> Command:
    """The command that shows the answer for a statistic."""

    @_asks(names, arguments)
    @asks_service(show_release, saves=True)
    def read(client: Client, study: StudyName, question: dict[str, Any]) -> Release:
        found: Release = getattr(client, statistic)(study, **question)
        return found

    read.__doc__ = COMMANDS[statistic].summary
    return read


mean = _answer("mean", MEAN)
total = _answer("sum", MEAN)
variance = _answer("variance", MEAN)
sd = _answer("sd", MEAN)
difference = _answer(
    "difference",
    "estimator share until epsilon tilt where measure simultaneous parameter",
    between=Annotated[
        str, typer.Argument(metavar="NAME:LABEL,LABEL", help="An attribute and two of its labels.")
    ],
)
histogram = _answer("histogram", f"edges bins {SHAPE}")
distribution = _answer("distribution", f"edges bins {SHAPE}")
shares = _answer("shares", SHAPE)
count = _answer("count", "share until epsilon expected_size least_epsilon where by")
covariance = _answer(
    "covariance",
    "share epsilon tilt expected_size least_epsilon where by",
    first=Annotated[str, typer.Argument(metavar="NAME", help="One of the study's numbers.")],
    second=Annotated[str, typer.Argument(metavar="NAME", help="Another one.")],
)
quantile = _answer(
    "quantile",
    f"candidates {SHAPE}",
    q=Annotated[str, typer.Argument(help="Which part of the people lies at or below it, such as 0.9.")],
)
median = _answer("median", f"candidates {SHAPE}")
describe = _answer("describe", f"candidates {SHAPE}")


@_asks(
    "statistic estimator share until epsilon expected_size least_epsilon tilt where by simultaneous "
    "standardize between measure parameter"
)
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
    allow_worse: Annotated[
        bool,
        typer.Option(
            "--allow-worse",
            help="Answer also where most people cannot pay, far less exactly than before, or saying nothing.",
        ),
    ] = False,
    fresh: Fresh = False,
) -> Release:
    """Sharpen an answer: a larger share charges the difference; see `dither plan` and `dither mean`."""
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


TEXTS = ("statistic", "edges", "estimator", "by", "measure", "standardize", "between")
"""Options that are no numbers."""


def question_of(
    *,
    parameter: list[str] | None = None,
    taken: Collection[str] = (),
    where: list[str] | None = None,
    simultaneous: bool = False,
    **named: str | int | None,
) -> dict[str, Any]:
    """The question's parameters, as they go over the wire.

    Args:
        parameter: What `--parameter` gives, each NAME=VALUE.
        taken: Names that it may not give besides those of the options.
        where: Labels of people, each NAME=LABEL.
        simultaneous: Whether the intervals hold together.
        **named: Other options by their names; None where they are left out.
    """
    question: dict[str, Any] = {"where": ",".join(where)} if where else {}
    if simultaneous:
        question["simultaneous"] = True
    for name, text in named.items():
        if text is None:
            continue
        if isinstance(text, int) or name in TEXTS:
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
