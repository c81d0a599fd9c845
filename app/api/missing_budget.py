"""What is missing when a lifetime budget does not suffice; for the person and no one else."""

from app.core.contribution import Offer
from app.core.epsilon import epsilon_to_json
from app.core.errors import BudgetExhausted, FieldError
from app.core.study import Currency, Study
from app.web.request import ApiRequest


async def explained(
    refusal: BudgetExhausted, request: ApiRequest, study: Study, offer: Offer
) -> BudgetExhausted:
    """The refusal of a contribution with what its owner lacks. The contributor acts for them."""
    statement = await request.api.services.budgets.statement(offer.subject)
    account = statement.account
    held = next((line for line in statement.studies if line.study == study.definition.slug), None)
    lacking = offer.epsilon - (held.amount if held else 0)
    if offer.currency is Currency.GAUSSIAN:
        left = account.gaussian.mu2.remaining
        sentence = f"mu^2: {_sentence(epsilon_to_json(left), epsilon_to_json(lacking - left))}"
    else:
        left = account.epsilon.remaining
        sentence = _sentence(epsilon_to_json(left), epsilon_to_json(lacking - left))
    fields = [FieldError("epsilon", sentence)] if lacking > left else []
    return BudgetExhausted(refusal.detail, fields=fields)


async def explained_enrolment(
    refusal: BudgetExhausted, request: ApiRequest, epsilon: int, subject: bytes
) -> BudgetExhausted:
    """The refusal of a first answer with what its owner lacks to take part.

    Args:
        refusal: The bare one.
        request: Of the answer.
        epsilon: What taking part reserves [micro-epsilon].
        subject: Whose answer it is.
    """
    account = (await request.api.services.budgets.statement(subject)).account
    left = account.budget - account.reserved
    if epsilon <= left:
        return refusal
    sentence = _sentence(epsilon_to_json(left), epsilon_to_json(epsilon - left))
    return BudgetExhausted(refusal.detail, fields=[FieldError("epsilon", sentence)])


def _sentence(left: float, missing: float) -> str:
    return f"{left:.12g} is left of the lifetime budget, {missing:.12g} is missing"
