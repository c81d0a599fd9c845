r"""Prices of one person's place in counts by bin, and in draws of a cell by rank.

*Bins.* A person of weight W is in one of K bins and adds W to its count. add_remove_one: one count moves by
W. replace_one: one count falls by W and another one rises by W, so under Laplace noise of one scale b the
loss is :math:`2 W / b` in place of :math:`W / b`. Under Gaussian noise the squares of the moves count:
:math:`\mu^2 = 2 W^2 / (\sigma^2 - 9)` in place of :math:`W^2 / (\sigma^2 - 9)` (`app.accounting.gaussian`).
Where one bin alone is counted no person moves more than that count, in either relation.

*Trees.* A level of a tree is counts by bin, whose bins are chosen from the noisy counts of earlier levels. A
person is in one bin of each level, so the price is the sum of those of all levels. Of the outer two bins a
level may have the difference alone: a person who moves between them moves that by 2 W, as much as two counts
in the L1 norm. The proof is in `app.estimators.quantile_tree`.

*Cells.* Quantiles were draws of one of the cells of a range by integer scores (permute-and-flip: McKenna,
Sheldon, NeurIPS 2020, arXiv:2010.12603); the audit still prices them. The loss of a draw is
the range of what the scores move by over its scale: a part of the move that all scores share cancels. With a
target of rank a/b, integer weights W_i and :math:`L_j = b \sum_{x_i \le c_j} W_i` the score of cell j is

.. math:: s_j = -\max(0,\; L_{j-1} - t,\; t - L_j), \qquad t = a \sum_i W_i + \text{a constant}.

Let d_j be what s_j moves by. L rises with j, so s_j rises up to the cell of the target and falls from there.

- replace_one: a person who moves down raises L by bW between the two places; t stays. Left of the target that
  raises scores by at most bW, right of it that lowers them by at most bW: the range is at most
  :math:`2 b W`. Between two cells, one on each side, it is exactly that.
- add_remove_one: a person at x moves :math:`L_j - t` by (b - a)W at and above x, by -aW below. If the target
  lies below x, scores below x change by between -aW (left of the target) and aW (right of it), those above
  x by -(b - a)W: a range of at most :math:`\max(2a, b) W`. If it lies above x, it is at most
  :math:`\max(2(b - a), b) W`. As :math:`2 \max(a, b - a) \ge b`, the range is at most
  :math:`2 \max(a, b - a) W`; removing a person is the same backwards.

Scores move in both directions, so the case of monotone scores, at half of the price, does not hold.

In studies with Gaussian noise cells were drawn by the exponential mechanism from the same scores, and mu^2 of
a draw is a function of that range over the scale (`app.accounting.bounded_range`).
"""

from collections.abc import Sequence
from fractions import Fraction

from app.accounting.bounded_range import range_mu2
from app.accounting.gaussian import mu2_cost
from app.accounting.price import sums_cost
from app.core.epsilon import epsilon_cost
from app.core.errors import InternalFault
from app.core.noise import DiscreteGaussian, DiscreteLaplace
from app.core.study import Currency, Relation


def bins_cost(weight: int, noise: DiscreteLaplace | DiscreteGaussian, relation: Relation) -> int:
    """Price counts by bin for each person of one weight.

    Args:
        weight: What a person adds to the count of a bin, at least 0.
        noise: One scale, or sigma, a bin that is counted [units of the counts].
        relation: The neighboring relation.

    Returns:
        The cost, rounded up [micro-epsilon; of Gaussian noise 1e-6 of mu^2].

    Raises:
        InternalFault: a weight below 0 or no integer, no bin, a scale that is not positive and finite, a
            sigma that is out of range.

    Privacy: this is the price; exact, never too low, looks at no data. A person who moves between bins of
        which one alone is counted moves that one, and one who moves between two others none of them.

    References:
        Dwork, McSherry, Nissim, Smith, TCC 2006, doi:10.1007/11681878_14, proposition 1; Dong, Roth, Su,
        arXiv:1905.02383, theorem 2.7 and corollary 3.3.
    """
    sizes = noise.sigmas if isinstance(noise, DiscreteGaussian) else noise.scales
    if not sizes:
        raise InternalFault("The noise does not fit the bins.")
    # The bins with the least noise are the dearest ones.
    dearest = sorted(range(len(sizes)), key=sizes.__getitem__)[: relation.moved]
    return sums_cost(weight, [[(number, 1) for number in dearest]], noise, len(sizes))


def tree_cost(weight: int, noise: DiscreteLaplace | DiscreteGaussian, relation: Relation) -> int:
    """Price a tree of counts for each person of one weight.

    Args:
        weight: What a person adds to the count of their cell in each level, at least 0.
        noise: The scale, or sigma, of every count of a level, one a level [units of the counts].
        relation: The neighboring relation.

    Returns:
        The cost of all levels, rounded up once [micro-epsilon; of Gaussian noise 1e-6 of mu^2].

    Raises:
        InternalFault: a weight below 0 or no integer, a scale that is not positive and finite, a sigma that
            is out of range.

    Privacy: this is the price; exact, never too low, looks at no data.
    """
    if isinstance(noise, DiscreteGaussian):
        noise = DiscreteGaussian(sigmas=noise.sigmas * relation.moved)
        sums = len(noise.sigmas)
    else:
        noise = DiscreteLaplace(scales=noise.scales * relation.moved)
        sums = len(noise.scales)
    return sums_cost(weight, [[(number, 1) for number in range(sums)]], noise, sums)


def rank_range(rank: Fraction, relation: Relation) -> int:
    """The range of what one person of weight 1 moves the scores of cells by; see the module's docstring.

    Args:
        rank: a/b of the target, in (0, 1).
        relation: The neighboring relation.
    """
    part, whole = rank.as_integer_ratio()
    if not 0 < part < whole:
        raise InternalFault("A rank must lie between 0 and 1.")
    return 2 * (max(part, whole - part) if relation.hides_people else whole)


def ranks_cost(
    weight: int,
    draws: Sequence[tuple[Fraction, int]],
    relation: Relation,
    currency: Currency = Currency.LAPLACE,
) -> int:
    """Price several draws of a cell by rank for each person of one weight.

    Args:
        weight: What a person counts for, at least 0.
        draws: (rank, scale of the draw [units of the scores]) of each.
        relation: The neighboring relation.
        currency: Of the study: its draws are exponential with Gaussian noise, else permute-and-flip.

    Returns:
        The cost of all of them together, rounded up [micro-epsilon, or 1e-6 of mu^2].

    Raises:
        InternalFault: a weight below 0 or no integer, a scale that is no positive integer, an impossible
        rank.

    Privacy: this is the price; the least upper bound over all data and all numbers of cells, in mu^2 of each
        draw.
    """
    if type(weight) is not int or weight < 0:
        raise InternalFault("A weight is not an integer.")
    if any(type(scale) is not int or scale < 1 for _, scale in draws):
        raise InternalFault("The scale of a draw is out of range.")
    losses = [Fraction(weight * rank_range(rank, relation), scale) for rank, scale in draws]
    if currency is Currency.GAUSSIAN:
        return mu2_cost(sum(map(range_mu2, losses), Fraction(0)))
    return epsilon_cost(sum(losses, Fraction(0)))
