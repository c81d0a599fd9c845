"""What a round of K-means costs a central person.

For each of K clusters there are 1 + d integer queries: :math:`2^{30}` times the number of people in it, and
for each coordinate the sum of their offsets from the middle of the range, at most :math:`2^{29}` each. A
person is in one cluster, which depends on nothing but that person's value and the public centers.
"""

from fractions import Fraction
from math import ceil, inf, isqrt, nextafter

from dither.device.gaussian import DISCRETE_LOSS, SMALLEST_SIGMA

from app.accounting.price import Rates
from app.core.epsilon import MICRO
from app.core.errors import InternalFault
from app.core.grid import GRID_SIZE
from app.core.noise import DiscreteGaussian, DiscreteLaplace
from app.core.study import Relation

ClusterNoise = DiscreteLaplace | DiscreteGaussian


def clusters_cost(noise: ClusterNoise, relation: Relation, *, clusters: int, dimension: int) -> int:
    r"""Price a round for each central person.

    In cluster k a person adds at most :math:`P_k = 2^{30} / b_{k0} + \sum_j 2^{29} / b_{kj}` to the loss.

    - add_remove_one: :math:`\max_k P_k`.
    - replace_one: one leaves cluster k and enters l, :math:`P_k + P_l` for the two most expensive ones, or
      stays in k and moves each of its sums by at most :math:`2^{30}`. With one scale b for all queries that
      is :math:`(d + 2) 2^{30} / b`.

    Args:
        noise: One scale a query, cluster by cluster, the count first [query units].
        relation: The neighboring relation.
        clusters: K, at least 2.
        dimension: d, at least 1.

    Returns:
        The cost, rounded up [micro-epsilon, or 1e-6 of mu^2].

    Raises:
        InternalFault: another number of scales, or one that is not positive and finite.

    Privacy: this is the price; exact, never too low, looks at no data.

    References:
        Dwork, McSherry, Nissim, Smith, TCC 2006, doi:10.1007/11681878_14, proposition 1.
    """
    width = 1 + dimension
    sizes = noise.scales if isinstance(noise, DiscreteLaplace) else noise.sigmas
    if clusters < 2 or dimension < 1 or len(sizes) != clusters * width:
        raise InternalFault("The noise does not fit the clusters.")
    rates = Rates.of(noise, len(sizes))
    presences, within = [], []
    for start in range(0, len(sizes), width):
        sums = range(start + 1, start + width)
        presences.append(rates.loss([[(start, GRID_SIZE), *((number, GRID_SIZE // 2) for number in sums)]]))
        within.append(rates.loss([[(number, GRID_SIZE) for number in sums]]))
    second, first = sorted(presences)[-2:]
    return rates.cost(first if relation.hides_people else max(first + second, *within))


def clusters_noise(cost: int, l1_sensitivity: Fraction, *, clusters: int, dimension: int) -> DiscreteLaplace:
    """The noise that makes one round cost `cost`.

    Args:
        cost: Of a round [micro-epsilon].
        l1_sensitivity: What one person moves all queries by [range widths].
        clusters, dimension: K and d.

    Returns:
        One scale for all queries, rounded up to a double.
    """
    exact = l1_sensitivity * GRID_SIZE * MICRO / cost
    scale = float(exact)
    if Fraction(scale) < exact:
        scale = nextafter(scale, inf)
    return DiscreteLaplace(scales=(scale,) * (clusters * (1 + dimension)))


def gaussian_clusters_noise(
    cost: int, l2_square: Fraction, *, clusters: int, dimension: int
) -> DiscreteGaussian:
    """The Gaussian noise that makes one round cost at most `cost`.

    Args:
        cost: Of a round [1e-6 of mu^2].
        l2_square: The square of what one person moves all queries by, in L2 norm [range widths squared].
        clusters, dimension: K and d.

    Returns:
        One sigma for all queries, rounded up to a double.
    """
    variance = l2_square * GRID_SIZE**2 * MICRO / cost + DISCRETE_LOSS
    # Whole numbers below 2**53 are doubles; a larger one is rounded to one by less than is added here.
    sigma = nextafter(float(max(isqrt(ceil(variance)) + 1, SMALLEST_SIGMA)), inf)
    return DiscreteGaussian(sigmas=(sigma,) * (clusters * (1 + dimension)))
