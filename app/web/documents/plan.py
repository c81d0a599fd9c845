"""Plans on the wire: what stands, what a question would give and cost, and the same in words."""

import json
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import ConfigDict, Field

from app.core.epsilon import MICRO, epsilon_to_json
from app.core.errors import NoGain, OutOfReach, SaysNothing
from app.core.numbers import headline, margin, percent
from app.core.study import StudyDefinition, StudyState, assumption
from app.estimators.interface import NoContributions, NotApplicable
from app.services.shapes.shown import shown_off
from app.services.statistics.drafting import Newcomers, Planned, PlannedEstimator
from app.services.statistics.questions import SD, VARIANCE
from app.services.statistics.reading import Reading
from app.web.documents.release import IntervalOut
from app.web.documents.types import EpsilonOut, Mu2Out, ShareOut, TiltOut, WireOut


class StandingOut(WireOut):
    """The answer that stands, free to read."""

    release: UUID
    share: float | None = Field(description="The part of each epsilon that it has used.")
    estimate: float | None = Field(description="Null of histograms, and where it does not say what is asked.")
    interval: IntervalOut | None = Field(description="For the people of then; null of histograms.")
    half_width: float | None = Field(description="Half of the interval's width.")
    people: int | None = Field(description="Live contributions then; null where their number is secret.")
    created_at: datetime


class NewcomersOut(WireOut):
    """What renews the answer that stands, at its share: only people of whom it has used less pay."""

    people: int = Field(description="Those who are charged.")
    epsilon_max: EpsilonOut = Field(
        description="The largest charge to one of them; with Gaussian noise at the study's delta."
    )
    epsilon_max_total: EpsilonOut = Field(
        description="The largest charge to any person by the renewed answer and those before it."
    )
    mu2_max: Mu2Out | None = Field(
        description="What one of them is charged at most, in mu^2; null with Laplace noise."
    )
    predicted_error: float = Field(
        description="Root mean square error about the dataset, as of an estimator."
    )
    half_width: float = Field(
        description="Half of the interval for all people of now, at the `level` that is asked for, as "
        "of an estimator; of histograms and "
        "shares as a part of all people."
    )
    population_predicted_error: float | None = Field(
        None, description="Root mean square error about the population, as of an estimator."
    )
    population_half_width: float | None = Field(
        None, description="Half of the interval for the population, as of an estimator."
    )


class RefusalOut(WireOut):
    """Why the question would be refused as it is asked; the problem that says so has the same fields."""

    code: str = Field(description="As of the problem.", examples=["no_contributions"])
    detail: str
    share: ShareOut | None = Field(None, description="Of `says_nothing`, as of the problem; null of others.")
    people: int | None = Field(None, description="Of `says_nothing`, as of the problem; null of others.")
    half_width: float | None = Field(
        None,
        description="Of `out_of_reach`, as of the problem, and `estimators` are at the whole share; null "
        "of others.",
    )


class ExpectedRangeOut(WireOut):
    """The range that a mean over a found one is planned for: errors and intervals are as if it were found."""

    width: float = Field(description="Its width, in the data's unit.")
    release: UUID | None = Field(
        description="The answer that found it, the last one; null of a guess: a tenth of the declared range."
    )


class ExpectedValuesOut(WireOut):
    """The values that an error is predicted for, as the last answers say, or as a guess."""

    mean: float = Field(description="Their mean, in the data's unit.")
    sd: float | None = Field(
        description="Their standard deviation, in the data's unit; null where the error depends on none."
    )
    guess: bool = Field(
        description="Whether no answer has said it yet. The error of a standard deviation may then be "
        "several times as large or as small."
    )


