"""What the lifespan hands to every request."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TypedDict

from app.core.study import Study
from app.services import Services
from app.services.contributing.intake import Intake
from app.services.work import Work
from app.web.metrics import Metrics
from app.web.oidc import Verifier
from app.web.rate import RateLimit
from app.web.sign_in import SignIn
from app.web.visitors import Visitors


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much a request may carry [bytes].

    Attributes:
        document: A JSON document.
        batch: A batch as it is sent.
        batch_content: A batch after decompression.
    """

    document: int
    batch: int
    batch_content: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """Everything a route may use.

    Attributes:
        services: The use cases.
        limits: Body limits.
        work: Where plans, answers, pages and batches are computed.
        metrics: The application's metrics.
        oidc: Checks the JWTs of a provider; None where none is taken.
        sign_in: Signs people in with it at the dashboard; None where it does not.
        rate: How often a token may ask.
        visitors: How often people without a token may send something.
        public_url: Where people reach the service; None: wherever they asked.
        embed_origins: Whose pages may hold the page of a link in a frame.
        webhook_private_addresses: Whether webhooks may be at addresses that are not public.
        check_ready: Raises Unavailable where the database or its schema is not as it should be.
    """

    services: Services
    limits: Limits
    work: Work = field(default_factory=Work)
    metrics: Metrics
    oidc: Verifier | None = None
    sign_in: SignIn | None = None
    rate: RateLimit = field(default_factory=lambda: RateLimit(0))
    visitors: Visitors = field(default_factory=Visitors)
    public_url: str | None = None
    embed_origins: Sequence[str] = ()
    webhook_private_addresses: bool = False
    check_ready: Callable[[], Awaitable[None]]
    _intakes: dict[int, Intake] = field(default_factory=dict)

    def intake(self, study: Study) -> Intake:
        """What reads the contributions of a study; made again only when it gets a reporting range."""
        intake = self._intakes.get(study.id)
        if intake is None or (
            intake.definition is not study.definition and intake.definition != study.definition
        ):
            intake = self._intakes[study.id] = Intake(study.definition, self.services.subject_key)
        return intake


class State(TypedDict):
    """The ASGI lifespan state."""

    api: Api
