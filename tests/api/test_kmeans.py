"""K-means sessions over HTTP: central people, devices, both, neither."""

import asyncio
import json
import math
from collections.abc import Sequence
from typing import Any

import pytest
from dither.device.response import respond

from app.core.grid import GRID_SIZE
from app.mechanisms.laplace import draw_laplace
from tests.api.service import Service, assert_problem

CENTRES = [[20, 20], [80, 80]]
KMEANS: dict[str, Any] = {"protocol": "kmeans", "epsilon": 8, "rounds": 2, "centres": CENTRES}
TRUST = ["central", "local", "public"]

Point = Sequence[float]

DEVIATES = 24
"""Scales that the sum of two Laplaces exceeds with a probability of 13 e^-24 = 5e-10, and one with e^-24.

Counts of central people have noise of scale (d + 2) / epsilon of a round, and sums the same in range widths.
"""


def spread(middle: float, people: int) -> list[list[float]]:
    """Points about (middle, middle), on average exactly there."""
    return [[middle + number % 5 - 2, middle + number // 5 % 5 - 2] for number in range(people)]


async def fill(
    service: Service, study: str, values: Sequence[Point], trust: str = "central", epsilon: float = 8
) -> None:
    """Store contributions with these values."""
    records = [
        {"subject": f"{trust}{place}-{epsilon}", "value": value, "trust": trust}
        | ({} if trust == "public" else {"epsilon": epsilon})
        for place, value in enumerate(values)
    ]
    response = await service.call(
        "POST", f"/v1/studies/{study}/contributions/batch", "contribute", json=records
    )
    assert response.json()["created"] == len(records), response.text


async def start(service: Service, study: str, **wish: Any) -> dict[str, Any]:
    response = await service.call("POST", f"/v1/studies/{study}/sessions", "admin", json={**KMEANS, **wish})
    assert response.status_code == 201, response.text
    return dict(response.json())


async def close(service: Service, session: dict[str, Any], number: int) -> dict[str, Any]:
    response = await service.call(
        "POST", f"/v1/sessions/{session['id']}/close-round", "admin", json={"round": number}
    )
    assert response.status_code == 200, response.text
    return dict(response.json())


async def charges(service: Service, session: dict[str, Any]) -> list[float]:
    """What the session's releases charged, in their order."""
    found: list[float] = []
    for step in session["path"]:
        if step["release"] is not None:
            release = await service.call("GET", f"/v1/releases/{step['release']}", "admin")
            found += [charge["epsilon"] for charge in release.json()["charges"]]
    return found


class Device:
    """A local person's device: one report, and one randomized answer a round."""

    def __init__(self, service: Service, session: dict[str, Any], subject: str, value: Point) -> None:
        self._service = service
        self._path = f"/v1/sessions/{session['id']}"
        self._subject = subject
        self._channel = session["clusters"], round(session["epsilon_per_answer"] * 1e6)
        self.points = [round(coordinate / 100 * GRID_SIZE) for coordinate in value]
        scale = len(self.points) * GRID_SIZE / session["report_epsilon"]
        errors = draw_laplace(scale, len(self.points))
        self.report = [point + error for point, error in zip(self.points, errors, strict=True)]

    async def answer(self, asked: dict[str, Any], *, report: bool) -> Any:
        distances = [math.dist(self.points, center) for center in asked["centres"]]
        answer = respond(distances.index(min(distances)), *self._channel)
        document = {"subject": self._subject, "round": asked["round"], "answer": answer}
        if report:
            document["report"] = self.report
        return await self._service.call("POST", f"{self._path}/answers", "contribute", json=document)


async def asked(service: Service, session: dict[str, Any], **query: Any) -> dict[str, Any]:
    response = await service.call("GET", f"/v1/sessions/{session['id']}/round", "contribute", params=query)
    assert response.status_code == 200, response.text
    return dict(response.json())


async def assert_clean(service: Service) -> None:
    assert (await service.api.services.ledger.audit()).findings == []


@pytest.fixture
async def plane(service: Service) -> str:
    """A study of two coordinates from 0 to 100."""
    return await service.study(trust=TRUST, dimension=2)


async def test_central_people_move_the_centres_and_pay_for_it(service: Service, plane: str) -> None:
    await fill(service, plane, spread(30, 500) + spread(70, 500))
    await fill(service, plane, spread(2, 50), epsilon=7.99)
    made = await start(service, plane)
    assert (made["central_epsilon_per_round"], made["answers_per_round"]) == (4, None)
    assert (await asked(service, made))["centres"] == [
        [round(0.2 * GRID_SIZE)] * 2,
        [round(0.8 * GRID_SIZE)] * 2,
    ]
    for number in (1, 2):
        session = await close(service, made, number)
        assert await close(service, made, number) == session
    assert session["state"] == "finished"
    assert [step["round"] for step in session["path"]] == [1, 2]
    for step in session["path"]:
        assert step["central"] == pytest.approx(1000, abs=DEVIATES * 4 / 4), "and not the 50 who cannot pay"
        assert step["central"] != 1000
        assert max(step["noise_errors"]) < 1
        for centre, true in zip(step["centres"], (30, 70), strict=True):
            assert centre == pytest.approx([true, true], abs=8)
    assert session["centres"] == session["path"][-1]["centres"]
    # Who cannot pay for all rounds takes no part in any.
    assert await charges(service, session) == [4, 4]
    await assert_clean(service)


async def test_a_release_of_a_round_is_listed_and_holds_nothing_exact(service: Service, plane: str) -> None:
    await fill(service, plane, spread(30, 100))
    made = await start(service, plane, rounds=1)
    [step] = (await close(service, made, 1))["path"]
    listed = (await service.call("GET", f"/v1/studies/{plane}/releases", "analyse")).json()["items"]
    assert [release["id"] for release in listed] == [step["release"]]
    [release] = listed
    assert release["statistic"] == release["estimator"] == "kmeans"
    asked_about = {"session": made["id"], "round": 1, "rounds": 1, "centres": made["initial_centres"]}
    assert release["parameters"] == asked_about
    assert release["noisy_count"] == step["central"] == sum(release["counts"])
    assert release["count_error"] == pytest.approx(math.sqrt(2) * 4 / 8)
    assert release["sum_error"] == pytest.approx(100 * release["count_error"])
    assert release["epsilon_max"] == 8
    assert not {"people", "people_left_out", "charges"} & release.keys()


async def test_devices_alone_find_the_centres(service: Service, plane: str) -> None:
    values = spread(30, 150) + spread(70, 150)
    made = await start(service, plane, epsilon=10, rounds=1, participants=300)
    assert (made["answers_per_round"], made["epsilon_per_answer"], made["report_epsilon"]) == (300, 5, 5)
    devices = [Device(service, made, f"p{place}", value) for place, value in enumerate(values)]
    question = await asked(service, made)
    responses = await asyncio.gather(*(device.answer(question, report=True) for device in devices))
    assert {response.status_code for response in responses} == {201}
    done = await asked(service, made, after=1, wait=10)
    assert done["state"] == "finished"
    session = (await service.call("GET", f"/v1/sessions/{made['id']}", "analyse")).json()
    [step] = session["path"]
    assert (step["answers"], step["central"], step["release"]) == (300, None, None)
    for centre, true in zip(step["centres"], (30, 70), strict=True):
        assert centre == pytest.approx([true, true], abs=6 * max(step["noise_errors"]))
    assert max(step["noise_errors"]) < 7
    budget = (await service.call("GET", "/v1/subjects/p0/budget", "admin")).json()
    assert budget["epsilon"]["spent"] == budget["epsilon"]["reserved"] == 10
    await assert_clean(service)


async def test_ten_liars_move_no_centre_far(service: Service, plane: str) -> None:
    """A report counts as one scale of its noise beyond the range, not as the 40 that are still taken."""
    values = spread(30, 160) + spread(70, 150)
    made = await start(service, plane, epsilon=10, rounds=1, participants=310)
    devices = [Device(service, made, f"p{place}", value) for place, value in enumerate(values)]
    for liar in devices[:10]:
        liar.report = [2**34, -(2**34)]
    question = await asked(service, made)
    responses = await asyncio.gather(*(device.answer(question, report=True) for device in devices))
    assert {response.status_code for response in responses} == {201}
    await asked(service, made, after=1, wait=10)
    [step] = (await service.call("GET", f"/v1/sessions/{made['id']}", "analyse")).json()["path"]
    for centre, true in zip(step["centres"], (30, 70), strict=True):
        assert centre == pytest.approx([true, true], abs=6 * max(step["noise_errors"]))
    assert max(step["noise_errors"]) < 7
    await assert_clean(service)


async def test_both_kinds_of_people_and_public_ones_together(service: Service, plane: str) -> None:
    await fill(service, plane, spread(30, 300))
    await fill(service, plane, spread(70, 300), trust="public")
    made = await start(service, plane, participants=20, epsilon=6)
    devices = [Device(service, made, f"p{place}", [50, 50]) for place in range(20)]
    for number in (1, 2):
        question = await asked(service, made, after=number - 1, wait=10)
        assert question["round"] == number
        for device in devices:
            assert (await device.answer(question, report=number == 1)).status_code == 201
    await asked(service, made, after=2, wait=10)
    session = (await service.call("GET", f"/v1/sessions/{made['id']}", "analyse")).json()
    assert [step["answers"] for step in session["path"]] == [20, 20]
    assert session["path"][-1]["central"] == pytest.approx(600, abs=DEVIATES * 4 / 3)
    assert await charges(service, session) == [3, 3]
    await assert_clean(service)


async def test_nobody_at_all_leaves_the_centres_where_they_are(service: Service, plane: str) -> None:
    made = await start(service, plane)
    await close(service, made, 1)
    session = await close(service, made, 2)
    assert session["centres"] == session["initial_centres"]
    assert [pytest.approx(centre) for centre in CENTRES] == session["centres"]
    assert [step["release"] for step in session["path"]] == [None, None]
    assert session["path"][0]["noise_errors"] == [None, None]
    assert (await service.rows())["release"] == 0


async def test_a_centre_next_to_nobody_stays_or_moves_by_noise_only(service: Service, plane: str) -> None:
    await fill(service, plane, spread(30, 400))
    made = await start(service, plane, centres=[[30, 30], [99, 1], [1, 99]], rounds=1)
    [step] = (await close(service, made, 1))["path"]
    assert step["centres"][0] == pytest.approx([30, 30], abs=3)
    for centre, error in zip(step["centres"][1:], step["noise_errors"][1:], strict=True):
        assert all(0 <= coordinate <= 100 for coordinate in centre)
        assert error is None or error > 10 * step["noise_errors"][0]


@pytest.mark.long
async def test_later_people_do_not_join_and_withdrawn_ones_leave(service: Service, plane: str) -> None:
    await fill(service, plane, spread(30, 100))
    made = await start(service, plane, epsilon=8, rounds=2)
    await close(service, made, 1)
    await fill(service, plane, spread(70, 1000), trust="public")
    await fill(service, plane, spread(70, 1000), epsilon=9)
    for place in range(60):
        await service.call("DELETE", f"/v1/studies/{plane}/contributions/central{place}-8", "contribute")
    session = await close(service, made, 2)
    assert session["path"][0]["central"] == pytest.approx(100, abs=DEVIATES * 4 / 4)
    assert session["path"][1]["central"] == pytest.approx(40, abs=DEVIATES * 4 / 4)
    assert await charges(service, session) == [4, 4]
    await assert_clean(service)


async def test_numbers_are_clustered_like_vectors(service: Service) -> None:
    line = await service.study(trust=TRUST)
    await service.crowd(line, 2000)
    made = await start(service, line, centres=[[20], [80]], rounds=1, epsilon=1)
    [step] = (await close(service, made, 1))["path"]
    assert step["central"] == pytest.approx(2000, abs=DEVIATES * 3)
    # A sum's noise moves a centre by 24 * 3 * 100 / 1000 at most, a count's by a quarter of that.
    assert sorted(centre[0] for centre in step["centres"]) == pytest.approx([24.5, 74.5], abs=9.5)
    await assert_clean(service)


# ------------------------------------------------------------------------------ who may do what


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({"centres": None}, ["centres"]),
        ({"centres": []}, ["centres"]),
        ({"centres": [[1, 2]]}, ["centres"]),
        ({"centres": [[1, 2], [3]]}, ["centres.1"]),
        ({"centres": [[1, 2], [3, 101]]}, ["centres.1.1"]),
        ({"centres": [[1, 2], [3, "4"]]}, ["centres.1.1"]),
        ({"centres": [[5, 5], [1, 2], [5.0, 5.0000000001], [5, 5]]}, ["centres.2", "centres.3"]),
        ({"centres": [[0, 0], [-1, 0], [-2, 0]]}, ["centres.1.0", "centres.2.0"]),
        ({"centres": [[1, 2], 3]}, ["centres.1"]),
        ({"clusters": 3}, ["clusters"]),
        ({"rounds": None}, ["rounds"]),
        ({"rounds": "lower_alpha"}, ["rounds"]),
        ({"rounds": 0}, ["rounds"]),
        ({"rounds": 65}, ["rounds"]),
        ({"epsilon": "0.000002"}, ["epsilon"]),
        ({"rounds": 1e99}, ["rounds"]),
        ({"mode": "budget_split", "quantile": 0.5}, ["mode", "quantile"]),
        ({"protocol": "minimum", "participants": 100}, ["centres"]),
        ({"answers_per_round": 2**40 + 1}, ["answers_per_round"]),
        ({"answers_per_round": 1e99}, ["answers_per_round"]),
        ({"answers_per_round": -1}, ["answers_per_round"]),
        ({"round_seconds": 0.01}, ["round_seconds"]),
        ({"round_seconds": 1e99}, ["round_seconds"]),
        ({"deadline_seconds": -1}, ["deadline_seconds"]),
        ({"deadline_seconds": 1e99}, ["deadline_seconds"]),
    ],
)
async def test_a_bad_session_is_refused(
    service: Service, plane: str, changes: dict[str, Any], fields: list[str]
) -> None:
    document = {**KMEANS, **changes}
    response = await service.call("POST", f"/v1/studies/{plane}/sessions", "admin", json=document)
    assert_problem(response, "invalid_request", 422, *fields)