class PlannedOut(WireOut):
    """Price and accuracy of one estimator."""

    estimator: str
    summary: str
    chosen: bool = Field(description="Whether the question is answered with it; `auto` takes the first one.")
    predicted_error: float = Field(
        description="Root mean square error of what is asked, about the dataset, all people with a live "
        "contribution: in the data's unit, of a variance in its square, of a covariance in the product "
        "of both units, of a count in people, of histograms, shares and quantiles as a part of all people. "
        "Of `variance` and `sd` for `expected_values`; of `describe` that of the mean."
    )
    predicted_error_at_tilt_0: float | None = Field(
        None, description="The same for a question with `tilt` 0; replace_one studies."
    )
    epsilon_max: EpsilonOut = Field(
        description="The most that any person would be charged; with Gaussian noise at the study's delta."
    )
    epsilon_max_total: EpsilonOut = Field(
        description="The largest charge to a person by this answer and those that it sharpens."
    )
    mu2_max: Mu2Out | None = Field(
        description="What a person would be charged at most, in mu^2; null with Laplace noise."
    )
    answers_left: int | None = Field(
        description="How many more answers like this the study can give, at least, before they are refused; "
        "null where they cost nothing, and where it is secret."
    )
    one_report_moves: float | None = Field(
        description="How far one local report can move the answer at most, with the weights of this plan; "
        "null without local reports in it."
    )
    half_width: float | None = Field(
        description="Half of the interval for the dataset that the answer will have, of 95 % or at the "
        "`level` that is asked for, before it is cut "
        "off at the range, in the unit of `predicted_error`. The most that it can be of `variance` and `sd`; "
        "of `range=found` that in the expected range; of a count in people. Null of other answers where the "
        "number of people is secret, since the interval depends on it, and of histograms, shares, quantiles, "
        "covariances and `describe`."
    )
    population_predicted_error: float | None = Field(
        None,
        description="`predicted_error` about the population that the people were drawn from, for means, "
        "sums, differences and standardized means; null of others, and where the number of people is secret.",
    )
    population_half_width: float | None = Field(
        None, description="`half_width` of the interval for that population; null as that error is."
    )
    anytime_half_width: float | None = Field(
        None,
        description="`half_width` of the interval that holds for all steps of the question at once; null of "
        "an answer that is not sharpened, and of what is read off variances or several labels.",
    )
    gain: float | None = Field(
        description="With `range=found`: how many times smaller the square of the interval is than over the "
        "declared range, if the values fill that; where a part r of it is found, at most 1 / r² times as "
        "much. Null of others."
    )
    expected_range: ExpectedRangeOut | None = Field(
        None, description="With `range=found`: what it is planned for. Null of others."
    )
    expected_values: ExpectedValuesOut | None = Field(
        None,
        description="Of `variance` and `sd`, and of a mean of a secret number of people if one is published: "
        "the values that `predicted_error` is for. Null of others, whose error is the same for all values or "
        "is bounded over them.",
    )
    statistics: list[str] = Field(
        description="What is read off such an answer, at no further price, as far as it says it."
    )


EXAMPLE: dict[str, Any] = {
    "estimators": [
        {
            "estimator": "adpm",
            "summary": "personal epsilons, exact",
            "chosen": True,
            "predicted_error": 0.42,
            "predicted_error_at_tilt_0": 0.31,
            "epsilon_max": 0.15,
            "epsilon_max_total": 0.3,
            "mu2_max": None,
            "answers_left": 10,
            "one_report_moves": None,
            "half_width": 0.8,
            "population_predicted_error": 0.61,
            "population_half_width": 1.2,
            "gain": None,
            "expected_range": None,
            "expected_values": None,
            "statistics": ["mean", "sum", "variance", "sd"],
        }
    ],
    "share": 0.2,
    "share_before": 0.1,
    "tilt": 0.1,
    "about": None,
    "least_epsilon": None,
    "assumption": assumption(100_000),
    "stands": {
        "release": "6a2f41a3-c54c-4b2d-9a51-0d5c9d3f7a10",
        "share": 0.1,
        "estimate": 41.37,
        "interval": {
            "level": 0.95,
            "lower": 39.77,
            "upper": 42.97,
            "coverage": "worst_case",
        },
        "half_width": 1.6,
        "people": 1000,
        "created_at": "2030-01-31T12:00:00Z",
    },
    "free": False,
    "newcomers": {
        "people": 230,
        "epsilon_max": 0.15,
        "epsilon_max_total": 0.15,
        "mu2_max": None,
        "predicted_error": 0.7,
        "half_width": 1.4,
        "population_predicted_error": 0.83,
        "population_half_width": 1.6,
    },
    "refusal": None,
    "in_words": "now 41.4 ± 1.6; for another 0.1 of each epsilon ± 0.80, half of its 95 % "
    "interval, which costs a person at most 0.15; newcomers only: ± 1.4, which costs the "
    "230 new people at most 0.15",
}


class PlanOut(WireOut):
    """What stands, and what more would give and cost. Nothing is spent.

    Every estimator that has an answer, the one that is taken first, then the most accurate one.
    """

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE]})

    share: float = Field(description="The part of each epsilon that the question would use in all.")
    share_before: float = Field(description="What it has used; the price is that of the rest.")
    estimators: list[PlannedOut]
    tilt: TiltOut | None = Field(None, description="That of the question; null of a count.")
    about: str | None = Field(
        None, description="Whom the answer would be about, where the number of people is secret."
    )
    least_epsilon: EpsilonOut | None = Field(
        None, description="What they have offered at least; null as `about`, and where that is asked first."
    )
    assumption: str | None = Field(None, description="What predictions and intervals assume of the people.")
    stands: StandingOut | None = Field(
        description="The best answer to the question so far; null before the first one. In add_remove_one "
        "studies the newest one to this question with this share and cap."
    )
    free: bool = Field(
        description="Whether the next read of the question, without a share, charges no person: it combines "
        "what was published since the answer that stands."
    )
    newcomers: NewcomersOut | None = Field(
        description="What renewing it would take; null where no one new can pay, where it would be no gain, "
        "with `fresh`, and in add_remove_one studies."
    )
    refusal: RefusalOut | None = Field(
        description="Why the question would be refused as it is asked, before anything is charged; null "
        "where it is answered. Of `says_nothing` and `no_gain` there are `estimators`: `allow_worse` answers "
        "all the same."
    )
    in_words: str = Field(
        description="What stands, what more would give and cost, and newcomers alone; where no new answer "
        "can be made, why."
    )

    @classmethod
    def of(
        cls, planned: Planned, reading: Reading, study: StudyDefinition, *, ended: StudyState | None = None
    ) -> "PlanOut":
        """The plan of a question; `ended` is the state of a study that gives only what is stored."""
        stands = _standing(planned, reading, study)
        level = planned.level
        return cls.made_of(
            planned,
            share=planned.share / MICRO,
            share_before=planned.share_before / MICRO,
            about=None if level is None else level.about,
            least_epsilon=None if level is None or level.open else level.least,
            stands=stands,
            in_words=_in_words(planned, stands, reading, ended),
        )


