"""Commands of an analyst: what an answer would cost, and the answer."""

from collections.abc import Callable, Collection
from typing import Annotated, Any, Literal

import typer

from app.cli.answers import Output, interval_text, save, show_release
from app.cli.common import (
    AsJson,
    console,
    moment,
    notes,
    print_json,
    print_table,
    usage_error,
)
from app.cli.http import DEFAULT_URL, StudyName, Token, Url, number, service
from app.cli.tree import READ_OFF

Estimator = Annotated[
    str | None, typer.Option(help="Which estimator; by default the one with the smallest predicted error.")
]
Statistic = Annotated[
    str | None,
    typer.Option(
        metavar="STATISTIC",
        help="mean (the default), sum, variance, sd, histogram, distribution, quantile, median, "
        "describe, shares, count or covariance.",
    ),
]
Share = Annotated[
    str | None, typer.Option(metavar="SHARE", help="Part of each personal epsilon to use, in (0, 1].")
]
Epsilon = Annotated[str | None, typer.Option(metavar="EPSILON", help="The largest charge to a person.")]
ExpectedSize = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBER", help="add_remove_one studies: what to take for the secret number of people."
    ),
]
Tilt = Annotated[
    str | None,
    typer.Option(
        metavar="PART",
        help="replace_one studies: how far the mean of those who ask for little privacy may differ from the "
        "others', as a part of the range.",
    ),
]
Fresh = Annotated[
    bool, typer.Option("--fresh", help="Answer with noise of its own, at the full price of the share.")
]
Of = Annotated[
    list[str] | None,
    typer.Option("--where", metavar="NAME:LABEL", help="Only people with this label; may be repeated."),
]
By = Annotated[
    str | None, typer.Option("--by", metavar="NAME", help="Answer for each label of this attribute, too.")
]
Simultaneous = Annotated[
    bool, typer.Option("--simultaneous", help="Of labels: also intervals that hold for all at once.")
]
Standardize = Annotated[
    str | None,
    typer.Option(
        metavar="NAME:LABEL=SHARE,...",
        help="Weigh the answers for the labels of an attribute by their known shares of the population.",
    ),
]
Between = Annotated[
    str | None,
    typer.Option(metavar="NAME:LABEL,LABEL", help="Of a difference: the first label less the second."),
]
Measure = Annotated[
    str | None, typer.Option(metavar="NAME", help="Of which measure, in a study of several measures.")
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


def plan(
    study: StudyName,
    statistic: Statistic = None,
    estimator: Estimator = None,
    share: Share = None,
    epsilon: Epsilon = None,
    expected_size: ExpectedSize = None,
    tilt: Tilt = None,
    where: Of = None,
    by: By = None,
    standardize: Standardize = None,
    between: Between = None,
    measure: Measure = None,
    parameter: Parameters = None,
    fresh: Fresh = False,
    every: Annotated[bool, typer.Option("--all", help="Show every estimator that applies.")] = False,
    url: Url = DEFAULT_URL,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Show what stands, and what more would give and cost. Nothing is spent."""
    question = {} if statistic is None else {"statistic": statistic}
    question |= question_of(
        estimator=estimator,
        share=share,
        epsilon=epsilon,
        expected_size=expected_size,
        tilt=tilt,
        where=where,
        by=by,
        standardize=standardize,
        between=between,
        measure=measure,
        parameter=parameter,
    )
    with service(url, token) as client:
        found = client.plan(study, fresh=fresh, **question)
    if as_json:
        print_json(found.raw)
        return
    if found.in_words is not None:
        console.print(f"{found.in_words[0].upper()}{found.in_words[1:]}.", highlight=False, markup=False)
    every_row = found.estimators
    if not every_row:
        notes.print("No estimator has an answer to this question now.")
        return
    rows = every_row if every else [row for row in every_row if row.chosen]
    columns = {"estimator": "estimator", "predicted_error": "predicted error"}
    if found.assumption is not None:
        columns["predicted_error_at_tilt_0"] = "at tilt 0"
    columns |= {"epsilon_max": "largest charge", "answers_left": "answers left"}
    if any(row.one_report_moves is not None for row in rows):
        columns["one_report_moves"] = "one report moves it by at most"
    if any(row.gain is not None for row in rows):
        columns["gain"] = "gain if the range is right"
    columns["statistics"] = "says, for that price"
    print_table([{name: getattr(row, name) for name in columns} for row in rows], columns)
    if found.assumption is not None:
        console.print(f"An interval {found.assumption}.", highlight=False)
    if any(row.gain is not None for row in rows):
        console.print("Where a part r of the range is found, the gain is 1 / r² times as much.")
    if len(every_row) > len(rows):
        console.print("`--all` shows the other estimators.")


def _answer_to(statistic: Literal["mean", "sum", "variance", "sd"], help_text: str) -> Callable[..., None]:
    """The command that reads a statistic."""

    def read(
        study: StudyName,
        estimator: Estimator = None,
        share: Share = None,
        epsilon: Epsilon = None,
        expected_size: ExpectedSize = None,
        tilt: Tilt = None,
        where: Of = None,
        by: By = None,
        simultaneous: Simultaneous = False,
        standardize: Standardize = None,
        measure: Measure = None,
        parameter: Parameters = None,
        url: Url = DEFAULT_URL,
        token: Token = None,
        output: Output = None,
        as_json: AsJson = False,
    ) -> None:
        question = question_of(
            estimator=estimator,
            share=share,
            epsilon=epsilon,
            expected_size=expected_size,
            tilt=tilt,
            where=where,
            by=by,
            simultaneous=simultaneous,
            standardize=standardize,
            measure=measure,
            parameter=parameter,
        )
        with service(url, token) as client:
            show_release(getattr(client, statistic)(study, **question), as_json, output)

    read.__doc__ = help_text
    return read


mean = _answer_to(
    "mean",
    "Show the best answer so far. The first to ask a question spends for it; asking again is free.",
)
total = _answer_to("sum", f"Show the sum of the values. {READ_OFF}")
variance = _answer_to("variance", f"Show the variance of the values. {READ_OFF}")
sd = _answer_to("sd", f"Show the standard deviation of the values. {READ_OFF}")


def difference(
    study: StudyName,
    between: Annotated[
        str, typer.Argument(metavar="NAME:LABEL,LABEL", help="An attribute and two of its labels.")
    ],
    estimator: Estimator = None,
    share: Share = None,
    epsilon: Epsilon = None,
    tilt: Tilt = None,
    where: Of = None,
    measure: Measure = None,
    simultaneous: Simultaneous = False,
    parameter: Parameters = None,
    url: Url = DEFAULT_URL,
    token: Token = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Show the mean of a label less that of another one. It is free after `dither mean --by`."""
    question = question_of(
        estimator=estimator,
        share=share,
        epsilon=epsilon,
        tilt=tilt,
        where=where,
        measure=measure,
        simultaneous=simultaneous,
        parameter=parameter,
    )
    with service(url, token) as client:
        show_release(client.difference(study, between=between, **question), as_json, output)


def release(
    study: StudyName,
    statistic: Statistic = None,
    estimator: Estimator = None,
    share: Share = None,
    epsilon: Epsilon = None,
    expected_size: ExpectedSize = None,
    tilt: Tilt = None,
    where: Of = None,
    by: By = None,
    simultaneous: Simultaneous = False,
    standardize: Standardize = None,
    between: Between = None,
    measure: Measure = None,
    parameter: Parameters = None,
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
            help="Answer also where most people cannot pay any more, or far less exactly than before.",
        ),
    ] = False,
    fresh: Fresh = False,
    url: Url = DEFAULT_URL,
    token: Token = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Sharpen an answer: a larger share charges the difference; see `dither plan` and `dither mean`."""
    question = {} if statistic is None else {"statistic": statistic}
    question |= question_of(
        estimator=estimator,
        share=share,
        epsilon=epsilon,
        expected_size=expected_size,
        tilt=tilt,
        where=where,
        by=by,
        simultaneous=simultaneous,
        standardize=standardize,
        between=between,
        measure=measure,
        parameter=parameter,
    )
    with service(url, token) as client:
        found = client.release(study, idempotency_key=key, allow_worse=allow_worse, fresh=fresh, **question)
    show_release(found, as_json, output)


def releases(
    study: StudyName,
    output: Output = None,
    url: Url = DEFAULT_URL,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """List the answers that were published. Reading them is free."""
    with service(url, token) as client:
        found = list(client.releases(study))
    if output is not None:
        save(found, output)
        return
    if as_json:
        print_json([release.raw for release in found])
        return
    rows = [
        {
            "made": moment(release.created_at),
            "release": release.id,
            "statistic": release.statistic,
            "estimator": release.estimator,
            "estimate": release.estimate,
            "interval": interval_text(release.interval),
            "epsilon": release.epsilon_max,
        }
        for release in found
    ]
    columns = {name: name for name in ("release", "made", "statistic", "estimator", "estimate", "interval")}
    print_table(rows, columns | {"epsilon": "largest charge"})


TEXTS = ("estimator", "by", "measure", "standardize", "between")
"""Options that are no numbers."""


def question_of(
    *,
    parameter: list[str] | None = None,
    where: list[str] | None = None,
    simultaneous: bool = False,
    **named: str | None,
) -> dict[str, Any]:
    """The question's parameters, as they go over the wire."""
    question: dict[str, Any] = {"where": ",".join(where)} if where else {}
    if simultaneous:
        question["simultaneous"] = True
    for name, text in named.items():
        if text is None:
            continue
        question[name] = text if name in TEXTS else number(text, "--" + name.replace("_", "-"))
    return question | parameters_of(parameter, taken=question)


def parameters_of(given: list[str] | None, *, taken: Collection[str] = ()) -> dict[str, str]:
    """What `--parameter NAME=VALUE` gives, by name."""
    parameters: dict[str, str] = {}
    for item in given or ():
        name, equals, value = item.partition("=")
        if not (equals and name.isidentifier()) or name in parameters or name in taken:
            raise usage_error(f"--parameter: {item!r} is not a NAME=VALUE of its own")
        parameters[name] = value
    return parameters
