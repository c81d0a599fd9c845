"""Tables of two choices of a study of measures: each person is in one cell, the pair of both choices.

A table is the shares of one choice, whose labels are the pairs: one noisy count a cell. A person who is
replaced moves two cells, and one who comes moves one, whatever the numbers of labels, so it costs what shares
of one choice cost (`app.accounting.shape_prices`). Steps, pieces of newcomers and labels are those of shares,
too. How far the two choices are from independent is read off the same counts (`app.estimators.independence`).

A report of a device is of one choice, so local people have no part in it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from app.core.study import StudyDefinition
from app.estimators.bin_shares import BinShares
from app.estimators.independence import p_value
from app.estimators.shares import Noisy
from app.services.shapes.parameters import read_pair
from app.services.shapes.plans import ShapePlan
from app.services.shapes.questions import NO_ONE_MEASURE, TABLE
from app.services.statistics.questions import Ask


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePlan(ShapePlan):
    """A table, priced, for one crowd."""

    name, answers = TABLE, (TABLE,)
    summary = "Noisy counts by pairs of choices, as shares of one choice whose labels are the pairs."
    no_measure = NO_ONE_MEASURE
    parts_of_document = ("cells", "p_value")

    @classmethod
    def own(cls, study: StudyDefinition, ask: Ask, parameters: Mapping[str, str]) -> Mapping[str, Any]:
        """See `ShapeEstimator`."""
        pair = read_pair(study, parameters, choices=True)
        axes = tuple((name, study.of_measure(name).choices) for name in pair)
        cells = math.prod(len(labels) for _, labels in axes)
        return {"pair": pair, "axes": axes, "starts": tuple(range(1, cells)), "numbers": cells}

    def read(self, *drawn: Noisy) -> dict[str, object]:
        """See `ShapePlan`; and how likely the table would be without any dependence."""
        rows = len(self.question.axes[0][1])
        return ShapePlan.read(self, *drawn) | {"p_value": p_value(self.plan, drawn, rows)}

    def _parts(self, read: BinShares) -> dict[str, object]:
        (first, labels), (second, others) = self.question.axes
        return {
            "cells": [
                {"where": {first: one, second: other}, **share.document()}
                for (one, other), share in zip(product(labels, others), read.bins, strict=True)
            ]
        }