async def test_clusters_need_a_number_of_rounds_and_say_so(service: Service, plane: str) -> None:
    document = {name: value for name, value in KMEANS.items() if name != "rounds"}
    response = await service.call("POST", f"/v1/studies/{plane}/sessions", "admin", json=document)
    problem = assert_problem(response, "invalid_request", 422, "rounds")
    assert problem["errors"][0]["reason"] == "is required, as a number from 1 to 64"


@pytest.mark.parametrize("protocol", ["minimum", "kmeans"])
@pytest.mark.parametrize(
    "participants", [1, 0, -5, 2**40 + 1, 10**20, 1e99, 10**40, 2.5, True, "20", float("nan")]
)
async def test_people_who_cannot_be_expected_start_nothing(
    service: Service, protocol: str, participants: Any
) -> None:
    study = await service.study(trust=TRUST)
    document: dict[str, Any] = {"protocol": protocol, "epsilon": 8, "rounds": 2, "participants": participants}
    if protocol == "kmeans":
        document["centres"] = [[20], [80]]
    response = await service.call(
        "POST",
        f"/v1/studies/{study}/sessions",
        "admin",
        content=json.dumps(document),
        headers={"Content-Type": "application/json"},
    )
    assert_problem(response, "invalid_request", 422, "participants")
    assert (await service.rows())["session"] == 0


