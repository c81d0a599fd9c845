r"""Weights of cells that meet several known margins: raking, or iterative proportional fitting [1].

A cell :math:`k` is one label of each attribute, and has :math:`n_k` of n people. Of each attribute a the
share :math:`\pi_{al}` of every label l in the population is known, but not how attributes go together. From
:math:`w_k = n_k / n` the weights of all cells with a label are multiplied by one factor, such that they sum
to its share; so one attribute after the other, over and over. The limit is
:math:`w_k = n_k \prod_a f_{al(k)}`, and among all weights that meet the margins the one that is nearest to
the people who are there: it minimizes :math:`\sum_k w_k \ln (w_k / (n_k / n))` [2]. So how attributes go
together (all odds ratios) is as among these people, and the margins are those of the population. With one
attribute it is post-stratification, :math:`w_k = \pi_l n_k / n_l`.

*Convergence.* Where some weights above 0 for all people whose labels have shares above 0 meet the margins,
the error falls by a constant factor a sweep. Where none do, it does not vanish; where they meet the margins
only with weights of 0 for people who are there, it falls as one over the sweeps, and no answer should leave
these people out in silence. So what has not come within `TOLERANCE` is refused once `SWEEPS` more take less
than a tenth off the error. That refuses attributes, too, that are all but the same: of two by two labels
those with a correlation above .9994.

*Error.* Where the numbers of people are public the weights are fixed numbers, chosen without any value: the
answer :math:`\sum_k w_k \hat\mu_k` errs as that of any weighted sum does, see `app.estimators.together`.

    [1] Deming, Stephan, "On a least squares adjustment of a sampled frequency table when the expected
        marginal totals are known", Ann. Math. Statist. 11 (1940), doi:10.1214/aoms/1177731829.
    [2] Csiszar, "I-divergence geometry of probability distributions and minimization problems",
        Ann. Probab. 3 (1975), doi:10.1214/aop/1176996454.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from app.core.attributes import conditions_of
from app.estimators.interface import NotApplicable

TOLERANCE = 1e-10
"""How far the weights with a label may be from its share, as a part of that."""

SWEEPS, FALL = 100, 0.9
"""After this number over all attributes no more than this part of the error may be left."""


def raked(
    cells: Sequence[Mapping[str, str]], people: Sequence[int], margins: Mapping[str, Mapping[str, float]]
) -> list[float]:
    """What each cell weighs, so that all margins are met.

    Args:
        cells: The label of each attribute of `margins`, length K.
        people: Of each cell, length K.
        margins: Of each attribute the share of every label; those of one sum to 1.

    Returns:
        Weights that sum to 1, length K; 0 without people.

    Raises:
        NotApplicable: no weights meet the margins; where that is so for one label alone, names it.
    """
    attributes = []
    weights = np.asarray(people, dtype=float)
    for name, shares in margins.items():
        number = {label: place for place, label in enumerate(shares)}
        places = np.array([number[cell[name]] for cell in cells])
        target = np.array([float(share) for share in shares.values()])
        have = np.bincount(places, weights, len(target))
        for label, share, people_of in zip(shares, target, have, strict=True):
            if share and not people_of:
                raise NotApplicable(
                    f"No person with {conditions_of({name: label})} is there: there is nothing to weigh."
                )
        attributes.append((places, target))
    before = math.inf
    while True:
        for _ in range(SWEEPS):
            weights, error = _swept(weights, attributes)
            if error <= TOLERANCE:
                return [float(weight) for weight in weights]
        if not error < FALL * before:
            raise NotApplicable(
                f"No weights of the people who are there meet the shares of {' and of '.join(margins)} at "
                "once: some combinations of their labels have no people."
            )
        before = error


def _swept(
    weights: np.ndarray, attributes: Sequence[tuple[np.ndarray, np.ndarray]]
) -> tuple[np.ndarray, float]:
    """Weights after a sweep over all attributes, and how far they were from the margins before."""
    error = 0.0
    for places, target in attributes:
        have = np.bincount(places, weights, len(target))
        if np.any((have <= 0) & (target > 0)):
            return weights, math.inf  # All people with this label have another one whose share is 0.
        factors = np.divide(target, have, out=np.zeros_like(target), where=have > 0)
        error = max(error, *np.abs(factors[target > 0] - 1))
        weights = weights * factors[places]
    return weights, error
