"""Thousands of devices with the real SDK take part in sessions over real HTTP, also when the server dies."""

import asyncio
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from app.core.epsilon import MICRO
from app.sessions.search import Mode, Target, make_rules
from app.sessions.search_protocol import interval_after
from dither_research.simulate.fleet import Tally
from dither_research.simulate.people import Days
from tests.conftest import LiveServer
from tests.support.fleets import (
    drawn,
    open_session,
    outcomes,
    read_session,
    sample,
    send_fleet,
    tail,
)
from tests.support.live import LiveService
from tests.system.load import audit, findings, make_study

pytestmark = pytest.mark.system

PEOPLE = 5_000

PATIENCE = 300.0
"""Seconds that a busy machine may take to start the service again."""

FALSE_ALARM = 1e-4
"""How often a run of a faultless service fails here: its error would have to be that improbable."""


async def run_and_check(
    service: LiveService,
    directory: Path,
    *,
    protocol: str,
    epsilon: int,
    mode: Mode,
    people: int,
    days: Days,
) -> None:
    """One session from its first round to its estimate."""
    values = sample(people, seed=f"{protocol} {epsilon} {mode}")
    # Fewer are expected than come: some come late, and those of user_split are never spread evenly.
    options = {"protocol": protocol, "epsilon": epsilon, "mode": mode.value, "participants": people * 9 // 10}
    session = open_session(service, "age", **options)
    tally = await send_fleet(service, directory, session, values, days=days)
    finished = read_session(service, session["id"])

    assert finished["state"] == "finished"
    assert tally.done == people
    assert not tally.refused
    most = session["answers_per_person"]
    assert max(drawn(directory)) <= most
    assert max(tally.given) <= most
    assert sum(step["answers"] for step in finished["path"]) >= tally.accepted
    assert await findings(service) == []

    rules = make_rules(
        target=Target(protocol),
        epsilon=epsilon * MICRO,
        participants=options["participants"],  # type: ignore[arg-type]  # an integer
        mode=mode,
    )
    truth = min(values) if protocol == "minimum" else max(values)
    likely = outcomes(rules, values, [step["answers"] for step in finished["path"]])
    assert sum(likely.values()) == pytest.approx(1, abs=0.001)
    left = interval_after(finished["path"][-1], maximum=protocol == "maximum")
    assert tail(likely, sum(left) / 2, truth) > FALSE_ALARM
    assert finished["interval"]["lower"] <= finished["estimate"] <= finished["interval"]["upper"]
    # A control: a service that believed nothing, or everything, would be found out.
    for wrong in (finished["lower"], finished["upper"]):
        assert tail(likely, wrong, truth) < FALSE_ALARM


async def test_a_fleet_finds_a_minimum_with_everybody_in_one_round_each(
    live_server: LiveServer, tmp_path: Path
) -> None:
    service = live_server()
    make_study(service, "age", trust=["local"])
    await run_and_check(
        service,
        tmp_path / "devices",
        protocol="minimum",
        epsilon=1,
        mode=Mode.USER_SPLIT,
        people=PEOPLE,
        days=Days(share=0.7, seconds=8),
    )


async def test_a_fleet_finds_a_maximum_with_everybody_in_every_round(
    live_server: LiveServer, tmp_path: Path
) -> None:
    service = live_server()
    make_study(service, "age", trust=["local"])
    await run_and_check(
        service,
        tmp_path / "devices",
        protocol="maximum",
        epsilon=4,
        mode=Mode.BUDGET_SPLIT,
        people=PEOPLE // 5,
        days=Days(share=1),
    )


@pytest.mark.slow
@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("epsilon", [1, 4])
@pytest.mark.parametrize("protocol", ["minimum", "maximum"])
async def test_every_search_with_five_thousand_devices(
    live_server: LiveServer, tmp_path: Path, protocol: str, epsilon: int, mode: Mode
) -> None:
    service = live_server(workers=2)
    make_study(service, "age", trust=["local"])
    await run_and_check(
        service,
        tmp_path / "devices",
        protocol=protocol,
        epsilon=epsilon,
        mode=mode,
        people=PEOPLE,
        days=Days(share=0.8, seconds=5),
    )


async def killed_in_round(
    service: LiveService, session: str, number: int, answers: int, fleet: "asyncio.Task[Tally]"
) -> None:
    """kill -9 the service when a round has so many answers, and start it again."""
    async with asyncio.timeout(PATIENCE):
        while True:
            document = await asyncio.to_thread(read_session, service, session)
            if document["round"] == number and document["answers"] >= answers:
                break
            assert not fleet.done(), "the fleet was done before the service could be killed"
            assert (document["round"] or 99) <= number, "the round went by too fast"
    await asyncio.to_thread(service.kill)
    stored = await row_of(service, "SELECT round, answers, answers_per_round FROM session")
    assert stored["round"] == number, "it died later than it should have"
    assert 0 < stored["answers"] < stored["answers_per_round"]
    await asyncio.to_thread(service.start, 0)


async def test_a_session_survives_the_death_of_the_server_in_the_middle_of_a_round(
    live_server: LiveServer, tmp_path: Path
) -> None:
    service = live_server()
    make_study(service, "age", trust=["local"])
    values = sample(PEOPLE, seed="killed")
    session = open_session(
        service, "age", protocol="minimum", epsilon=4, participants=PEOPLE * 9 // 10, rounds=10
    )
    assert session["rounds"] == 10
    directory = tmp_path / "devices"
    fleet = asyncio.create_task(send_fleet(service, directory, session, values, patience=PATIENCE))
    try:
        await killed_in_round(service, session["id"], 3, session["answers_per_round"] // 3, fleet)
        tally = await fleet
    finally:
        fleet.cancel()
        await asyncio.gather(fleet, return_exceptions=True)

    finished = read_session(service, session["id"])
    assert (finished["state"], len(finished["path"])) == ("finished", 10)
    assert tally.done == PEOPLE
    assert not tally.refused
    assert max(drawn(directory)) == 1
    # Every answer was charged once: who was let in gave one answer and paid its epsilon, and nobody more.
    answers = sum(step["answers"] for step in finished["path"])
    assert tally.accepted <= answers, "some learn only from the end that theirs was taken"
    assert await charged(service) == {"people": answers, "spent": 4 * MICRO * answers, "most": 4 * MICRO}
    assert await findings(service) == []
    report = audit(service)
    assert report.returncode == 0, report.stdout


async def charged(service: LiveService) -> dict[str, Any]:
    """People who have spent something, what they have spent together, and the most that anybody has."""
    return await row_of(
        service,
        "SELECT count(*) AS people, coalesce(sum(spent), 0)::bigint AS spent,"
        " coalesce(max(spent), 0)::bigint AS most FROM enrolment WHERE spent > 0",
    )


async def row_of(service: LiveService, query: str) -> dict[str, Any]:
    """The one row of the service's database that a query finds."""
    connection = await asyncpg.connect(service.database_url)
    try:
        row = await connection.fetchrow(query)
    finally:
        await connection.close()
    return dict(row)
