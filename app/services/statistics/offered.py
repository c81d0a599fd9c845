r"""How many people offer at least each level: measured with a part of an answer that is about some of them.

An answer of an add_remove_one study is about people who offered at least some level, and which level is best
depends on how many offer how much. Where nothing is published of that, the answer measures it first. It
counts each person in one cell, that of the largest level :math:`l` that they offer, with the weight
:math:`w_l` that a fifth of the share buys of an offer of :math:`l`, and adds independent noise to each cell.
With :math:`Z_l` the noise, :math:`\sum_{k \ge l} (w_k n_k + Z_k) / w_k` is the noisy number of people who
offer at least :math:`l`. With Laplace noise and levels that double its variance is below
:math:`(4/3) \, 2 / w_l^2`, w as an epsilon: of the number of people times what they weigh, which makes one
level better than another, each level has about the same noise.

*Price.* A person who comes or goes moves the sum of one cell by :math:`w_l`, and no other. Which cell that is
depends on what the person offered and has left, on the question and on the study. So the price is that of one
query (`app.accounting.costs`): at most a fifth of the share of :math:`l`, which is no more than that of the
offer. The noise of cells without people is drawn, too.

*Both together.* The level of the answer is chosen from noisy numbers and the study alone, which is
post-processing. Whichever it is, the answer charges a person at most what is left of the share of the offer,
so losses add up to at most the share of it (`app.services.statistics.any_question.AnyQuestion.rest`). That
the second mechanism depends on what the first one said changes nothing, since a bound on the sum is fixed
before (`app.accounting.costs`; in mu^2 `app.accounting.gaussian`). The noise of both is independent, so given
the level the intervals of the answer hold as those of any answer at that level.

*Refusals.* All that refuses an answer is asked before anything is drawn: of the answer that a plan shows, and
of the answer at the least level, which buys least weight. Nothing that the numbers say refuses it then.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Any, Self

from app.accounting.costs import check_charges, group_costs
from app.accounting.measurement import Measurement
from app.core.cohort import Cohort, Cohorts, Group, Groups
from app.core.epsilon import epsilon_to_json, share_of
from app.core.errors import InternalFault, ServiceError
from app.core.grid import GRID_SIZE
from app.core.noise import MEASURED, DiscreteGaussian, DiscreteLaplace, as_document, repeated
from app.core.release import AllUsed, Charges, Used
from app.core.study import StudyDefinition, Trust
from app.estimators.calibration import GAUSSIAN_SIGMA
from app.estimators.interface import UNIT_SCALE, Query
from app.estimators.weighing import weight_of
from app.mechanisms.draw import draw
from app.services.statistics.any_question import AnyQuestion
from app.services.statistics.any_request import AnySituation, Asked
from app.services.statistics.crowds import Crowd
from app.services.statistics.drafts import Said
from app.services.statistics.levels import Level, Numbered, first_deviations, levels_of

OFFERED = "offered"
"""What a release calls the numbers, and the ledger their noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """The people by the largest level that they offer, priced; nothing is drawn yet.

    Attributes:
        levels: Ascending [micro-epsilon].
        weights: What a person in the cell of each level counts for.
        crowd: A group for each level; behind them public people, who offer all of them and pay nothing.
        queries: The cell of each level.
        noise: Of the cells.
        costs: What a person of each group pays [the study's currency].
        deviations: Of the noise in the number of people who offer at least each level [people].
    """

    levels: tuple[int, ...]
    weights: tuple[int, ...]
    crowd: Crowd
    queries: tuple[Query, ...]
    noise: DiscreteLaplace | DiscreteGaussian
    costs: Sequence[int]
    deviations: Mapping[int, float]

    @classmethod
    def of(cls, study: StudyDefinition, question: AnyQuestion, cohorts: Sequence[Cohort]) -> Self:
        """Price the cells.

        Args:
            study: An add_remove_one study.
            question: The whole question. Who cannot pay the share of their whole offer is not counted.
            cohorts: Of whom it asks.
        """
        levels, first = levels_of(study), question.first
        amounts = [study.amount(level) for level in levels]
        offers = [share_of(amount, first.share, first.cap) for amount in amounts]
        weights = tuple(weight_of(offer, study.noise) for offer in offers)
        members, places = list[Cohort](), list[int]()
        for cohort in cohorts:
            if cohort.trust is Trust.PUBLIC:
                place = len(levels)
            else:
                due = share_of(cohort.epsilon, question.share, question.cap)
                place = sum(amount <= cohort.epsilon for amount in amounts) - 1
                if (
                    cohort.trust is not Trust.CENTRAL
                    or place < 0
                    or not 0 < due <= cohort.epsilon - cohort.spent
                ):
                    continue
            members.append(cohort)
            places.append(place)
        counts = [0] * (len(levels) + 1)
        for place, cohort in zip(places, members, strict=True):
            counts[place] += cohort.count
        *central, public = counts
        groups = [
            *(
                Group(trust=Trust.CENTRAL, epsilon=offer, count=count)
                for offer, count in zip(offers, central, strict=True)
            ),
            Group(trust=Trust.PUBLIC, epsilon=0, count=public),
        ]
        crowd = Crowd(groups=Groups.of(groups), cohorts=Cohorts.of(members), places=places)
        queries = tuple(_cell(place, weights) for place in range(len(levels)))
        one = (
            DiscreteGaussian(sigmas=(GAUSSIAN_SIGMA,))
            if study.noise.is_gaussian
            else DiscreteLaplace(scales=(UNIT_SCALE,))
        )
        noise: Any = repeated(one, len(queries))
        costs = group_costs(queries, noise, study.relation, crowd.groups, study.noise)
        check_charges(costs, crowd.groups)
        return cls(
            levels=levels,
            weights=weights,
            crowd=crowd,
            queries=queries,
            noise=noise,
            costs=costs,
            deviations=first_deviations(study, first.share, first.cap),
        )

    @property
    def measured(self) -> Measurement:
        """What is measured of whom, for the ledger."""
        return Measurement.of_queries(self.queries, self.noise, self.crowd.groups, self.crowd.ids)

    def drawn(self) -> list[Numbered]:
        """The noisy number of people who offer at least each level whose cell has a weight. Draws entropy."""
        sizes = [count * GRID_SIZE for count in self.crowd.groups.column("count")]
        none = [0] * len(sizes)
        errors = draw(self.noise, queries=len(self.queries))
        cells = [
            (level, (query.value(none, sizes, none) + error) / (weight * GRID_SIZE))
            for level, query, error, weight in zip(
                self.levels, self.queries, errors, self.weights, strict=True
            )
            if weight
        ]
        most_first = cells[::-1]
        people = accumulate(own for _, own in most_first)
        found = [
            Numbered(least=level, most=level, people=number, deviation=self.deviations[level])
            for (level, _), number in zip(most_first, people, strict=True)
        ]
        return found[::-1]

    def before(self, said: Said, numbers: Sequence[Numbered], level: Level) -> Said:
        """An answer at a level, with what was measured first, and what that charges.

        Where the answer itself does not say how many people it is about, these numbers do.
        """
        shown = [
            {"least_epsilon": epsilon_to_json(one.least or 0), "noisy_count": one.people} for one in numbers
        ]
        noise, measured = json.loads(said.noise), self.measured
        noise[OFFERED] = as_document(self.noise)
        if measured.places:
            noise[MEASURED] = [*noise.get(MEASURED, ()), measured.document()]
        people = {one.least: one.people for one in numbers} if level.equal else {}
        counted = (
            {} if "noisy_count" in said.numbers else {"noisy_count": people.get(level.least, level.size)}
        )
        most = max(self.costs, default=0)
        return replace(
            said,
            details={**counted, **said.details, OFFERED: shown},
            noise=json.dumps(noise, allow_nan=False),
            most=said.most + most,
            most_in_all=said.most_in_all + most,
            charges=_added(said.charges, self.crowd.charges(self.costs)),
            used=_joined(said.used, self.crowd.used()),
        )


