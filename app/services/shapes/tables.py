"""Tables of two choices of a study of measures: each person is in one cell, the pair of both choices.

A table is the shares of one choice, whose labels are the pairs: one noisy count a cell. A person who is
replaced moves two cells, and one who comes moves one, whatever the numbers of labels, so it costs what shares
of one choice cost (`app.accounting.shape_prices`). Steps, pieces of newcomers and labels are those of shares,
too. How far the two choices are from independent is read off the same counts (`app.estimators.independence`).

A report of a device is of one choice, so local people have no part in it.
"""

from dataclasses import asdict, dataclass
from itertools import product

from app.estimators.bin_shares import BinShares
from app.estimators.independence import p_value
from app.estimators.shares import Noisy, SharesPlan
from app.services.shapes.crowd import ShapeCrowd
from app.services.shapes.plans import ShapePlan
from app.services.shapes.questions import ShapeQuestion


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePlan(ShapePlan):
    """A table, priced, for one crowd.

    Attributes:
        axes: Both measures with the labels of each.
    """

    axes: tuple[tuple[str, tuple[str, ...]], ...]

    @classmethod
    def reading(cls, question: ShapeQuestion, crowd: ShapeCrowd, plan: SharesPlan) -> "TablePlan":
        """See `ShapePlan`."""
        return cls(crowd=crowd, plan=plan, costs=(), most=0, edges=(), choices=(), axes=question.axes)

    def read(self, *drawn: Noisy) -> dict[str, object]:
        """See `ShapePlan`; and how likely the table would be without any dependence."""
        rows = len(self.axes[0][1])
        return ShapePlan.read(self, *drawn) | {"p_value": p_value(self.plan, drawn, rows)}

    @property
    def parts_of_document(self) -> tuple[str, ...]:
        """See `ShapePlan`."""
        return "cells", "p_value"

    def _parts(self, read: BinShares) -> dict[str, object]:
        (first, labels), (second, others) = self.axes
        return {
            "cells": [
                {"where": {first: one, second: other}, **asdict(share)}
                for (one, other), share in zip(product(labels, others), read.bins, strict=True)
            ]
        }
