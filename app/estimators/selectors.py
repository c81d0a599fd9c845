"""Parameters that speak about some of the groups: `central:0.04,local@0.5:0.1`.

An entry is a trust tag, or a tag and the epsilon that the group offers to the release, and a number. Where
several entries fit a group the one that names its epsilon counts.
"""

from collections.abc import Mapping, Sequence

from app.core.cohort import Group
from app.core.epsilon import amount_of, epsilon_limit
from app.core.errors import InternalFault
from app.core.grid import NotANumber
from app.core.numbers import to_decimal
from app.core.study import Trust
from app.estimators.interface import Parameter

MOST_ENTRIES = 50


def parse_entries(text: str) -> dict[str, float]:
    """Entries separated by commas.

    Args:
        text: `trust:number` or `trust@epsilon:number`, for example `central:0.04,local@0.5:0.1`.

    Returns:
        Canonical key (`trust` or `trust@micro-epsilon`) -> number, in the order of the keys.

    Raises:
        ValueError: with the reason.

    >>> parse_entries("local@0.5:0.1,central:0.04")
    {'central': 0.04, 'local@500000': 0.1}
    """
    entries: dict[str, float] = {}
    parts = text.split(",")
    if len(parts) > MOST_ENTRIES:
        raise ValueError(f"must have at most {MOST_ENTRIES} entries")
    for part in parts:
        selector, colon, number = part.strip().partition(":")
        if not colon:
            raise ValueError("must be like central:0.04,local@0.5:0.1")
        key = _key(selector.strip())
        if key in entries:
            raise ValueError("must not name a group twice")
        try:
            entries[key] = float(to_decimal(number.strip()))
        except NotANumber:
            raise ValueError("must have a number after each colon") from None
    return dict(sorted(entries.items()))


def _key(selector: str) -> str:
    trust, at, epsilon = selector.partition("@")
    if trust not in set(Trust):
        raise ValueError("must name central, local or public")
    if not at:
        return trust
    if trust == Trust.PUBLIC:
        raise ValueError("must not give public people an epsilon")
    try:
        micro = epsilon_limit(to_decimal(epsilon))
    except NotANumber:
        raise ValueError("must have a number after each @") from None
    if micro < 1:
        raise ValueError("must have an epsilon of at least 0.000001 after each @")
    return f"{trust}@{micro}"


def parse_variances(text: str) -> object:
    """The parameter `group_variance`: see `parse_entries`, with numbers that are not negative.

    Raises:
        ValueError: with the reason.
    """
    entries = parse_entries(text)
    if any(value < 0 for value in entries.values()):
        raise ValueError("must not be negative")
    return entries


def parse_caps(text: str) -> object:
    """The parameter `group_cap`: see `parse_entries`, with numbers in (0, 1].

    Raises:
        ValueError: with the reason.
    """
    entries = parse_entries(text)
    if any(not 0 < value <= 1 for value in entries.values()):
        raise ValueError("must be above 0 and at most 1")
    return entries


GROUP_VARIANCE = Parameter(
    name="group_variance",
    parse=parse_variances,
    default=None,
    description="Variance of the values of some groups, in data units squared, where it differs from "
    "`variance`: trust:number or trust@epsilon:number, separated by commas, as in "
    "central:0.04,local@0.5:0.1; the epsilon is what the group offers to the release.",
)

GROUP_CAP = Parameter(
    name="group_cap",
    parse=parse_caps,
    default=None,
    description="The most that some groups may together weigh, as a part of the whole weight: written like "
    "group_variance, as in public:0.5,central@2:0.1.",
)


def entries_of(value: object) -> Mapping[str, float]:
    """The entries of a parsed parameter; none where it was not given.

    Raises:
        InternalFault: it was not parsed.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InternalFault("A parameter about groups was not parsed.")
    return value


def selected(key: str, groups: Sequence[Group], delta: int) -> list[int]:
    """Indices of the groups that an entry names.

    Args:
        key: A canonical key.
        groups: All groups.
        delta: Of the study; 0 where its currency is epsilon [1e-12].

    Returns:
        Indices, ascending.
    """
    trust, _, micro = key.partition("@")
    amount = amount_of(int(micro), delta) if micro else None
    return [
        index
        for index, group in enumerate(groups)
        if group.trust == trust and amount in (None, group.epsilon)
    ]
