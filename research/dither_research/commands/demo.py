"""`dither demo`: the whole service on a real survey, from an empty directory to a budget that runs out."""

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, NoReturn

import httpx
import typer
from dither import Client

from app.cli.common import console, show
from dither_research.demo.filling import fill
from dither_research.demo.household_story import show_households
from dither_research.demo.households import households
from dither_research.demo.rounds import show_session
from dither_research.demo.service import Service, running_service
from dither_research.demo.story import (
    questions,
    show_answers,
    show_exhaustion,
    show_newcomers,
    show_replay,
    show_sharpening,
    show_statement,
    show_studies,
)
from dither_research.demo.survey import Survey, surveys

TIMEOUT_SECONDS = 120


def demo(
    data_dir: Annotated[
        Path,
        typer.Option(
            metavar="DIR",
            file_okay=False,
            help="Directory of the demo's own; what an earlier demo left there is removed.",
        ),
    ] = Path(".demo"),
    port: Annotated[
        int | None,
        typer.Option(help="Port of the service; 8000 or any free one by default.", min=1, max=65535),
    ] = None,
    wait: Annotated[
        bool, typer.Option(help="Leave the service running until interrupted, or stop at the end.")
    ] = True,
) -> None:
    """Show the whole service on real surveys of 6,366 people and 23,972 households.

    Starts an embedded PostgreSQL and the service, fills four studies over HTTP, prints noisy answers beside
    the true values with their price, lets every person's device take part in a session, and leaves the
    service running until interrupted. Settings in the environment do not apply to it.
    """
    with _unwound_by_signals():
        married, everyone, affair = surveys()
        age, late = everyone.with_newcomers()
        studies = (married, age, affair)
        started = time.monotonic()
        people = len(studies[0].records)
        console.print(f"[bold]Dither[/]: {people:,} women of a survey of 1974 answer three questions.\n")
        with running_service(data_dir, port) as service:
            console.print(f"The service and its PostgreSQL started in {time.monotonic() - started:.1f} s.")
            curl = _tell(service, studies, late)
            console.print(f"\nAll of that took {time.monotonic() - started:.1f} s.")
            if wait:
                console.print(f"\nThe service runs at {service.base_url} until you press Ctrl-C. Ask it:\n")
                console.print(f"  {curl}\n", markup=False)
                _stay(service)


def _tell(service: Service, studies: tuple[Survey, Survey, Survey], late: Survey) -> str:
    """The whole story; returns the curl line. Those who are late answer the second question."""
    with ExitStack() as stack:

        def client(token: str) -> httpx.Client:
            # Proxies are not for this machine's own address.
            return stack.enter_context(
                httpx.Client(
                    base_url=service.base_url,
                    headers={"Authorization": f"Bearer {token}"},
                    timeout=TIMEOUT_SECONDS,
                    trust_env=False,
                )
            )

        def sdk(token: str, directory: Path | None = None) -> Client:
            transport = httpx.HTTPTransport()
            return stack.enter_context(
                Client(
                    service.base_url, token, directory=directory, timeout=TIMEOUT_SECONDS, transport=transport
                )
            )

        admin = sdk(service.admin_token)
        contribute = admin.create_token("demo contribute", role="contribute").token
        analyse = admin.create_token("demo analyse", role="analyse").token
        contributor, analyst, device = client(contribute), client(analyse), sdk(contribute, service.devices)
        spending, _ = households()
        for study in (*studies, spending):
            study.create(admin)

        _heading("People contribute")
        started = time.monotonic()
        told, sent = fill(contributor, device, studies)
        show_studies(studies)
        total = sum(len(study.records) for study in studies)
        console.print(
            f"{total:,} contributions over HTTP in {time.monotonic() - started:.1f} s: CSV, NDJSON, single "
            "requests and the SDK. Local answers got their noise before they left the device.\n"
            f"Some privacy is free: {told.subject} offered epsilon {sent.epsilon}, and learned that one "
            f"release at share 1 would use at most {show(told.epsilon_used_at_most)} of it."
        )

        asked = questions(studies)
        _heading("An analyst asks")
        show_answers(analyst, asked)
        _heading("Asking again costs nothing")
        show_replay(analyst, contributor, asked[0])
        _heading("Asking for more sharpens the answer, and costs the difference")
        show_sharpening(sdk(analyse), contributor, studies[1])
        _heading("Who comes later pays for herself, and no one else pays again")
        show_newcomers(sdk(analyse), contributor, device, studies[1], late)
        _heading("Noise of its own costs its full price, until it is no gain or none is left")
        show_exhaustion(analyst, contributor, studies[1])
        _heading("What one woman has spent")
        show_statement(contributor, studies[1].records[0].subject)
        _heading("The median, from people who trust no one")
        show_session(service, admin, contribute, studies[0])

        _heading("By town, the median, and a range that is found: a survey with a heavy tail")
        show_households(device, sdk(analyse), spending)

        _heading("Your turn")
        console.print(f"analyst token   {analyse}", markup=False)
        console.print(f"admin token     in {service.data / 'admin.token'}", markup=False)
        if httpx.get(f"{service.base_url}/dashboard", trust_env=False).status_code != 404:
            console.print(f"dashboard       {service.base_url}/dashboard", markup=False)
        return f"curl -H 'Authorization: Bearer {analyse}' '{service.base_url}{asked[1].path}'"


def _heading(text: str) -> None:
    console.print()
    console.rule(f"[bold]{text}", align="left", style="dim")


def _stay(service: Service) -> None:
    """Wait for a signal, or for the service to die."""
    while True:
        service.check()
        time.sleep(0.5)


@contextmanager
def _unwound_by_signals() -> Iterator[None]:
    """Let Ctrl-C, a request to end and a closed terminal stop the service, and end with status 0."""

    def stop(_number: int, _frame: object) -> NoReturn:
        console.print("\nStopping the service and its database.")
        sys.exit(0)

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    previous = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
