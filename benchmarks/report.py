"""What was measured, and how it is shown."""

import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rich.console import Console
from rich.table import Table


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
    """

    section: str
    name: str
    unit: str
    subject: Sequence[float]
    baseline: Sequence[float]
    goal: float | None = None
    better: Literal["higher", "lower"] = "higher"
    note: str = ""

    @property
    def ratios(self) -> list[float]:
        """Subject over baseline, round by round."""
        return [subject / baseline for subject, baseline in zip(self.subject, self.baseline, strict=True)]

    @property
    def median(self) -> float:
        """The verdict: the median of the rounds' ratios."""
        return statistics.median(self.ratios)

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
            "ratio_min": min(self.ratios),
            "ratio_max": max(self.ratios),
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
            f"{min(ratio.ratios):.3g} – {max(ratio.ratios):.3g}",
            "" if ratio.goal is None else f"{sign} {ratio.goal:g}",
            {None: "", True: "[green]met[/]", False: "[bold red]missed[/]"}[ratio.met],
        )
    console.print(table)
    for note in dict.fromkeys(ratio.note for ratio in ratios if ratio.note):
        console.print(f"  {note}", soft_wrap=True)


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
