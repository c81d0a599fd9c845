"""Answers to the same question side by side: which one has the narrower interval, and why."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from app.core.numbers import counted, margin
from app.core.study import Study
from app.dashboard.requests import PageRequest
from app.services.statistics.gain import AS_GOOD
from app.services.work import run
from app.web.documents.release import (
    ABOUT,
    ClusterReleaseOut,
    IntervalOut,
    PublishedOut,
    ReleaseOut,
    about,
)
from app.web.documents.shape import (
    DescriptionOut,
    HistogramReleaseOut,
    Published,
    RegressionReleaseOut,
    published,
)

NEWEST = 50
"""Answers of a study that one of it is compared with, and that a publication is chosen from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrower:
    """An answer with a narrower interval than another one to the same question.

    Attributes:
        release: The narrower one.
        margins: Half of its widest interval and of the other one's, as text.
        because: What made the other one's wider; empty where neither document says.
    """

    release: Published
    margins: tuple[str, str]
    because: Sequence[str]


async def newest_of(request: PageRequest, study: Study) -> list[Published]:
    """The newest answers of a study, the newest first; of large ones only what stands before their labels."""
    newest = await request.api.services.releases.page(study, NEWEST, None, heads=True)
    return await run(lambda: [published(one.body) for one in newest.items])


def half(release: Published) -> float | None:
    """Half of its widest 95 % interval [its unit]; None of an answer that has none, or needs none."""
    return max(((one.upper - one.lower) / 2 for one in _intervals(release)), default=0) or None


def narrower(release: Published, others: Iterable[Published]) -> Narrower | None:
    """The answer to the same question that has the narrowest interval; None where this one is as good."""
    asked = _asked(release)
    found = [one for one in others if _asked(one) == asked and half(one) is not None]
    return _beside(release, min(found, key=_half_of, default=release))


def outdone(releases: Sequence[Published]) -> dict[UUID, Narrower]:
    """Answers, the newest first, that an older one to the same question outdoes: that one, by their ids."""
    best: dict[tuple[object, ...], Published] = {}
    found: dict[UUID, Narrower] = {}
    for one in reversed(releases):
        if half(one) is None:
            continue
        before = best.setdefault(_asked(one), one)
        if better := _beside(one, before):
            found[one.id] = better
        if _half_of(one) <= _half_of(before):
            best[_asked(one)] = one
    return found


def _beside(release: Published, best: Published) -> Narrower | None:
    """What is said of an answer beside the best one; None where it is as good."""
    own, its = half(release), half(best)
    if own is None or its is None or its * AS_GOOD >= own:
        return None
    return Narrower(release=best, margins=(margin(its), margin(own)), because=_because(release, best))


def _half_of(release: Published) -> float:
    return half(release) or 0.0


def _because(release: Published, best: Published) -> list[str]:
    """Why the interval of an answer is wider than that of the best one."""
    said: list[str] = []
    if isinstance(release, ClusterReleaseOut) or isinstance(best, ClusterReleaseOut):
        return said
    if isinstance(best, ReleaseOut) and best.combines:
        said.append(f"that one combines {len(best.combines)} answers")
    if release.share is not None and best.share is not None and release.share < best.share:
        said.append(
            f"this one uses {100 * release.share:.3g} % of each epsilon, that one {100 * best.share:.3g} %"
        )
    if release.people is not None and best.people is not None:
        mine, its = (
            one.people - (one.people_left_out or 0) for one in (release, best) if one.people is not None
        )
        if mine < its:
            said.append(f"this one is of {counted(mine, 'person', 'people')}, that one of {its:,}")
    if release.estimator != best.estimator:
        said.append(f"this one is by {release.estimator}, that one by {best.estimator}")
    return said


def _asked(release: Published) -> tuple[object, ...]:
    """Equal for two answers to the same question, however they were made."""
    edges = (
        tuple((one.lower, one.upper) for one in release.bins)
        if isinstance(release, HistogramReleaseOut)
        else ()
    )
    return release.statistic, about(release.model_dump(include={*ABOUT})), edges


def _intervals(release: Published) -> list[IntervalOut]:
    match release:
        case DescriptionOut():
            return [release.mean.interval, *(one.interval for one in release.quartiles)]
        case RegressionReleaseOut():
            return [release.slope.interval]
        case PublishedOut() if release.sharpened:
            return [one.interval for one in release.sharpened]
    interval = getattr(release, "interval", None)
    return [] if interval is None else [interval]
