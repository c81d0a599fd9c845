"""An answer as it is published: what every one says of itself, and what the ledger keeps; no database."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self
from uuid import UUID, uuid4

from app.core.clock import Clock
from app.core.epsilon import MICRO, delta_to_json, epsilon_to_json
from app.core.errors import InternalFault
from app.core.piece import Piece, Taken
from app.core.release import Charge, Draft, Facts, Used
from app.core.study import Study, StudyDefinition
from app.services.statistics.any_question import AnyQuestion
from app.services.statistics.kept_ends import written

NOT_REPORTED = "measure_not_reported"
"""Why local people are left out of an answer about a measure: their devices reported others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """An answer whose noise is drawn.

    Attributes:
        estimator, version: What answers.
        parameters: Of the question, as they were answered.
        numbers: What it says in front of its price.
        details: What it says behind that.
        finished: Adds to the document what rests on all of that.
        people: All with a live contribution.
        left_out: How many of them have no part in it, by the reason.
        width: That answers are compared by.
        variance: The most that the variance of the population may be; None where nothing is known.
        most, most_in_all: The largest charge by this answer, and with those that it sharpens [the study's
            currency].
        noise: For the ledger: what is needed to compute the price again.
        charges, used: Of and by which cohorts.
        taken, apart: The pieces that it changes, and the sums that are kept of it.
        combines: The releases that it is read off.
    """

    estimator: str
    version: int
    parameters: Mapping[str, object]
    numbers: Mapping[str, object]
    details: Mapping[str, object] = field(default_factory=dict)
    finished: Callable[[dict[str, Any]], dict[str, Any]] = dict
    people: int
    left_out: Mapping[str, int]
    width: float
    variance: float | None = None
    most: int = 0
    most_in_all: int = 0
    noise: str
    charges: Sequence[Charge] = ()
    used: Sequence[Used] = ()
    taken: Taken | None = None
    apart: Piece | None = None
    combines: Sequence[UUID] = ()

    @classmethod
    def of(cls, made: Any, **said: Any) -> Self:
        """What an answer that was planned says, with what it takes of whom.

        Args:
            made: The answer.
            **said: All else.
        """
        return cls(
            people=made.crowd.people,
            width=made.interval_width,
            most=made.most,
            most_in_all=made.most_in_all,
            used=made.used,
            **said,
        )


def drafted(study: Study, question: AnyQuestion, said: Said, *, epoch: int, clock: Clock) -> Draft:
    """Write an answer down. Fails closed: whatever goes wrong, there is no draft.

    In add_remove_one studies nothing but the noisy part depends on who is there.
    """
    release_id, now = uuid4(), clock.now()
    public = not study.definition.hides_people
    before = None if said.taken is None else said.taken.before
    share_before = 0 if before is None else before.share
    share, left_out = max(question.share, share_before), sum(said.left_out.values())
    try:
        document: dict[str, Any] = {
            "id": str(release_id),
            "study": study.definition.slug,
            "estimator_version": said.version,
            "statistic": question.statistic,
            "estimator": said.estimator,
            "parameters": said.parameters,
            **question.of_whom_and_what,
            **said.numbers,
            "relation": study.definition.relation.value,
            "share": share / MICRO,
            "share_before": share_before / MICRO,
            "refines": None if before is None else str(before.release),
            **in_units(study.definition, "epsilon_max", said.most),
            **in_units(study.definition, "epsilon_max_total", said.most_in_all),
            "created_at": now.isoformat(),
            **said.details,
        }
        if question.level is not None:
            document |= question.level.document(document)
        if (assumed := question.assumption(study.definition)) is not None:
            document["assumption"] = assumed
        document = said.finished(document)
        if public:
            document["people"], document["people_left_out"] = said.people, left_out
            reasons = [reason for reason, people in said.left_out.items() if people]
            document["left_out_because"] = " ".join(reasons) or None
        if said.combines:
            document["combines"] = [str(one) for one in said.combines]
        body, kept = written(document)
    except (TypeError, ValueError) as error:
        raise InternalFault("the answer could not be written down") from error
    return Draft(
        id=release_id,
        study_id=study.id,
        question=question.digest,
        asked=replace(question.by_parts, share=share),
        epoch=epoch,
        estimator=said.estimator,
        estimator_version=said.version,
        noise=said.noise,
        body=body,
        kept_ends=kept,
        facts=Facts(
            people=said.people if public else None,
            people_left_out=left_out if public else None,
            silent=said.left_out[NOT_REPORTED],
            width=said.width if public else None,
            estimate=_number(said.numbers.get("estimate")),
            standard_error=_number(said.numbers.get("standard_error")),
            noisy_count=_number({**said.numbers, **said.details}.get("noisy_count")),
            variance=said.variance,
            epsilon_max=said.most,
        ),
        charges=said.charges,
        used=said.used,
        created_at=now,
        taken=said.taken,
        apart=said.apart,
    )


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def in_units(study: StudyDefinition, name: str, amount: int) -> dict[str, object]:
    """An amount of the study's currency in a document: as an epsilon, and in mu^2 where it is one."""
    shown: dict[str, object] = {name: epsilon_to_json(study.epsilon(amount))}
    if study.noise.is_gaussian:
        shown[name.replace("epsilon", "mu2")] = epsilon_to_json(amount)
        shown["delta"] = delta_to_json(study.delta)
    return shown
