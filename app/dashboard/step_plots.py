"""The plot of answers that sharpen each other: error against epsilon spent."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from markupsafe import Markup, escape

from app.dashboard.canvas import Axis, draw_both, points
from app.dashboard.scales import Linear, Scale, nice_ceiling


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """An answer among those that sharpen each other.

    Attributes:
        spent: What they have charged a person at most by then [epsilon].
        half: Half of the interval's width [data's unit].
        text: Which one it is.
    """

    spent: float
    half: float
    text: str


def sharpening(title: str, steps: Sequence[Step], ahead: Sequence[Step], *, x: str, y: str) -> Markup:
    """Errors against what was spent, from step to step, and from the last one to those that may come."""
    if not steps:
        return Markup("")
    every = [*steps, *ahead]
    most, top = (
        nice_ceiling(max(values)) for values in zip(*((one.spent, one.half) for one in every), strict=True)
    )

    def marks(across: Scale, up: Scale) -> Sequence[str]:
        def place(one: Step) -> tuple[float, float]:
            return across(one.spent), up(one.half)

        def dot(one: Step, kind: str) -> str:
            left, height = place(one)
            said = escape(f"{one.text}: ± {one.half:.4g} for epsilon {one.spent:g} in all")
            return (
                f'<circle class="step {kind}" cx="{left:.1f}" cy="{height:.1f}" r="4">'
                f"<title>{said}</title></circle>"
            )

        def line(kind: str, *ends: Step) -> str:
            return f'<polyline class="step {kind}" points="{points(map(place, ends))}"/>'

        return [
            *(line("ahead", steps[-1], one) for one in ahead),
            line("taken", *steps),
            *(dot(one, "ahead") for one in ahead),
            *(dot(one, "taken") for one in steps),
        ]

    return draw_both(title, Axis(x, partial(Linear, 0, most)), Axis(y, partial(Linear, 0, top)), marks)
