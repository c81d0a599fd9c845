"""What noise on a random sample costs the people who may or may not be in it."""

from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from math import isfinite

from app.accounting.costs import FREE, Cost, Weights
from app.core.cohort import Group
from app.core.epsilon import MICRO
from app.core.errors import InternalFault
from app.core.grid import GRID_SIZE
from app.core.noise import DiscreteLaplace, Noise
from app.core.study import Relation, Trust

_DIGITS = 60
_CONTEXT = Context(prec=_DIGITS, Emax=999_999_999_999, Emin=-999_999_999_999)
_SLACK = Decimal(1).scaleb(-40)
"""More than every rounding below adds up to: numbers up to 10^7 with 60 digits."""


def sampled_cost(inclusion: Fraction, displacement: Fraction) -> int:
    r"""The price of a centered value that enters a sum with some probability and meets Laplace noise.

    A person's term is 0 if left out (probability 1 - p) and otherwise lies in [-h, h]. With noise of
    density proportional to exp(-|z| / b) and :math:`s = e^{h / b}`, two values of one person change
    the density of any output by at most the factor

    .. math:: \frac{1 - p + p s}{1 - p + p / s},

    attained far out on one side for the values h and -h: the ratio of the densities with and without
    the term rises along the line for h and falls for -h.

    Args:
        inclusion: p, in [0, 1].
        displacement: h / b, at least 0 [1].

    Returns:
        The logarithm of that factor, rounded up to a whole micro-epsilon; 2 h / b where p = 1.

    Raises:
        InternalFault: p is no probability, or the displacement is negative.

    Privacy: this is the price under replace_one. `exp` and `ln` of `decimal` are correctly rounded to 60
        digits and 1e-40 is added for them.

    References:
        Balle, Barthe, Gaboardi, arXiv:1807.01647, argue so for subsampling in general; here the other
        part of the mixture is an output without the person instead of a neighbor's.

    >>> sampled_cost(Fraction(1), Fraction(1, 2)), sampled_cost(Fraction(1, 4), Fraction(1, 2))
    (1000000, 253846)
    """
    if not (0 <= inclusion <= 1 and displacement >= 0):
        raise InternalFault("A sample has no price.")
    return _cost(inclusion, displacement)


def sampled_costs(
    queries: Sequence[Weights],
    noise: Noise,
    relation: Relation,
    groups: Sequence[Group],
    inclusion: Sequence[Fraction],
) -> list[Cost]:
    """The prices of centered values in one Poisson sample.

    Args:
        queries: One, with weights A_g = -2 B_g: a person left out adds what the middle of the range adds.
        noise: Laplace noise on it.
        relation: replace_one; presence would show.
        groups: All groups that it sees.
        inclusion: Probability with which each person of each group is in it.

    Returns:
        A cost a group; public people pay nothing.

    Raises:
        InternalFault: there is no price for this sample.

    Privacy: this is the price, see `sampled_cost`.
    """
    match noise, queries:
        case DiscreteLaplace(scales=(scale,)), (query,) if (
            isfinite(scale) and scale > 0 and relation is Relation.REPLACE_ONE
        ):
            pass
        case _:
            raise InternalFault("There is no price for this sample.")
    if not len(inclusion) == len(groups) == query.size:
        raise InternalFault("There is no price for this sample.")
    costs = [FREE] * len(groups)
    for index, of_sum, of_count, of_squares in query.terms:
        if of_sum != -2 * of_count or of_squares:
            raise InternalFault("A sampled query is not about the middle of the range.")
        if groups[index].trust is Trust.CENTRAL:
            displacement = abs(of_count) * GRID_SIZE / Fraction(scale)
            costs[index] = sampled_cost(inclusion[index], displacement)
    return costs


@lru_cache(maxsize=65_536)
def _cost(inclusion: Fraction, displacement: Fraction) -> int:
    if inclusion == 0:
        return 0
    twice = 2 * displacement * MICRO
    always = -(-twice.numerator // twice.denominator)
    if inclusion == 1:
        return always
    context = _CONTEXT
    up = _decimal(displacement, ROUND_CEILING)
    probability, rest = _decimal(inclusion, ROUND_CEILING), _decimal(1 - inclusion, ROUND_CEILING)
    least, least_rest = _decimal(inclusion, ROUND_FLOOR), _decimal(1 - inclusion, ROUND_FLOOR)
    factor = context.exp(up)
    most = context.ln(context.fma(probability, factor, rest))
    below = context.ln(context.add(context.divide(least, factor), least_rest))
    loss = context.multiply(context.add(context.subtract(most, below), _SLACK), Decimal(MICRO))
    # A certain place is the dearest; without this bound the slack would make a rarer one dearer still.
    return min(always, int(loss.to_integral_value(rounding=ROUND_CEILING)))


def _decimal(value: Fraction, rounding: str) -> Decimal:
    """A fraction with 60 digits, rounded to one side."""
    context = Context(prec=_DIGITS, rounding=rounding, Emax=_CONTEXT.Emax, Emin=_CONTEXT.Emin)
    return context.divide(Decimal(value.numerator), Decimal(value.denominator))
