r"""Shares and histograms by an attribute: one answer for each of its labels, and for all people off the same.

Each label is a question of its own, of the people who have it, with counts and noise of its own. A person has
one label. So where a value is replaced (replace_one: labels are public, and stay), or a person comes or goes
with whatever label (add_remove_one), only the counts of one label move: with independent noise the
log-likelihood ratio of all counts is that of this label's, and a person pays what one such answer costs,
whatever the number of labels (parallel composition: McSherry, SIGMOD 2009, doi:10.1145/1559845.1559850,
theorem 4). That no cohort has members of two labels is checked, since it is what this rests on.

Where the number of people is secret, every declared label is answered, with noise and a price that do not
depend on who has it. The answer for all people is post-processing (`app.estimators.label_shares`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from app.core.cohort import Cohort
from app.core.epsilon import MICRO
from app.core.errors import BudgetExhausted, InternalFault
from app.core.release import Charge
from app.core.study import Relation, StudyDefinition
from app.estimators.interface import NotApplicable
from app.estimators.label_shares import whole_of
from app.services import shape_plans
from app.services.shape_crowd import ShapeCrowd
from app.services.shape_plans import ShapePlan, charges_of
from app.services.shape_questions import ShapeQuestion


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """One label of the attribute.

    Attributes:
        where: It, and what else the question asks of people.
        crowd: Who has it.
        plan: Their answer; None where no person can take part.
    """

    where: Mapping[str, str]
    crowd: ShapeCrowd
    plan: ShapePlan | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelsPlan:
    """A question by an attribute, priced; see `app.services.shape_plans.ShapePlan`.

    Attributes:
        labels: One for each declared label, in their order.
        crowd: All people.
        costs: What each person of each group pays [the study's currency].
        most: The largest charge to a person; in add_remove_one studies the largest that is possible.
        whole: Of all people; `plan` reads what the labels' plans draw.
        relation: Of the study.
    """

    labels: tuple[Label, ...]
    crowd: ShapeCrowd
    costs: tuple[int, ...]
    most: int
    whole: ShapePlan
    relation: Relation

    @classmethod
    def of(cls, study: StudyDefinition, question: ShapeQuestion, cohorts: Sequence[Cohort]) -> "LabelsPlan":
        """Plan and price a question by an attribute.

        Raises:
            BudgetExhausted: people could take part, but no person can pay any more.
            NotApplicable: no person central or public is there.
            InternalFault: a charge exceeds an offer.
        """
        labels = tuple(
            _label(study, question, name, cohorts) for name in study.attributes.labels[question.by]
        )
        made = [(one, one.plan) for one in labels if one.plan is not None]
        crowd = ShapeCrowd(
            groups=tuple(group for one in labels for group in one.crowd.groups),
            members=tuple(members for one in labels for members in one.crowd.members),
        )
        if not made:
            shape_plans.refuse_without_people(study, crowd)
            raise NotApplicable("No person central or public can take part.")
        own = [(one.crowd.people, plan.bins_plan) for one, plan in made]
        tilt = (question.tilt or 0) / MICRO
        first = made[0][1]
        return cls(
            labels=labels,
            crowd=crowd,
            costs=tuple(
                cost
                for one in labels
                for cost in (one.plan.costs if one.plan is not None else (0,) * len(one.crowd.groups))
            ),
            most=max(plan.most for _, plan in made),
            whole=replace(first, plan=whole_of(own, crowd.people, tilt)),
            relation=study.relation,
        )

    def charges(self) -> tuple[Charge, ...]:
        """What it costs each cohort, in the order of ids.

        Raises:
            InternalFault: a cohort is in two labels.
        """
        charges = charges_of(self.crowd, self.costs)
        if len({one.cohort_id for one in charges}) != len(charges):
            raise InternalFault("A cohort is charged for two labels.")
        return charges

    @property
    def predicted_error(self) -> float:
        """Root mean square error of a share of all people."""
        return self.whole.predicted_error

    @property
    def one_report_moves(self) -> float | None:
        """How far one local report can move a share of all people; None without reports."""
        return self.whole.one_report_moves

    @property
    def interval_width(self) -> float:
        """Predicted width of an interval for all people."""
        return self.whole.interval_width

    def noise_json(self) -> str:
        """The noise of each label, for the ledger: the same for all."""
        return self.whole.noise_json()

    def answer(self, counts: Mapping[int, Sequence[int]]) -> dict[str, object]:
        """Weigh, add exact noise, read: the labels, and all people. Draws entropy.

        Args:
            counts: See `ShapePlan.answer`.
        """
        drawn = [None if one.plan is None else one.plan.noisy(counts) for one in self.labels]
        read = [one for one in drawn if one is not None]
        answer = self.whole.document(self.whole.bins_plan.read_labels(read))
        answer["groups"] = [self._group(one, own) for one, own in zip(self.labels, drawn, strict=True)]
        return answer

    def _group(
        self, label: Label, drawn: tuple[Sequence[int], Sequence[Sequence[int]]] | None
    ) -> dict[str, object]:
        """What an answer says of one label; no shares where there are none."""
        shown: dict[str, object] = {"where": dict(label.where)}
        if self.relation is Relation.REPLACE_ONE:
            shown |= {"people": label.crowd.people, "people_left_out": label.crowd.left_out}
        if label.plan is None or drawn is None:
            return shown | dict.fromkeys(self.whole.parts_of_document)
        return shown | label.plan.document(label.plan.bins_plan.read(*drawn))


def _label(study: StudyDefinition, question: ShapeQuestion, name: str, cohorts: Sequence[Cohort]) -> Label:
    where = {**question.where, question.by: name}
    segments = study.attributes.where(where)
    people = [cohort for cohort in cohorts if cohort.segment in segments]
    own = replace(question, by="", where=where)
    try:
        plan = shape_plans.make(study, own, people)
    except (BudgetExhausted, NotApplicable):
        return Label(where=where, crowd=ShapeCrowd.of(people, own), plan=None)
    return Label(where=where, crowd=plan.crowd, plan=plan)
