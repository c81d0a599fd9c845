"""What the simulation shows while it runs, and at the end."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from types import TracebackType
from typing import Any

from dither import Session
from rich.live import Live
from rich.table import Table
from rich.text import Text

from app.cli.common import console, notes, show
from app.core.numbers import counted
from app.sessions.search_protocol import interval_after
from dither_research.simulate.fleet import Tally
from dither_research.simulate.people import Value

BAR = 48
"""Characters of the range."""


def interval_left(session: Session) -> tuple[float, float]:
    """What is left of the range of a search, in the data's unit."""
    if session.interval is not None:
        return session.interval.lower, session.interval.upper
    if not session.path:
        return float(session.lower), float(session.upper)
    return interval_after(session.path[-1], maximum=session.protocol == "maximum")


class Display:
    """A live picture of the fleet, on a terminal; nothing elsewhere.

    Args:
        devices: How many there are.
        wanted: Whether it is wanted at all.
    """

    def __init__(self, devices: int, *, wanted: bool) -> None:
        self._devices = devices
        self._session: Session | None = None
        self._live = Live(console=notes, refresh_per_second=4) if wanted and notes.is_terminal else None

    def __enter__(self) -> "Display":
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def update(self, tally: Tally, session: Session | None) -> None:
        """Show how far it is."""
        self._session = session or self._session
        if self._live is not None:
            self._live.update(picture(self._devices, tally, self._session))


def picture(devices: int, tally: Tally, session: Session | None) -> Table:
    """One picture of the fleet."""
    table = Table.grid(padding=(0, 2))
    if session is not None:
        place = "finished" if session.round is None else f"round {session.round} of {session.rounds}"
        table.add_row(session.protocol, f"{session.mode}, {place}")
        if session.protocol != "kmeans":
            lower, upper = interval_left(session)
            table.add_row("between", _bar(session, lower, upper))
            table.add_row("", f"{lower:.6g} and {upper:.6g}")
    table.add_row("devices", f"{devices:,}, {tally.online:,} online, {tally.done:,} done")
    table.add_row("answers", f"{tally.accepted:,} taken, {tally.late:,} too late, {tally.rate:,.0f} a second")
    if tally.refused:
        table.add_row(
            "refused", ", ".join(f"{code} {count:,}" for code, count in tally.refused.most_common())
        )
    return table


def _bar(session: Session, lower: float, upper: float) -> Text:
    """The range as a line, what is left of it in bold."""
    low, width = float(session.lower), float(session.upper - session.lower)
    first = min(int((lower - low) / width * BAR), BAR - 1)
    last = max(int((upper - low) / width * BAR), first + 1)
    bar = Text("─" * first, style="dim")
    bar.append("█" * (last - first), style="bold green")
    bar.append("─" * (BAR - last), style="dim")
    return bar


def summary(
    tally: Tally, *, devices: int, seconds: float, session: Session | None, values: Sequence[Value]
) -> dict[str, object]:
    """What happened, for a script."""
    document: dict[str, object] = {
        "devices": devices,
        "seconds": round(seconds, 3),
        "answers": tally.accepted,
        "late": tally.late,
        "answers_per_second": round(tally.rate, 1),
        "went_offline": tally.returned,
        "tried_again": tally.unanswered,
        "refused": dict(tally.refused),
        "reasons": tally.reasons,
        "devices_by_answers": {str(count): tally.given[count] for count in sorted(tally.given)},
    }
    if session is not None:
        document["session"] = session.id
        document["state"] = session.state
        document["round"] = session.round
        document["rounds"] = session.rounds
        if session.protocol != "kmeans":
            document["estimate"] = session.estimate
            document["interval"] = list(interval_left(session))
            document["truth"] = truth(session, values)
        else:
            document["centres"] = session.centres
    return document


def truth(session: Session, values: Sequence[Value]) -> float:
    """What a search looks for, computed from the values that the devices were given."""
    ordered = sorted(Decimal(value) for value in values if isinstance(value, str))
    match session.protocol:
        case "minimum":
            place = 0
        case "maximum":
            place = len(ordered) - 1
        case _:
            place = min(int((session.quantile or Decimal(0)) * len(ordered)), len(ordered) - 1)
    return float(ordered[place])


def show_summary(document: Mapping[str, Any]) -> None:
    """Print what happened, for a person."""
    console.print(
        f"{counted(document['devices'], 'device')}, {counted(document['answers'], 'answer')} taken, "
        f"{document['late']:,} too late, "
        f"in {document['seconds']:.1f} s: {document['answers_per_second']:,.0f} a second. "
        f"{document['went_offline']:,} times a device went offline before it was done."
    )
    for code, count in document["refused"].items():
        devices = counted(count, "device")
        console.print(f"{devices} refused: {code}, as {document['reasons'][code]}", markup=False)
    if document.get("estimate") is not None:
        lower, upper = document["interval"]
        console.print(
            f"Estimate {show(document['estimate'])}, in [{show(lower)}, {show(upper)}] after "
            f"{document['rounds']} rounds; the devices' own is {show(document['truth'])}."
        )
    elif document.get("state") == "open":
        console.print(f"The session goes on: round {document['round']} of {document['rounds']} is open.")
