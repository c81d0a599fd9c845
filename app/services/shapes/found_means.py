r"""The second part of a mean over a found range: noisy sums of all people, or of each label, and their means.

The proof of what a label costs is in `app.estimators.found_range`.

What people weigh and the noise are fixed before the range is found, for the one that is expected. A tilt t
of the declared range W is :math:`\min(1, t W / W')` of a found one of width W': all values moved into it,
the means of people who weigh much and little differ by at most t W, as is assumed, and by at most W'.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from app.accounting.costs import group_costs
from app.accounting.measurement import Measurement
from app.core.grid import GRID_SIZE
from app.core.noise import NoNoise
from app.core.study import StudyDefinition
from app.estimators.found_range import FoundRange, narrowed
from app.estimators.interface import Conclusion, NotApplicable, Plan, Question, made
from app.estimators.labels_public import whole_plan
from app.estimators.labels_secret import labels_plan
from app.estimators.linear import linear_plan, midpoint_plan
from app.mechanisms.draw import draw
from app.services.shapes.parts import Part, mean_estimator, mean_question, part_of
from app.services.shapes.questions import ShapeQuestion
from app.services.statistics.crowds import Crowd
from app.services.statistics.mean_drafts import labels_shown
from app.services.work import checkpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class SumsInRange:
    """Noisy sums of some people.

    Attributes:
        crowd: Whose, with what they offer for it.
        plan: What is asked of them; None where they have no answer.
    """

    crowd: Crowd
    plan: Plan | None

    def costs(self, study: StudyDefinition) -> list[int]:
        """What each person of each group pays [the study's currency]."""
        if self.plan is None:
            return [0] * len(self.crowd.groups)
        return group_costs(self.plan.queries, self.plan.noise, study.relation, self.crowd.groups, study.noise)

    def measured(self) -> Measurement:
        """What is measured of whom, for the ledger."""
        plan = self.plan
        queries, noise = ((), NoNoise()) if plan is None else (plan.queries, plan.noise)
        return Measurement.of_queries(queries, noise, self.crowd.groups, self.crowd.ids)

    def read(self, asked: Question) -> Plan | None:
        """What reads them in a replace_one study, people and noise as they are; None where nothing does."""
        if self.plan is None:
            return None
        weights = self.plan.queries[0].sum_weights
        if not any(weights):
            return midpoint_plan(self.crowd.groups, asked)
        return linear_plan(self.crowd.groups, asked, weights=weights, noise=self.plan.noise, attached=False)

    def noisy(self, found: FoundRange, sums: Mapping[int, Sequence[int]]) -> list[int]:
        """The values of the plan's queries with exact noise, as if the found range were a whole grid.

        Noise is in before anything is divided: steps of the range become steps of a whole grid only then,
        rounded to the nearest. Draws entropy.
        """
        if self.plan is None:
            return []
        totals = [
            sum(sums[one.id][-1] for one in members if one.id in sums) for members in self.crowd.members
        ]
        counts = [size * found.width for size in self.crowd.sums("count")]
        exact = [
            sum(
                of_sum * totals[index] + of_count * counts[index]
                for index, of_sum, of_count, _ in query.terms
            )
            for query in self.plan.queries
        ]
        noise = draw(narrowed(self.plan.noise, found.width), queries=len(exact))
        return [
            round(Fraction((value + error) * GRID_SIZE, found.width))
            for value, error in zip(exact, noise, strict=True)
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """The sums that are asked for, and what is read off all of them.

    Attributes:
        sums: Of all people, or of each label where labels are public.
        plan: Its `conclude` takes the values of all sums, one after the other; its queries are not asked.
    """

    sums: tuple[SumsInRange, ...]
    plan: Plan


@dataclass(frozen=True, kw_only=True)
class AskedMeans:
    """What the second part is asked, over any range.

    Attributes:
        study, question: What is asked.
        labels: Of each declared label the condition and the people; of a question without an attribute all
            people as one.
        part: What of an offer it may take.
    """

    study: StudyDefinition
    question: ShapeQuestion
    labels: Sequence[tuple[ShapeQuestion, Crowd]]
    part: Part

    @cached_property
    def crowd(self) -> Crowd:
        """All people."""
        return Crowd.joined([one for _, one in self.labels])

    @cached_property
    def asked(self) -> Question:
        """What they are asked, over the declared range."""
        return mean_question(self.study, self.question, self.crowd, self.part)

    def over(self, found: FoundRange, drawn: Sequence[SumsInRange] = ()) -> Means:
        """Plan it over a range, or what reads sums over it that are planned already.

        Args:
            found: The range.
            drawn: The sums: people weigh in them what they do, under the same noise, whatever the range.

        Raises:
            NotApplicable: no person, or no label, has an answer.
        """
        study = self.study
        tilt = min(1.0, self.asked.tilt * GRID_SIZE / found.width)
        asked = replace(self.asked, grid=found.grid(study.grid), tilt=tilt)
        if self.question.by and not study.hides_people:
            return self._by_public_label(asked, drawn)
        crowd = part_of(self.crowd, self.part)
        if not study.hides_people and drawn:
            (one,) = drawn
            plan = one.read(asked)
            assert plan is not None
            return Means(sums=(replace(one, plan=plan),), plan=plan)
        if self.question.by:
            numbers = [number for number, (_, one) in enumerate(self.labels) for _ in one.groups]
            plan = labels_plan(crowd.groups, numbers, [own.where for own, _ in self.labels], asked)
        else:
            plan = mean_estimator(study).plan(crowd.groups, asked)
        return Means(sums=(SumsInRange(crowd=crowd, plan=plan),), plan=plan)

    def _by_public_label(self, asked: Question, drawn: Sequence[SumsInRange]) -> Means:
        """Sums for each label, of which the whole is read off, too."""
        if drawn:
            asked_of = [replace(asked, people=crowd.people) for _, crowd in self.labels]
            sums = tuple(replace(one, plan=one.read(own)) for one, own in zip(drawn, asked_of, strict=True))
        else:
            sums = tuple(self._of_label(crowd, asked) for _, crowd in self.labels)
        if all(one.plan is None for one in sums):
            raise NotApplicable("No label has an answer: too few of its people can take part.")
        whole = whole_plan([(one.crowd.groups, one.plan) for one in sums], asked)

        def conclude(values: Sequence[int]) -> Conclusion:
            left, shown = iter(values), []
            for (own, crowd), one in zip(self.labels, sums, strict=True):
                read, left_out = None, crowd.people
                if one.plan is not None:
                    read = one.plan.conclude([next(left) for _ in one.plan.queries])
                    left_out = crowd.left_out
                shown.append((own.where, crowd.people, left_out, read))
            found = whole.conclude(values)
            return replace(found, details={**found.details, "groups": labels_shown(shown, found)})

        labels = tuple(None if one.plan is None else made(one.plan) for one in sums)
        return Means(sums=sums, plan=replace(whole, conclude=conclude, labels=labels))

    def _of_label(self, crowd: Crowd, asked: Question) -> SumsInRange:
        """The sum of one label; none where the middle of the range would be nearer."""
        checkpoint()
        own = part_of(crowd, self.part)
        try:
            plan = mean_estimator(self.study).plan(own.groups, replace(asked, people=crowd.people))
        except NotApplicable:
            plan = None
        if plan is not None and isinstance(plan.noise, NoNoise) and not any(plan.queries[0].sum_weights):
            plan = None
        return SumsInRange(crowd=own, plan=plan)
