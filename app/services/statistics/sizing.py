"""How many people, which epsilon or which share a wanted error takes.

The answer is the smallest one for which an estimator's own plan, for people who are assumed, predicts no
larger error: there is no second formula. Needs no database and no service, reads no data, draws no entropy.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction

from dither.device.numbers import SIGNIFICANT, significant

from app.core.cohort import Cohort
from app.core.errors import BudgetExhausted
from app.core.grid import GRID_SIZE
from app.core.study import StudyDefinition, Trust
from app.estimators import registry
from app.estimators.interface import Accuracy, Estimator, NotApplicable
from app.services.statistics.alone import Alone
from app.services.statistics.asked_accuracy import Readable
from app.services.statistics.crowds import Crowd
from app.services.statistics.questions import MEAN, Ask, resolve
from app.services.statistics.reading import Reading

MOST_PEOPLE = 10**9
"""More people are not looked for."""

WHOLE = 3700
"""The rank of a share of 1 among numbers of three significant digits [ppm]."""

_CANDIDATES: dict[str, tuple[int, Callable[[int], int]]] = {
    "people": (MOST_PEOPLE, lambda people: people),
    "epsilon": (SIGNIFICANT, significant),
    "share": (WHOLE, significant),
}
"""What is tried: how many values, and each of them by its rank, in ascending order."""


Predicted = tuple[Accuracy, int]
"""How accurate an answer would be, and the most that it would charge a person [micro-epsilon]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizing:
    """A study that is thought of, and what is wanted of it. Of the last four one is None: it is asked for.

    Attributes:
        study: Range, relation, delta and local mechanism; its epsilons are not looked at.
        local, public: Parts of the people, in [0, 1]; all others are central.
        ask: Estimator and its parameters.
        error: Root mean square error [data's unit].
        people: How many.
        epsilon: Of each person who is not public, at the study's delta [micro-epsilon].
        share: Part of it that an answer uses [ppm]; local reports use all of it.
    """

    study: StudyDefinition
    local: Fraction = Fraction()
    public: Fraction = Fraction()
    ask: Ask = field(default_factory=Ask)
    error: float | None
    people: int | None
    epsilon: int | None
    share: int | None

    @property
    def asked(self) -> str:
        """The quantity that is None."""
        return next(name for name in ("error", *_CANDIDATES) if getattr(self, name) is None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sized:
    """What one estimator takes.

    Attributes:
        estimator, summary: Name, and one line about it.
        chosen: Whether `auto` takes it.
        people, epsilon, share: See `Sizing`; what was asked for is None where no value of it is enough.
        predicted_error: Root mean square error about the people who contribute, at most the width of the
            range [data's unit].
        population_predicted_error: About the population that they are drawn from; None where their number is
            secret [data's unit].
        epsilon_max: The most that any person would be charged [micro-epsilon].
    """

    estimator: str
    summary: str
    chosen: bool = False
    people: int | None
    epsilon: int | None
    share: int | None
    predicted_error: float
    population_predicted_error: float | None
    epsilon_max: int


def size(sizing: Sizing) -> list[Sized]:
    """What every estimator that applies takes, the best one first.

    Args:
        sizing: The study and what is wanted.

    Returns:
        One entry an estimator. Where no value is enough, its errors are those of the largest one.

    Raises:
        InvalidRequest: an unknown estimator or parameter.
    """
    ask, relation, noise = sizing.ask, sizing.study.relation, sizing.study.noise
    name = ask.estimator or registry.AUTO
    known = {parameter.name for parameter in registry.parameters(name, relation, noise)}
    if "variance" in known:
        # There are no reports to estimate it from.
        sizing = replace(sizing, ask=replace(ask, parameters={"variance": "worst_case", **ask.parameters}))
    estimators = (
        registry.applicable(relation, noise)
        if name == registry.AUTO
        else [registry.get(name, relation, noise)]
    )
    rows = [row for estimator in estimators if (row := _sized(sizing, estimator))]
    rows.sort(
        key=lambda row: (
            getattr(row, sizing.asked, 0) is None,
            getattr(row, sizing.asked, 0) or 0,
            row.predicted_error,
        )
    )
    return [replace(row, chosen=place == 0 and _reached(sizing, row)) for place, row in enumerate(rows)]


def _reached(sizing: Sizing, row: Sized) -> bool:
    return sizing.error is None or row.predicted_error <= sizing.error


def _sized(sizing: Sizing, estimator: Estimator) -> Sized | None:
    """The smallest value that is enough, by bisection: errors fall with each of the three."""
    asked, enough = sizing.asked, True
    if asked == "error":
        found, planned = sizing, _plan(sizing, estimator)
    else:
        most, value = _CANDIDATES[asked]

        def at(rank: int) -> tuple[Sizing, Predicted | None]:
            tried = replace(sizing, **{asked: value(rank)})  # type: ignore[arg-type]  # a name of its own
            return tried, _plan(tried, estimator)

        def suffices(rank: int) -> bool:
            entry = at(rank)[1]
            return entry is not None and sizing.error is not None and entry[0].error <= sizing.error

        low, high = 1, most
        enough = suffices(high)
        while enough and low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if suffices(middle) else (middle + 1, high)
        found, planned = at(high)
    if planned is None:
        return None
    accuracy, epsilon_max = planned
    row = Sized(
        estimator=estimator.name,
        summary=estimator.summary,
        people=found.people,
        epsilon=found.epsilon,
        share=found.share,
        predicted_error=accuracy.error,
        population_predicted_error=accuracy.population_error,
        epsilon_max=epsilon_max,
    )
    return row if enough else replace(row, **{asked: None})  # type: ignore[arg-type]  # a name of its own


def _plan(sizing: Sizing, estimator: Estimator) -> Predicted | None:
    """What the estimator plans for the people of a sizing in which nothing is missing but the error."""
    people, epsilon = sizing.people or 0, sizing.epsilon or 0
    study = replace(sizing.study, epsilon_min=epsilon, epsilon_max=epsilon)
    secret = study.hides_people
    resolved = resolve(study, replace(sizing.ask, share=sizing.share))
    crowd = Crowd.of(study, _cohorts(sizing, people, study.amount(epsilon)), resolved)
    question = resolved.question(
        study, people=None if secret else people, expected_size=float(people) if secret else None
    )
    try:
        made = Alone.of(study, crowd, resolved, question, [estimator])
    except (BudgetExhausted, NotApplicable):
        return None
    read = Readable(study=study, plan=made.plan, people=crowd.people)
    return read.accuracy(Reading(ask=sizing.ask, statistic=MEAN)), study.epsilon(made.most)


def _cohorts(sizing: Sizing, people: int, offer: int) -> list[Cohort]:
    """Assumed people who offer this much [the currency], with values in the middle of the range."""
    local, public = round(people * sizing.local), round(people * sizing.public)
    counts = {Trust.CENTRAL: max(people - local - public, 0), Trust.LOCAL: local, Trust.PUBLIC: public}
    return [
        Cohort(
            id=0,
            trust=trust,
            epsilon=0 if trust is Trust.PUBLIC else offer,
            carried=0,
            spent=offer if trust is Trust.LOCAL else 0,
            count=count,
            total=count * GRID_SIZE // 2,
            total_squares=0,
        )
        for trust, count in counts.items()
        if count
    ]
