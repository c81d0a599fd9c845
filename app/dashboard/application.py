"""The pages of the application."""

from fastapi import FastAPI

from app.dashboard.pages import (
    assets,
    budgets,
    explorer,
    front,
    ledger,
    login,
    new_study,
    overview,
    person,
    sessions,
    sign_in,
    size,
    studies,
    tokens,
    trail,
)

_STAFF = (login, sign_in, overview, studies, new_study, size, sessions, budgets, ledger, tokens, trail)
ROUTES = tuple(route for page in (front, explorer, *_STAFF, person, assets) for route in page.ROUTES)


def install(app: FastAPI) -> None:
    """Add every page to an application."""
    app.router.routes.extend(ROUTES)
