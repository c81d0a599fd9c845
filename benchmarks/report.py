"""What was measured, and how it is shown."""

import json
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rich.console import Console
from rich.table import Table

NORMAL_95 = statistics.NormalDist().inv_cdf(0.975)


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """A subject beside its baseline, one value of each a round.

    Attributes:
        section, name: What was compared.
        unit: Of subject and baseline.
        subject, baseline: One number a round; rounds were interleaved.
        goal: Bound on the median ratio, None where there is none.
        better: Whether the ratio should be at least or at most the goal.
        note: What else is worth knowing.
        interval: Of the ratio, with 95 %, where it is one of estimates; otherwise rounds show its spread.
    """

    section: str
    name: str
    unit: str
    subject: Sequence[float]
    baseline: Sequence[float]
    goal: float | None = None
    better: Literal["higher", "lower"] = "higher"
    note: str = ""
    interval: tuple[float, float] | None = None

    @classmethod
    def of_mean_squares(
        cls,
        subject: Sequence[float],
        baseline: Sequence[float],
        *,
        section: str,
        name: str,
        goal: float | None = None,
        note: str = "",
        root: bool = False,
    ) -> "Ratio":
        """The ratio of the mean squares of two samples of errors in ranges; lower is better.

        The interval is normal for the logarithm, of what squares vary by: noise has heavy tails, so that an F
        distribution would be too narrow. With `root` it is the ratio of their roots. A baseline of one number
        is known, not a sample.
        """
        means, spread = [], 0.0
        for errors in (subject, baseline):
            squares = [error**2 for error in errors]
            means.append(statistics.fmean(squares))
            if len(squares) > 1 and means[-1]:
                spread += statistics.variance(squares) / means[-1] ** 2 / len(squares)
        ratio, factor = means[0] / means[1], math.exp(NORMAL_95 * math.sqrt(spread))
        power = 0.5 if root else 1
        return cls(
            section=section,
            name=name,
            unit="ranges" if root else "ranges²",
            subject=[means[0] ** power],
            baseline=[means[1] ** power],
            goal=goal,
            better="lower",
            note=note,
            interval=((ratio / factor) ** power, (ratio * factor) ** power),
        )

    @property
    def ratios(self) -> list[float]:
        """Subject over baseline, round by round."""
        return [subject / baseline for subject, baseline in zip(self.subject, self.baseline, strict=True)]

    @property
    def median(self) -> float:
        """The verdict: the median of the rounds' ratios."""
        return statistics.median(self.ratios)

    @property
    def spread(self) -> tuple[float, float]:
        """The interval of the ratio; where there is none, its smallest and its largest round."""
        return self.interval or (min(self.ratios), max(self.ratios))

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None where there is none."""
        if self.goal is None:
            return None
        return self.median >= self.goal if self.better == "higher" else self.median <= self.goal

    def to_json(self) -> dict[str, object]:
        """Everything, for a script."""
        return {
            "section": self.section,
            "name": self.name,
            "unit": self.unit,
            "subject": list(self.subject),
            "baseline": list(self.baseline),
            "ratio": self.median,
            "ratio_min": self.spread[0],
            "ratio_max": self.spread[1],
            "goal": self.goal,
            "better": self.better,
            "met": self.met,
            "note": self.note,
        }


def print_json(ratios: Sequence[Ratio]) -> None:
    """One JSON document on standard output."""
    print(json.dumps([ratio.to_json() for ratio in ratios], indent=2))


def print_table(ratios: Sequence[Ratio], console: Console) -> None:
    """A table for people."""
    table = Table(title="Dither beside its baselines, median of interleaved rounds")
    for heading, justify in (
        ("what", "left"),
        ("Dither", "right"),
        ("baseline", "right"),
        ("unit", "left"),
        ("ratio", "right"),
        ("spread", "right"),
        ("goal", "right"),
        ("", "left"),
    ):
        table.add_column(heading, justify=justify)  # type: ignore[arg-type]  # one of two words
    section = ""
    for ratio in ratios:
        if section and ratio.section != section:
            table.add_section()
        section = ratio.section
        sign = "≥" if ratio.better == "higher" else "≤"
        table.add_row(
            ratio.name,
            _number(statistics.median(ratio.subject)),
            _number(statistics.median(ratio.baseline)),
            ratio.unit,
            f"{ratio.median:.3g}",
            "{:.3g} – {:.3g}".format(*ratio.spread),
            "" if ratio.goal is None else f"{sign} {ratio.goal:g}",
            {None: "", True: "[green]met[/]", False: "[bold red]missed[/]"}[ratio.met],
        )
    console.print(table)
    for note in dict.fromkeys(ratio.note for ratio in ratios if ratio.note):
        console.print(f"  {note}", soft_wrap=True)


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
