"""An answer about the distribution of the values as it is to be published; without the database."""

import json
from collections.abc import Mapping
from dataclasses import replace
from uuid import uuid4

from app.accounting.measurement import recorded
from app.core.clock import Clock
from app.core.epsilon import MICRO
from app.core.errors import BudgetExhausted, InternalFault
from app.core.piece import Taken
from app.core.release import Draft, Facts
from app.services.shapes.shape_kinds import AnyPlan
from app.services.shapes.shape_plans import LOCAL, SMALL
from app.services.shapes.shape_request import ShapeRequest
from app.services.shapes.shape_steps import ShapeStep
from app.services.statistics.planning import NOT_REPORTED, in_units

NUMBERS = ("estimate", "standard_error", "noisy_count")
"""What an answer may say of itself that lists show, too."""

VERSION = 5
"""Grows whenever the distribution of answers changes."""


def drafted(
    request: ShapeRequest,
    made: AnyPlan | ShapeStep,
    answer: Mapping[str, object],
    noise: str,
    *,
    epoch: int,
    clock: Clock,
    taken: Taken | None = None,
) -> Draft:
    """Write an answer down. Fails closed: whatever goes wrong, there is no draft."""
    study, question, crowd = request.study, request.question, made.crowd
    release_id, now = uuid4(), clock.now()
    before = None if taken is None else taken.before
    share_before = 0 if before is None else before.share
    share = max(question.share, share_before)
    document: dict[str, object] = {
        "id": str(release_id),
        "study": study.definition.slug,
        "estimator_version": VERSION,
        "statistic": question.statistic,
        "estimator": question.estimator,
        "parameters": question.asked(),
        **question.of_whom_and_what,
        "predicted_error": made.predicted_error,
        **answer,
        "relation": study.definition.relation.value,
        "share": share / MICRO,
        "share_before": share_before / MICRO,
        "refines": None if before is None else str(before.release),
        **in_units(study.definition, "epsilon_max", made.most),
        **in_units(study.definition, "epsilon_max_total", made.most_in_all),
        "created_at": now.isoformat(),
    }
    if question.level is not None:
        document |= question.level.document(answer)
    if (assumed := question.assumption(study.definition)) is not None:
        document["assumption"] = assumed
    if request.compares:
        reasons = {
            BudgetExhausted.code: crowd.unable,
            SMALL: crowd.of_small,
            LOCAL: crowd.local,
            NOT_REPORTED: crowd.silent,
        }
        document["people"] = crowd.people
        document["people_left_out"] = crowd.left_out
        document["left_out_because"] = " ".join(code for code in reasons if reasons[code]) or None
    try:
        body = json.dumps(document, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError) as error:
        raise InternalFault("the answer could not be written down") from error
    return Draft(
        id=release_id,
        study_id=study.id,
        question=question.digest,
        asked=replace(question.by_parts, share=share),
        epoch=epoch,
        estimator=question.estimator,
        estimator_version=VERSION,
        noise=noise if isinstance(made, ShapeStep) else recorded(noise, made.measured()),
        body=body,
        facts=Facts(
            **{name: value if isinstance(value := answer.get(name), float) else None for name in NUMBERS},
            epsilon_max=made.most,
            people=crowd.people if request.compares else None,
            people_left_out=crowd.left_out if request.compares else None,
            silent=crowd.silent,
            width=made.interval_width if request.compares else None,
        ),
        charges=made.charges if isinstance(made, ShapeStep) else made.charges(),
        used=made.used,
        created_at=now,
        taken=taken,
    )
