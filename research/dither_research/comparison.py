"""All estimators on one profile of people: what they predict, and what simulated releases do."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.core.cohort import Group, Reports
from app.core.epsilon import MICRO, amount_of, epsilon_of
from app.core.grid import GRID_SIZE
from app.core.study import LocalMechanism, Relation, Trust
from app.estimators import registry
from app.estimators.interface import Estimator, NotApplicable, Plan, Question
from dither_research.baselines.sampling import inclusion_of, plan_costs
from dither_research.estimators import applicable
from dither_research.people import UNIT, Law, draw_sample
from dither_research.profiles import Profile
from dither_research.reporting import report_sums
from dither_research.results import Bars, Row, Track
from dither_research.seeded import Floats, Random, draw_noise, seeded
from dither_research.simulation import average, query_values, square_error_of

COLUMNS = {
    "estimator": "name",
    "predicted": "root mean square error that the plan predicts: worst-case data [range widths]",
    "simulated": "root mean square error of simulated answers [range widths]",
    "se": "its standard error",
    "coverage": "share of the 95 % intervals for the people's mean that hold it",
    "most_charged": "the most that a person pays [epsilon]",
}

FIGURE = Bars(
    label="estimator",
    value="error",
    series="which",
    value_label="root mean square error  [range widths]",
    error="se",
    log_value=True,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Who is asked, and how the simulation goes.

    Attributes:
        profile: Blocks of whole people.
        law: Of each person's value, on [0, 1].
        relation: Which estimators apply.
        mechanism: Randomizer of local reports.
        delta: What each person offers beside epsilon [1e-12].
        runs: Simulated releases.
        tilt: replace_one: that of the question [range widths].
    """

    profile: Profile
    law: Law
    relation: Relation
    mechanism: LocalMechanism
    delta: int
    runs: int
    tilt: float = 0.0

    @property
    def question(self) -> Question:
        """What is asked of them."""
        offers = [amount_of(one.epsilon, self.delta) for one in self.profile if one.trust is Trust.CENTRAL]
        people = sum(int(one.count) for one in self.profile)
        secret = self.relation is Relation.ADD_REMOVE_ONE
        return Question(
            relation=self.relation,
            grid=UNIT,
            cap=max(offers, default=MICRO),
            floor=min(offers, default=MICRO),
            delta=self.delta,
            people=None if secret else people,
            expected_size=float(people) if secret else None,
            tilt=0.0 if secret else self.tilt,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One estimator on one profile.

    Attributes:
        estimator: Its name.
        predicted: Root mean square error by its plan; averaged over the runs where the plan looks at local
            reports [range widths].
        simulated: Root mean square error of its answers: about the mean of the population, under
            add_remove_one about the people's own [range widths].
        error: Standard error of that.
        coverage: Share of runs whose interval holds the people's mean.
        most_charged: The most that a person pays, at the setting's delta [micro-epsilon].
    """

    estimator: str
    predicted: float
    simulated: float
    error: float
    coverage: float
    most_charged: int

    def row(self) -> Row:
        """For the CSV."""
        return {
            "estimator": self.estimator,
            "predicted": self.predicted,
            "simulated": self.simulated,
            "se": self.error,
            "coverage": self.coverage,
            "most_charged": self.most_charged / MICRO,
        }


class Population:
    """Simulated people of a setting, the same for all estimators.

    Args:
        setting: Who they are.
        random: The source.
    """

    def __init__(self, setting: Setting, random: Random) -> None:
        self.setting = setting
        self._totals: list[Floats] = []
        self._reports: list[tuple[Floats, Floats] | None] = []
        for one in setting.profile:
            count = int(one.count)
            if one.trust is Trust.LOCAL:
                total, reports, squares = report_sums(
                    setting.mechanism, one.epsilon, setting.delta, setting.law, count, setting.runs, random
                )
                self._totals.append(total)
                self._reports.append((reports, squares))
            else:
                self._totals.append(draw_sample(setting.law, count, 1.0, setting.runs, random).total)
                self._reports.append(None)

    @property
    def has_reports(self) -> bool:
        """Whether plans may differ from run to run."""
        return any(reports is not None for reports in self._reports)

    def groups(self, run: int) -> list[Group]:
        """What estimators see of one run."""
        found = []
        for one, reports in zip(self.setting.profile, self._reports, strict=True):
            sums = None
            if reports is not None:
                sums = Reports(
                    mechanism=self.setting.mechanism,
                    total=round(float(reports[0][run]) * GRID_SIZE),
                    total_squares=round(float(reports[1][run]) * GRID_SIZE**2),
                )
            offer = one.epsilon if one.trust is Trust.PUBLIC else amount_of(one.epsilon, self.setting.delta)
            found.append(Group(trust=one.trust, epsilon=offer, count=int(one.count), reports=sums))
        return found

    def asked(self, plan: Plan, run: int, random: Random) -> tuple[Floats, float]:
        """A plan's queries on one run's people, and their true mean.

        Args:
            plan: Made for `groups(run)`.
            run: Which run.
            random: Who is in the sample, for plans that take one.

        Returns:
            float64 array of shape (queries, 1), without noise, and the mean.
        """
        counts = np.array([[float(one.count)] for one in self.setting.profile])
        totals = whole = np.array([[float(total[run])] for total in self._totals])
        if (inclusion := inclusion_of(plan)) is not None:
            samples = [
                draw_sample(self.setting.law, int(one.count), float(share), 1, random)
                for one, share in zip(self.setting.profile, inclusion, strict=True)
            ]
            whole = np.stack([one.whole for one in samples])
            totals = np.stack([one.total for one in samples])
            values = query_values(plan, np.stack([one.count for one in samples]), totals)
        else:
            values = query_values(plan, counts, totals)
        return values, float(whole.sum() / counts.sum())


def compare_all(setting: Setting, track: Track) -> tuple[list[Compared], dict[str, str]]:
    """Predict and simulate every estimator that applies.

    Args:
        setting: Who is asked.
        track: Progress.

    Returns:
        Estimators by their predicted error, and why others have no answer.
    """
    population = Population(setting, seeded("people to compare"))
    found, refused = [], {}
    for estimator in track(applicable(setting.relation, setting.question.currency)):
        try:
            found.append(_simulate(estimator, population, seeded(f"noise for {estimator.name}")))
        except NotApplicable as error:
            refused[estimator.name] = str(error)
    return sorted(found, key=lambda one: one.predicted), refused


def _simulate(estimator: Estimator, population: Population, random: Random) -> Compared:
    """Release after release through the estimator's own interface: plan, queries, noise, conclusion."""
    setting = population.setting
    question = registry.for_estimator(estimator, setting.question)
    groups = population.groups(0)
    plan = estimator.plan(groups, question)
    predictions, errors, held = [], [], 0
    most = 0
    for run in range(setting.runs):
        if population.has_reports and run:
            groups = population.groups(run)
            plan = estimator.plan(groups, question)
        if population.has_reports or not run:
            costs = plan_costs(plan, setting.relation, groups, question.currency)
            most = max(most, *costs)
        values, mean = population.asked(plan, run, random)
        values += draw_noise(plan.noise, queries=len(plan.queries), runs=1, random=random)
        conclusion = plan.conclude([round(value) for value in values[:, 0].tolist()])
        target = setting.law.mean if setting.relation is Relation.REPLACE_ONE else mean
        errors.append((conclusion.estimate - target) ** 2)
        held += conclusion.interval.lower <= mean <= conclusion.interval.upper
        predictions.append(
            square_error_of(plan) if setting.relation is Relation.REPLACE_ONE else plan.predicted_error**2
        )
    square, spread = average(np.array(errors))
    simulated = float(np.sqrt(square))
    return Compared(
        estimator=estimator.name,
        predicted=float(np.sqrt(np.mean(predictions))),
        simulated=simulated,
        error=spread / (2 * simulated) if simulated else 0.0,
        coverage=held / setting.runs,
        most_charged=epsilon_of(most, setting.delta),
    )


def bars(compared: Sequence[Compared]) -> list[Row]:
    """Rows for the plot: the predicted and the simulated error of every estimator."""
    rows: list[Row] = []
    for one in compared:
        rows.append({"estimator": one.estimator, "which": "predicted", "error": one.predicted, "se": 0.0})
        rows.append(
            {"estimator": one.estimator, "which": "simulated", "error": one.simulated, "se": one.error}
        )
    return rows
