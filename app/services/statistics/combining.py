r"""All that is published of a mean, read as one answer that costs no one anything.

A question of a replace_one study that leaves the estimator to the service is answered from all noisy sums of
the values that it is about, of one measure where there are several: the pieces of every mean of all people
(`app.services.statistics.steps`), and the sums of every answer with noise of its own, whatever it was asked
for, which are kept apart, under the answer's id, and never refined (`app.services.statistics.kept_sums`).
They may be of the same people. The noises of two of them are independent, so the error of
:math:`\sum c_p y_p` is

.. math:: M_{pq} = s \sum_i w_{ip} w_{iq} + [p = q] N_p, \qquad c = M^{-1} 1 / 1^T M^{-1} 1,

as in `app.estimators.combination`, which counts what two sums have in common of the same people, and those
who have left, as error. Public people and reports are weighed anew.

Privacy: post-processing of what was charged when it was drawn, of public values and of local reports: no
noise is drawn and nothing is charged. A sum that is kept apart is the one that its answer was read from, less
public people's part, which is known exactly. It is an output of the mechanism and was charged as such: the
price does not depend on whether it is shown, or clipped when it is. When a person withdraws, the exact sum of
their cohort loses the value and the kept sum does not. The difference of the two is the value, weighed, and
the noise of that answer, which is stored nowhere: it tells what the person was charged for and no more, also
together with all that was published. No noise is ever drawn given a sum that is kept apart, so no answer to
come depends on that difference. Of add_remove_one studies no members are kept, see
`app.services.statistics.combining_secret`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar
from uuid import UUID

from app.core.cohort import Cohort, Cohorts
from app.core.piece import Piece
from app.core.release import Used
from app.core.study import StudyDefinition, Trust
from app.estimators.combination import combination_plan
from app.estimators.interface import Conclusion, Estimator, NotApplicable, Plan, Question
from app.services.statistics import planning, steps
from app.services.statistics.crowds import Crowd
from app.services.statistics.drafts import Said
from app.services.statistics.mean_drafts import OfMean
from app.services.statistics.piece_ledger import charged, in_all
from app.services.statistics.piece_noise import NOISES
from app.services.statistics.piece_sums import sums_of
from app.services.statistics.questions import Resolved
from app.services.statistics.whole_plans import plan_whole

NOT_COMBINED = "in_no_answer"
"""Why people are left out of an answer that combines others: none of these is about them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Combination(OfMean):
    """A combination that has been read.

    Attributes:
        estimator, question, plan, conclusion: What answers: `auto`'s choice for each person's whole
            epsilon says what reports weigh, and how far the answer is drawn to the middle.
        used: Cohorts whose sums are read: public values, and reports.
        crowd: All people; central ones who are in no sum take no part. No one, where that is secret.
        most_in_all: What the answers with these sums have charged one person at most [the study's
            currency].
    """

    estimator: Estimator
    question: Question
    plan: Plan
    conclusion: Conclusion
    used: tuple[Used, ...]
    crowd: Crowd
    most_in_all: int

    most: ClassVar[int] = 0
    """What the combination charges one person at most: nothing, since it reads what is paid."""

    def said(self, resolved: Resolved, releases: Sequence[UUID]) -> Said:
        """The combination of releases as an answer of its own: free, and without any noise."""
        noise = planning.noise_json(self.plan)
        return self.said_of(resolved, self.conclusion, why=NOT_COMBINED, noise=noise, combines=releases)


def combine(
    study: StudyDefinition,
    cohorts: Sequence[Cohort],
    resolved: Resolved,
    question: Question,
    pieces: Sequence[Piece],
) -> Combination:
    """Read the combination of all noisy sums of a study's values.

    Args:
        study: A replace_one study; of several measures, the study of the one that is asked for.
        cohorts: The cohorts as they are now.
        resolved, question: What is asked.
        pieces: The sums.

    Raises:
        BudgetExhausted, NotApplicable: no estimator weighs parts here.
    """
    here, noise = Cohorts.of(cohorts), NOISES[study.noise]
    paid = in_all(pieces, charged)
    whole = plan_whole(study, here, resolved, question, paid.keys(), None)
    if whole.weights is None:
        raise NotApplicable("No estimator weighs answers here.")
    sums = sums_of(here, pieces, whole.people.groups, whole.weights, noise)
    plan = combination_plan(sums, replace(whole.linear, attached=False), whole.question)
    central = [trust is Trust.CENTRAL for trust in here.column("trust")]
    ids, counts = here.column("id"), here.column("count")
    return Combination(
        estimator=whole.estimator,
        question=whole.question,
        plan=plan,
        conclusion=steps.read(plan, pieces, here),
        used=tuple(
            Used(cohort_id=cohort, count=count, offer=0)
            for cohort, count in sorted(
                (cohort, count) for cohort, count, one in zip(ids, counts, central, strict=True) if not one
            )
        ),
        crowd=whole.people,
        most_in_all=max(paid.values(), default=0),
    )
