"""The answers to one question that sharpen each other: a table's rows and their plot."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from markupsafe import Markup, escape

from app.core.numbers import margin, percent
from app.dashboard.canvas import Axis, draw_both, points
from app.dashboard.requests import PageRequest
from app.dashboard.scales import Linear, Scale, nice_ceiling
from app.estimators.confidence import LEVEL
from app.services.work import run
from app.web.documents.plan import PlanOut
from app.web.documents.release import IntervalOut, PublishedOut
from app.web.documents.shape import Published, published

MOST = 50
"""How many steps are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownStep:
    """An answer among those that sharpen each other.

    Attributes:
        release: The answer.
        half: Half of its widest interval [its unit].
        always: The same of what holds at all steps at once; None of an answer that does not say it.
    """

    release: PublishedOut[Any]
    half: float
    always: float | None

    @property
    def level(self) -> float:
        """Of its intervals."""
        return float(self.release.sharpened[0].interval.level)

    @classmethod
    def of(cls, release: PublishedOut[Any]) -> "ShownStep":
        """An answer as a step."""
        always = [one.anytime for one in release.sharpened]
        return cls(
            release=release,
            half=_half([one.interval for one in release.sharpened]),
            always=None if None in always else _half(always),
        )


def _half(intervals: Sequence[IntervalOut]) -> float:
    return float(max(one.upper - one.lower for one in intervals)) / 2


async def steps_of(request: PageRequest, release: Published, level: float = LEVEL) -> list[ShownStep]:
    """The newest steps of shares among which a release is, the oldest first; none of a single answer.

    Their intervals are at the level, or all at 95 % where one of them keeps no others.
    """
    if not (isinstance(release, PublishedOut) and release.sharpened):
        return []
    stored = await request.api.services.releases.steps(release.id, MOST, level)
    found = await run(lambda: [published(one.body) for one in stored])
    steps = [ShownStep.of(one) for one in found if isinstance(one, PublishedOut) and one.sharpened]
    return steps if len(steps) > 1 and any(one.release.id == release.id for one in steps) else []


class _Dot(NamedTuple):
    """A step in the plot: what all steps have charged a person at most by then, half of the interval."""

    spent: float
    half: float
    text: str


def plot(steps: Sequence[ShownStep], plan: PlanOut | None = None) -> Markup:
    """The interval against the epsilon that all steps have charged, and what is planned next."""
    if not steps:
        return Markup("")
    taken = [
        _Dot(
            one.release.epsilon_max_total or one.release.epsilon_max, one.half, f"share {one.release.share:g}"
        )
        for one in steps
    ]
    always = [
        dot._replace(half=one.always) for dot, one in zip(taken, steps, strict=True) if one.always is not None
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
                ahead.append(_Dot(one.epsilon_max_total, one.half_width, text))
    level = percent(steps[0].level)
    most = nice_ceiling(max(one.spent for one in (*taken, *ahead)))
    top = nice_ceiling(max(one.half for one in (*taken, *always, *ahead)))

    def marks(across: Scale, up: Scale) -> Sequence[str]:
        def dot(one: _Dot, kind: str) -> str:
            said = escape(f"{one.text}: ± {margin(one.half)} for epsilon {one.spent:g} in all")
            return (
                f'<circle class="step {kind}" cx="{across(one.spent):.1f}" cy="{up(one.half):.1f}" r="4">'
                f"<title>{said}</title></circle>"
            )

        def line(kind: str, *ends: _Dot) -> str:
            corners = points((across(one.spent), up(one.half)) for one in ends)
            return f'<polyline class="step {kind}" points="{corners}"/>'

        return [
            *(line("ahead", taken[-1], one) for one in ahead),
            line("taken", *taken),
            *([line("always", *always)] if always else []),
            *(dot(one, "ahead") for one in ahead),
            *(dot(one, "taken") for one in taken),
        ]

    return draw_both(
        f"Half of the {level} interval against the epsilon spent, step by step",
        Axis("epsilon spent in all, at most", partial(Linear, 0, most)),
        Axis(f"± of the {level} interval", partial(Linear, 0, top)),
        marks,
    )
