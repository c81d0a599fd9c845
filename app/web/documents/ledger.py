"""The ledger on the wire."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from app.core.epsilon import delta_to_json, epsilon_to_json
from app.web.documents.types import EpsilonOut, IdOut, Mu2Out, WireOut

_UNITS = {
    "epsilon": epsilon_to_json,
    "at_most": epsilon_to_json,
    "gaussian_epsilon": epsilon_to_json,
    "gaussian_delta": delta_to_json,
    "share": epsilon_to_json,
    "until": epsilon_to_json,
    "quota": epsilon_to_json,
}
"""How numbers of the trail are shown."""


def _in_human_units(detail: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _UNITS[name](value) if name in _UNITS and isinstance(value, int) else value
        for name, value in detail.items()
    }


class TrailLineOut(WireOut):
    """What an admin did: who, what, when and why. Never with values, secrets or external ids."""

    id: int = Field(description="Place in the trail.")
    at: datetime
    actor: str = Field(description="Id of a token, or who else did it: `command line`.")
    actor_name: str | None = Field(description="Name of that token.")
    action: str = Field(description="Such as `budget.set`, `study.close` or `token.revoke`.")
    target: str = Field(description="A slug, an id, or the digest of an external id.")
    target_name: str | None = Field(description="Name of the token that it is; null where it is none.")
    detail: Annotated[dict[str, Any], BeforeValidator(_in_human_units)] = Field(
        description="What was changed to what, and the `reason` where one was given."
    )


class LedgerLineOut(WireOut):
    """What one release cost each member of one cohort."""

    number: int = Field(description="Place of the release in the hash chain.")
    release: IdOut
    study: str
    estimator: str
    cohort_id: int
    epoch: int
    trust: str
    offered: EpsilonOut = Field(description="The most that each member may ever spend here.")
    people: int = Field(
        description="Members now; those who withdrew or changed their contribution since paid as well."
    )
    epsilon: EpsilonOut = Field(description="With Gaussian noise at the study's delta.")
    mu2: Mu2Out | None = Field(description="With Gaussian noise; null with Laplace noise.")
    created_at: datetime
