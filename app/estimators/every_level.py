"""Answers that are read at every level when they are drawn.

Later nothing but the answer is left: its sums are sharpened, or were never kept. So it is read at each level,
by the law that it has there, and the ends are kept beside it (`app.services.statistics.kept_ends`): at all
levels together by what makes its intervals at all of them, and once for each by what does so at one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from app.core.plain import names_of
from app.estimators import confidence
from app.estimators.interface import Coverage, Interval
from app.estimators.together import ErrorBound

T = TypeVar("T")

Own = TypeVar("Own")

Asked = ParamSpec("Asked")

_PLAIN = (float, str, int)

Ends = tuple[float, float]
"""What differs from level to level: both ends of an interval, the variance and the risk of a bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeveledBound(ErrorBound):
    """A bound on an error with its variance and its risk at other levels, which rest on what they leave."""

    others: tuple[Ends, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Leveled(Interval):
    """An interval with its ends at other levels, those of `confidence.OTHERS`."""

    others: tuple[Ends, ...]

    def moved(self, to: Callable[[float], float]) -> Self:
        """See `Interval`."""
        others = tuple((to(lower), to(upper)) for lower, upper in self.others)
        return replace(super(Leveled, self).moved(to), others=others)


_MERGED = (*_PLAIN, Leveled, LeveledBound)
"""What has no other ends, or has them already."""


def once(method: Callable[Concatenate[Own, Asked], T]) -> Callable[Concatenate[Own, Asked], T]:
    """A method that is computed once for the same arguments, since it says the same at every level.

    What it returned is kept in its object, as long as there is that, and is not to be changed.
    """

    @wraps(method)
    def kept(self: Own, /, *args: Asked.args, **names: Asked.kwargs) -> T:
        found: dict[Any, T] = vars(self).setdefault(f"{method.__name__} at every level", {})
        asked = (args, *names.items())
        if asked not in found:
            found[asked] = method(self, *args, **names)
        return found[asked]

    return kept


def bound_of(laplaces: tuple[tuple[float, int], ...], ends: Sequence[Ends], reach: float) -> ErrorBound:
    """A bound on an error with its variance and its risk at each of the levels that are asked for."""
    (normal, risk), *others = ends
    if not others:
        return ErrorBound(laplaces=laplaces, normal=normal, reach=reach, risk=risk)
    return LeveledBound(laplaces=laplaces, normal=normal, reach=reach, risk=risk, others=tuple(others))


def interval_of(ends: Sequence[Ends], coverage: Coverage) -> Interval:
    """An interval with its ends at each of the levels that are asked for."""
    (lower, upper), *others = ends
    level = confidence.levels()[0]
    if not others:
        return Interval(level=level, lower=lower, upper=upper, coverage=coverage)
    return Leveled(level=level, lower=lower, upper=upper, coverage=coverage, others=tuple(others))


def at_every_level(read: Callable[[], T]) -> T:
    """What is read, each interval in it with its ends at all levels.

    Args:
        read: Reads what is drawn: a record, or a document of JSON. It draws nothing, and nothing but ends of
            intervals differs in what it returns.

    Privacy: post-processing.
    """
    with confidence.at(confidence.LEVEL, *confidence.OTHERS) as asked:
        found = read()
    if not asked.alone:
        return found
    merged: T = _merged(found, [_read_at(other, read) for other in confidence.OTHERS])
    return merged


def _read_at(level: float, read: Callable[[], T]) -> T:
    with confidence.at(level):
        return read()


def _merged(found: Any, others: Sequence[Any]) -> Any:
    """What was found, its intervals with the ends that they have in others."""
    if found is None or isinstance(found, _MERGED):
        return found
    if isinstance(found, Interval):
        return Leveled(**_own(Interval, found), others=tuple((one.lower, one.upper) for one in others))
    if isinstance(found, ErrorBound):
        return LeveledBound(**_own(ErrorBound, found), others=tuple((one.normal, one.risk) for one in others))
    if names := names_of(type(found)):
        parts = _parts(names, getattr, found, others)
        changed = {name: part for name, part in parts.items() if part is not getattr(found, name)}
        return replace(found, **changed) if changed else found
    if isinstance(found, Mapping):
        differs = leveled(found)
        if differs and "others" in found:
            return found
        shown = _parts(list(found), _item, found, others)
        if differs:
            shown["others"] = tuple((one[differs[0]], one[differs[1]]) for one in others)
        return shown
    if isinstance(found, list | tuple) and found and not isinstance(found[0], _PLAIN):
        return [*_parts(range(len(found)), _item, found, others).values()]
    return found


def _item(of: Any, name: Any) -> Any:
    return of[name]


def _own(kind: type[Any], found: object) -> dict[str, Any]:
    """The fields that a record has of this kind, and not of one that is derived from it."""
    return {name: getattr(found, name) for name in names_of(kind) or ()}


def _parts(
    names: Sequence[Any], part: Callable[[Any, Any], Any], found: Any, others: Sequence[Any]
) -> dict[Any, Any]:
    return {name: _merged(part(found, name), [part(one, name) for one in others]) for name in names}


def leveled(document: Mapping[str, Any]) -> tuple[str, str] | None:
    """What differs from level to level in a document: in an interval, a point of a band, or a bound.

    Bins have a lower and an upper end, too, and these stay.
    """
    if is_interval(document):
        return "lower", "upper"
    return ("normal", "risk") if "laplaces" in document and "reach" in document else None


def is_interval(document: Mapping[str, Any]) -> bool:
    """Whether a document is an interval, or a point of a band."""
    return "lower" in document and "upper" in document and ("level" in document or "at" in document)
