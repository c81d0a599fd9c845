"""`uniform`: all people weigh the same, so the smallest epsilon protects all of them."""

from collections.abc import Sequence
from typing import ClassVar

from app.core.cohort import Group, Groups
from app.core.study import Currency, Relation, Trust
from app.estimators.calibration import equal_price
from app.estimators.interface import NotApplicable, Parameter, Plan, Question
from app.estimators.linear import linear_plan, participants


class Uniform:
    r"""The plain mean + Lap(W / (n min epsilon)), the baseline called UNI, or + N(0, (W / (n min mu))^2).

    Public people weigh like all others; without others there is no noise. Local reports are
    not used.
    """

    name: ClassVar[str] = "uniform"
    version: ClassVar[int] = 2
    relation: ClassVar[Relation] = Relation.REPLACE_ONE
    currencies: ClassVar[frozenset[Currency]] = frozenset(Currency)
    parameters: ClassVar[tuple[Parameter, ...]] = ()
    summary: ClassVar[str] = "The plain mean; all people pay the smallest epsilon offered."

    def plan(self, groups: Sequence[Group], question: Question) -> Plan:
        """Plan a release.

        Args:
            groups: All groups of the study.
            question: What is asked.

        Returns:
            The weight that min epsilon buys on each central or public person.

        Raises:
            NotApplicable: no person is public, and no person central can take part.

        Privacy: min over the central groups of their epsilon, for each central person.

        References:
            Chaudhuri, Courtade, arXiv:2305.09668, section IV, UNI.
        """
        groups = Groups.of(groups)
        central = participants(groups, Trust.CENTRAL)
        public = participants(groups, Trust.PUBLIC)
        if not central and not public:
            raise NotApplicable("No person central or public can take part.")
        price = equal_price(groups.of_able(Trust.CENTRAL, "epsilon"), question)
        weights = [0] * len(groups)
        for index in (*central, *public):
            weights[index] = price.weight
        return linear_plan(groups, question, weights=weights, noise=price.noise)
