"""The application on a fresh database."""

from tests.api.conftest import service

__all__ = ["service"]
