r"""Lower bounds on what a mechanism costs, from nothing but its outputs on two neighboring inputs.

Outputs are sorted into cells that were fixed beforehand. One half of the draws chooses the event, a set of
cells; the other half bounds its two probabilities (Clopper, Pearson), and

.. math:: \epsilon \ge \ln \frac{P(E) - \delta}{Q(E)}

holds for the mechanism with the stated confidence. An audit finds faults. That it finds none proves
nothing: the proof is in `app.accounting.costs`.

References:
    Clopper, Pearson, Biometrika 26 (1934), doi:10.1093/biomet/26.4.404.
    Ding, Wang, Wang, Zhang, Kifer, "Detecting Violations of Differential Privacy", arXiv:1805.10277 (an
    event chosen on draws of its own).
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainccinv, betaincinv

from app.core.errors import InternalFault

ALPHA = 1e-6
"""How often a bound may lie above the truth."""

_PRIOR = 50.0
"""Draws of either input that every cell counts more than it has, so that rare cells do not win by luck."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What an audit found.

    Attributes:
        epsilon: Lower bound on the privacy loss, at least 0 [1].
        share: Share of the first input's outputs that fall into the event.
        other_share: The same of the second input's.
        draws: Outputs of each input that the bound is made of.
    """

    epsilon: float
    share: float
    other_share: float
    draws: int


def share_bounds(successes: int, trials: int, alpha: float) -> tuple[float, float]:
    """A lower and an upper bound on a probability, each missed with probability at most alpha.

    Args:
        successes: In 0..trials.
        trials: At least 1.
        alpha: In (0, 1).

    Returns:
        (lower, upper) in [0, 1].

    References:
        Clopper, Pearson, Biometrika 26 (1934), doi:10.1093/biomet/26.4.404.

    >>> [round(bound, 4) for bound in share_bounds(0, 100, 0.01)]
    [0.0, 0.045]
    """
    lower = float(betaincinv(successes, trials - successes + 1, alpha)) if successes > 0 else 0.0
    upper = float(betainccinv(successes + 1, trials - successes, alpha)) if successes < trials else 1.0
    return lower, upper


def audited_epsilon(
    first: NDArray[np.int64], second: NDArray[np.int64], *, delta: float = 0.0, alpha: float = ALPHA
) -> Audit:
    """A lower bound on epsilon from outputs on two neighboring inputs.

    Args:
        first: Cell of each output on the one input, length n >= 2. The map from outputs to cells was fixed
            before the draws.
        second: The same on the other input, same length.
        delta: The delta that the mechanism claims [1].
        alpha: Probability with which the bound may exceed the truth.

    Returns:
        The bound, for the event of cells chosen on the first half of the draws: those with the largest
        ratio of frequencies, as many of them as promise the largest bound.

    Raises:
        InternalFault: arrays of different or too small length.

    Privacy: for outputs on made-up inputs; never call it with people's data.
    """
    if first.ndim != 1 or first.shape != second.shape or first.size < 2:
        raise InternalFault("An audit needs as many outputs on either input.")
    half = first.size // 2
    labels, places = np.unique(np.concatenate([first[:half], second[:half]]), return_inverse=True)
    counts = np.stack([np.bincount(part, minlength=labels.size) for part in (places[:half], places[half:])])
    best: tuple[float, NDArray[np.int64], bool] = (-math.inf, labels[:0], False)
    for swapped in (False, True):
        mine, other = counts[::-1] if swapped else counts
        order = np.argsort(-(mine + _PRIOR) / (other + _PRIOR), kind="stable")
        promise = _promises(np.cumsum(mine[order]), np.cumsum(other[order]), half, delta, alpha / 2)
        size = int(np.argmax(promise))
        if promise[size] > best[0]:
            best = (float(promise[size]), labels[order[: size + 1]], swapped)
    _, event, swapped = best
    trials = first.size - half
    hits, others = (
        int(np.isin(part[half:], event).sum()) for part in ((second, first) if swapped else (first, second))
    )
    lower, _ = share_bounds(hits, trials, alpha / 2)
    _, upper = share_bounds(others, trials, alpha / 2)
    epsilon = math.log((lower - delta) / upper) if lower > delta else 0.0
    return Audit(epsilon=max(epsilon, 0.0), share=hits / trials, other_share=others / trials, draws=trials)


def _promises(
    hits: NDArray[np.int64], others: NDArray[np.int64], trials: int, delta: float, alpha: float
) -> NDArray[np.float64]:
    """The bounds that nested events would give on the draws that choose among them."""
    lower = np.where(hits > 0, betaincinv(np.maximum(hits, 1), trials - hits + 1, alpha), 0.0)
    misses = np.maximum(trials - others, 1)
    upper = np.where(others < trials, betainccinv(others + 1, misses, alpha), 1.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.maximum(lower - delta, 0.0) / upper), dtype=np.float64)
