"""Sessions: a protocol while it runs, and what it found."""

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response

from app.core.numbers import Headline, headline
from app.dashboard import canvas, plots
from app.dashboard.rendering import render
from app.dashboard.requests import PageRequest
from app.dashboard.routing import BOTH, PageRoute
from app.sessions.search_protocol import interval_after
from app.web.documents.session import session_document
from app.web.documents.study_out import StudyOut
from app.web.request import uuid_of

SHALLOW = canvas.Size("wide", 1120, 180)


async def show(request: PageRequest) -> Response:
    """A live view: what is left of the range, or where the centers are, and how many have answered."""
    session = await request.api.services.sessions.get(uuid_of(request.path_params["session"], "session"))
    request.refuse_other_studies(session.definition.study)
    study = await request.study(session.definition.study)
    document = session_document(session, study)
    path: Sequence[Mapping[str, Any]] = document["path"]
    searching = document["protocol"] != "kmeans"
    left = _intervals(document) if searching else []
    centers = [] if searching else [document["initial_centres"], *(step["centres"] for step in path)]
    return render(
        request,
        "session.html",
        session=document,
        study=StudyOut.model_validate(study),
        searching=searching,
        shown=_shown(document),
        left=left,
        narrowing_plot=plots.narrowing(
            "What is left of the range after each round",
            left,
            rounds=document["rounds"],
            low=document["lower"],
            high=document["upper"],
            y="value",
        ),
        wandering_plot=plots.wandering(
            "The center of each cluster, round after round",
            centers,
            rounds=document["rounds"],
            low=document["lower"],
            high=document["upper"],
        ),
        answers_plot=plots.answered("Answers in each round", _answers(document), size=SHALLOW),
    )


def _shown(session: Mapping[str, Any]) -> Headline | None:
    """The estimate of a search that has finished, no more exact than its interval."""
    if session.get("estimate") is None:
        return None
    interval = session["interval"]
    return headline(session["estimate"], interval["lower"], interval["upper"])


def _intervals(session: Mapping[str, Any]) -> list[tuple[float, float]]:
    """The whole range, and what was left of it after each closed round."""
    maximum = session["protocol"] == "maximum"
    whole = (session["lower"], session["upper"])
    return [whole, *(interval_after(step, maximum=maximum) for step in session["path"])]


def _answers(session: Mapping[str, Any]) -> list[int]:
    """Answers of every round: closed ones, the open one, and none of those to come."""
    given = [0] * session["rounds"]
    for step in session["path"]:
        given[step["round"] - 1] = step["answers"]
    if session["round"] is not None:
        given[session["round"] - 1] = session["answers"]
    return given


ROUTES = (PageRoute("/dashboard/sessions/{session}", show, roles=BOTH),)