@pytest.mark.parametrize("participants", [2, 2**40, None])
async def test_people_who_can_be_expected_close_a_round(
    service: Service, plane: str, participants: int | None
) -> None:
    made = await start(service, plane, participants=participants)
    assert made["participants"] == made["answers_per_round"] == participants
    assert made["round"] == 1


async def test_null_is_as_good_as_no_field(service: Service, plane: str) -> None:
    assert (await start(service, plane, quantile=None, clusters=None, participants=None))["clusters"] == 2
    refused = await service.call(
        "POST", f"/v1/studies/{plane}/sessions", "admin", json={**KMEANS, "mode": None}
    )
    assert_problem(refused, "invalid_request", 422, "mode")


@pytest.mark.parametrize("rounds", [2.5, 1e-9, True, "two", None])
async def test_rounds_that_are_no_integer_are_called_so(service: Service, plane: str, rounds: Any) -> None:
    document = {**KMEANS, "rounds": rounds}
    response = await service.call("POST", f"/v1/studies/{plane}/sessions", "admin", json=document)
    problem = assert_problem(response, "invalid_request", 422, "rounds")
    assert problem["errors"][0]["reason"].startswith("must be an integer")


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({"answer": 2}, ["answer"]),
        ({"answer": -1}, ["answer"]),
        ({"answer": "1"}, ["answer"]),
        ({"report": None}, ["report"]),
        ({"report": 5}, ["report"]),
        ({"report": [1]}, ["report"]),
        ({"report": [1, 2, 3]}, ["report"]),
        ({"report": [1, 2**62]}, ["report.1"]),
        ({"report": [-(2**55), 1]}, ["report.0"]),
        ({"report": ["1", 1.5]}, ["report.0", "report.1"]),
        ({"value": [1, 2]}, ["value"]),
    ],
)
async def test_a_bad_answer_is_refused(
    service: Service, plane: str, changes: dict[str, Any], fields: list[str]
) -> None:
    made = await start(service, plane)
    document = {"subject": "alice", "round": 1, "answer": 1, "report": [5, 6], **changes}
    path = f"/v1/sessions/{made['id']}/answers"
    assert_problem(
        await service.call("POST", path, "contribute", json=document), "invalid_request", 422, *fields
    )
    assert (await service.call("GET", "/v1/subjects/alice/budget", "admin")).json()["sessions"] == []


