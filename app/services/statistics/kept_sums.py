"""What is kept of an answer with noise of its own, whichever question paid for it, so that means combine it.

An answer about all people that draws a noisy sum of their values and one of squares, or sums of x and of
1 - x where the number of people is secret, leaves these two. A mean does, and so does a description, whose
mean and standard deviation are read off them. They are what `app.services.statistics.combining` and
`app.services.statistics.combining_secret` read.

Privacy: what is kept is an output of the mechanism, as it was drawn and charged for, before it is clipped or
read. Whether it is kept depends on the question, the study, the plan and how many noisy values there are, and
on nothing that was drawn. So what is read off it later is post-processing of the output of that answer: of
these sums, and of what it drew beside them. A description draws counts for its quartiles, and one of people
where that is secret, independently of these sums. A combination reads none of them, so the noise in it has
the law of the sums alone, also given all that the description published of quartiles.

Measures: of several, an answer is about the values of one, x = x(m) for its measure m, on the grid of m.
Sums of x(m) are read for means of x(m), and for no other: how much they say of another measure depends on how
the two go together, which is secret. The release that leaves a sum names m, and what it names is a part of
the question, not of what was drawn. So for each m the sums about m are those of a study of one value x(m),
and all that holds there holds here, what is left out and why, too. Two things are of all measures together.
A person gives all numbers at once under one epsilon, so answers about two measures compose as any two do,
and a combination reads some outputs of that composition. And a cohort whose count is unchanged has the same
people (`app.services.statistics.steps`) with the same numbers: who gives another one, of whichever measure,
is taken out of the cohort, and is one who has left for the sums of all.

Squares: with Laplace noise those of a description have half of the scale of its mean
(`app.services.shapes.descriptions`). What is kept says the scale of the mean alone, so they are read as if
they had all of it. An interval for a variance of a combination is a little wider for that, and holds: noise
of a smaller scale is nearer to 0, and so is a sum of independent symmetric noises with one mode.

Once: sums are kept under the id of their answer, which has one pair, and never refined. So a draw is one row,
which a combination reads once, and the noises of two rows are independent. A question that is sharpened keeps
its pieces under its family, of each the last state alone (`app.services.statistics.steps`): what is drawn
there is drawn given sums of its own, and these are no such sums.
"""

from collections.abc import Sequence
from operator import mul

from app.core.epsilon import MICRO
from app.core.piece import Members, Piece
from app.core.release import Charge, Charges
from app.core.study import StudyDefinition, Trust
from app.estimators.combined_ratio import pivot_of, two_sums
from app.estimators.interface import Plan
from app.services.statistics.any_question import AnyQuestion
from app.services.statistics.crowds import Crowd
from app.services.statistics.piece_noise import NOISES


def kept_of(
    study: StudyDefinition,
    question: AnyQuestion,
    people: Crowd,
    plan: Plan,
    values: Sequence[int],
    charges: Sequence[Charge],
) -> Piece | None:
    """The noisy sums of a mean that an answer has, as they are kept.

    Args:
        study: The study.
        question: What was asked.
        people: Of whom, as the plan sees them.
        plan: Of the mean.
        values: Its noisy values.
        charges: What the whole answer charges.

    Returns:
        A piece that is never refined; None of an answer that is about some people or by labels, and of one
        whose noisy values are no such sums.
    """
    if not question.of_all:
        return None
    if study.hides_people:
        return _of_secret(question, plan, values)
    return _of_public(study, people, plan, values, charges)


def _of_public(
    study: StudyDefinition, people: Crowd, plan: Plan, values: Sequence[int], charges: Sequence[Charge]
) -> Piece | None:
    """Of one linear query, beside the same of squares, under noise of the study's kind."""
    noise = NOISES[study.noise]
    drawn = noise.weighed(plan.noise)
    if plan.linear is None or drawn is None or len(values) != 2:
        return None
    unit = noise.unit_of(drawn)
    if noise.normal and unit == drawn:
        # No unit says so where squares have a third of another sigma, that of a plug-in.
        return None
    weights = plan.queries[0].sum_weights
    costs = dict(Charges.of(charges).rows("cohort_id", "epsilon"))
    ids, counts, places = people.in_order
    columns = {
        "cohort_id": ids,
        "weight": list(map(weights.__getitem__, places)),
        "count": counts,
        "charged": list(map(costs.get, ids)),
    }
    members = Members(columns, len(ids))
    members = members.where(list(map(all, members.rows("weight", "count", "charged"))))
    if not members:
        return None
    # What public people have in it is known exactly.
    public = [
        weight if trust is Trust.PUBLIC else 0
        for weight, trust in zip(weights, people.groups.column("trust"), strict=True)
    ]
    first, second = values
    if any(public):
        first -= sum(map(mul, public, people.sums("total")))
        second -= sum(map(mul, public, people.sums("total_squares")))
    times = noise.counted(MICRO)
    return Piece(
        number=1,
        unit=unit,
        share=MICRO,
        scale=noise.scale(unit, MICRO),
        sums=(times * first, times * second),
        refinable=False,
        members=members,
    )


def _of_secret(question: AnyQuestion, plan: Plan, values: Sequence[int]) -> Piece | None:
    """Of a ratio of two noisy sums, where the least that a person may offer buys something; no members.

    Privacy: depends on the noisy values and the question alone.
    """
    if plan.weighs is None or min(plan.weighs) <= 0:
        return None
    unit = float(pivot_of(plan.noise).unit)
    return Piece(
        number=1,
        unit=unit,
        share=MICRO,
        scale=unit,
        sums=two_sums(values),
        refinable=False,
        members=(),
        weighs=plan.weighs,
        least=None if question.level is None else question.level.least,
    )
