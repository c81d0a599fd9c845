"""`ldpe`: one noisy mean for each distinct epsilon, weighted by how exact it is."""

from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar

import numpy as np

from app.core.cohort import Group
from app.core.epsilon import MICRO
from app.core.grid import GRID_SIZE
from app.core.noise import DiscreteLaplace, NoNoise
from app.core.study import Relation, Trust
from app.estimators.accuracy import WORST_VARIANCE
from app.estimators.interface import NotApplicable, Parameter, Plan, Question, SparseQuery
from app.estimators.linear import combine, participants
from app.estimators.noises import FINE, FINE_SCALE


class Ldpe:
    r"""A mean for every person with the same epsilon, each with its own noise; inverse-variance weights.

    Public people have no noise of their own: their sum joins the query of those who offer the most, with an
    integer weight that is right to one part in 64 times that epsilon [micro-epsilon]. Local reports are not
    used.
    """

    name: ClassVar[str] = "ldpe"
    version: ClassVar[int] = 1
    relation: ClassVar[Relation] = Relation.REPLACE_ONE
    parameters: ClassVar[tuple[Parameter, ...]] = ()
    summary: ClassVar[str] = "One noisy mean for each distinct epsilon, combined by inverse variance."

    def plan(self, groups: Sequence[Group], question: Question) -> Plan:
        r"""Plan a release.

        Epsilon g with n_g people: mean + Lap(1 / (epsilon_g n_g)), of variance :math:`V_g = 1 / (4 n_g) + 2 /
        (\epsilon_g n_g)^2` at worst; weights in proportion to 1 / V_g. Public people: V = 1 / (4 n).

        Args:
            groups: All groups of the study.
            question: What is asked.

        Returns:
            One query and one noise for each distinct epsilon.

        Raises:
            NotApplicable: no person is public, and no person central can take part.

        Privacy: epsilon_g, the whole offer, for each central person, who is in one query only.

        References:
            Chaudhuri, Courtade, arXiv:2305.09668, section IV, LDPE and Remark 2; weights by the worst-case
            variance, which reproduces Table II.
        """
        central, public = participants(groups, Trust.CENTRAL), participants(groups, Trust.PUBLIC)
        if not central and not public:
            raise NotApplicable("No person central or public can take part.")
        members: dict[int, list[int]] = {}
        for index in central:
            members.setdefault(groups[index].epsilon, []).append(index)
        known = sum(groups[index].count for index in public)
        offers = sorted(members)
        sizes = np.array([sum(groups[i].count for i in members[offer]) for offer in offers], dtype=np.float64)
        scales = MICRO / (np.array(offers, dtype=np.float64) * sizes)
        precisions = 1 / (WORST_VARIANCE / sizes + 2 * scales**2)
        person = np.zeros(len(groups))
        terms: list[list[tuple[int, int, int, int]]] = [
            [(index, offer * FINE, 0, 0) for index in members[offer]] for offer in offers
        ]
        if not offers:
            person[public] = 1 / known
            terms = [[(index, 1, 0, 0) for index in public]]
            factors = [Fraction(1, known * GRID_SIZE)]
        else:
            # What one public person and one central person of the last query weigh.
            exact = known / WORST_VARIANCE
            ratio = round(float(1 / WORST_VARIANCE / (precisions[-1] / sizes[-1]) * offers[-1] * FINE))
            if known:
                exact = known * ratio * float(precisions[-1] / sizes[-1]) / (offers[-1] * FINE)
                terms[-1] = sorted([*terms[-1], *((index, ratio, 0, 0) for index in public)])
            total = float(precisions.sum()) + exact
            heads = precisions / sizes / total
            for offer, head in zip(offers, heads.tolist(), strict=True):
                person[members[offer]] = head
            person[public] = exact / total / known if known else 0.0
            factors = [
                Fraction(head) / (offer * FINE * GRID_SIZE)
                for offer, head in zip(offers, heads.tolist(), strict=True)
            ]
        laplaces = [(float(factor) * FINE_SCALE, 1) for factor in factors if offers]

        def read(values: Sequence[int]) -> Fraction:
            return sum((f * v for f, v in zip(factors, values, strict=True)), Fraction())

        return combine(
            groups,
            question,
            queries=tuple(SparseQuery(size=len(groups), terms=tuple(part)) for part in terms),
            noise=DiscreteLaplace(scales=(FINE_SCALE,) * len(offers)) if offers else NoNoise(),
            person=person,
            laplaces=laplaces,
            read=read,
        )