def _standing(planned: Planned, reading: Reading, study: StudyDefinition) -> StandingOut | None:
    """What stands, read from its stored bytes."""
    if planned.stands is None:
        return None
    release: Any = json.loads(planned.stands.body)
    try:
        said: Any = json.loads(shown_off(planned.stands.body, reading, study))
        said = said.get("prediction") or said
    except NotApplicable:
        said = {}
    interval = said.get("interval") and IntervalOut.model_validate(said["interval"])
    share = release.get("share")
    return StandingOut(
        release=planned.stands.id,
        share=release["parameters"].get("share") if share is None else share,
        estimate=said.get("estimate"),
        interval=interval,
        half_width=interval and (interval.upper - interval.lower) / 2,
        people=release.get("people"),
        created_at=planned.stands.created_at,
    )


def _in_words(
    planned: Planned, stands: StandingOut | None, reading: Reading, ended: StudyState | None
) -> str:
    """The plan in one sentence."""
    most = reading.statistic in (VARIANCE, SD)
    parts = []
    if stands is not None and stands.interval is not None and stands.estimate is not None:
        ends = stands.interval.lower, stands.interval.upper
        shown = headline(stands.estimate, *ends, reading.statistic)
        about = "" if shown.estimate == shown.in_words else f" ± {margin(stands.half_width or 0)}"
        parts.append(f"now {shown.estimate}{about}")
    if planned.free:
        parts.append("to read what published answers say together is free")
    chosen = next((one for one in planned.estimators if one.chosen), None)
    if chosen is not None and chosen.epsilon_max and planned.share > planned.share_before:
        rest = epsilon_to_json(planned.share - planned.share_before)
        more = f"another {rest:g}" if planned.share_before else f"{rest:g}"
        own = "with noise of its own " if stands is not None and not planned.share_before else ""
        always = ""
        if planned.share_before and chosen.anytime_half_width is not None:
            always = f", ± {margin(chosen.anytime_half_width)} at all steps at once"
        if chosen.half_width is None:
            of_shares = always and f"{always}, as a part of the people,"
            offer = f"an answer for {more} of each epsilon{of_shares} costs a person at most"
        else:
            half = f"{_gives(chosen, most)}, half of its {percent(reading.level)} interval{_in_range(chosen)}"
            half += always
            offer = f"{own}for {more} of each epsilon {half}, which costs a person at most"
        about = "" if planned.level is None else f"; it is about {planned.level.about}"
        parts.append(f"{offer} {_costs(chosen)}{about}{_guessed(chosen)}")
    if planned.newcomers is not None:
        new = planned.newcomers
        who = f"the {new.people:,} new people" if new.people > 1 else "the new person"
        parts.append(f"newcomers only: {_gives(new, most)}, which costs {who} at most {_costs(new)}")
    said = "; ".join(parts)
    # Without an estimator, what stands is all there is: the sentence says why there is no more.
    if ended is not None:
        none = f"the study is {ended} and makes no new answers"
    elif isinstance(planned.refusal, NoContributions):
        none = "no person who is asked has a contribution now"
    elif isinstance(planned.refusal, NoGain | SaysNothing | OutOfReach):
        none = f"it is refused: {planned.refusal.detail}"
    elif not planned.estimators:
        none = "no estimator has an answer to this question now"
        if planned.refusal is not None:
            why = planned.refusal.detail.removesuffix(".")
            none += f": {why[:1].lower()}{why[1:]}"
    else:
        return said or "an answer costs no person anything"
    return f"{said}; {none}" if said else none


def _in_range(one: PlannedEstimator) -> str:
    """What range a half is planned for, where it is found first."""
    if one.expected_range is None:
        return ""
    width, release = one.expected_range["width"], one.expected_range["release"]
    why = "a guess: a tenth of the declared one" if release is None else "as the last one"
    return f" if the range that is found is {width:g} wide ({why})"


def _guessed(one: PlannedEstimator) -> str:
    """Whether its predicted error rests on a guess."""
    found = one.expected_values
    if found is None or not found["guess"]:
        return ""
    return f"; its predicted error is for a standard deviation of {found['sd']:.3g}, a guess"


def _gives(one: PlannedEstimator | Newcomers, most: bool) -> str:
    return f"± {margin(one.half_width or 0)}{' or less' if most else ''}"


def _costs(one: PlannedEstimator | Newcomers) -> str:
    return f"{epsilon_to_json(one.epsilon_max):g}"
