"""What every plan says: of the question, and of what renews the answer that stands."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

from app.core.epsilon import MICRO
from app.core.errors import OutOfReach, PrivacyRefusal, ServiceError
from app.core.release import StoredRelease
from app.estimators import confidence
from app.estimators.interface import NotApplicable
from app.services.statistics.any_request import AnyRequest, AnySituation, Asked
from app.services.statistics.drafting import Newcomers, Planned, PlannedEstimator
from app.services.statistics.reading import Reading

Now = TypeVar("Now", bound=AnySituation[Any])


def planned(
    request: AnyRequest,
    now: AnySituation[Any],
    *,
    stands: StoredRelease | None,
    free: bool = False,
    newcomers: Newcomers | None,
    estimators: Sequence[PlannedEstimator],
    refusal: ServiceError | None,
    fresh: bool,
) -> Planned:
    """The plan of a question. Attributes of `Planned` are taken as they are."""
    question, study = request.question, request.study.definition
    return Planned(
        share=question.share,
        share_before=now.share_before,
        tilt=None if question.weighs_alike else round(question.assumed_tilt(study) * MICRO),
        assumption=question.assumption(study),
        level=question.level,
        stands=stands,
        free=free,
        newcomers=newcomers,
        estimators=estimators,
        refusal=refusal,
        paid_as=b"" if fresh else question.by_parts.family if request.by_steps else question.digest,
    )


def reached(request: Asked, now: Now) -> tuple[Now, Asked, OutOfReach | None]:
    """As `AnySituation.reaching`; where no share is enough, at the whole one, with the refusal."""
    try:
        return *now.reaching(request), None
    except OutOfReach as refusal:
        whole = request.at(MICRO)
        return now.among(whole, now.cohorts), whole, refusal
    except (PrivacyRefusal, NotApplicable):
        return now, request, None  # The plan finds out the same.


def newcomers_of(request: AnyRequest, now: AnySituation[Any], reading: Reading) -> Newcomers | None:
    """What renews the answer at the share that it has; None where that charges no one or is no gain."""
    if now.before is None:
        return None
    try:
        step: Any = now.made(request.at(now.before.share))
    except (NotApplicable, PrivacyRefusal):
        return None
    if not step.by_steps or not step.charges or not request.is_gain(step, now.best):
        return None
    accuracy = request.accuracy(step, reading)
    if accuracy.half_width is None:
        with confidence.at(reading.level):
            *_, width = request.compared(step)
        accuracy = replace(accuracy, half_width=width / 2)
    charged = set(step.charges.column("cohort_id"))
    return Newcomers.of(
        request.study.definition,
        accuracy,
        most=step.most,
        most_in_all=step.most_in_all,
        people=sum(cohort.count for cohort in now.cohorts if cohort.id in charged),
    )
