"""What is missing when a lifetime budget does not suffice; for the person and no one else."""

from app.core.contribution import Offer
from app.core.epsilon import epsilon_to_json
from app.core.errors import BudgetExhausted, FieldError
from app.core.study import Study
from app.web.request import ApiRequest

NOT_GRANTED = "there is no lifetime budget for Gaussian noise; the operator may grant one"


async def explained(
    refusal: BudgetExhausted, request: ApiRequest, study: Study, offer: Offer
) -> BudgetExhausted:
    """The refusal of a contribution with what its owner lacks. The contributor acts for them."""
    statement = await request.api.services.budgets.statement(offer.subject)
    account = statement.account
    held = next((line for line in statement.studies if line.study == study.definition.slug), None)
    lacking = offer.epsilon - (held.amount if held else 0)
    if offer.currency.is_gaussian:
        if account.gaussian is None:
            return BudgetExhausted(refusal.detail, fields=[FieldError("epsilon", NOT_GRANTED)])
        return _lacking(refusal, lacking, account.gaussian.mu2.remaining, "mu^2: ")
    return _lacking(refusal, lacking, account.epsilon.remaining)


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
    return _lacking(refusal, epsilon, account.epsilon.remaining)


def _lacking(refusal: BudgetExhausted, wanted: int, left: int, unit: str = "") -> BudgetExhausted:
    """The refusal with what is left of a budget, where that is less than what is wanted of it."""
    if wanted <= left:
        return refusal
    there, missing = epsilon_to_json(left), epsilon_to_json(wanted - left)
    sentence = f"{unit}{there:.12g} is left of the lifetime budget, {missing:.12g} is missing"
    return BudgetExhausted(refusal.detail, fields=[FieldError("epsilon", sentence)])
