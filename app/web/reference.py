"""The OpenAPI document as text that is read: a page of the docs, and what a service tells language models."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.core.question import FIELDS, STATISTICS

LIST, WHOLE = "/llms.txt", "/llms-full.txt"
"""Where a service says what there is to read, and where it lists every route."""

_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def listed(document: Mapping[str, Any]) -> str:
    """What there is to read, as Markdown."""
    about = document["info"]
    return f"""{_title(document)}

> {about["summary"]}

{about["description"].strip()}

## Reference

- [Every route]({WHOLE}): what each takes and answers, and every field of a question.
- [OpenAPI](/openapi.json): the same for programs, with every field of every document.
"""


def whole(document: Mapping[str, Any]) -> str:
    """The whole reference as Markdown, without links to pages that a service has not."""
    return "\n\n".join([_title(document), *(_LINK.sub(r"\1", part) for part in parts(document))]) + "\n"


def _title(document: Mapping[str, Any]) -> str:
    return f"# {document['info']['title']} {document['info']['version']}"


def parts(document: Mapping[str, Any]) -> Iterator[str]:
    """Every field of a question and every route of an OpenAPI document, as Markdown."""
    yield from _questions()
    groups: dict[str, list[str]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            groups.setdefault(operation["tags"][0], []).append(_route(method, path, operation))
    for tag, routes in groups.items():
        yield f"## {tag}"
        yield from routes


def _questions() -> Iterator[str]:
    """What can be said of each statistic, by all ways to ask."""
    yield "## Questions"
    yield (
        "A field has one name: of a parameter over HTTP, of a keyword of the SDK's methods, and of an option "
        "of the [command](cli.md), with `--` in front and `-` for `_`. Estimators have "
        "[parameters of their own](estimators.md) besides."
    )
    rows = []
    for name, field in FIELDS.items():
        asked = [one for one, statistic in STATISTICS.items() if name in ("statistic", *statistic.fields)]
        others = ", ".join(one for one in STATISTICS if one not in asked)
        few = (
            ", ".join(asked) if len(asked) < len(STATISTICS) / 2 else f"all but {others}" if others else "all"
        )
        rows.append((f"`{name}`", few, _one_line(field.description)))
    yield _rows("| field | statistics | meaning |", rows)


def _route(method: str, path: str, operation: Mapping[str, Any]) -> str:
    lines = [f"### `{method.upper()} {path}`", operation["description"].strip()]
    parameters = [
        (
            f"`{given['name']}`",
            given["in"],
            "yes" if given.get("required") else "",
            _one_line(given.get("description") or given.get("schema", {}).get("description", "")),
        )
        for given in operation.get("parameters", [])
    ]
    if parameters:
        lines.append(_rows("| parameter | in | required | meaning |", parameters))
    body = operation.get("requestBody")
    if body is not None:
        lines.append("Takes " + ", ".join(f"`{kind}`" for kind in body["content"]) + ".")
    answers = [
        (f"`{status}`", _one_line(answer["description"]))
        for status, answer in sorted(operation["responses"].items())
    ]
    lines.append(_rows("| status | meaning |", answers))
    return "\n\n".join(lines)


def _rows(heading: str, rows: Sequence[Sequence[str]]) -> str:
    columns = heading.count("|") - 1
    return "\n".join([heading, "|---" * columns + "|", *("| " + " | ".join(row) + " |" for row in rows)])


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
