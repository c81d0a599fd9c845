"""Sessions over HTTP: their documents, their refusals, who sees what."""

import asyncio
import base64
import json
import time
from datetime import datetime
from itertools import pairwise
from typing import Any
from uuid import uuid4

import asyncpg
import pytest
from dither.device.response import assigned_round

from tests.api.service import Service, assert_no_cursor, assert_problem

MINIMUM: dict[str, Any] = {"protocol": "minimum", "epsilon": 8, "participants": 20, "rounds": 2}
EVERYBODY: dict[str, Any] = {**MINIMUM, "mode": "budget_split"}


async def start(service: Service, study: str, **wish: Any) -> dict[str, Any]:
    """A new session; two rounds for 20 people unless told otherwise."""
    response = await service.call(
        "POST", f"/v1/studies/{study}/sessions", "admin", json={**EVERYBODY, **wish}
    )
    assert response.status_code == 201, response.text
    return dict(response.json())


async def give(service: Service, session: dict[str, Any], subject: str, number: int, answer: int = 1) -> Any:
    """Somebody answers."""
    return await service.call(
        "POST",
        f"/v1/sessions/{session['id']}/answers",
        "contribute",
        json={"subject": subject, "round": number, "answer": answer},
    )


async def test_another_token_cannot_find_out_an_answer_by_guessing(service: Service, study: str) -> None:
    made = await start(service, study)
    path = f"/v1/sessions/{made['id']}/answers"
    stranger = await service.token("contribute")
    assert (await give(service, made, "alice", 1)).status_code == 201
    for finished in (False, True):
        if finished:
            await service.call("POST", f"/v1/sessions/{made['id']}/finish", "admin")
        told = []
        for guess in (0, 1):
            response = await service.call(
                "POST", path, stranger, json={"subject": "alice", "round": 1, "answer": guess}
            )
            told.append(assert_problem(response, "answer_exists", 409, "answer"))
        assert told[0] == told[1]
        assert (await give(service, made, "alice", 1)).status_code == 200


async def shown(service: Service, session: dict[str, Any], token: str = "analyse") -> dict[str, Any]:
    """The session as somebody sees it now."""
    return dict((await service.call("GET", f"/v1/sessions/{session['id']}", token)).json())


# ----------------------------------------------------------------------------------------- documents


