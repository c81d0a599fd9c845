"""Single answers to a session, beside single contributions to the same service."""

from collections.abc import Iterator
from uuid import UUID

from app.core.session import SessionProtocol
from app.core.study import Study
from app.services import Services
from app.services.sessions.sessions import Schedule
from app.sessions.protocols import SessionSpec
from app.sessions.search import Mode
from benchmarks.load import Load, rate
from benchmarks.report import Ratio
from benchmarks.services import PRINCIPAL, Installation, installation
from benchmarks.studies import contribution_requests, definition

STUDY = "commute"
WORKERS = 2
CONNECTIONS = 64
PEOPLE = 4_000
GOAL = 0.5


def run(*, quick: bool) -> list[Ratio]:
    """Rounds of contributions, of first answers, and of answers of people who take part already."""
    rounds, seconds = (2, 1.0) if quick else (7, 3.0)
    baseline: list[float] = []
    first: list[float] = []
    later: list[float] = []
    with installation() as here:
        here.create_study(definition(STUDY))
        with here.serve(workers=WORKERS) as port:
            for number in range(rounds + 1):
                requests = contribution_requests(STUDY, here.contribute, f"round{number}")
                baseline.append(rate(port, CONNECTIONS, requests, seconds))
                session = open_session(here, Mode.USER_SPLIT, 1)
                requests = answers(session, here.contribute, f"first{number}", 1)
                first.append(rate(port, CONNECTIONS, requests, seconds))
                later.append(_later(here, port, f"later{number}", seconds))
    # The first round warms up: imports, connections, prepared statements.
    note = f"answer: {WORKERS} workers, {CONNECTIONS} connections, one session; baseline: contributions"
    return [
        Ratio(
            section="answer",
            name=name,
            unit="1/s",
            subject=subject[1:],
            baseline=baseline[1:],
            goal=GOAL,
            note=note,
        )
        for name, subject in (("first answers of new people", first), ("answers of who takes part", later))
    ]


def _later(here: Installation, port: int, prefix: str, seconds: float) -> float:
    """Rate of the second round of people who answered in the first one."""
    session = open_session(here, Mode.BUDGET_SPLIT, 2)
    with Load(port, CONNECTIONS) as load:
        enrolling = answers(session, here.contribute, prefix, 1)
        enrolled = load.saturate(enrolling, 1.5 * seconds).expect("201").statuses.total()
    here.use(lambda services: services.sessions.close_round(session, 1, PRINCIPAL))
    with Load(port, CONNECTIONS) as load:
        again = answers(session, here.contribute, prefix, 2)
        outcome = load.saturate(again, seconds).expect("201")
    return outcome.rate if outcome.statuses.total() <= enrolled else 0.0


def open_session(here: Installation, mode: Mode, rounds: int, slug: str = STUDY):
    spec = SessionSpec(
        protocol=SessionProtocol.MINIMUM, epsilon=1_000_000, mode=mode, rounds=rounds, participants=PEOPLE
    )
    schedule = Schedule(answers_per_round=None, round_seconds=None, deadline_seconds=3600)

    async def make(services: Services):
        study: Study = await services.studies.get(slug)
        made = await services.sessions.create(
            study, spec, schedule, PRINCIPAL, render=lambda session: session.definition.id.bytes
        )
        return UUID(bytes=made)

    return here.use(make)


def answers(session, token: str, prefix: str, round_number: int) -> Iterator[bytes]:
    """HTTP requests of one person after the other."""
    head = (
        f"POST /v1/sessions/{session}/answers HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Authorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: "
    ).encode()
    number = 0
    while True:
        number += 1
        body = f'{{"subject":"{prefix}-{number}","round":{round_number},"answer":{number % 2}}}'.encode()
        yield head + str(len(body)).encode() + b"\r\n\r\n" + body
