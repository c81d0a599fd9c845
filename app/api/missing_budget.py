"""What is missing when a lifetime budget does not suffice; for the person and no one else."""

from app.core.contribution import Offer
from app.core.epsilon import delta_to_json, epsilon_to_json
from app.core.errors import BudgetExhausted, FieldError
from app.core.study import Study
from app.web.request import ApiRequest


async def explained(
    refusal: BudgetExhausted, request: ApiRequest, study: Study, offer: Offer
) -> BudgetExhausted:
    """The refusal of a contribution with what its owner lacks. The contributor acts for them."""
    statement = await request.api.services.budgets.statement(offer.subject)
    account = statement.account
    held = next((line for line in statement.studies if line.study == study.definition.slug), None)
    left = account.budget - account.reserved
    delta_left = account.delta_budget - account.delta_reserved
    missing = offer.epsilon - (held.epsilon if held else 0) - left
    delta_missing = offer.delta - (held.delta if held else 0) - delta_left
    fields = []
    if missing > 0:
        fields.append(FieldError("epsilon", _sentence(epsilon_to_json(left), epsilon_to_json(missing))))
    if delta_missing > 0:
        fields.append(FieldError("delta", _sentence(delta_to_json(delta_left), delta_to_json(delta_missing))))
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