async def test_another_token_cannot_find_out_a_report_by_guessing(service: Service, plane: str) -> None:
    made = await start(service, plane)
    path = f"/v1/sessions/{made['id']}"
    sent = {"subject": "alice", "round": 1, "answer": 1, "report": [5, 6]}
    assert (await service.call("POST", f"{path}/answers", "contribute", json=sent)).status_code == 201
    await service.call("POST", f"{path}/close-round", "admin", json={"round": 1})
    stranger = await service.token("contribute")
    for number in (1, 2):
        told = []
        for report in ([5, 6], [5, 7]):
            guess = {**sent, "round": number, "report": report}
            response = await service.call("POST", f"{path}/answers", stranger, json=guess)
            told.append(assert_problem(response, "answer_exists", 409, "answer"))
        assert told[0] == told[1]


async def test_a_report_comes_once_and_stays(service: Service, plane: str) -> None:
    made = await start(service, plane, epsilon=6)
    path = f"/v1/sessions/{made['id']}/answers"
    first = {"subject": "alice", "round": 1, "answer": 1}
    bare = await service.call("POST", path, "contribute", json=first)
    assert_problem(bare, "invalid_request", 422, "report")
    for status in (201, 200):
        response = await service.call("POST", path, "contribute", json={**first, "report": [-5, 2**33]})
        assert response.status_code == status
        assert (response.json()["answers_given"], response.json()["epsilon_spent"]) == (1, 4)
    assert (await service.call("POST", path, "contribute", json=first)).status_code == 200
    other = await service.call("POST", path, "contribute", json={**first, "report": [-5, 0]})
    assert_problem(other, "answer_exists", 409, "answer")
    await close(service, made, 1)
    second = {**first, "round": 2}
    other = await service.call("POST", path, "contribute", json={**second, "report": [-5, 0]})
    assert_problem(other, "answer_exists", 409, "answer")
    response = await service.call("POST", path, "contribute", json=second)
    assert response.json()["epsilon_spent"] == 6
    await close(service, made, 2)
    await assert_clean(service)


