"""The pages of the application."""

from fastapi import FastAPI

from app.dashboard.pages import (
    assets,
    budgets,
    collecting,
    explorer,
    front,
    importing,
    ledger,
    login,
    new_study,
    nowhere,
    overview,
    person,
    published,
    publishing,
    release,
    scheduling,
    sessions,
    sign_in,
    size,
    studies,
    take,
    tokens,
    trail,
)

_STUDIES = (studies, collecting, importing, publishing, scheduling, release, new_study, size, sessions)
_STAFF = (login, sign_in, overview, *_STUDIES, budgets, ledger, tokens, trail)
ROUTES = tuple(
    route
    for page in (front, explorer, *_STAFF, person, take, published, assets, nowhere)
    for route in page.ROUTES
)


def install(app: FastAPI) -> None:
    """Add every page to an application."""
    app.router.routes.extend(ROUTES)
