"""Plans of several questions on the wire, and what they take together."""

from collections.abc import Sequence
from typing import Self

from pydantic import ConfigDict, Field

from app.core.study import Study
from app.services.statistics.drafting import Planned, charges_of
from app.web.documents.plan import EXAMPLE, PlanOut
from app.web.documents.types import EpsilonOut, Mu2Out, WireOut


class PlannedQuestionOut(PlanOut):
    """The plan of one of several questions, as if it alone were asked."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [EXAMPLE | {"epsilon_max": 0.15, "mu2_max": None}]}
    )

    epsilon_max: EpsilonOut = Field(
        description="What its answer would charge a person at most; 0 where it costs nothing or is refused."
    )
    mu2_max: Mu2Out | None = Field(description="The same in mu^2; null with Laplace noise.")


class PlansOut(WireOut):
    """The plans of several questions. Nothing is spent."""

    questions: list[PlannedQuestionOut] = Field(description="In the order in which they were asked.")
    epsilon_max: EpsilonOut = Field(
        description="What the answers to all of them would charge a person at most. What is read off one "
        "answer is paid once, and of several shares of a question that is sharpened the largest one. No "
        "person is charged more than they offered."
    )
    mu2_max: Mu2Out | None = Field(description="The same in mu^2; null with Laplace noise.")

    @classmethod
    def of(cls, planned: Sequence[tuple[Planned, PlanOut]], study: Study) -> Self:
        """Plans with what they charge."""
        amounts, together = charges_of([one for one, _ in planned], study.definition)
        questions = [
            {**dict(shown), **_price(study, amount)}
            for (_, shown), amount in zip(planned, amounts, strict=True)
        ]
        return cls.model_validate({"questions": questions, **_price(study, together)})


def _price(study: Study, amount: int) -> dict[str, object]:
    definition = study.definition
    return {"epsilon_max": definition.epsilon(amount), "mu2_max": definition.noise.mu2(amount)}