async def test_a_full_round_takes_no_more_answers(service: Service, plane: str) -> None:
    made = await start(service, plane, answers_per_round=3)
    path = f"/v1/sessions/{made['id']}/answers"
    documents = [{"subject": f"p{number}", "round": 1, "answer": 1, "report": [1, 2]} for number in range(10)]
    responses = await asyncio.gather(
        *(service.call("POST", path, "contribute", json=document) for document in documents)
    )
    assert sorted(response.status_code for response in responses) == [201] * 3 + [409] * 7
    assert {r.json()["code"] for r in responses if r.status_code == 409} == {"round_closed"}
    assert (await asked(service, made, after=1, wait=10))["round"] == 2
    session = (await service.call("GET", f"/v1/sessions/{made['id']}", "analyse")).json()
    assert session["path"][0]["answers"] == 3


async def test_what_taking_part_costs_must_fit_the_lifetime(service: Service, plane: str) -> None:
    made = await start(service, plane, epsilon=11)
    document = {"subject": "alice", "round": 1, "answer": 1, "report": [1, 2]}
    response = await service.call("POST", f"/v1/sessions/{made['id']}/answers", "contribute", json=document)
    assert_problem(response, "budget_exhausted", 409)


async def test_only_admins_start_and_close(service: Service, plane: str) -> None:
    for role in ("contribute", "analyse"):
        response = await service.call("POST", f"/v1/studies/{plane}/sessions", role, json=KMEANS)
        assert_problem(response, "forbidden", 403)
    made = await start(service, plane)
    for role in ("contribute", "analyse"):
        response = await service.call(
            "POST", f"/v1/sessions/{made['id']}/close-round", role, json={"round": 1}
        )
        assert_problem(response, "forbidden", 403)


