"""What `benchmarks.scale` has measured, and the file in which it is kept."""

import json
import platform
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil

PIECE = 200_000
"""Contributions of one batch."""


@dataclass(frozen=True, kw_only=True)
class Size:
    """What a database is filled with.

    Attributes:
        people: Each contributes to every study.
        studies: How many.
        epsilons: How many different ones people choose, each equally often.
        labels: Of the studies' attribute; 1 for none.
        workers: Processes of the service.
    """

    people: int
    studies: int = 1
    epsilons: int = 90
    labels: int = 1
    workers: int = 1

    @property
    def variables(self) -> Mapping[str, float]:
        """What costs may depend on."""
        return {
            "1": 1,
            "people": self.people,
            "studies": self.studies,
            "cohorts": self.epsilons * self.labels,
            "contributions after the first": self.people * (self.studies - 1),
        }


@dataclass(kw_only=True)
class Cost:
    """What one step took.

    Attributes:
        count: What it did: contributions, releases, answers, pages.
        seconds: Wall clock.
        service, database: Processor time of their processes [s].
        wal: Bytes that the database wrote ahead.
    """

    count: int
    seconds: float = 0.0
    service: float = 0.0
    database: float = 0.0
    wal: int = 0


@dataclass(kw_only=True)
class Point:
    """One database of the ladder.

    Attributes:
        size: What it was filled with.
        cohorts: Of one study, at the end.
        costs: Of each step, one for each time that it was done.
        filled, asked: Bytes of each table with its indexes, after the batches and at the end.
        relations: Bytes of each table and index of `contribution` and `subject`, after the batches.
        rows: Of each table, at the end.
        service_memory: The most that all processes of the service held, shared pages shared out [bytes].
        database_memory: The same of PostgreSQL's processes.
    """

    size: Size
    cohorts: int = 0
    costs: dict[str, list[Cost]] = field(default_factory=dict)
    filled: dict[str, int] = field(default_factory=dict)
    asked: dict[str, int] = field(default_factory=dict)
    relations: dict[str, int] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    service_memory: int = 0
    database_memory: int = 0

    def processor(self, step: str) -> float:
        """Processor time of service and database for one time of a step [s]."""
        costs = self.costs[step]
        return sum(one.service + one.database for one in costs) / sum(one.count for one in costs)

    def seconds(self, step: str) -> float:
        """Wall clock of one time of a step, the median [s]."""
        return statistics.median(one.seconds / one.count for one in self.costs[step])

    def wal(self, step: str) -> float:
        """Bytes written ahead by one time of a step."""
        costs = self.costs[step]
        return sum(one.wal for one in costs) / sum(one.count for one in costs)


def read(path: Path) -> list[Point]:
    """The points of a file."""
    return [
        Point(
            **{
                **one,
                "size": Size(**one["size"]),
                "costs": {name: [Cost(**cost) for cost in costs] for name, costs in one["costs"].items()},
            }
        )
        for one in json.loads(path.read_text(encoding="utf-8"))["points"]
    ]


def write(path: Path, points: Sequence[Point]) -> None:
    """Keep points, and what they were measured on."""
    machine = {
        "cores": psutil.cpu_count(),
        "memory": psutil.virtual_memory().total,
        "python": platform.python_version(),
    }
    lines = ",\n".join(json.dumps(asdict(point)) for point in points)
    path.write_text(f'{{"machine": {json.dumps(machine)}, "points": [\n{lines}\n]}}\n', encoding="utf-8")
