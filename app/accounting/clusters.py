"""What a round of K-means costs a central person.

For each of K clusters there are 1 + d integer queries: :math:`2^{30}` times the number of people in it, and
for each coordinate the sum of their offsets from the middle of the range, at most :math:`2^{29}` each. A
person is in one cluster, which depends on nothing but that person's value and the public centers.
"""

from fractions import Fraction
from math import inf, isfinite, nextafter

from app.core.epsilon import MICRO, epsilon_cost
from app.core.errors import InternalFault
from app.core.grid import GRID_SIZE
from app.core.noise import DiscreteLaplace
from app.core.study import Relation


def clusters_cost(noise: DiscreteLaplace, relation: Relation, *, clusters: int, dimension: int) -> int:
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
        The cost, rounded up [micro-epsilon].

    Raises:
        InternalFault: another number of scales, or one that is not positive and finite.

    Privacy: this is the price; exact, never too low, looks at no data.

    References:
        Dwork, McSherry, Nissim, Smith, TCC 2006, doi:10.1007/11681878_14, proposition 1.
    """
    width = 1 + dimension
    if clusters < 2 or dimension < 1 or len(noise.scales) != clusters * width:
        raise InternalFault("The noise does not fit the clusters.")
    if not all(isfinite(scale) and scale > 0 for scale in noise.scales):
        raise InternalFault("A Laplace scale is out of range.")
    presences, moves = [], []
    for start in range(0, len(noise.scales), width):
        count, *sums = (GRID_SIZE / Fraction(scale) for scale in noise.scales[start : start + width])
        moves.append(sum(sums, Fraction(0)))
        presences.append(count + moves[-1] / 2)
    if relation is Relation.ADD_REMOVE_ONE:
        return epsilon_cost(max(presences))
    second, first = sorted(presences)[-2:]
    return epsilon_cost(max(first + second, *moves))


def clusters_noise(
    epsilon: int, l1_sensitivity: Fraction, *, clusters: int, dimension: int
) -> DiscreteLaplace:
    """The noise that makes one round cost `epsilon`.

    Args:
        epsilon: Of a round [micro-epsilon].
        l1_sensitivity: What one person moves all queries by [range widths].
        clusters, dimension: K and d.

    Returns:
        One scale for all queries, rounded up to a double.
    """
    exact = l1_sensitivity * GRID_SIZE * MICRO / epsilon
    scale = float(exact)
    if Fraction(scale) < exact:
        scale = nextafter(scale, inf)
    return DiscreteLaplace(scales=(scale,) * (clusters * (1 + dimension)))
