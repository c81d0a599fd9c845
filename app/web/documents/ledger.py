"""The ledger on the wire."""

from datetime import datetime

from pydantic import Field

from app.web.documents.types import DeltaOut, EpsilonOut, IdOut, WireOut


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
    people: int
    epsilon: EpsilonOut
    delta: DeltaOut
    created_at: datetime
