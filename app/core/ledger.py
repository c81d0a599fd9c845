"""The rules of the ledger, as pure functions. The store applies them inside its transactions."""

from dataclasses import dataclass
from uuid import UUID

from app.core.contribution import Offer, Outcome
from app.core.study import Trust


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """What the ledger holds for one subject in one study.

    Attributes:
        live: False once withdrawn.
        trust, epsilon, delta, value, vector: As contributed. Withdrawn: `epsilon` and `delta` are what
            was spent, `value` and `vector` are None.
        carried, delta_carried: What was spent before the present value came.
        epoch: The epoch the present value belongs to.
        sender: The token that sent the present value; None: before senders were kept.
    """

    live: bool
    trust: Trust
    epsilon: int
    carried: int
    delta: int
    delta_carried: int
    value: int | None
    vector: tuple[int, ...] | None
    epoch: int
    sender: UUID | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """The row that an accepted offer writes."""

    trust: Trust
    epsilon: int
    carried: int
    delta: int
    delta_carried: int
    value: int
    sender: UUID
    vector: tuple[int, ...] | None = None


def same_value(holding: Holding, offer: Offer) -> bool:
    """Whether the offer is live already and its sender sent it, so that a retry is no news.

    To another token the same value is another one: its answer must not tell what somebody gave.
    """
    if not (holding.live and holding.trust is offer.trust and holding.sender == offer.sender):
        return False
    if (holding.value, holding.vector) != (offer.value, offer.vector):
        return False
    return offer.trust is Trust.PUBLIC or holding.epsilon == offer.epsilon


def entry(offer: Offer, *, spent: int, delta_spent: int) -> Entry | Outcome:
    """The row for an offer whose owner has already spent something in the study.

    An offer's epsilon includes what was spent. A local report costs all of it on arrival, so there
    must be something left for the report; a public value reserves nothing new. A report that was randomized
    with a whole delta, or whose range is that of a whole epsilon, has no place where a part is gone: it
    would cost more than is booked, or be taken for less noisy than it is.
    """
    if offer.trust is Trust.PUBLIC:
        return Entry(
            trust=offer.trust,
            epsilon=spent,
            carried=spent,
            delta=delta_spent,
            delta_carried=delta_spent,
            value=offer.value,
            sender=offer.sender,
            vector=offer.vector,
        )
    if offer.epsilon < spent or (offer.trust is Trust.LOCAL and offer.epsilon == spent):
        return Outcome.EPSILON_BELOW_SPENT
    if offer.trust is Trust.LOCAL and ((offer.delta and delta_spent) or (offer.bounded and spent)):
        return Outcome.REPORT_AFTER_SPENDING
    return Entry(
        trust=offer.trust,
        epsilon=offer.epsilon,
        carried=spent,
        delta=max(offer.delta, delta_spent),
        delta_carried=delta_spent,
        value=offer.value,
        sender=offer.sender,
        vector=offer.vector,
    )
