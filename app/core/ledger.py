"""The rules of the ledger, as pure functions. The store applies them inside its transactions."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from app.core.contribution import Offer, Outcome
from app.core.study import Trust


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """What the ledger holds for one subject in one study.

    Attributes:
        live: False once withdrawn.
        trust, epsilon, value, vector: As contributed, `epsilon` in the study's currency. Withdrawn: it is
            what was spent, `value` and `vector` are None.
        carried: What was spent before the present value came.
        epoch: The epoch the present value belongs to.
        sender: The token that sent the present value; None: before senders were kept.
        segment: Number of the combination of its labels; withdrawn: 0.
    """

    live: bool
    trust: Trust
    epsilon: int
    carried: int
    value: int | None
    vector: tuple[int | None, ...] | None
    epoch: int
    sender: UUID | None
    segment: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """The row that an accepted offer writes."""

    trust: Trust
    epsilon: int
    carried: int
    value: int
    sender: UUID
    vector: tuple[int | None, ...] | None = None
    segment: int = 0


def same_value(holding: Holding, offer: Offer) -> bool:
    """Whether the offer is live already and its sender sent it, so that a retry is no news.

    To another token the same value is another one: its answer must not tell what a person gave.
    """
    if not (holding.live and holding.trust is offer.trust and holding.sender == offer.sender):
        return False
    if (holding.value, holding.vector, holding.segment) != (offer.value, offer.vector, offer.segment):
        return False
    return offer.trust is Trust.PUBLIC or holding.epsilon == offer.epsilon


def entry(offer: Offer, *, spent: int) -> Entry | Outcome:
    """The row for an offer whose owner has already spent something in the study.

    An offer's epsilon includes what was spent. A local report costs all of it on arrival, so there
    must be something left for the report; a public value reserves nothing new. A report whose range is that
    of a whole epsilon has no place where a part is gone: it would cost more than is booked, or be taken for
    less noisy than it is. Nor has a report that lies further out than what is left of its epsilon explains:
    it is forged.
    """
    public, local = offer.trust is Trust.PUBLIC, offer.trust is Trust.LOCAL
    if not public and (offer.epsilon < spent or (local and offer.epsilon == spent)):
        return Outcome.EPSILON_BELOW_SPENT
    if local and offer.bounded and spent:
        return Outcome.REPORT_AFTER_SPENDING
    if local and offer.epsilon - spent > offer.drawn_at_most:
        return Outcome.IMPOSSIBLE_REPORT
    return Entry(
        trust=offer.trust,
        epsilon=spent if public else offer.epsilon,
        carried=spent,
        value=offer.value,
        sender=offer.sender,
        vector=offer.vector,
        segment=offer.segment,
    )


def decide(
    offers: Sequence[Offer], holding: Holding | None, *, room: int
) -> tuple[list[Outcome], Entry | None]:
    """What becomes of one person's offers, as if each were made after the one before.

    Args:
        offers: In their order.
        holding: What the person holds in the study.
        room: What is left of the lifetime budget in the study's currency, below 0 where there is no such
            person.

    Returns:
        An outcome each, and the row to write if one of them is stored.
    """
    outcomes: list[Outcome] = []
    stored: Offer | None = None
    row: Entry | None = None
    spent = holding.epsilon if holding else 0
    for offer in offers:
        if stored is not None:
            outcomes.append(Outcome.UNCHANGED if offer == stored else Outcome.CONTRIBUTION_EXISTS)
        elif holding is not None and holding.live:
            repeated = same_value(holding, offer)
            outcomes.append(Outcome.UNCHANGED if repeated else Outcome.CONTRIBUTION_EXISTS)
        else:
            result = entry(offer, spent=spent)
            if isinstance(result, Outcome):
                outcomes.append(result)
            elif result.epsilon - spent > room:
                outcomes.append(Outcome.BUDGET_EXHAUSTED)
            else:
                stored, row = offer, result
                outcomes.append(Outcome.CREATED)
    return outcomes, row
