"""Weights of groups by rows, as a test states them."""

from collections.abc import Iterable, Mapping

from app.estimators.combination import Weights


def weights_of(rows: Iterable[Mapping[int, int]]) -> Weights:
    """The columns of what one person of each group weighs, by the places of the sums that they are in."""
    here = list(rows)
    places = [place for row in here for place in row]
    return Weights([len(row) for row in here], places, [weight for row in here for weight in row.values()])


def rows_of(weights: Weights) -> list[dict[int, int]]:
    """What one person of each group weighs, by the places of sums."""
    entries = iter(zip(weights.sums, weights.weights, strict=True))
    return [dict(next(entries) for _ in range(length)) for length in weights.lengths]
