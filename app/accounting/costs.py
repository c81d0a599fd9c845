"""What a release costs each person of each group, from its queries and its noise alone.

This does not trust the estimator that made the queries: it prices what will really be computed, with
exact fractions, rounds up, and refuses whatever it cannot price.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

from app.accounting.price import Cost
from app.accounting.prices import Column, Price, hourglass_price, sums_price
from app.core.cohort import Group, Groups
from app.core.errors import InternalFault
from app.core.noise import DiscreteGaussian, DiscreteLaplace, Hourglass, Noise, NoNoise
from app.core.study import Currency, Relation, Trust

__all__ = ["FREE", "Cost", "Term", "Weights", "check_charges", "group_costs"]

FREE: Cost = 0

Term = tuple[int, int, int, int]
"""(index of a group or a query, sum weight, count weight, square weight)."""


class Weights(Protocol):
    """The weights of one integer query; `app.estimators.interface.Query` is one."""

    @property
    def size(self) -> int:
        """The number of groups that it was made for."""

    @property
    def terms(self) -> Iterable[Term]:
        """(group, weight of its sum of grid points, of 2**GRID_BITS times its people, of its sum of squares).

        Groups in ascending order; those without weight may be left out.
        """


def group_costs(
    queries: Sequence[Weights],
    noise: Noise,
    relation: Relation,
    groups: Sequence[Group],
    currency: Currency = Currency.LAPLACE,
) -> list[Cost]:
    r"""Price a release for each person of each group.

    Query j is :math:`\sum_g A_{jg} S_g + B_{jg} 2^{30} n_g`; what one person moves it by stands in
    `app.accounting.prices`. With independent discrete Laplace noise of scale
    :math:`b_j` on query j, the log-likelihood ratio of two neighbors is at most the sum over j of (what the
    person moves query j by) / :math:`b_j`:

    - replace_one: a value moves by at most 2^30 and no count moves:
      :math:`\epsilon_g = \sum_j |A_{jg}| 2^{30} / b_j`.
    - add_remove_one: a person at q adds :math:`A q + B 2^{30}`; the sum of absolute values is convex
      in q, hence largest at an end of [0, 2^30]:
      :math:`\epsilon_g = \max_{q \in \{0, 2^{30}\}} \sum_j |A_{jg} q + B_{jg} 2^{30}| / b_j`.
    - Gaussian and hourglass noise, and queries on sums of squares: see there.

    Public people pay nothing: their values are known. Local people paid when their report arrived and
    have no place in a query.

    Args:
        queries: The integer queries, weights aligned with `groups`.
        noise: What is added to them.
        relation: The neighboring relation.
        groups: All groups that the queries see.
        currency: Of the study. Laplace and hourglass noise have no price in mu^2, Gaussian noise has one in
            nothing else.

    Returns:
        A cost a group, rounded up to a whole micro-epsilon, or 1e-6 of mu^2.

    Raises:
        InternalFault: weights that are no integers or do not align with the groups, weight on local people
            or on a group that does not participate, central weight without noise, parameters of the noise
            that are out of range, or noise that is not priced here or not in this currency.

    Privacy: this is the price; it is exact for pure noise, looks at no data, and never too low. Under
        replace_one the group sizes are public; under add_remove_one they are not read.

    References:
        Dwork, McSherry, Nissim, Smith, TCC 2006, doi:10.1007/11681878_14, proposition 1; composition by
        summing the losses of independent noise. Epsilons of releases add up, also where each depends on
        former answers and others run beside it, sessions and reports among them: Rogers, Roth, Ullman,
        Vadhan, arXiv:1605.08294 (a person's sum is bounded in advance, which is their condition); Vadhan,
        Wang, arXiv:2105.13427 (concurrent interactive mechanisms that are each pure). mu^2: see
        `app.accounting.gaussian`.
    """
    columns = rows_of(queries, groups)
    weighted = [bool(column) for column in columns]
    trusts, able = Groups.of(groups).column("trust"), Groups.of(groups).column("participates")
    for trust, participates, is_weighted in zip(trusts, able, weighted, strict=True):
        if is_weighted and (trust is Trust.LOCAL or not participates):
            raise InternalFault("A query weighs people who must not take part.")
    priced = [
        is_weighted and trust is not Trust.PUBLIC for trust, is_weighted in zip(trusts, weighted, strict=True)
    ]
    match noise:
        case NoNoise():
            if any(priced):
                raise InternalFault("A query on raw data has no noise.")
            return [FREE] * len(groups)
        case _:
            price = price_of(noise, relation, len(queries), currency)
            prices = [
                price(column) if is_priced else FREE
                for is_priced, column in zip(priced, columns, strict=True)
            ]
    return [cost if is_priced else FREE for is_priced, cost in zip(priced, prices, strict=True)]


def rows_of(queries: Sequence[Weights], groups: Sequence[Group]) -> list[Column]:
    """For each group its place in all queries.

    Raises:
        InternalFault: weights that are no integers or do not align with the groups.
    """
    rows: list[list[Term]] = [[] for _ in range(len(groups))]
    for number, query in enumerate(queries):
        if query.size != len(groups):
            raise InternalFault("A query does not fit the groups.")
        for index, of_sum, of_count, of_squares in query.terms:
            if not type(of_sum) is type(of_count) is type(of_squares) is int:
                raise InternalFault("A weight is not an integer.")
            if of_sum or of_count or of_squares:
                rows[index].append((number, of_sum, of_count, of_squares))
    return [tuple(row) for row in rows]


def price_of(noise: Noise, relation: Relation, queries: int, currency: Currency) -> Price:
    """What a column of weights costs under some noise.

    Raises:
        InternalFault: it has no price in that currency, or does not fit the number of queries.
    """
    match noise, currency:
        case (DiscreteLaplace(), Currency.LAPLACE) | (DiscreteGaussian(), Currency.GAUSSIAN):
            return sums_price(noise, relation, queries)
        case Hourglass(), Currency.LAPLACE:
            return hourglass_price(noise, relation, queries)
        case _:
            raise InternalFault(f"There is no price for this noise in a {currency} study.")


def check_charges(costs: Sequence[Cost], groups: Sequence[Group]) -> None:
    """Check that no person pays more than they offered.

    Args:
        costs: What `group_costs` says.
        groups: The groups it was said of.

    Raises:
        InternalFault: a cost is negative, exceeds what its group offers, or there is not one cost a group.

    Privacy: depends on offers and weights, not on data.
    """
    if len(costs) != len(groups):
        raise InternalFault("There is not one cost a group.")
    for cost, epsilon in zip(costs, Groups.of(groups).column("epsilon"), strict=True):
        if not 0 <= cost <= epsilon:
            raise InternalFault("A charge exceeds what a group offered.")
