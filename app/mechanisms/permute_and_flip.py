r"""One of many choices by its integer score, exact: permute-and-flip.

Go through the choices in random order; take choice j with probability :math:`e^{-(s^* - s_j) / \lambda}`,
s* the largest score; the best one is taken for sure. This is the law of the largest of :math:`s_j + Z_j` with
independent exponential noise of mean lambda (Ding et al.), by which both of its properties are shown here.

*Privacy.* Let a neighbor's scores be :math:`s'_j = s_j + d_j`. A constant in all d_j changes nothing, so let
:math:`0 \le d_j \le R`. Fix the noise of all choices but j. Choice j wins if :math:`Z_j > t`, on the neighbor
if :math:`Z_j > t'`, with :math:`t = \max_k (s_k + Z_k) - s_j` and :math:`|t - t'| \le R`. For exponential
noise :math:`P(Z > t + R) \ge e^{-R / \lambda} P(Z > t)` for every t. So the loss is at most R / lambda,
where R is the range of what the scores move by. It is never more than that of the exponential mechanism,
whose errors are larger.

*Accuracy.* A choice that is g worse than the best one wins only if its noise exceeds the best one's by g,
which has probability :math:`e^{-g / \lambda} / 2`. So the gap of the choice is at least g with a
probability of at most :math:`(m - 1) e^{-g / \lambda} / 2` for m choices.

References:
    McKenna, Sheldon, "Permute-and-Flip: a new mechanism for differentially private selection",
    arXiv:2010.12603, algorithm 1.
    Ding, Kifer, Saghaian, Steinke, Wang, Xiao, Zhang, "The permute-and-flip mechanism is identical to
    report-noisy-max with exponential noise", arXiv:2105.07260.
"""

from collections.abc import Sequence

from dither.device.exact import RandomBits, below, bernoulli_exp

from app.core.errors import InternalFault
from app.mechanisms.entropy import system_bits


def choose(scores: Sequence[int], scale: int, bits: RandomBits = system_bits) -> int:
    r"""Draw one choice.

    Output distribution: :math:`P(j) = p_j \int_0^1 \prod_{k \ne j} (1 - p_k t) dt` with
    :math:`p_j = e^{-(s^* - s_j) / \lambda}`, exactly: order and coins come from uniform bits by comparing
    integers.

    Args:
        scores: One integer a choice, at least one.
        scale: lambda, at least 1 [units of the scores].
        bits: The source.

    Returns:
        The index of the choice.

    Raises:
        InternalFault: no choices, a scale or a score that is no integer, no entropy.

    Privacy: R / scale, R the largest difference between what two scores of neighbors move by;
        `app.accounting.shape_prices` prices it.
    """
    if type(scale) is not int or scale < 1 or set(map(type, scores)) != {int}:
        raise InternalFault("A choice has impossible scores.")
    best = max(scores)
    left = list(range(len(scores)))
    while True:
        # The next one of the random order: any of those that are left, which the last one replaces.
        place = below(len(left), bits)
        index, left[place] = left[place], left[-1]
        left.pop()
        if bernoulli_exp(best - scores[index], scale, bits):
            return index
