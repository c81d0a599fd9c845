r"""One of many choices by its integer score, exact: the exponential mechanism.

Draw a choice uniformly and take it with probability :math:`e^{-(s^* - s_j) / \lambda}`, s* the largest score;
else draw again. That is permute-and-flip with replacement (`app.mechanisms.permute_and_flip`), and takes at
most as many rounds as there are choices, on average.

*Privacy.* Likelihood ratios of neighbors have a bounded range, which permute-and-flip does not promise. In
studies with Gaussian noise that is worth more than its smaller errors: half of the scale at the same price
(`app.accounting.bounded_range`).

*Accuracy.* Of the weights :math:`e^{-(s^* - s_j) / \lambda}` that of the best choice is 1. So the gap of the
choice is at least g with a probability of at most :math:`(m - 1) e^{-g / \lambda}` for m choices.

References:
    McSherry, Talwar, "Mechanism Design via Differential Privacy", FOCS 2007, doi:10.1109/FOCS.2007.66.
    McKenna, Sheldon, arXiv:2010.12603, section 4 (rejection).
"""

from collections.abc import Sequence

from dither.device.exact import RandomBits, below, bernoulli_exp

from app.core.errors import InternalFault
from app.mechanisms.entropy import system_bits


def choose_exponential(scores: Sequence[int], scale: int, bits: RandomBits = system_bits) -> int:
    r"""Draw one choice.

    Output distribution: :math:`P(j) \propto e^{s_j / \lambda}`, exactly: places and coins come from uniform
    bits by comparing integers.

    Args:
        scores: One integer a choice, at least one.
        scale: lambda, at least 1 [units of the scores].
        bits: The source.

    Returns:
        The index of the choice.

    Raises:
        InternalFault: no choices, a scale or a score that is no integer, no entropy.

    Privacy: bounded range R / scale, R the largest difference between what two scores of neighbors move by;
        `app.accounting.shape_prices` prices it in mu^2.
    """
    if not scores or type(scale) is not int or scale < 1 or any(type(score) is not int for score in scores):
        raise InternalFault("A choice has impossible scores.")
    best = max(scores)
    while True:
        index = below(len(scores), bits)
        if bernoulli_exp(best - scores[index], scale, bits):
            return index