# --------------------------------------------------------------------------------- secret numbers


async def test_a_study_without_local_people_takes_no_answers(service: Service) -> None:
    secret = await service.study(relation="add_remove_one", dimension=2)
    made = await start(service, secret)
    document = {"subject": "alice", "round": 1, "answer": 1, "report": [1, 2]}
    response = await service.call("POST", f"/v1/sessions/{made['id']}/answers", "contribute", json=document)
    assert_problem(response, "invalid_request", 422, "answer")


async def test_where_presence_is_secret_an_empty_study_looks_like_any_other(service: Service) -> None:
    """The same fields, the same prices, a release each round; and half the noise of replace_one."""
    shown = []
    for people in (0, 200):
        study = await service.study(relation="add_remove_one", dimension=2)
        if people:
            await fill(service, study, spread(30, people))
        made = await start(service, study)
        await close(service, made, 1)
        session = await close(service, made, 2)
        releases = (await service.call("GET", f"/v1/studies/{study}/releases", "analyse")).json()["items"]
        assert len(releases) == 2
        assert releases[0]["count_error"] == pytest.approx(math.sqrt(2) * 2 * 2 / 8)
        assert await charges(service, session) == ([4, 4] if people else [])
        shown.append(
            [
                [list(step) for step in session["path"]],
                [[name for name, value in step.items() if value is None] for step in session["path"]],
                [list(release) for release in releases],
                [release["epsilon_max"] for release in releases],
            ]
        )
    assert shown[0] == shown[1]
    await assert_clean(service)
