"""Commands about the distribution of the values: histogram, distribution function, quantiles, all at once."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

import typer

from app.cli.answers import Output, show_release
from app.cli.ask import By, Epsilon, ExpectedSize, Measure, Of, Share, Tilt, question_of
from app.cli.common import AsJson
from app.cli.http import DEFAULT_URL, StudyName, Token, Url, service

Edges = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBERS",
        help="Where bins begin and end, with commas between; what they leave of the range is bins, too.",
    ),
]
Bins = Annotated[
    int | None, typer.Option(metavar="NUMBER", help="Equal bins over the range; 10 if there are no edges.")
]
Candidates = Annotated[
    int | None,
    typer.Option(metavar="NUMBER", help="Equal steps of the range, one of whose ends is the answer; 1000."),
]


def _over_bins(statistic: Literal["histogram", "distribution"], help_text: str) -> Callable[..., None]:
    """The command that reads a statistic of bins."""

    def read(
        study: StudyName,
        edges: Edges = None,
        bins: Bins = None,
        share: Share = None,
        epsilon: Epsilon = None,
        expected_size: ExpectedSize = None,
        tilt: Tilt = None,
        where: Of = None,
        by: By = None,
        measure: Measure = None,
        url: Url = DEFAULT_URL,
        token: Token = None,
        output: Output = None,
        as_json: AsJson = False,
    ) -> None:
        question = question_of(
            share=share,
            epsilon=epsilon,
            expected_size=expected_size,
            tilt=tilt,
            where=where,
            by=by,
            measure=measure,
        )
        with service(url, token) as client:
            show_release(
                getattr(client, statistic)(study, edges=edges, bins=bins, **question), as_json, output
            )

    read.__doc__ = help_text
    return read


histogram = _over_bins(
    "histogram",
    "Show which part of the people lies in each bin. The first to ask spends; asking again is free.",
)
distribution = _over_bins(
    "distribution",
    "Show which part of the people lies below each edge. It is free after the histogram of the bins.",
)


def shares(
    study: StudyName,
    share: Share = None,
    epsilon: Epsilon = None,
    expected_size: ExpectedSize = None,
    tilt: Tilt = None,
    where: Of = None,
    by: By = None,
    measure: Measure = None,
    url: Url = DEFAULT_URL,
    token: Token = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Show which part of the people made each choice. The first to ask spends; asking again is free."""
    question = question_of(
        share=share,
        epsilon=epsilon,
        expected_size=expected_size,
        tilt=tilt,
        where=where,
        by=by,
        measure=measure,
    )
    with service(url, token) as client:
        show_release(client.shares(study, **question), as_json, output)


def count(
    study: StudyName,
    share: Share = None,
    epsilon: Epsilon = None,
    expected_size: ExpectedSize = None,
    where: Of = None,
    by: By = None,
    url: Url = DEFAULT_URL,
    token: Token = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Show how many people there are: free where it is public, with noise where it is secret."""
    question = question_of(share=share, epsilon=epsilon, expected_size=expected_size, where=where, by=by)
    with service(url, token) as client:
        show_release(client.count(study, **question), as_json, output)


def covariance(
    study: StudyName,
    first: Annotated[str, typer.Argument(metavar="NAME", help="One of the study's numbers.")],
    second: Annotated[str, typer.Argument(metavar="NAME", help="Another one.")],
    share: Share = None,
    epsilon: Epsilon = None,
    tilt: Tilt = None,
    where: Of = None,
    url: Url = DEFAULT_URL,
    token: Token = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Show how two numbers of people go together. The first to ask spends; asking again is free."""
    question = question_of(share=share, epsilon=epsilon, tilt=tilt, where=where)
    with service(url, token) as client:
        show_release(client.covariance(study, first, second, **question), as_json, output)


def quantile(
    study: StudyName,
    q: Annotated[str, typer.Argument(help="Which part of the people lies at or below it, such as 0.9.")],
    candidates: Candidates = None,
    share: Share = None,
    epsilon: Epsilon = None,
    expected_size: ExpectedSize = None,
    tilt: Tilt = None,
    where: Of = None,
    by: By = None,
    measure: Measure = None,
    url: Url = DEFAULT_URL,
    token: Token = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Show the value that a part of the people does not exceed. The first to ask spends for it."""
    question = question_of(
        share=share,
        epsilon=epsilon,
        expected_size=expected_size,
        tilt=tilt,
        where=where,
        by=by,
        measure=measure,
    )
    with service(url, token) as client:
        show_release(client.quantile(study, q, **question | _of(candidates)), as_json, output)


def median(
    study: StudyName,
    candidates: Candidates = None,
    share: Share = None,
    epsilon: Epsilon = None,
    expected_size: ExpectedSize = None,
    tilt: Tilt = None,
    where: Of = None,
    by: By = None,
    measure: Measure = None,
    url: Url = DEFAULT_URL,
    token: Token = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Show the value that half of the people do not exceed. The first to ask spends for it."""
    question = question_of(
        share=share,
        epsilon=epsilon,
        expected_size=expected_size,
        tilt=tilt,
        where=where,
        by=by,
        measure=measure,
    )
    with service(url, token) as client:
        show_release(client.median(study, **question | _of(candidates)), as_json, output)


def describe(
    study: StudyName,
    candidates: Candidates = None,
    share: Share = None,
    epsilon: Epsilon = None,
    expected_size: ExpectedSize = None,
    tilt: Tilt = None,
    where: Of = None,
    by: By = None,
    measure: Measure = None,
    url: Url = DEFAULT_URL,
    token: Token = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Show count, mean, standard deviation and quartiles, with one price. The first to ask spends for it."""
    question = question_of(
        share=share,
        epsilon=epsilon,
        expected_size=expected_size,
        tilt=tilt,
        where=where,
        by=by,
        measure=measure,
    )
    with service(url, token) as client:
        show_release(client.describe(study, **question | _of(candidates)), as_json, output)


def _of(candidates: int | None) -> dict[str, Any]:
    return {} if candidates is None else {"candidates": candidates}
