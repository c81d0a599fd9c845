"""What plans say of a question: what an answer would charge, and how accurate it would be."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

from app.core.errors import ServiceError
from app.core.release import StoredRelease
from app.core.study import StudyDefinition
from app.estimators.interface import Accuracy
from app.services.statistics.levels import Level


class Priced(Protocol):
    """An answer whose price is known [the study's currency]."""

    @property
    def most(self) -> int:
        """The largest charge by it."""

    @property
    def most_in_all(self) -> int:
        """The same with those that it sharpens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedAnswer:
    """What an answer would charge at most, and how accurate it would be.

    Attributes:
        predicted_error: Root mean square error about the dataset [the statistic's unit], at most that of the
            range.
        half_width: Half of the interval for the dataset, not cut off at the ends of the range, at most half
            of that; None in add_remove_one studies, and of shapes without one [the statistic's unit].
        population_predicted_error, population_half_width: As predicted_error and half_width, about the
            population that people were drawn from; None where that is not predicted.
        anytime_half_width: As half_width, of the interval that holds for all steps of the question at once;
            None of an answer without steps.
        epsilon_max: The most that any person would be charged [micro-epsilon, at the study's delta].
        epsilon_max_total: That with what the answers that it sharpens have charged [as `epsilon_max`].
        mu2_max: The same as `epsilon_max` in mu^2 [1e-6]; None in a study with Laplace noise.
    """

    predicted_error: float
    half_width: float | None = None
    population_predicted_error: float | None = None
    population_half_width: float | None = None
    anytime_half_width: float | None = None
    epsilon_max: int
    epsilon_max_total: int
    mu2_max: int | None = None

    @classmethod
    def of(cls, study: StudyDefinition, accuracy: Accuracy, made: Priced, **more: Any) -> Self:
        """An answer of this accuracy that charges that much, and what more its kind says of it.

        Args:
            study, accuracy: Of which study, how accurate.
            made: The answer, as it is planned.
            **more: Fields of the kind.
        """
        return cls(
            predicted_error=accuracy.error,
            half_width=accuracy.half_width,
            population_predicted_error=accuracy.population_error,
            population_half_width=accuracy.population_half_width,
            anytime_half_width=accuracy.anytime_half_width,
            epsilon_max=study.epsilon(made.most),
            epsilon_max_total=study.epsilon(made.most_in_all),
            mu2_max=study.noise.mu2(made.most),
            **more,
        )

    def charging(self, study: StudyDefinition, most: int) -> Self:
        """The same where a person is charged this at most [the study's currency]."""
        amount = study.epsilon(most)
        mu2 = study.noise.mu2(most)
        return replace(self, epsilon_max=amount, epsilon_max_total=amount, mu2_max=mu2)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedEstimator(PlannedAnswer):
    """Price and accuracy of one estimator.

    Attributes:
        estimator, summary: Name, and one line about it.
        predicted_error_at_tilt_0: The error for a question without a tilt, if privacy and values have nothing
            to do with each other; None in add_remove_one studies.
        answers_left: How many more answers like this the study can give, see `statistics.answers_left`.
        chosen: Whether the question is answered with it.
        one_report_moves: How far one local report can move the answer; None without reports in it [the
            statistic's unit].
        statistics: What is read off the answer, at no further price.
        gain: Of a mean over a range that is found, see `shapes.found_plans.FoundPlan`; None of others.
        expected_range: The range that such a mean is planned for: its width [data's unit], and the release
            that found it, None of a guess; None of others.
        expected_values: What values the predicted error is about, see `estimators.expected`: mean and sd
            [data's unit], and whether that is a guess; None where it rests on no such thing.
        of_mean: The error of the mean, by which estimators are chosen [data's unit].
    """

    estimator: str
    summary: str
    predicted_error_at_tilt_0: float | None = None
    one_report_moves: float | None
    statistics: tuple[str, ...]
    answers_left: int | None = None
    chosen: bool = False
    gain: float | None = None
    expected_range: Mapping[str, object] | None = None
    expected_values: Mapping[str, object] | None = None
    of_mean: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Newcomers(PlannedAnswer):
    """What renews the answer that stands, at its share: people of whom it has used less pay, no others.

    Attributes:
        people: Those who are charged.
    """

    people: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A question that may be asked.

    Attributes:
        stands: The best answer to it so far; in add_remove_one studies the newest one to just this question.
        free: Whether what is read without a share charges no person: it combines what came after that.
        newcomers: What renewing that would take; None without newcomers, and in add_remove_one studies.
        share: What it would take of each epsilon in all [ppm].
        share_before: What it has taken [ppm].
        tilt: Of the question [ppm]; None of a count.
        assumption: What it and the predictions assume of people, in words; None of a count.
        level: add_remove_one: whom the answer would be about.
        estimators: Price and accuracy of every estimator that has an answer. The predicted error of a
            histogram or a quantile is that of a bin's share, or of a rank, as a part of all people.
        refusal: Why no estimator has an answer; None where one has.
        paid_as: What is paid once, of several planned questions that have the same: the steps of a question,
            or what is read off one answer. Empty of an answer with noise of its own.
    """

    share: int
    share_before: int = 0
    tilt: int | None
    assumption: str | None
    level: Level | None = None
    stands: StoredRelease | None
    free: bool = False
    newcomers: Newcomers | None = None
    estimators: Sequence[PlannedEstimator]
    refusal: ServiceError | None = None
    paid_as: bytes = b""

    @property
    def chosen(self) -> PlannedEstimator | None:
        """What answers it as it is asked; None where nothing does, or where that is refused."""
        if self.refusal is not None:
            return None
        return next((one for one in self.estimators if one.chosen and one.answers_left != 0), None)


def charges_of(planned: Sequence[Planned], study: StudyDefinition) -> tuple[list[int], int]:
    """What each answer charges a person at most, and all of them together [the study's currency].

    Charges add up, and no one is charged more by an answer than its largest charge: so the sum of these
    bounds what any person is charged. What is paid once counts once, by its largest charge.
    """
    paid: dict[bytes, int] = {}
    amounts, apart = [], 0
    for one in planned:
        chosen, amount = one.chosen, 0
        if chosen is not None:
            amount = study.noise.of(laplace=chosen.epsilon_max, gaussian=chosen.mu2_max or 0)
        amounts.append(amount)
        if one.paid_as:
            paid[one.paid_as] = max(paid.get(one.paid_as, 0), amount)
        else:
            apart += amount
    return amounts, min(apart + sum(paid.values()), study.amount(study.epsilon_max))
