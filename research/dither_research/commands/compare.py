"""`dither compare`: which estimator for these people, before anything is collected."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from app.cli.common import AsJson, console, notes, print_json, print_table, usage_error
from app.core.epsilon import MICRO, delta_limit
from app.core.grid import NotANumber
from app.core.numbers import to_decimal
from app.core.study import LocalMechanism, Relation, Trust
from app.web.documents.types import parse_tilt
from app.web.validation_messages import InvalidValue
from dither_research.comparison import COLUMNS, FIGURE, Compared, Setting, bars, compare_all
from dither_research.people import Bernoulli, Beta, Law
from dither_research.profiles import PROFILES, Profile, ProfileError, read_profile, scaled
from dither_research.results import csv_text

T = TypeVar("T")

DEFAULT_PEOPLE = 1000
MAX_PEOPLE = 100_000_000

_NAMES = ", ".join(PROFILES)


def compare(
    profile: Annotated[
        str,
        typer.Option(
            metavar="NAME|FILE",
            help=f"Whom to ask: {_NAMES}; or a CSV file with the columns trust,epsilon,count.",
            show_default=False,
        ),
    ],
    people: Annotated[
        int | None,
        typer.Option(
            "--n", min=1, max=MAX_PEOPLE, help="People in all; by default 1000, or as many as in the file."
        ),
    ] = None,
    data: Annotated[
        str,
        typer.Option(
            metavar="LAW",
            help="Law of the values on the range: uniform, bernoulli, bernoulli:P, or beta:ALPHA,BETA.",
        ),
    ] = "uniform",
    runs: Annotated[
        int, typer.Option(min=2, max=100_000, help="Simulated releases of each estimator.")
    ] = 300,
    relation: Annotated[
        Relation, typer.Option(help="What is protected: a value (n is public), or being there at all.")
    ] = Relation.REPLACE_ONE,
    local_mechanism: Annotated[
        LocalMechanism, typer.Option(help="How devices randomize local reports.")
    ] = LocalMechanism.HYBRID,
    delta: Annotated[
        str, typer.Option(metavar="DELTA", help="What each person offers beside epsilon; 0 for pure privacy.")
    ] = "0",
    tilt: Annotated[
        str,
        typer.Option(
            metavar="PART",
            help="replace_one: how far the mean of those who ask for little privacy may differ from the "
            "others', as a part of the range. The simulated people are drawn alike.",
        ),
    ] = "0.1",
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", file_okay=False, help="Write the table as CSV and a plot as PNG there."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Predict and simulate every estimator for a profile of people.

    Errors are in parts of the range's width. Predictions hold for any data; simulated answers are about the
    mean of the population that people are drawn from, or under add_remove_one about the people's own.
    """
    name, blocks = _profile(profile, people)
    setting = Setting(
        profile=blocks,
        law=_law(data),
        relation=relation,
        mechanism=local_mechanism,
        delta=_delta(delta),
        runs=runs,
        tilt=_tilt(tilt),
    )
    local = any(one.trust is Trust.LOCAL for one in blocks)
    if local and local_mechanism is LocalMechanism.GAUSSIAN and not setting.delta:
        raise usage_error("--local-mechanism gaussian needs a --delta")
    if local and setting.delta and local_mechanism is not LocalMechanism.GAUSSIAN:
        raise usage_error("--delta means Gaussian noise, and that needs --local-mechanism gaussian")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=notes, transient=True) as progress:

        def track(steps: Sequence[T]) -> Iterator[T]:
            return iter(progress.track(steps, description="estimators"))

        found, refused = compare_all(setting, track)
    files = [] if out is None else _write(found, name, out, f"{name}, {data} data, {relation.value}")
    if as_json:
        print_json(
            {
                "profile": name,
                "people": sum(int(one.count) for one in blocks),
                "data": data,
                "relation": relation.value,
                "runs": runs,
                "tilt": setting.tilt,
                "estimators": [one.row() for one in found],
                "not_applicable": refused,
                "files": [str(file) for file in files],
            }
        )
        return
    _show(found, refused, setting, name)
    for file in files:
        console.print(f"Written: {file}", markup=False)


def _profile(text: str, people: int | None) -> tuple[str, Profile]:
    """Name and blocks of whole people."""
    if text in PROFILES:
        _, blocks = PROFILES[text]
        return text, scaled(blocks, people or DEFAULT_PEOPLE)
    path = Path(text)
    if not path.exists():
        raise usage_error(f"--profile: {text!r} is no file and none of {_NAMES}")
    try:
        blocks = read_profile(path)
    except ProfileError as error:
        raise usage_error(f"--profile: {error}") from None
    return path.stem, scaled(blocks, people or round(sum(one.count for one in blocks)))


def _law(text: str) -> Law:
    name, _, rest = text.partition(":")
    try:
        numbers = [float(to_decimal(part)) for part in rest.split(",")] if rest else []
    except NotANumber:
        numbers = [-1.0]
    match name, numbers:
        case "uniform", []:
            return Beta(1, 1)
        case "bernoulli", []:
            return Bernoulli()
        case "bernoulli", [p] if 0 <= p <= 1:
            return Bernoulli(p)
        case "beta", [alpha, beta] if 0.01 <= alpha <= 1e6 and 0.01 <= beta <= 1e6:
            return Beta(alpha, beta)
    raise usage_error(f"--data: {text!r} is none of uniform, bernoulli, bernoulli:P, beta:ALPHA,BETA")


def _delta(text: str) -> int:
    try:
        value = to_decimal(text)
    except NotANumber:
        raise usage_error(f"--delta: {text!r} is not a number") from None
    if not Decimal(0) <= value < 1:
        raise usage_error("--delta must be in [0, 1)")
    return delta_limit(value)


def _tilt(text: str) -> float:
    try:
        return parse_tilt(text) / MICRO
    except InvalidValue as refusal:
        raise usage_error(f"--tilt {refusal}") from None


def _show(found: Sequence[Compared], refused: dict[str, str], setting: Setting, name: str) -> None:
    rows = [
        {
            "estimator": one.estimator,
            "predicted": one.predicted,
            "simulated": one.simulated,
            "error": one.error,
            "coverage": f"{one.coverage:.1%}",
            "most": one.most_charged / MICRO,
        }
        for one in found
    ]
    people = sum(int(one.count) for one in setting.profile)
    print_table(
        rows,
        {
            "estimator": "estimator",
            "predicted": "predicted error",
            "simulated": "simulated",
            "error": "± s.e.",
            "coverage": "interval holds",
            "most": "most charged",
        },
        title=f"{name}: {people:,} people, {setting.relation.value}, {setting.runs} simulated releases each",
    )
    for estimator, reason in refused.items():
        console.print(f"Not {estimator}: {reason}", markup=False)


def _write(found: Sequence[Compared], name: str, directory: Path, title: str) -> list[Path]:
    from dither_research.plots import save  # matplotlib takes longer to load than most commands run

    directory.mkdir(parents=True, exist_ok=True)
    table, picture = directory / f"compare-{name}.csv", directory / f"compare-{name}.png"
    table.write_text(csv_text(tuple(COLUMNS), [one.row() for one in found]), encoding="utf-8")
    save(FIGURE, bars(found), title, picture)
    return [table, picture]
