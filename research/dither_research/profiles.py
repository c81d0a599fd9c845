"""Profiles of people: what they offer and whom they trust. Built in, or from a CSV file."""

import csv
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType

from app.core.epsilon import MAX_EPSILON, MICRO, epsilon_limit, round_down_to_significant
from app.core.grid import NotANumber
from app.core.numbers import to_decimal
from app.core.study import Trust

COLUMNS = ("trust", "epsilon", "count")
_LEVELS = 40


class ProfileError(ValueError):
    """A profile cannot be read; the message says where."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """People who offer the same.

    Attributes:
        trust: Whom they trust.
        epsilon: What they offer, three significant digits; 0 for public people [micro-epsilon].
        count: How many; in a profile, in any unit.
    """

    trust: Trust
    epsilon: int
    count: float


Profile = tuple[Block, ...]


def block(trust: Trust, epsilon: float, count: float) -> Block:
    """A block with its epsilon rounded as the service rounds it."""
    return Block(trust=trust, epsilon=round_down_to_significant(round(epsilon * MICRO)), count=count)


def log_uniform(low: float, high: float, count: float) -> Profile:
    """Logarithms of epsilon of people who trust the service, spread evenly over 40 levels.

    Args:
        low, high: Ends of the range of ln epsilon.
        count: Of every person.
    """
    step = (high - low) / _LEVELS
    return tuple(
        block(Trust.CENTRAL, math.exp(low + (level + 0.5) * step), count / _LEVELS)
        for level in range(_LEVELS)
    )


PROFILES: Mapping[str, tuple[str, Profile]] = MappingProxyType(
    {
        "uniform-1": ("Every person trusts the service with epsilon 1.", (block(Trust.CENTRAL, 1, 1),)),
        "two-groups": (
            "70 % offer 0.1 and 30 % offer 1.",
            (block(Trust.CENTRAL, 0.1, 0.7), block(Trust.CENTRAL, 1, 0.3)),
        ),
        "log-uniform-high": ("ln epsilon evenly on [-4, 2].", log_uniform(-4, 2, 1)),
        "log-uniform-low": ("ln epsilon evenly on [-3, -2].", log_uniform(-3, -2, 1)),
        "hybrid-1-percent": (
            "1 % trust the service, 99 % randomize on their device; all with epsilon 1.",
            (block(Trust.CENTRAL, 1, 0.01), block(Trust.LOCAL, 1, 0.99)),
        ),
        "mixed": (
            "40 % trust the service, ln epsilon on [-4, 2]; 59 % send reports of 0.5 to 2; 1 % are public.",
            (
                *log_uniform(-4, 2, 0.4),
                block(Trust.LOCAL, 0.5, 0.2),
                block(Trust.LOCAL, 1, 0.2),
                block(Trust.LOCAL, 2, 0.19),
                Block(trust=Trust.PUBLIC, epsilon=0, count=0.01),
            ),
        ),
    }
)
"""Built-in profiles: what they are, and their blocks with shares of the people."""


def scaled(profile: Sequence[Block], people: int) -> Profile:
    """A profile with whole people: every person's share, the largest remainders rounded up.

    Args:
        profile: Blocks in any unit.
        people: How many in all.

    Returns:
        Blocks with at least one person.
    """
    total = sum(one.count for one in profile)
    exact = [one.count * people / total for one in profile]
    counts = [math.floor(size) for size in exact]
    order = sorted(range(len(exact)), key=lambda index: counts[index] - exact[index])
    for index in order[: people - sum(counts)]:
        counts[index] += 1
    return tuple(
        Block(trust=one.trust, epsilon=one.epsilon, count=count)
        for one, count in zip(profile, counts, strict=True)
        if count
    )


def read_profile(path: Path) -> Profile:
    """A profile from a CSV file with the columns trust, epsilon and count.

    Args:
        path: Of the file; epsilon is empty for public people.

    Raises:
        ProfileError: it cannot be read; the message names the line.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ProfileError(f"{path}: cannot be read ({type(error).__name__})") from None
    reader = csv.DictReader(text.splitlines())
    if set(reader.fieldnames or ()) != set(COLUMNS):
        raise ProfileError(f"{path}: the header must be {','.join(COLUMNS)}")
    blocks = [_block(row, f"{path}, line {reader.line_num}") for row in reader]
    if not blocks:
        raise ProfileError(f"{path}: there is no person in it")
    return tuple(blocks)


def _block(row: Mapping[str, str | None], place: str) -> Block:
    try:
        trust = Trust((row["trust"] or "").strip())
    except ValueError:
        raise ProfileError(f"{place}: trust must be central, local or public") from None
    epsilon = 0
    if trust is not Trust.PUBLIC:
        epsilon = round_down_to_significant(
            epsilon_limit(_number(row, "epsilon", place, lambda value: 0 < value <= MAX_EPSILON / MICRO))
        )
        if epsilon == 0:
            raise ProfileError(f"{place}: epsilon must be at least 0.000001")
    count = _number(row, "count", place, lambda value: value >= 1 and value == int(value) and value <= 10**9)
    return Block(trust=trust, epsilon=epsilon, count=int(count))


def _number(
    row: Mapping[str, str | None], column: str, place: str, admissible: Callable[[Decimal], bool]
) -> Decimal:
    try:
        value = to_decimal((row[column] or "").strip())
    except NotANumber:
        raise ProfileError(f"{place}: {column} is not a number") from None
    if not admissible(value):
        raise ProfileError(f"{place}: {column} is out of range")
    return value
