"""Health on the wire."""

from typing import Literal

from app.web.documents.types import WireOut


class HealthOut(WireOut):
    """How the service is."""

    status: Literal["live", "ready"]
