"""Taking part in sessions: what is answered, what is remembered, what is refused, what it counts."""

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from copy import deepcopy
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import pytest
from dither import (
    AlreadyContributed,
    AsyncClient,
    DirectoryRequired,
    InvalidRequest,
    MaxEpsilonExceeded,
    Participation,
    ProblemError,
    Session,
    SessionChanged,
    SessionUnsound,
    TransportError,
    UnsupportedMechanism,
)

from tests.client.conftest import IMPATIENT
from tests.client.service import COMMUTE, FakeService, problem
from tests.client.sessions import GRID, KMEANS, MINIMUM, SPLIT, FakeSession
from tests.support.live import ROOT

Connect = Callable[..., Any]


def sent(service: FakeService) -> list[dict[str, Any]]:
    """The answers that left the device."""
    return [body for request, body in service.requests("POST") if request.url.path.endswith("/answers")]


def opened(service: FakeService, document: dict[str, Any], **changes: Any) -> FakeSession:
    return service.sessions.put({**document, **changes})


def stored(directory: Path) -> list[tuple[int, int, str]]:
    """Round, answer and state of everything in a ledger."""
    with closing(sqlite3.connect(directory / "ledger.sqlite3")) as database:
        return list(database.execute("SELECT round, answer, state FROM answer ORDER BY enrolment, round"))


# ------------------------------------------------------------------------------- answering


def test_every_round_of_a_search_is_answered_once(client: Any, service: FakeService) -> None:
    opened(service, MINIMUM, rounds=10, answers_per_person=10, epsilon_per_answer=0.1)
    progress: list[Participation] = []
    part = client.participate("s1", subject="ada", value=34, on_progress=progress.append)
    assert part.rounds == tuple(range(1, 11)) == tuple(body["round"] for body in sent(service))
    assert (part.session, part.subject, part.late) == ("s1", "ada", ())
    assert part.epsilon == Decimal(1)
    assert [len(one.rounds) for one in progress] == list(range(1, 11))
    assert all(body.keys() == {"subject", "round", "answer"} for body in sent(service))
    assert {body["answer"] for body in sent(service)} <= {0, 1}


