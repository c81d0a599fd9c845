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

ROUTES = (
    *front.ROUTES,
    *explorer.ROUTES,
    *login.ROUTES,
    *sign_in.ROUTES,
    *overview.ROUTES,
    *studies.ROUTES,
    *new_study.ROUTES,
    *size.ROUTES,
    *sessions.ROUTES,
    *budgets.ROUTES,
    *ledger.ROUTES,
    *tokens.ROUTES,
    *trail.ROUTES,
    *person.ROUTES,
    *assets.ROUTES,
)


def install(app: FastAPI) -> None:
    """Add every page to an application."""
    app.router.routes.extend(ROUTES)
