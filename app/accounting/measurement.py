"""Measurements: what a release added noise to, as the ledger keeps it, so that charges can be priced again.

A release that is no step of its question's shares stores, beside the noise, what each of its parts measured
and what each person of each charged cohort weighs in it. The price of that is what the cohort must have been
charged: `costs` is recomputed by the audit from these, and from nothing that the release says of charges. Of
steps, pieces hold the weights (`app.core.piece`).

Privacy: weights depend on offers, shares and public sizes; cohorts are named exactly where they are charged,
which the ledger says anyway. Only those who read the ledger see it.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import cache
from typing import Any, Self

from app.accounting.costs import Weights, price_of, rows_of
from app.accounting.pair_prices import moments_cost, pair_cost
from app.accounting.price import Cost
from app.accounting.prices import Column, parted
from app.accounting.shape_prices import bins_cost, ranks_cost, tree_cost
from app.core.cohort import Cohort, Group, Groups
from app.core.errors import InternalFault
from app.core.noise import (
    APART,
    MEASURED,
    DiscreteGaussian,
    DiscreteLaplace,
    Noise,
    as_document,
    from_document,
)
from app.core.piece import Piece
from app.core.study import Currency, Relation, Trust

Draws = tuple[tuple[Fraction, int], ...]
"""(rank, scale) of each draw of a cell."""


class Workload(StrEnum):
    """What was measured, which decides what one person can move."""

    QUERIES = "queries"
    BINS = "bins"
    PAIR = "pair"
    MOMENTS = "moments"
    RANKS = "ranks"
    TREE = "tree"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One part of a release.

    Attributes:
        workload: What was measured.
        noise: What was added; of ranks the draws, of a tree that of one count a level.
        places: What one person counts for, and the cohorts whose people do: the weight, or of queries the
            column of weights (`app.accounting.prices.Column`).
    """

    workload: Workload
    noise: Noise | Draws
    places: tuple[tuple[int | Column, tuple[int, ...]], ...]

    @classmethod
    def of_queries(
        cls,
        queries: Sequence[Weights],
        noise: Noise,
        groups: Sequence[Group],
        members: Sequence[Iterable[int]],
    ) -> Self:
        """Queries as `app.accounting.costs` prices them; `members` are the ids of cohorts by group."""
        return cls._of(Workload.QUERIES, noise, rows_of(queries, groups), groups, members)

    @classmethod
    def of_weights(
        cls,
        workload: Workload,
        noise: Noise | Draws,
        weights: Sequence[int],
        groups: Sequence[Group],
        members: Sequence[Sequence[Cohort]],
    ) -> Self:
        """What has one weight for each group; `members` are the cohorts of each."""
        ids = [[cohort.id for cohort in own] for own in members]
        return cls._of(workload, noise, weights, groups, ids)

    @classmethod
    def _of(
        cls,
        workload: Workload,
        noise: Noise | Draws,
        weights: Sequence[int | Column],
        groups: Sequence[Group],
        members: Sequence[Iterable[int]],
    ) -> Self:
        places: dict[int | Column, list[int]] = {}
        for weight, trust, own in zip(weights, Groups.of(groups).column("trust"), members, strict=True):
            if weight and trust is Trust.CENTRAL:
                places.setdefault(weight, []).extend(own)
        return cls(
            workload=workload,
            noise=noise,
            places=tuple((weight, tuple(sorted(ids))) for weight, ids in places.items() if ids),
        )

    def document(self) -> dict[str, object]:
        """What the ledger keeps, as JSON."""
        if isinstance(self.noise, tuple):
            noise: object = [[str(rank), scale] for rank, scale in self.noise]
        else:
            noise = as_document(self.noise)
        said = {"workload": self.workload.value, "noise": noise}
        parted = [_parted(weight) for weight, _ in self.places]
        units = {unit for _, unit in parted}
        if len(units) > 1 or units <= {1}:
            return {**said, "of": self.places}
        # All count in the same queries alike: the column that theirs are multiples of is written once.
        of = [(times, ids) for (times, _), (_, ids) in zip(parted, self.places, strict=True)]
        return {**said, "each": units.pop(), "of": of}

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> Self:
        """A measurement from what the ledger keeps.

        Raises:
            InternalFault: it is none.
        """
        try:
            workload, kept = Workload(document["workload"]), document["noise"]
            noise = (
                tuple((Fraction(rank), int(scale)) for rank, scale in kept)
                if workload is Workload.RANKS
                else from_document(kept)
            )
            each = _weight(document.get("each", 1))
            places = tuple(
                (_multiple(_weight(weight), each), tuple(map(int, ids))) for weight, ids in document["of"]
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InternalFault("A measurement cannot be read.") from error
        return cls(workload=workload, noise=noise, places=places)

    def costs(self, relation: Relation, currency: Currency) -> dict[int, Cost]:
        """What it costs each member of each cohort that is in it, by the cohort's id.

        Args:
            relation, currency: Of the study.

        Raises:
            InternalFault: it has no price.
        """
        price = priced_at(self.workload, self.noise, relation, currency)
        return {cohort: cost for weight, ids in self.places for cost in (price(weight),) for cohort in ids}


def priced_at(
    workload: Workload, noise: Noise | Draws, relation: Relation, currency: Currency
) -> Callable[[Any], Cost]:
    """What a weight costs a person in what is measured; plans and the audit have this one price.

    Args:
        workload: What is measured.
        noise: What is added, as of a measurement.
        relation, currency: Of the study.

    Raises:
        InternalFault: it has no price.
    """
    if isinstance(noise, tuple):
        if workload is Workload.RANKS:
            return cache(lambda weight: ranks_cost(weight, noise, relation, currency))
    elif isinstance(noise, DiscreteLaplace | DiscreteGaussian):
        if isinstance(noise, DiscreteGaussian) is not currency.is_gaussian:
            raise InternalFault("A measurement has no price in the currency of its study.")
        sizes = noise.sigmas if isinstance(noise, DiscreteGaussian) else noise.scales
        match workload:
            case Workload.BINS:
                return cache(lambda weight: bins_cost(weight, noise, relation))
            case Workload.TREE:
                return cache(lambda weight: tree_cost(weight, noise, relation))
            case Workload.PAIR:
                return cache(lambda weight: pair_cost(weight, noise, relation))
            case Workload.MOMENTS:
                return cache(lambda weight: moments_cost(weight, noise, relation))
            case Workload.QUERIES:
                return price_of(noise, relation, len(sizes), currency)
    elif workload is Workload.QUERIES:
        return price_of(noise, relation, 2, currency)
    raise InternalFault("A measurement has no price.")


def recorded(noise: str, measured: Sequence[Measurement], kept: Piece | None = None) -> str:
    """The noise of a release, as JSON, with the sums that are kept of it and what was measured of whom."""
    said: dict[str, object] = {} if kept is None else {APART: [kept.sealed()]}
    if priced := [one.document() for one in measured if one.places]:
        said[MEASURED] = priced
    return json.dumps({**json.loads(noise), **said}, allow_nan=False) if said else noise


def _weight(kept: object) -> int | Column:
    if isinstance(kept, list):
        return tuple((int(number), int(a), int(b), int(c)) for number, a, b, c in kept)
    if not isinstance(kept, int | float):
        raise TypeError("a weight is a number, or a column of them")
    return int(kept)


def _parted(weight: int | Column) -> tuple[int, int | Column]:
    """A weight as a multiple of 1, or a column of weights as one of the least column that it is one of."""
    return (weight, 1) if isinstance(weight, int) else parted(weight)


def _multiple(times: int | Column, each: int | Column) -> int | Column:
    """A weight that was written as a multiple, or by itself."""
    if each == 1:
        return times
    if not isinstance(each, tuple) or not isinstance(times, int):
        raise TypeError("a multiple is one of a column")
    return tuple((number, times * a, times * b, times * c) for number, a, b, c in each)