@pytest.mark.parametrize(
    ("protocol", "value", "threshold", "truth"),
    [
        ("minimum", 60, GRID // 2, 1),
        ("minimum", "60.0000001", GRID // 2 - 1, 0),
        ("quantile", 59, GRID // 2, 1),
        ("maximum", 60, GRID // 2, 1),
        ("maximum", 59, GRID // 2, 0),
        ("maximum", 61, GRID // 2, 1),
    ],
)
def test_the_answer_is_the_truth_where_epsilon_is_boundless(
    client: Any, service: FakeService, protocol: str, value: Any, threshold: int, truth: int
) -> None:
    session = opened(service, MINIMUM, protocol=protocol, epsilon_per_answer=1000, epsilon_total=2000)
    session.round_changes["threshold"] = threshold
    client.participate("s1", subject="ada", value=value)
    assert [body["answer"] for body in sent(service)] == [truth] * 2


@pytest.mark.long
def test_answers_lie_as_often_as_epsilon_says(client: Any, service: FakeService) -> None:
    """ln 3 tells the truth three times out of four; six standard deviations either way."""
    rounds = 200
    opened(
        service,
        MINIMUM,
        rounds=rounds,
        answers_per_person=rounds,
        epsilon_per_answer=1.098612,
        epsilon_total=220,
    ).round_changes["threshold"] = GRID
    client.participate("s1", subject="ada", value=34)
    truths = sum(body["answer"] for body in sent(service))
    assert abs(truths - 150) < 6 * (rounds * 0.75 * 0.25) ** 0.5


def test_user_split_answers_one_round_only_and_does_not_ask_again(client: Any, service: FakeService) -> None:
    session = opened(service, SPLIT)
    asked_in = 3  # where this key has put gus

    def advance(request: httpx.Request) -> httpx.Response:
        """A long poll during which rounds go by."""
        if request.url.path.endswith("/round"):
            session.document["round"] = min(session.open_round + 1, asked_in)
        service.faults = [advance]
        return service.serve(request)

    service.faults = [advance]
    part = client.participate("s1", subject="gus", value=34)
    assert (part.rounds, part.epsilon, part.finished) == ((3,), Decimal(1), False)
    assert {request.url.params["after"] for request in service.log if "after" in request.url.params} == {"2"}
    service.faults, polls = [], len(service.log)
    assert client.participate("s1", subject="gus", value=34) == part
    assert len(sent(service)) == 1
    assert len(service.log) == polls


def test_somebody_who_comes_after_their_round_gives_nothing(client: Any, service: FakeService) -> None:
    opened(service, SPLIT, round=5)
    part = client.participate("s1", subject="gus", value=34)
    assert (part.rounds, part.late, part.epsilon) == ((), (), Decimal(0))
    assert sent(service) == []
    assert client.ledger().totals == {"gus": Decimal(0)}


def test_a_late_answer_is_no_error_and_counts_as_given(client: Any, service: FakeService) -> None:
    session = opened(service, MINIMUM)

    def overtake(request: httpx.Request) -> httpx.Response:
        if request.method == "GET":
            service.faults.insert(0, overtake)
        elif session.open_round == 1:
            session.close_round()
        return service.serve(request)

    service.faults = [overtake]
    part = client.participate("s1", subject="ada", value=34)
    assert (part.rounds, part.late, part.epsilon) == ((2,), (1,), Decimal(1))
    assert client.ledger().totals == {"ada": Decimal(1)}


def test_an_unspent_rest_is_released_when_the_session_ends_early(client: Any, service: FakeService) -> None:
    session = opened(service, MINIMUM, rounds=4, answers_per_person=4, epsilon_per_answer=0.25)
    seen: list[Decimal] = []

    def watch(part: Participation) -> None:
        seen.append(client.ledger().totals["ada"] if not hasattr(client, "_loop") else Decimal(1))
        session.finish()

    part = client.participate("s1", subject="ada", value=34, on_progress=watch)
    assert (part.rounds, part.finished, part.estimate) == ((1,), True, 33.0)
    assert seen == [Decimal(1)]
    assert client.ledger().totals == {"ada": Decimal("0.25")}
    [entry] = client.ledger("ada").sessions
    assert (entry.epsilon, entry.given, entry.counted) == (Decimal(1), Decimal("0.25"), Decimal("0.25"))
    assert (entry.state, entry.answers, entry.study) == ("finished", 1, "commute")


def test_a_session_that_is_over_takes_nothing_from_anybody(client: Any, service: FakeService) -> None:
    opened(service, MINIMUM).finish()
    part = client.participate("s1", subject="ada", value=34)
    assert (part.rounds, part.finished, part.estimate, part.epsilon) == ((), True, 33.0, Decimal(0))
    assert client.ledger().sessions == ()


def test_kmeans_sends_one_report_and_the_nearest_center_of_every_round(
    client: Any, service: FakeService
) -> None:
    opened(service, KMEANS, epsilon_per_answer=1000, report_epsilon=1000, epsilon_total=3000)
    part = client.participate("k1", subject="ada", value=[100, "30.5"])
    first, second = sent(service)
    assert (first["answer"], second["answer"], part.rounds) == (2, 2, (1, 2))
    assert "report" not in second
    # Scale 2 * 2^30 / 1000: a hundred of them is beyond e^-100.
    for told, true in zip(first["report"], (100, 30.5), strict=True):
        assert abs(told - true / 120 * GRID) < 100 * 2 * GRID / 1000
    assert client.ledger().totals == {"ada": Decimal(3000)}


def test_a_report_that_never_arrived_is_sent_again_with_the_next_answer(
    connect: Connect, service: FakeService
) -> None:
    session = opened(service, KMEANS)
    gone = httpx.ConnectError("refused")

    def cut(request: httpx.Request) -> httpx.Response:
        service.faults = [cut]
        if request.method == "POST":
            raise gone
        return service.serve(request)

    service.faults = [cut]
    with pytest.raises(TransportError):
        connect().participate("k1", subject="ada", value=[100, 30])
    session.close_round()
    service.faults = []
    part = connect().participate("k1", subject="ada", value=[100, 30])
    reports = [body["report"] for body in sent(service)]
    assert part.rounds == (2,)
    assert len({json.dumps(report) for report in reports}) == 1
    assert part.epsilon == Decimal("1.5")  # the first answer has perhaps been seen


# ------------------------------------------------------------------------- once and for all


def test_the_same_again_draws_nothing(connect: Connect, service: FakeService) -> None:
    """Answers of epsilon 0.001 are coin flips: thirty of them never come out the same by chance."""
    rounds = 30
    document = {"rounds": rounds, "answers_per_person": rounds, "epsilon_per_answer": 0.001}
    opened(service, MINIMUM, **document)
    part = connect().participate("s1", subject="ada", value=34)
    drawn = [body["answer"] for body in sent(service)]
    opened(service, MINIMUM, **document)  # a service that has forgotten everything asks again
    assert connect().participate("s1", subject="ada", value=34) == part
    assert [body["answer"] for body in sent(service)] == drawn
    with pytest.raises(AlreadyContributed):
        connect().participate("s1", subject="ada", value=35)


def test_lost_answers_are_sent_again_unchanged(client: Any, service: FakeService) -> None:
    rounds = 30
    opened(service, MINIMUM, rounds=rounds, answers_per_person=rounds, epsilon_per_answer=0.001)

    def lossy(request: httpx.Request) -> httpx.Response:
        if request.method == "GET":
            service.faults = [lossy]
            return service.serve(request)
        service.faults = [httpx.Response(503), lambda again: restore(service.serve(again))]
        return service.lose(request)

    def restore(response: httpx.Response) -> httpx.Response:
        service.faults = [lossy]
        return response

    service.faults = [lossy]
    assert len(client.participate("s1", subject="ada", value=34).rounds) == rounds
    by_round: dict[int, set[int]] = {}
    for body in sent(service):
        by_round.setdefault(body["round"], set()).add(body["answer"])
    assert len(sent(service)) == 3 * rounds
    assert all(len(answers) == 1 for answers in by_round.values())


DEVICE = """
import os, signal, sys
from dither import Client, Retry
from tests.client.service import FakeService
from tests.client.sessions import MINIMUM

rounds = 40
directory, crash = sys.argv[1], sys.argv[2] == "crash"
service = FakeService()
many = {"rounds": rounds, "answers_per_person": rounds, "epsilon_per_answer": 0.001}
service.sessions.put({**MINIMUM, **many, "answers_per_round": None})
session = service.sessions.by_id["s1"]

def serve(request):
    # Rounds close by themselves as soon as somebody waits for the next one.
    while not session.finished and session.open_round <= int(request.url.params.get("after", 0)):
        session.close_round()
    if crash and request.method == "POST" and session.open_round == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return service(request)

import httpx
client = Client("https://d.example", "t", directory=directory, transport=httpx.MockTransport(serve))
if sys.argv[2] == "race":
    sys.stdin.read()
client.participate("s1", subject="ada", value=34)
print([body["answer"] for body in service.sent("POST")])
"""


def device(directory: Path, mode: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", DEVICE, str(directory), mode],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'client'}"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.long
def test_a_device_that_is_killed_between_drawing_and_sending_sends_what_it_drew(tmp_path: Path) -> None:
    directory = tmp_path / "device"
    killed = device(directory, "crash")
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    before = stored(directory)
    assert [(number, state) for number, _, state in before] == [
        *((number, "accepted") for number in range(1, 5)),
        (5, "pending"),
    ]
    # Another service that has heard nothing asks from the start.
    output, _ = device(directory, "again").communicate()
    assert json.loads(output)[0] == before[4][1], "round 5 first: the accepted ones are not sent again"
    assert [row[:2] for row in stored(directory)][:5] == [row[:2] for row in before]


def test_two_processes_on_one_directory_draw_every_answer_once(tmp_path: Path) -> None:
    directory = tmp_path / "device"
    racing = [device(directory, "race") for _ in range(2)]
    for one in racing:
        assert one.stdin is not None
        one.stdin.close()
        one.stdin = None
    heard = [json.loads(one.communicate()[0]) for one in racing]
    drawn = [answer for _, answer, _ in stored(directory)]
    assert len(drawn) == 40
    # Either process sends an answer that is not known to have arrived; what it sends is what was drawn.
    assert all(is_part_of(answers, drawn) for answers in heard)
    assert max(map(len, heard)) > 0


def is_part_of(part: list[int], whole: list[int]) -> bool:
    rest = iter(whole)
    return all(item in rest for item in part)


# ------------------------------------------------------------------------------- the limit


def test_the_own_limit_holds_over_contributions_and_sessions(connect: Connect, service: FakeService) -> None:
    opened(service, MINIMUM)
    opened(service, MINIMUM, id="s2")
    client = connect(max_epsilon="2.5")
    client.contribute("commute", subject="ada", value=34, epsilon=1, trust="local")
    client.participate("s1", subject="ada", value=34)
    with pytest.raises(MaxEpsilonExceeded) as refusal:
        client.participate("s2", subject="ada", value=34)
    assert (refusal.value.given, refusal.value.limit) == (Decimal(2), Decimal("2.5"))
    assert {body["subject"] for body in sent(service)} == {"ada"}
    assert len(sent(service)) == 2
    with pytest.raises(MaxEpsilonExceeded):
        client.contribute("sleep", subject="ada", value=7, epsilon=1, trust="local")
    client.contribute("sleep", subject="ada", value=7, epsilon="0.5", trust="local")
    assert client.ledger().totals == {"ada": Decimal("2.5")}
    client.participate("s2", subject="bob", value=34)  # everybody has a limit of their own


def test_the_whole_price_counts_while_more_may_be_asked(connect: Connect, service: FakeService) -> None:
    """Two sessions of 1 do not fit into 1.5, also while the first has used 0.5 only."""
    session = opened(service, MINIMUM, answers_per_round=None)
    opened(service, MINIMUM, id="s2")
    client = connect(max_epsilon="1.5")

    def offline(_: Participation) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        client.participate("s1", subject="ada", value=34, on_progress=offline)
    with pytest.raises(MaxEpsilonExceeded):
        client.participate("s2", subject="ada", value=34)
    session.finish()
    client = connect(max_epsilon="1.5")
    client.participate("s1", subject="ada", value=34)
    assert client.participate("s2", subject="ada", value=34).rounds == (1, 2)


def test_what_the_service_refuses_has_been_seen_but_reserves_nothing(
    connect: Connect, service: FakeService
) -> None:
    opened(service, MINIMUM)

    def refuse(request: httpx.Request) -> httpx.Response:
        service.faults = [refuse]
        return service.serve(request) if request.method == "GET" else problem(409, "budget_exhausted")

    service.faults = [refuse]
    client = connect()
    with pytest.raises(ProblemError, match="budget_exhausted"):
        client.participate("s1", subject="ada", value=34)
    assert client.ledger().totals == {"ada": Decimal("0.5")}
    assert [entry.state for entry in client.ledger().sessions] == ["refused"]
    service.faults = []
    drawn = sent(service)[0]["answer"]
    assert client.participate("s1", subject="ada", value=34).epsilon == Decimal(1)
    assert sent(service)[1]["answer"] == drawn
    assert client.ledger().totals == {"ada": Decimal(1)}


# -------------------------------------------------------------------- services that cheat


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon_per_answer": 0.25},
        {"epsilon_total": 2.0},
        {"rounds": 3, "answers_per_person": 3, "epsilon_per_answer": 0.1},
        {"upper": 60.0},
        {"protocol": "maximum"},
        {"study": "sleep"},
        {"participants": 7},
    ],
)
def test_a_description_that_changes_is_refused(
    connect: Connect, service: FakeService, change: dict[str, Any]
) -> None:
    connect().session("s1")
    service.sessions.by_id["s1"].document |= change
    with pytest.raises(SessionChanged) as refusal:
        connect().participate("s1", subject="ada", value=34)
    assert set(refusal.value.fields) == change.keys()
    assert sent(service) == []


def test_an_assignment_key_that_changes_is_refused(connect: Connect, service: FakeService) -> None:
    """It would let the service ask the same person in two rounds."""
    opened(service, SPLIT)
    connect().session("s1")
    opened(service, SPLIT, assignment_key=bytes(15).hex() + "01")
    with pytest.raises(SessionChanged, match="assignment_key"):
        connect().participate("s1", subject="ada", value=34)


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon_per_answer": 0.6},
        {"epsilon_total": 0.999999},
        {"epsilon_per_answer": 0},
        {"epsilon_per_answer": 0.1234567},
        {"answers_per_person": 1},
        {"answers_per_person": 3},
        {"lower": 120.0},
        {"rounds": 0},
        {"id": "another"},
        {"mode": "user_split"},
        {"assignment_key": bytes(16).hex()},
        {"mode": "both"},
        {"dimension": 2},
        {**SPLIT, "assignment_key": "00"},
        {**SPLIT, "assignment_key": "a key"},
        {**SPLIT, "epsilon_per_answer": 1.000001},
        {**KMEANS, "id": "s1", "report_epsilon": 0.500001},
        {**KMEANS, "id": "s1", "report_epsilon": None},
        {**KMEANS, "id": "s1", "clusters": 1},
    ],
)
def test_an_unsound_description_is_refused(client: Any, service: FakeService, change: dict[str, Any]) -> None:
    service.sessions.by_id["s1"].document |= deepcopy(change)
    with pytest.raises(SessionUnsound):
        client.participate("s1", subject="ada", value=34)
    assert sent(service) == []


@pytest.mark.parametrize("change", [{"protocol": "median"}, {"grid_bits": 31}])
def test_what_the_sdk_does_not_know_is_refused(
    client: Any, service: FakeService, change: dict[str, Any]
) -> None:
    service.sessions.by_id["s1"].document |= change
    with pytest.raises(UnsupportedMechanism):
        client.participate("s1", subject="ada", value=34)


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon_per_answer": 0.6},
        {"epsilon_per_answer": 0.4},
        {"epsilon_per_answer": None},
        {"rounds": 3},
        {"round": 3},
        {"round": 0},
        {"round": None},
        {"session": "s2"},
        {"threshold": -1},
        {"threshold": GRID + 1},
        {"threshold": None},
        {"direction": "at_least"},
        {"direction": None},
    ],
)
def test_a_round_that_asks_for_something_else_than_the_description_gets_no_answer(
    client: Any, service: FakeService, change: dict[str, Any]
) -> None:
    service.sessions.by_id["s1"].round_changes = change
    with pytest.raises(SessionUnsound):
        client.participate("s1", subject="ada", value=34)
    assert sent(service) == []


@pytest.mark.parametrize(
    "centres", [None, [], [[1, 2], [3, 4]], [[1, 2], [3, 4], [5]], [[1, 2], [3, 4], [5, GRID + 1]]]
)
def test_centers_that_are_not_points_get_no_answer(client: Any, service: FakeService, centres: Any) -> None:
    service.sessions.by_id["k1"].round_changes = {"centres": centres}
    with pytest.raises(SessionUnsound):
        client.participate("k1", subject="ada", value=[1, 2])
    assert sent(service) == []


def test_another_question_in_the_same_round_gets_no_answer(connect: Connect, service: FakeService) -> None:
    """Who is asked about two thresholds in one round has told more than one round is worth."""
    opened(service, MINIMUM, answers_per_round=None)

    def offline(_: Participation) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        connect().participate("s1", subject="ada", value=34, on_progress=offline)
    session = opened(service, MINIMUM, answers_per_round=None)
    session.round_changes = {"threshold": GRID // 4}
    for subject in ("ada", "bob"):
        with pytest.raises(SessionChanged, match="threshold"):
            connect().participate("s1", subject=subject, value=34)
    assert len(sent(service)) == 1


def test_a_session_that_starts_again_gets_the_same_answers(connect: Connect, service: FakeService) -> None:
    """Also one that was told to be finished: from then on nothing is drawn."""
    opened(service, MINIMUM).finish()
    client = connect()
    client.participate("s1", subject="ada", value=34)
    opened(service, MINIMUM)
    assert connect().participate("s1", subject="ada", value=34).rounds == (1, 2)
    opened(service, MINIMUM)
    assert connect().participate("s1", subject="ada", value=34).rounds == (1, 2)
    assert len(sent(service)) == 2


# ---------------------------------------------------------------------------------- asking


def test_arguments_that_make_no_sense_are_refused_before_anything_is_counted(
    connect: Connect, service: FakeService
) -> None:
    client = connect()
    for value in (121, "NaN", None, [34], "x"):
        with pytest.raises(InvalidRequest, match="value"):
            client.participate("s1", subject="ada", value=value)
    for value in ([1], [1, 2, 3], 34, "12", [1, 121]):
        with pytest.raises(InvalidRequest, match="value"):
            client.participate("k1", subject="ada", value=value)
    with pytest.raises(InvalidRequest, match="subject"):
        client.participate("s1", subject="", value=34)
    with pytest.raises(InvalidRequest, match="session"):
        client.participate("..", subject="ada", value=34)
    with pytest.raises(DirectoryRequired):
        connect(directory=None).participate("s1", subject="ada", value=34)
    assert client.ledger().sessions == ()


def test_sessions_are_listed_and_opened(client: Any, service: FakeService) -> None:
    made = client.create_session(
        "commute",
        protocol="kmeans",
        epsilon="0.3",
        rounds=2,
        centres=[[1, "2.50"], [Decimal("3"), 4]],
        answers_per_round="any",
        round_seconds=1.5,
    )
    assert isinstance(made, Session)
    [(request, body)] = service.requests("POST")
    assert request.headers["idempotency-key"]
    assert body == {
        "protocol": "kmeans",
        "epsilon": Decimal("0.3"),
        "rounds": 2,
        "centres": [[1, Decimal("2.5")], [3, 4]],
        "answers_per_round": None,
        "round_seconds": Decimal("1.5"),
    }
    for number in range(3):
        opened(service, MINIMUM, id=f"more{number}")
    assert [session.id for session in client.sessions("commute", page_size=2)] == [
        *("s1", made.id),
        *(f"more{number}" for number in range(3)),
    ]
    with pytest.raises(InvalidRequest):
        client.create_session("commute", protocol="minimum", epsilon=float("nan"), participants=9)


def test_polls_wait_as_long_as_they_said_they_would(connect: Connect, service: FakeService) -> None:
    client = connect(timeout=httpx.Timeout(2, read=3))
    client.participate("s1", subject="ada", value=34)
    reads = {
        (request.url.path.rpartition("/")[2], request.extensions["timeout"]["read"])
        for request in service.log
    }
    assert reads == {("s1", 3), ("round", 28), ("answers", 3)}


def test_thousands_share_polls_and_syncs(service: FakeService, tmp_path: Path) -> None:
    """Devices of one client that wait for the same round wait together."""
    people = 200
    opened(service, MINIMUM, answers_per_round=people)
    syncs: list[int] = []

    async def run() -> None:
        async with AsyncClient(
            "https://d.example", "t", directory=tmp_path, retry=IMPATIENT, transport=service.transport
        ) as client:
            assert client._ledger is not None
            run_together = client._ledger.run

            def counting(tasks: Any) -> Any:
                syncs.append(len(tasks))
                return run_together(tasks)

            client._ledger.run = counting  # type: ignore[method-assign]  # counted
            parts = await asyncio.gather(
                *(
                    client.participate("s1", subject=f"p{number}", value=number / 2)
                    for number in range(people)
                )
            )
            assert {part.rounds for part in parts} == {(1, 2)}
            assert set((await client.ledger()).totals.values()) == {Decimal(1)}

    asyncio.run(run())
    assert len(sent(service)) == 2 * people
    polls = [request for request in service.log if request.url.path.endswith("/round")]
    assert len(polls) < people
    assert sum(syncs) > 4 * people
    assert len(syncs) < people


def test_work_that_fails_does_not_take_others_with_it(tmp_path: Path, service: FakeService) -> None:
    """In one group: somebody at the limit, somebody out of range, and the rest."""
    opened(service, MINIMUM, answers_per_round=2)

    async def run() -> list[Any]:
        async with AsyncClient(
            "https://d.example",
            "t",
            directory=tmp_path,
            max_epsilon=1,
            retry=IMPATIENT,
            transport=service.transport,
        ) as client:
            await client.contribute("commute", subject="cyd", value=1, epsilon=1, trust="central")
            return await asyncio.gather(
                *(client.participate("s1", subject=name, value=34) for name in ("ada", "bob", "cyd")),
                return_exceptions=True,
            )

    ada, bob, cyd = asyncio.run(run())
    assert (ada.rounds, bob.rounds) == ((1, 2), (1, 2))
    assert isinstance(cyd, MaxEpsilonExceeded)


def test_the_range_of_the_session_is_that_of_its_description(client: Any, service: FakeService) -> None:
    assert COMMUTE["upper"] == 120
    session = client.session("s1")
    assert Fraction(session.upper) - Fraction(session.lower) == 120
    assert session.raw["grid_bits"] == 30
