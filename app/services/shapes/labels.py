r"""Shapes by an attribute: an answer for each of its labels, and for all people.

By several attributes what is said of a label holds of a cell: one label of each. A person is in one cell.

Each label is a question of its own, of the people who have it, with counts and noise of its own. A person has
one label. So where a value is replaced (replace_one: labels are public, and stay), or a person comes or goes
with whatever label (add_remove_one), only the counts of one label move: with independent noise the
log-likelihood ratio of all counts is that of this label's, and a person pays what one such answer costs,
whatever the number of labels (parallel composition: McSherry, SIGMOD 2009, doi:10.1145/1559845.1559850,
theorem 4). That no cohort has members of two labels is checked, since it is what this rests on.

Where the number of people is secret, every declared label is answered, with noise and a price that do not
depend on who has it. The shares of all people are post-processing (`app.estimators.label_shares`), and so are
their coordinates (`app.estimators.labels_public`, `app.estimators.labels_secret`).

*Covariances.* So is the covariance of all people, off the noisy sums of labels (`app.estimators.covariance`).
With L labels of one size its noise has :math:`\sqrt L` times the standard deviation that it has without
labels, and each label has that of a question of its own. If all people had other sums, for half of each
offer, either would have 2 times as much, or :math:`\sqrt 2` times with Gaussian noise: more for both up to 4
labels, or 2. With more labels the whole would be more exact, but each label, which was asked for, would not.

*Counts.* A secret number of all people is the sum of those of labels, with the noise of all of them.

*Quantiles, descriptions.* The quantile of all people cannot be read off those of labels. It has a tree of
counts of its own (`app.estimators.quantile_tree`), for a third of what trees take of each offer; the label's
has the rest. With L labels of one size and the part f for all people, errors in ranks go with
:math:`L / (1 - f)` and :math:`1 / f`; the sum of all their squares is least at :math:`f = 1 / (L + 1)`: a
third for two labels, the fewest that there are to compare, and less for more, where the whole would be the
least exact. The noise of all trees is independent, and a person of label l moves the counts of those of l and
of all people alone: what the cells of the next level of any tree are depends on its own noisy counts. So the
person pays the sum of both prices (sequential composition), in both currencies. The quartiles of a
description have such trees. Its moments, and its secret number of people, are sums: they are read off those
of labels (`app.services.shapes.descriptions`). Public counts have no noise and charge no one.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from app.accounting.measurement import Measurement
from app.core.cohort import Cohort
from app.core.errors import BudgetExhausted
from app.core.study import Relation, StudyDefinition
from app.estimators.interface import NotApplicable
from app.services.shapes.parts import of_label
from app.services.shapes.plans import added_up, of_crowd, refuse_without_people
from app.services.shapes.priced_plan import OneShape
from app.services.shapes.questions import ShapeQuestion
from app.services.shapes.trees import Grown, Tree
from app.services.statistics.crowds import Crowd, by_label
from app.services.work import checkpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """One label of the attribute.

    Attributes:
        where: It, and what else the question asks of people.
        crowd: Who has it.
        plan: Their answer; None where no person can take part.
    """

    where: Mapping[str, str]
    crowd: Crowd
    plan: OneShape[Any] | None

    def shown(
        self, answer: Mapping[str, object] | None, like: OneShape[Any], relation: Relation
    ) -> dict[str, object]:
        """What an answer says of the label.

        Args:
            answer: Of its values; None where no person takes part.
            like: What answers for all people; it names what is null then.
            relation: Of the study.
        """
        shown: dict[str, object] = {"where": dict(self.where)}
        if not relation.hides_people:
            shown |= {"people": self.crowd.people, "people_left_out": self.crowd.left_out}
        return {**shown, **(dict.fromkeys(like.parts_of_document) if answer is None else answer)}


DrawnByLabel = tuple[list[Any], list[Any]]
"""What is drawn for each label, None without an answer; and what the answer for all people is read off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelsPlan(OneShape[DrawnByLabel]):
    """A question by an attribute, priced.

    Attributes:
        labels: One for each declared label, in their order.
        whole: Of all people; it reads what the labels' plans draw, or draws itself, or both.
        relation: Of the study.
    """

    labels: tuple[Label, ...]
    whole: OneShape[Any]
    relation: Relation

    @classmethod
    def of(cls, study: StudyDefinition, question: ShapeQuestion, cohorts: Sequence[Cohort]) -> "LabelsPlan":
        """Plan and price a question by an attribute.

        Raises:
            BudgetExhausted: people could take part, but no person can pay any more.
            NotApplicable: no person central or public is there.
            InternalFault: a charge exceeds an offer.
        """
        labels = tuple(_label(study, *label) for label in by_label(study, question, cohorts))
        made = [(one, one.plan) for one in labels if one.plan is not None]
        small = frozenset(number for number, one in enumerate(labels) if one.plan is None)
        crowd = Crowd.joined([one.crowd for one in labels], small)
        if not made:
            refuse_without_people(study, crowd)
            raise NotApplicable("No person central or public can take part.")
        costs = tuple(
            cost
            for one in labels
            for cost in (one.plan.costs if one.plan is not None else (0,) * len(one.crowd.groups))
        )
        most = max(plan.most for _, plan in made)
        of_all = replace(question, by="")
        whole = made[0][1].of_labels(study, of_all, crowd, [(one.crowd, one.plan) for one in labels])
        if whole.whole_draws:
            costs = added_up(crowd, costs, whole.costs)
            most = most + whole.most if study.hides_people else max(costs)
        return cls(labels=labels, crowd=crowd, costs=costs, most=most, whole=whole, relation=study.relation)

    @property
    def for_all(self) -> OneShape[Any]:
        """What answers for all people."""
        return self.whole

    @property
    def predicted_error(self) -> float:
        """Root mean square error for all people [as without labels]."""
        return self.whole.predicted_error

    @property
    def interval_width(self) -> float:
        """Predicted width of an interval for all people."""
        return self.whole.interval_width

    def noise_json(self) -> str:
        """The noise, for the ledger: all draws; where sums add up those of labels, once if they are equal."""
        labels = [one.plan for one in self.labels if one.plan is not None]
        plans = [self.whole, *labels]
        if not self.whole.whole_draws:
            plans = labels[:1] if len({one.noise_json() for one in labels}) == 1 else labels
        if len(plans) == 1:
            return plans[0].noise_json()
        return json.dumps({"mechanism": "ByLabel", "draws": [json.loads(one.noise_json()) for one in plans]})

    def measured(self) -> list[Measurement]:
        """What is measured of whom, for the ledger: of each label, and of all people where draws do."""
        plans = [one.plan for one in self.labels if one.plan is not None]
        if self.whole.whole_draws:
            plans.append(self.whole)
        return [part for plan in plans for part in plan.measured()]

    @property
    def trees(self) -> tuple[Tree, ...]:
        """The trees of labels, and the one of all people."""
        own = [tree for one in self.labels if one.plan is not None for tree in one.plan.trees]
        return (*own, *self.whole.trees)

    def noisy(self, counts: Mapping[int, Sequence[int]], grown: Sequence[Grown] = ()) -> DrawnByLabel:
        """What each label draws, and what all people do. Draws entropy.

        Args:
            counts: For each cohort that takes part what `Scans.summed_up` says of it.
            grown: The levels of `trees`.
        """
        left = iter(grown)

        def of(plan: OneShape[Any]) -> Any:
            return plan.noisy(counts, [next(left) for _ in plan.trees])

        labels = [None if one.plan is None else of(one.plan) for one in self.labels]
        whole = [of(self.whole)] if self.whole.whole_draws else []
        if self.whole.labels_add_up:
            whole += [own for one, own in zip(self.labels, labels, strict=True) if one.plan is not None]
        return labels, whole

    def read(self, *drawn: DrawnByLabel) -> dict[str, object]:
        """The labels, and all people."""
        ((labels, whole),) = drawn
        groups = [
            one.shown(None if one.plan is None else one.plan.read(own), self.whole, self.relation)
            for one, own in zip(self.labels, labels, strict=True)
        ]
        return {**self.whole.read(*whole), "groups": groups}


def _label(study: StudyDefinition, own: ShapeQuestion, crowd: Crowd) -> Label:
    checkpoint()
    try:
        plan = of_crowd(study, own, crowd, of_label if own.shape.whole_draws else int)
    except (BudgetExhausted, NotApplicable):
        return Label(where=own.where, crowd=crowd, plan=None)
    return Label(where=own.where, crowd=crowd, plan=None if plan.is_midpoint else plan)
