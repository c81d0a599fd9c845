"""Processor time of releases, beside a former version that is served in the same run."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import psutil

from benchmarks.former import FORMER, Served, checked_out, served
from benchmarks.report import Ratio
from benchmarks.services import ROOT, Caller

OFFERS, LABELS, LABEL_EPSILONS = 634, 50, 5
DAYS, DAILY_OFFERS = 30, 300
"""People who come on different days are in different noisy sums, so that their cohorts stay apart."""
SHARE = 1 / 1_000
AFRESH: Mapping[str, object] = {"estimator": "optimal", "share": SHARE, "fresh": True}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is asked of a study of its own.

    Attributes:
        name: In the table.
        goal: Of the ratio.
        fill: Makes the study of this name and its people.
        question: What is asked; with a share that grows unless it is asked afresh.
        times: How often a round.
    """

    name: str
    goal: float
    fill: Callable[[Served, Caller, str], None]
    question: Mapping[str, object]
    times: int


def _offers(here: Served, caller: Caller, slug: str) -> None:
    """A study in which no two people offer the same."""
    _study(here, caller, slug)
    _send(here, caller, slug, [_row(slug, place, (100 + place) / 100) for place in range(OFFERS)])


def _public(here: Served, caller: Caller, slug: str) -> None:
    """A study of public values."""
    _study(here, caller, slug)
    rows = [{**_row(slug, place, 1), "trust": "public"} for place in range(OFFERS)]
    for row in rows:
        del row["epsilon"]
    _send(here, caller, slug, rows)


def _days(here: Served, caller: Caller, slug: str) -> None:
    """A study whose people came on many days, each of which ended with an answer."""
    _study(here, caller, slug)
    for day in range(DAYS):
        offers = [(place, (100 + place) / 100) for place in range(DAILY_OFFERS)]
        _send(here, caller, slug, [_row(f"{slug}-{day}", place, epsilon) for place, epsilon in offers])
        _ask(here, caller, slug, AFRESH)


def _labels(here: Served, caller: Caller, slug: str) -> None:
    """A study with labels and few offers."""
    _study(here, caller, slug, {"group": [f"g{number}" for number in range(LABELS)]})
    rows = []
    for place in range(20 * LABELS * LABEL_EPSILONS):
        group = f"g{place // LABEL_EPSILONS % LABELS}"
        rows.append({**_row(slug, place, 1 + place % LABEL_EPSILONS), "attributes": {"group": group}})
    _send(here, caller, slug, rows)


CASES = (
    Case(name=f"over {OFFERS} offers", goal=0.8, fill=_offers, question=AFRESH, times=15),
    Case(name=f"over {DAYS * DAILY_OFFERS:,} cohorts", goal=0.8, fill=_days, question=AFRESH, times=3),
    Case(
        name=f"by {LABELS} labels with {LABEL_EPSILONS} epsilons, a step",
        goal=0.6,
        fill=_labels,
        question={"by": "group"},
        times=10,
    ),
    Case(name="that charges no one", goal=1.0, fill=_public, question=AFRESH, times=15),
)


def run(*, quick: bool, commit: str | None = None) -> list[Ratio]:
    """Rounds of both versions, one after the other, each with a PostgreSQL of its own."""
    rounds = 1 if quick else 9
    found: dict[str, tuple[list[float], list[float]]] = {case.name: ([], []) for case in CASES}
    with ExitStack() as stack:
        versions = []
        for tree in (ROOT, stack.enter_context(checked_out(commit or FORMER))):
            here = stack.enter_context(served(tree))
            with Caller(here.server.port) as caller:
                for number, case in enumerate(CASES):
                    case.fill(here, caller, f"case-{number}")
            versions.append(here)
        for number, case in enumerate(CASES):
            for turn in range(rounds + 1):
                for place, here in enumerate(versions):
                    took = _processor_time(here, f"case-{number}", case, turn)
                    # The first round warms up: imports, connections, prepared statements.
                    if turn:
                        found[case.name][place].append(took)
    return [
        Ratio(
            section="former-releases",
            name=f"a release {case.name}",
            unit="ms",
            subject=found[case.name][0],
            baseline=found[case.name][1],
            goal=case.goal,
            better="lower",
            note=f"processor time of service and PostgreSQL; baseline: commit {(commit or FORMER)[:8]}",
        )
        for case in CASES
    ]


def _processor_time(here: Served, slug: str, case: Case, turn: int) -> float:
    """Of one release, in all processes [ms]."""
    before = _used(here)
    with Caller(here.server.port) as caller:
        for number in range(case.times):
            share = SHARE * (1 + turn * case.times + number)
            _ask(here, caller, slug, {"share": share, **case.question})
    return 1_000 * (_used(here) - before) / case.times


def _used(here: Served) -> float:
    """Processor time of the service and of its PostgreSQL, which is no child of it [s]."""
    postmaster = psutil.Process(int((here.data / "postgres" / "postmaster.pid").read_text().split()[0]))
    times = [one.cpu_times() for one in _running(here.server.pid, postmaster)]
    return sum(one.user + one.system for one in times)


def _running(service: int, postmaster: psutil.Process) -> Iterator[psutil.Process]:
    yield psutil.Process(service)
    yield from (one for one in postmaster.children() if one.is_running())


def _ask(here: Served, caller: Caller, slug: str, question: Mapping[str, object]) -> None:
    document = {"statistic": "mean", "allow_worse": True, **question}
    caller.call("POST", f"/v1/studies/{slug}/releases", here.analyse, document)


def _study(here: Served, caller: Caller, slug: str, attributes: Mapping[str, object] | None = None) -> None:
    caller.call(
        "POST",
        "/v1/studies",
        here.admin,
        {
            "slug": slug,
            "lower": 0,
            "upper": 120,
            "trust": ["central", "public"],
            "epsilon": {"min": 0.01, "max": 10},
            "attributes": attributes or {},
        },
    )


def _send(here: Served, caller: Caller, slug: str, rows: Sequence[Mapping[str, object]]) -> None:
    answer = caller.call("POST", f"/v1/studies/{slug}/contributions/batch", here.contribute, rows)
    if answer["refused"]:
        raise RuntimeError(f"the batch was answered {answer}")


def _row(prefix: str, place: int, epsilon: float) -> dict[str, object]:
    """A central contribution."""
    return {
        "subject": f"{prefix}-{place}",
        "value": place * 37 % 120,
        "epsilon": epsilon,
        "trust": "central",
    }