async def test_a_search_from_its_start_to_its_estimate(service: Service, study: str) -> None:
    made = await start(service, study)
    path = f"/v1/sessions/{made['id']}"
    for number in (1, 2):
        asked = (await service.call("GET", f"{path}/round", "contribute")).json()
        assert (asked["state"], asked["round"], asked["rounds"], asked["answers"]) == ("open", number, 2, 0)
        assert asked["direction"] == "at_most"
        assert asked["threshold_value"] == asked["threshold"] * 100 / 2**30
        for person in range(20):
            yes = int(person * 5 * 2**30 // 100 <= asked["threshold"])
            response = await give(service, made, f"p{person}", number, yes)
            assert response.status_code == 201, response.text
            assert response.json() == {
                "session": made["id"],
                "subject": f"p{person}",
                "round": number,
                "answers_given": number,
                "epsilon_spent": 4.0 * number,
            }
            again = await give(service, made, f"p{person}", number, yes)
            assert (again.status_code, again.content) == (200, response.content)
    done = await shown(service, made)
    assert (done["state"], done["round"]) == ("finished", None)
    assert done["interval"] == {"lower": 0, "upper": 25}
    assert done["estimate"] == 12.5
    assert done["error"]["resolution"] == 25
    assert 0 < done["error"]["missed_fraction"] < 1
    assert 0 < done["error"]["failure_probability"] < 1
    assert [(step["round"], step["threshold"], step["answers"]) for step in done["path"]] == [
        (1, 50, 20),
        (2, 25, 20),
    ]
    ended = (await service.call("GET", f"{path}/round", "contribute")).json()
    assert ended["round"] is None
    assert "threshold" not in ended


@pytest.mark.long
async def test_a_median_is_read_off_all_rounds_with_an_interval_that_holds(
    service: Service, study: str
) -> None:
    """60 people at 0 to 59 of 100, whose coins all fall on the truth."""
    made = await start(
        service, study, protocol="quantile", quantile=0.5, epsilon=8, participants=60, rounds=4
    )
    for number in range(1, 5):
        asked = (await service.call("GET", f"/v1/sessions/{made['id']}/round", "contribute")).json()
        for person in range(60):
            yes = int(person <= asked["threshold_value"])
            assert (await give(service, made, f"p{person}", number, yes)).status_code == 201
    done = await shown(service, made)
    assert done["state"] == "finished"
    assert abs(done["estimate"] - 29.5) < 4
    assert done["interval"]["lower"] <= 29 <= done["interval"]["upper"] <= 75
    assert done["interval"]["lower"] <= done["estimate"] <= done["interval"]["upper"]
    error = done["error"]
    assert (error["failure_probability"], error["undecided_rounds"]) == (0.05, 0)
    assert error["resolution"] == done["interval"]["upper"] - done["interval"]["lower"]
    assert 0.02 < error["missed_fraction"] < 0.5
    for before, after in pairwise(done["path"]):
        assert before["lower"] <= after["lower"] < after["threshold"] < after["upper"] <= before["upper"]
        assert before["decided"] == ((before["lower"], before["upper"]) != (after["lower"], after["upper"]))


async def test_a_new_session_says_everything_that_a_device_needs(service: Service, study: str) -> None:
    made = await start(service, study, mode="user_split", participants=1000, rounds=4, round_seconds=60)
    assert made == await shown(service, made, "contribute")
    expected = {
        "study": study,
        "protocol": "minimum",
        "mode": "user_split",
        "threshold": "exact_binomial",
        "state": "open",
        "rounds": 4,
        "round": 1,
        "answers": 0,
        "epsilon_per_answer": 8,
        "epsilon_total": 8,
        "answers_per_person": 1,
        "participants": 1000,
        "answers_per_round": 250 - 56,
        "round_seconds": 60,
        "lower": 0,
        "upper": 100,
        "grid_bits": 30,
        "quantile": None,
        "path": [],
        "finished_at": None,
    }
    assert {name: made[name] for name in expected} == expected
    assert len(bytes.fromhex(made["assignment_key"])) == 16
    created, deadline = (datetime.fromisoformat(made[name]) for name in ("created_at", "deadline"))
    assert (deadline - created).total_seconds() == 86_400
    assert not {"estimate", "interval", "error"} & made.keys()
    asked = (await service.call("GET", f"/v1/sessions/{made['id']}/round", "contribute")).json()
    assert asked["closes_at"] is not None
    assert "assignment_key" not in await start(service, study)


WISHES: list[tuple[dict[str, Any], Any]] = [
    (
        {"mode": "budget_split"},
        {"answers_per_round": 20, "epsilon_per_answer": 4, "answers_per_person": 2},
    ),
    ({"answers_per_round": 7}, {"answers_per_round": 7}),
    ({"answers_per_round": None}, {"answers_per_round": None}),
    ({"rounds": "lower_alpha", "participants": 1024}, {"rounds": 5}),
    ({"rounds": "lower_alpha", "participants": 1024, "alpha": 0.5}, {"rounds": 10}),
    ({"rounds": "unknown_alpha", "participants": 1024}, {"rounds": 6}),
    ({"protocol": "quantile", "quantile": 0.5}, {"protocol": "quantile", "quantile": 0.5}),
    ({"protocol": "maximum"}, {"protocol": "maximum"}),
    ({"epsilon": "1.0000019", "rounds": 2}, {"epsilon_per_answer": 0.5, "epsilon_total": 1.0}),
    ({"threshold": "hoeffding", "participants": 100}, {"threshold": "hoeffding"}),
    ({"threshold": "paper", "participants": 100}, {"threshold": "paper"}),
]


async def test_a_wish_is_filled_in(service: Service, study: str) -> None:
    for wish, expected in WISHES:
        made = await start(service, study, **wish)
        assert {name: made[name] for name in expected} == expected


async def test_a_maximum_asks_from_the_other_side(service: Service, study: str) -> None:
    made = await start(service, study, protocol="maximum", answers_per_round=10)
    asked = (await service.call("GET", f"/v1/sessions/{made['id']}/round", "analyse")).json()
    assert asked["direction"] == "at_least"
    for person in range(10):
        assert (await give(service, made, f"p{person}", 1)).status_code == 201
    assert (await shown(service, made))["path"][0]["believed"]
    asked = (await service.call("GET", f"/v1/sessions/{made['id']}/round", "analyse")).json()
    assert asked["threshold_value"] == 75


async def test_sessions_are_listed_newest_first_page_by_page(service: Service, study: str) -> None:
    ids = [(await start(service, study))["id"] for _ in range(3)]
    other = await service.study()
    foreign = await start(service, other)
    path = f"/v1/studies/{study}/sessions"
    page = (await service.call("GET", f"{path}?limit=2", "contribute")).json()
    assert [item["id"] for item in page["items"]] == ids[:0:-1]
    cursor = page["next_cursor"]
    text = base64.urlsafe_b64decode(cursor + "==").decode()
    assert text == ids[1], "a cursor holds what the page shows, and nothing else"
    rest = (
        await service.call("GET", f"/v1/studies/{study}/sessions?limit=2&cursor={cursor}", "analyse")
    ).json()
    assert ([item["id"] for item in rest["items"]], rest["next_cursor"]) == (ids[:1], None)
    await assert_no_cursor(service, path, "analyse", foreign["id"])


async def test_a_budget_names_the_sessions_that_hold_it(service: Service, study: str) -> None:
    made = await start(service, study)
    await give(service, made, "alice", 1)
    line = {"session": made["id"], "study": study, "protocol": made["protocol"]}
    budget = (await service.call("GET", "/v1/subjects/alice/budget", "contribute")).json()
    assert budget["epsilon"] == {"total": 10, "reserved": 8, "spent": 4, "remaining": 2}
    assert budget["sessions"] == [{**line, "epsilon": 8, "spent": 4}]
    limited = await service.token("contribute", studies=frozenset({"another"}))
    hidden = (await service.call("GET", "/v1/subjects/alice/budget", limited)).json()
    assert (hidden["sessions"], hidden["epsilon"]["reserved"]) == ([], 8)
    await service.call("POST", f"/v1/sessions/{made['id']}/finish", "admin")
    budget = (await service.call("GET", "/v1/subjects/alice/budget", "contribute")).json()
    assert budget["epsilon"]["reserved"] == 4
    assert budget["sessions"] == [{**line, "epsilon": 4, "spent": 4}]


async def test_a_retry_with_the_same_key_starts_no_second_session(service: Service, study: str) -> None:
    async def post(key: str, epsilon: float = 8) -> Any:
        return await service.call(
            "POST",
            f"/v1/studies/{study}/sessions",
            "admin",
            json={**EVERYBODY, "epsilon": epsilon},
            headers={"Idempotency-Key": key},
        )

    together = await asyncio.gather(*(post("k1") for _ in range(4)))
    assert {reply.status_code for reply in together} == {201}
    assert len({reply.content for reply in together}) == 1
    assert_problem(await post("k1", 4), "idempotency_key_reused", 409)
    assert (await post("k2")).json()["id"] != together[0].json()["id"]
    page = (await service.call("GET", f"/v1/studies/{study}/sessions", "admin")).json()
    assert len(page["items"]) == 2


async def test_what_admins_do_is_in_the_audit_trail(service: Service, study: str) -> None:
    made = await start(service, study)
    for number in (1, 1):
        path = f"/v1/sessions/{made['id']}/close-round"
        assert (await service.call("POST", path, "admin", json={"round": number})).status_code == 200
    for _ in range(2):
        done = await service.call("POST", f"/v1/sessions/{made['id']}/finish", "admin")
        assert (done.status_code, done.json()["state"]) == (200, "finished")
    connection = await asyncpg.connect(service.database_url)
    try:
        rows = await connection.fetch("SELECT action FROM audit WHERE target = $1 ORDER BY id", made["id"])
    finally:
        await connection.close()
    assert [row["action"] for row in rows] == ["session.create", "session.close_round", "session.finish"]


# ------------------------------------------------------------------------------------------ refusals


BAD_WISHES: list[tuple[dict[str, Any], Any]] = [
    ({"protocol": "median"}, ["protocol"]),
    ({"protocol": None}, ["protocol"]),
    ({"epsilon": 0}, ["epsilon"]),
    ({"epsilon": "much"}, ["epsilon"]),
    ({"epsilon": 0.000001, "rounds": 2}, ["epsilon"]),
    ({"participants": 1}, ["participants"]),
    ({"threshold": "paper", "epsilon": 1}, ["participants"]),
    ({"participants": "20"}, ["participants"]),
    ({"participants": 2.5}, ["participants"]),
    ({"participants": None}, ["participants"]),
    ({"mode": "both"}, ["mode"]),
    ({"threshold": 5}, ["threshold"]),
    ({"rounds": 0}, ["rounds"]),
    ({"rounds": 31}, ["rounds"]),
    ({"rounds": "many"}, ["rounds"]),
    ({"rounds": 1.5}, ["rounds"]),
    ({"rounds": 1e99}, ["rounds"]),
    ({"rounds": True}, ["rounds"]),
    ({"alpha": 0}, ["alpha"]),
    ({"alpha": "1"}, ["alpha"]),
    ({"quantile": 0.5}, ["quantile"]),
    ({"protocol": "quantile"}, ["quantile"]),
    ({"protocol": "quantile", "quantile": 1}, ["quantile"]),
    ({"protocol": "quantile", "quantile": 0}, ["quantile"]),
    ({"answers_per_round": 0}, ["answers_per_round"]),
    ({"answers_per_round": "all"}, ["answers_per_round"]),
    ({"round_seconds": 0}, ["round_seconds"]),
    ({"round_seconds": "60"}, ["round_seconds"]),
    ({"deadline_seconds": 10**9}, ["deadline_seconds"]),
    ({"deadline_seconds": None}, ["deadline_seconds"]),
    ({"speed": 1}, ["speed"]),
    ({"epsilon": 0, "mode": "both", "speed": 1}, ["epsilon", "mode", "speed"]),
]


async def test_a_quantile_that_is_missing_or_too_much_says_which(service: Service, study: str) -> None:
    for wish, reason in (
        ({"protocol": "quantile"}, "is needed with protocol quantile, between 0 and 1"),
        ({"protocol": "minimum", "quantile": 0.5}, "goes with protocol quantile, not with minimum"),
    ):
        response = await service.call(
            "POST", f"/v1/studies/{study}/sessions", "admin", json={**EVERYBODY, **wish}
        )
        assert response.json()["errors"] == [{"field": "quantile", "reason": reason}]


async def test_a_wish_that_is_not_admissible_starts_nothing(service: Service, study: str) -> None:
    before = await service.rows()
    for wish, fields in BAD_WISHES:
        response = await service.call(
            "POST", f"/v1/studies/{study}/sessions", "admin", json={**EVERYBODY, **wish}
        )
        assert_problem(response, "invalid_request", 422, *fields)
    assert await service.rows() == before


async def test_null_is_as_good_as_no_field(service: Service, study: str) -> None:
    nothing = dict.fromkeys(("centres", "clusters", "quantile", "round_seconds"))
    await start(service, study, **nothing)


async def test_a_study_that_keeps_presence_secret_takes_no_sessions(service: Service) -> None:
    study = await service.study(relation="add_remove_one")
    response = await service.call("POST", f"/v1/studies/{study}/sessions", "admin", json=EVERYBODY)
    assert_problem(response, "invalid_request", 422, "protocol")


async def test_a_closed_study_takes_no_new_sessions_but_goes_on_with_those_it_has(
    service: Service, study: str
) -> None:
    made = await start(service, study)
    first = await give(service, made, "alice", 1)
    await service.call("POST", f"/v1/studies/{study}/close", "admin")
    response = await service.call("POST", f"/v1/studies/{study}/sessions", "admin", json=EVERYBODY)
    assert_problem(response, "study_closed", 409)
    again = await give(service, made, "alice", 1)
    assert (again.status_code, again.content) == (200, first.content)
    await service.call("POST", f"/v1/sessions/{made['id']}/close-round", "admin", json={"round": 1})
    assert (await give(service, made, "alice", 2)).status_code == 201


async def test_a_closed_study_takes_nobody_else_into_its_sessions(service: Service, study: str) -> None:
    made = await start(service, study)
    await give(service, made, "alice", 1)
    contribution = {"subject": "known", "value": 1, "epsilon": 1, "trust": "central"}
    await service.call("POST", f"/v1/studies/{study}/contributions", "contribute", json=contribution)
    await service.call("POST", f"/v1/studies/{study}/close", "admin")
    await service.call("POST", f"/v1/sessions/{made['id']}/close-round", "admin", json={"round": 1})
    before = await service.rows()
    answers = [give(service, made, subject, 2) for subject in ("known", "new", "alice", "known", "new")]
    known, new, alice, *others = await asyncio.gather(*answers)
    assert alice.status_code == 201
    for response in (known, new, *others):
        assert_problem(response, "study_closed", 409)
    assert_problem(await give(service, made, "new", 1), "round_closed", 409, "round")
    after = await service.rows()
    assert {name for name in after if after[name] != before[name]} <= {"answer", "enrolment", "session"}
    assert (await shown(service, made))["answers"] == 1


async def test_an_admin_of_one_study_runs_its_sessions_only(service: Service, study: str) -> None:
    made = await start(service, study)
    path = f"/v1/sessions/{made['id']}"
    own = await service.token("admin", studies=frozenset({study}))
    other = await service.token("admin", studies=frozenset({"another"}))
    before = await service.rows()
    for action, options in (("close-round", {"json": {"round": 1}}), ("finish", {})):
        assert_problem(await service.call("POST", f"{path}/{action}", other, **options), "forbidden", 403)
    assert await service.rows() == before
    closed = await service.call("POST", f"{path}/close-round", own, json={"round": 1})
    assert (closed.status_code, closed.json()["round"]) == (200, 2)
    finished = await service.call("POST", f"{path}/finish", own)
    assert (finished.status_code, finished.json()["state"]) == (200, "finished")


BAD_ANSWERS: list[tuple[dict[str, Any], Any]] = [
    ({"subject": None}, ["subject"]),
    ({"subject": ""}, ["subject"]),
    ({"subject": "x" * 257}, ["subject"]),
    ({"subject": 5}, ["subject"]),
    ({"round": 0}, ["round"]),
    ({"round": 3}, ["round"]),
    ({"round": 1.5}, ["round"]),
    ({"round": "1"}, ["round"]),
    ({"round": None}, ["round"]),
    ({"answer": 2}, ["answer"]),
    ({"answer": -1}, ["answer"]),
    ({"answer": True}, ["answer"]),
    ({"answer": "yes"}, ["answer"]),
    ({"answer": 0.5}, ["answer"]),
    ({"answer": float("nan")}, ["answer"]),
    ({"report": [1]}, ["report"]),
    ({"epsilon": 1}, ["epsilon"]),
    ({"round": 9, "answer": 9, "subject": 9}, ["answer", "round", "subject"]),
]


async def test_an_answer_that_is_not_admissible_stores_nothing(service: Service, study: str) -> None:
    made = await start(service, study)
    before = await service.rows()
    for change, fields in BAD_ANSWERS:
        response = await service.call(
            "POST",
            f"/v1/sessions/{made['id']}/answers",
            "contribute",
            content=json.dumps({"subject": "alice", "round": 1, "answer": 1, **change}).encode(),
            headers={"Content-Type": "application/json"},
        )
        problem = assert_problem(response, "invalid_request", 422, *fields)
        assert "alice" not in str(problem)
    assert await service.rows() == before


async def test_fields_that_are_missing_are_named(service: Service, study: str) -> None:
    made = await start(service, study)
    response = await service.call("POST", f"/v1/sessions/{made['id']}/answers", "contribute", json={})
    assert_problem(response, "invalid_request", 422, "answer", "round", "subject")
    response = await service.call("POST", f"/v1/sessions/{made['id']}/answers", "contribute", json=[])
    assert_problem(response, "invalid_request", 422, "body")
    for document in ({}, {"round": "1"}, {"round": 0}, {"round": 3}, {"round": 1, "force": True}):
        response = await service.call(
            "POST", f"/v1/sessions/{made['id']}/close-round", "admin", json=document
        )
        assert_problem(response, "invalid_request", 422)


async def test_an_answer_at_the_wrong_moment_is_a_conflict_that_says_which(
    service: Service, study: str
) -> None:
    made = await start(service, study)
    assert (await give(service, made, "alice", 1)).status_code == 201
    assert_problem(await give(service, made, "alice", 1, 0), "answer_exists", 409, "answer")
    assert_problem(await give(service, made, "alice", 2), "round_not_open", 409, "round")
    too_far = await service.call("POST", f"/v1/sessions/{made['id']}/close-round", "admin", json={"round": 2})
    assert_problem(too_far, "round_not_open", 409, "round")
    await service.call("POST", f"/v1/sessions/{made['id']}/close-round", "admin", json={"round": 1})
    assert_problem(await give(service, made, "bob", 1), "round_closed", 409, "round")
    assert (await give(service, made, "alice", 1)).status_code == 200
    await service.call("POST", f"/v1/sessions/{made['id']}/finish", "admin")
    assert_problem(await give(service, made, "alice", 2), "round_closed", 409, "round")
    assert (await give(service, made, "alice", 1)).status_code == 200


async def test_out_of_turn_is_refused_and_the_turn_follows_from_the_published_key(
    service: Service, study: str
) -> None:
    made = await start(service, study, mode="user_split")
    key = bytes.fromhex(made["assignment_key"])
    turns = {name: assigned_round(key, name, 2) for name in (f"p{number}" for number in range(40))}
    mine = next(name for name, turn in turns.items() if turn == 1)
    other = next(name for name, turn in turns.items() if turn == 2)
    assert_problem(await give(service, made, other, 1), "not_your_round", 409, "round")
    assert (await give(service, made, mine, 1)).json()["epsilon_spent"] == 8


async def test_what_is_missing_of_a_budget_is_told_to_its_owner(service: Service, study: str) -> None:
    first, second = await start(service, study), await start(service, study)
    await give(service, first, "alice", 1)
    problem = assert_problem(await give(service, second, "alice", 1), "budget_exhausted", 409, "epsilon")
    assert "2 is left" in problem["errors"][0]["reason"]
    assert "6 is missing" in problem["errors"][0]["reason"]


async def test_an_unknown_session_is_not_found(service: Service) -> None:
    for session in ("x", "0", "%00", str(uuid4()), "latest"):
        path = f"/v1/sessions/{session}"
        calls: list[tuple[str, str, str, Any]] = [
            ("GET", path, "analyse", None),
            ("GET", f"{path}/round", "contribute", None),
            ("POST", f"{path}/answers", "contribute", {"subject": "a", "round": 1, "answer": 1}),
            ("POST", f"{path}/close-round", "admin", {"round": 1}),
            ("POST", f"{path}/finish", "admin", None),
        ]
        for method, where, token, document in calls:
            options = {} if document is None else {"json": document}
            assert_problem(await service.call(method, where, token, **options), "not_found", 404)


# ------------------------------------------------------------------------------------------- waiting


BAD_WAITS = [
    ("after=-1", "after"),
    ("after=x", "after"),
    ("wait=-1", "wait"),
    ("wait=31", "wait"),
    ("wait=nan", "wait"),
    ("wait=1&wait=2", "wait"),
    ("until=1", "until"),
]


async def test_a_bad_wait_is_refused(service: Service, study: str) -> None:
    made = await start(service, study)
    for query, field in BAD_WAITS:
        response = await service.call("GET", f"/v1/sessions/{made['id']}/round?{query}", "contribute")
        assert_problem(response, "invalid_request", 422, field)


async def test_a_long_poll_ends_with_the_round_with_its_time_or_with_the_session(
    service: Service, study: str
) -> None:
    made = await start(service, study)
    path = f"/v1/sessions/{made['id']}/round"
    begun = time.monotonic()
    assert (await service.call("GET", f"{path}?after=0&wait=20", "contribute")).json()["round"] == 1
    assert time.monotonic() - begun < 5, "a later round was open already"
    waited = (await service.call("GET", f"{path}?after=1&wait=0.3", "contribute")).json()
    assert waited["round"] == 1
    for number, last in ((1, False), (2, True)):
        poll = asyncio.create_task(
            service.call("GET", f"{path}?after={number}&wait=20", "contribute", timeout=30)
        )
        await asyncio.sleep(0.1)
        assert not poll.done()
        close = f"/v1/sessions/{made['id']}/close-round"
        await service.call("POST", close, "admin", json={"round": number})
        answer = (await asyncio.wait_for(poll, 60)).json()
        assert answer["round"] == (None if last else number + 1)
        assert answer["state"] == ("finished" if last else "open")


@pytest.mark.long
async def test_a_round_closes_by_itself_when_its_time_is_over(service: Service, study: str) -> None:
    made = await start(service, study, round_seconds=1.5, answers_per_round=None)
    given = await asyncio.gather(*(give(service, made, f"p{person}", 1) for person in range(5)))
    assert [one.status_code for one in given] == [201] * 5
    poll = await service.call(
        "GET", f"/v1/sessions/{made['id']}/round?after=1&wait=10", "analyse", timeout=30
    )
    assert poll.json()["round"] == 2
    assert (await shown(service, made))["path"][0]["answers"] == 5


# -------------------------------------------------------------------------------------------- tokens


async def test_a_token_for_one_person_answers_for_nobody_else(service: Service, study: str) -> None:
    made = await start(service, study)
    digest = service.api.services.subject_key.digest
    token = await service.token("contribute", subject=digest("alice"))
    path = f"/v1/sessions/{made['id']}/answers"
    other = await service.call("POST", path, token, json={"subject": "bob", "round": 1, "answer": 1})
    assert_problem(other, "forbidden", 403)
    own = await service.call("POST", path, token, json={"subject": "alice", "round": 1, "answer": 1})
    assert own.status_code == 201
    assert (await service.call("GET", f"/v1/sessions/{made['id']}/round", token)).status_code == 200


async def test_a_token_for_one_study_sees_no_session_of_another(service: Service, study: str) -> None:
    made = await start(service, study)
    other = await service.study()
    for role in ("contribute", "analyse", "admin"):
        token = await service.token(role, studies=frozenset({other}))
        for path in ("", "/round"):
            response = await service.call("GET", f"/v1/sessions/{made['id']}{path}", token)
            assert_problem(response, "forbidden", 403)
        own = await service.token(role, studies=frozenset({study}))
        assert (await service.call("GET", f"/v1/sessions/{made['id']}", own)).status_code == 200
    token = await service.token("contribute", studies=frozenset({other}))
    answer = {"subject": "alice", "round": 1, "answer": 1}
    refused = await service.call("POST", f"/v1/sessions/{made['id']}/answers", token, json=answer)
    assert_problem(refused, "forbidden", 403)
    own = await service.token("admin", studies=frozenset({study}))
    started = await service.call("POST", f"/v1/studies/{study}/sessions", own, json=EVERYBODY)
    assert started.status_code == 201


async def test_how_many_answer_is_in_the_metrics_for_an_admin_only(service: Service, study: str) -> None:
    made = await start(service, study)
    await give(service, made, "alice", 1)
    route = "/v1/sessions/{session}/answers"
    assert route not in (await service.call("GET", "/metrics")).text
    assert route in (await service.call("GET", "/metrics", "admin")).text