def asked_first(request: Asked, now: AnySituation[Asked]) -> tuple[Callable[[Said], Said], Asked, Any]:
    """Measure who offers how much, and plan the answer about those for whom it will be best. Draws entropy.

    Args:
        request: Of an open level.
        now: What its answer is planned from.

    Returns:
        What adds to an answer what was measured, the request with those who take part, and that answer.

    Raises:
        BudgetExhausted, NotApplicable: there would be no answer at the least level; nothing was drawn.
    """
    study, question = request.study.definition, request.question
    least = Level.of(study).least
    lowest = replace(request, question=replace(question, level=Level.of(study, least, least)))
    now.made(lowest)
    offered = Offered.of(study, question, now.cohorts)
    numbers = offered.drawn()
    chosen: Asked = replace(request, question=question.offered(study, [*numbers, *request.published]))
    level = chosen.question.level
    try:
        if level is None:
            raise InternalFault("an answer is about no level")
        return partial(offered.before, numbers=numbers, level=level), chosen, now.made(chosen)
    except ServiceError as error:
        # That it is refused would say what the numbers say, before anyone is charged for them.
        raise InternalFault("an answer has no plan at its level") from error


def _cell(place: int, weights: Sequence[int]) -> Query:
    """The people in the cell of a level by what they weigh; public people are in the last one."""
    own = [weight if one == place else 0 for one, weight in enumerate(weights)]
    public = weights[-1] if place == len(weights) - 1 else 0
    return Query(sum_weights=(0,) * (len(own) + 1), count_weights=(*own, public))


def _added(*charges: Sequence[Any]) -> Charges:
    """Charges of several measurements, what each cohort is charged added up, in the order of ids."""
    due: dict[int, int] = {}
    for part in charges:
        for cohort, amount in Charges.of(part).rows("cohort_id", "epsilon"):
            due[cohort] = due.get(cohort, 0) + amount
    ids = sorted(due)
    return Charges({"cohort_id": ids, "epsilon": [due[cohort] for cohort in ids]}, len(ids))


def _joined(*parts: Sequence[Used]) -> AllUsed:
    """The cohorts of several measurements, each once with the most that one needs, in order of ids."""
    found: dict[int, tuple[int, int]] = {}
    for part in parts:
        for cohort, count, offer in AllUsed.of(part).rows("cohort_id", "count", "offer"):
            found[cohort] = count, max(offer, found.get(cohort, (0, 0))[1])
    ids = sorted(found)
    columns = {
        "cohort_id": ids,
        "count": [found[cohort][0] for cohort in ids],
        "offer": [found[cohort][1] for cohort in ids],
    }
    return AllUsed(columns, len(ids))
