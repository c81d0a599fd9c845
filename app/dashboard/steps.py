"""The answers to one question that sharpen each other: a table's rows and their plot."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from app.dashboard import step_plots
from app.dashboard.requests import PageRequest
from app.web.documents.plan import PlanOut
from app.web.documents.release import IntervalOut, ReleaseOut
from app.web.documents.shape import (
    CoordinatesReleaseOut,
    HistogramReleaseOut,
    Published,
    SharesReleaseOut,
    published,
)

Sharpened = ReleaseOut | HistogramReleaseOut | SharesReleaseOut | CoordinatesReleaseOut
"""Answers whose shares add up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """An answer among those that sharpen each other, and half of its widest 95 % interval [its unit]."""

    release: Sharpened
    half: float


async def steps_of(request: PageRequest, release: Published, most: int) -> list[Step]:
    """The newest steps of shares among which a release is, the oldest first; none of a single answer."""
    if not isinstance(release, Sharpened):
        return []
    found = [published(one) for one in await request.api.services.releases.steps(release.id, most)]
    steps = [Step(release=one, half=_half(one)) for one in found if isinstance(one, Sharpened)]
    return steps if len(steps) > 1 and any(one.release.id == release.id for one in steps) else []


def plot(steps: Sequence[Step], plan: PlanOut | None = None) -> Markup:
    """The interval against the epsilon that all steps have charged, and what is planned next."""
    taken = [
        step_plots.Step(
            spent=one.release.epsilon_max_total or one.release.epsilon_max,
            half=one.half,
            text=f"share {one.release.share:g}",
        )
        for one in steps
    ]
    ahead = []
    if (
        plan is not None
        and plan.stands is not None
        and any(one.release.id == plan.stands.release for one in steps)
    ):
        following = next((one for one in plan.estimators if one.chosen and one.epsilon_max), None)
        for one, text in ((plan.newcomers, "newcomers only"), (following, f"share {plan.share:g}, planned")):
            if one is not None and one.half_width is not None:
                ahead.append(step_plots.Step(spent=one.epsilon_max_total, half=one.half_width, text=text))
    return step_plots.sharpening(
        "Half of the 95 % interval against the epsilon spent, step by step",
        taken,
        ahead,
        x="epsilon spent in all, at most",
        y="± of the 95 % interval",
    )


def _half(release: Sharpened) -> float:
    return max((one.upper - one.lower) / 2 for one in _intervals(release))


def _intervals(release: Sharpened) -> list[IntervalOut]:
    match release:
        case HistogramReleaseOut():
            return [one.interval for one in release.bins]
        case SharesReleaseOut():
            return [one.interval for one in release.choices]
        case CoordinatesReleaseOut():
            return [one.interval for one in release.coordinates]
    return [release.interval]
