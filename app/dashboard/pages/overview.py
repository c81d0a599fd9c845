"""The installation at a glance."""

import asyncio
from collections.abc import Coroutine, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from markupsafe import Markup
from starlette.responses import Response

from app.core.errors import Unavailable
from app.dashboard import canvas, plots
from app.dashboard.pages.login import home_of
from app.dashboard.rendering import render
from app.dashboard.requests import PageRequest
from app.dashboard.routing import BOTH, PageRoute, redirect
from app.web import documents_out
from app.web.documents.figures import DayOut, HistogramOut
from app.web.documents.study_out import StudyOut

DAYS = 30
STUDIES = 8

FIRST_SECONDS = 1.0
"""How long a page waits for the first figures of an installation; it is drawn without them then."""

T = TypeVar("T")


async def show(request: PageRequest) -> Response:
    """Studies, contributions a day, budget health, releases today, and what needs attention."""
    home = home_of(request.principal)
    if home:
        return redirect(request, home)
    services = request.api.services
    overview = await following(documents_out.overview(services))
    if overview is None:
        page = await services.studies.page(STUDIES, None, request.principal)
        return render(
            request, "overview_first.html", rows=[StudyOut.model_validate(study) for study in page.items]
        )
    histogram, days, studies = await asyncio.gather(
        documents_out.histogram(services, None),
        documents_out.days(services, DAYS, None, None),
        documents_out.studies(services, STUDIES, None, request.principal),
    )
    recent = _every_day(days.items)
    return render(
        request,
        "overview.html",
        overview=overview,
        days=list(reversed(recent)),
        contributions_plot=plots.daily(
            f"New contributions a day over the last {DAYS} days",
            [(one.day, one.contributions) for one in recent],
            y="contributions",
        ),
        releases_plot=plots.daily(
            f"Releases a day over the last {DAYS} days",
            [(one.day, one.releases) for one in recent],
            y="releases",
            tone="c",
            size=canvas.LOW,
        ),
        budgets=histogram,
        budgets_plot=budget_plot(histogram),
        studies=studies,
    )


async def following(figures: Coroutine[Any, Any, T]) -> T | None:
    """Figures over all people, or None while the first ones are made: the page loads itself again."""
    try:
        async with asyncio.timeout(FIRST_SECONDS):
            return await figures
    except (TimeoutError, Unavailable):
        return None


def budget_plot(histogram: HistogramOut, size: canvas.Size = canvas.HALF) -> Markup:
    """What people have reserved and spent."""
    bins = [plots.PlotBin(one.lower, one.upper) for one in histogram.reserved.bins]
    return plots.histogram(
        "How many people have reserved and spent how much epsilon",
        bins,
        [
            plots.Series("reserved", "a", [one.people for one in histogram.reserved.bins]),
            plots.Series("spent", "b", [one.people for one in histogram.spent.bins]),
        ],
        x="epsilon",
        y="people",
        size=size,
    )


def _every_day(days: Sequence[DayOut]) -> list[DayOut]:
    """The last days in their order, also those on which nothing happened."""
    last = datetime.now(UTC).date()
    known = {one.day: one for one in days}
    wanted = [last - timedelta(days=ago) for ago in reversed(range(DAYS))]
    return [known.get(day) or DayOut(day=day, contributions=0, releases=0) for day in wanted]


ROUTES = (PageRoute("/dashboard", show, roles=BOTH),)
