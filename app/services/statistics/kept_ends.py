"""The ends of an answer's intervals at other levels, which are kept beside it, and the answer read at one.

The answer itself has one level, and its bytes are what they were without others.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.estimators import confidence
from app.estimators.every_level import Ends, is_interval, leveled
from app.estimators.interface import NotApplicable

Document = dict[str, Any]

_OTHERS = "others"

_PLAIN = (float, str, int)

_ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"))

_NOT_KEPT = (
    "This answer was made before answers kept the ends of their intervals at other levels: it has those of "
    "0.95 alone. The next answer to the question has the others."
)


def written(document: Document) -> tuple[bytes, bytes | None]:
    """An answer as it is published, and the ends that are kept beside it; None where it has no interval.

    What it lists, as labels, is written one after the other: the largest answers have 90,000 intervals.

    Args:
        document: What `app.estimators.every_level` read of it.

    Raises:
        TypeError, ValueError: it cannot be written down.
    """
    kept: list[Sequence[Ends] | None] = []

    def without(value: Any) -> Any:
        if value is None or isinstance(value, _PLAIN):
            return value
        if type(value) is dict or isinstance(value, Mapping):
            shown = {name: without(one) for name, one in value.items() if name != _OTHERS}
            if leveled(value):
                kept.append(value.get(_OTHERS))
            return shown
        return [without(one) for one in value] if isinstance(value, list | tuple) else value

    def text(value: Any) -> str:
        return _ENCODER.encode(without(value))

    fields = []
    for name, value in document.items():
        listed = isinstance(value, list | tuple)
        fields.append(
            f"{_ENCODER.encode(name)}:" + (f"[{','.join(map(text, value))}]" if listed else text(value))
        )
    body = f"{{{','.join(fields)}}}".encode()
    if not any(kept):
        return body, None
    levels = (
        f'"{level}":' + _ENCODER.encode([None if of is None else of[place] for of in kept])
        for place, level in enumerate(confidence.OTHERS)
    )
    return body, f"{{{','.join(levels)}}}".encode()


def read_at(body: bytes, kept: bytes | None, level: float) -> bytes:
    """An answer at another level. Free: post-processing.

    An estimate that rests on an interval, as of a variance that noise hides, stays, and intervals hold it.

    Args:
        body: The answer, as it was published.
        kept: The ends that are kept beside it.
        level: One of `confidence.LEVELS`.

    Raises:
        NotApplicable: they are not kept.
    """
    if level == confidence.LEVEL:
        return body
    ends = None if kept is None else json.loads(kept).get(str(level))
    if ends is None:
        raise NotApplicable(_NOT_KEPT)
    read = _read(json.loads(body), iter(ends), level)
    return json.dumps(read, separators=(",", ":")).encode()


def _read(value: Any, ends: Iterator[Sequence[float] | None], level: float) -> Any:
    if isinstance(value, list):
        return [_read(one, ends, level) for one in value]
    if not isinstance(value, dict):
        return value
    # In the order in which they were taken out: what is within an interval before the interval.
    shown = {name: _read(one, ends, level) for name, one in value.items()}
    if names := leveled(value):
        own = next(ends)
        if own is None:
            raise NotApplicable(_NOT_KEPT)
        shown |= dict(zip(names, own, strict=True))
        if "level" in shown:
            shown["level"] = level
    estimate = value.get("estimate")
    if isinstance(estimate, int | float) and not is_interval(value):
        for part in shown.values():
            if isinstance(part, dict) and is_interval(part):
                part["lower"], part["upper"] = min(part["lower"], estimate), max(part["upper"], estimate)
    return shown
