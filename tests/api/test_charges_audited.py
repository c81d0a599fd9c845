"""The audit prices every release again: from what it measured, or from its pieces, whatever was asked."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from app.services.admin import ledger
from app.services.admin.ledger import PRICE_RULE
from app.store.sql import driver
from tests.api.service import Service, open_service
from tests.support.databases import Server
from tests.support.forgery import MOVE_HEAD, UNLOCK, forge, reseal, tampered

EPSILONS = (0.5, 1, 2)
TOWNS = ("north", "south")
COLORS = ("red", "green", "blue")

GAUSSIAN = {"noise": "gaussian", "delta": 1e-6}
SECRET = {"relation": "add_remove_one"}

RANGE = {"lower": 0, "upper": 100}
NUMBER = {**RANGE, "attributes": {"town": list(TOWNS)}}
POLL = {"choices": list(COLORS), "attributes": {"town": list(TOWNS)}}
SEVERAL = {
    "measures": {
        "income": {"lower": 0, "upper": 100},
        "age": {"lower": 0, "upper": 100},
        "party": {"choices": COLORS},
        "sex": {"choices": ["f", "m"]},
    }
}
PLACE = {**RANGE, "dimension": 2}

ASKED: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    "number": (
        NUMBER,
        [
            {"statistic": "mean"},
            {"statistic": "mean", "by": "town"},
            {"statistic": "mean", "range": "found"},
            {"statistic": "mean", "range": "found", "by": "town"},
            {"statistic": "variance"},
            {"statistic": "histogram", "bins": 4},
            {"statistic": "histogram", "bins": 4, "by": "town"},
            {"statistic": "median"},
            {"statistic": "median", "by": "town"},
            {"statistic": "describe"},
            {"statistic": "describe", "by": "town"},
            {"statistic": "count"},
            {"statistic": "count", "by": "town"},
        ],
    ),
    "poll": (POLL, [{"statistic": "shares"}, {"statistic": "shares", "by": "town"}]),
    "several": (
        SEVERAL,
        [
            {"statistic": "covariance", "measures": "income,age"},
            {"statistic": "correlation", "measures": "income,age"},
            {"statistic": "table", "measures": "party,sex"},
            {"statistic": "mean", "measure": "age"},
            {"statistic": "quantile", "measure": "age", "q": ".9"},
        ],
    ),
    "place": (PLACE, [{"statistic": "mean"}, {"statistic": "variance"}]),
}


CHARGED = """
    SELECT release.id, min(cohort_id) AS cohort FROM release JOIN charge ON release_id = release.id
    WHERE charge.epsilon > 1 GROUP BY release.id
"""

LOWERED = (
    "UPDATE charge SET epsilon = epsilon - 1 WHERE release_id = CAST($1 AS uuid) AND cohort_id = $2",
    "UPDATE cohort SET spent = spent - 1 WHERE id = $2 AND CAST($1 AS text) > ''",
    """UPDATE piece SET charged[array_position(cohorts, $2)] = charged[array_position(cohorts, $2)] - 1
       FROM release WHERE release.id = CAST($1 AS uuid) AND array_position(cohorts, $2) > 0
         AND piece.study_id = release.study_id
         AND piece.family IN (release.family, sha256(uuid_send(release.id)))
         AND (release.share_before IS NULL) = (piece.family <> release.family)""",
)
"""A charge of one micro less, in all places that have it."""


@pytest.fixture
async def audited_service(postgres_server: Server) -> AsyncIterator[Service]:
    """A service of its own: what is forged in it is rolled back."""
    with postgres_server.database() as url:
        async with open_service(url, lifetime_epsilon=1000, lifetime_gaussian="1000,1e-6") as service:
            yield service


def record(kind: str, number: int) -> dict[str, Any]:
    """What one person sends."""
    sent: dict[str, Any] = {"subject": f"p{number}", "epsilon": EPSILONS[number % 3], "trust": "central"}
    if kind in ("number", "poll"):
        sent["attributes"] = {"town": TOWNS[number % 2]}
    match kind:
        case "poll":
            sent["value"] = COLORS[number % 3]
        case "several":
            sent["values"] = {"income": number * 5 % 100, "age": number * 7 % 100}
            sent["values"] |= {"party": COLORS[number % 3], "sex": "fm"[number % 2]}
        case "place":
            sent["value"] = [number * 5 % 100, number * 7 % 100]
        case _:
            sent["value"] = number * 5 % 100
    return sent


async def ask_everything(service: Service, kind: str, **terms: Any) -> int:
    """Every question twice, anew and as a step, of a study with people; how many were answered."""
    study_fields, questions = ASKED[kind]
    created = await service.call("POST", "/v1/studies", "admin", json={"slug": kind, **study_fields, **terms})
    assert created.status_code == 201, created.text
    people = [record(kind, number) for number in range(60)]
    path = f"/v1/studies/{kind}"
    added = await service.call("POST", f"{path}/contributions/batch", "contribute", json=people)
    assert added.json()["created"] == len(people), added.text
    answered = 0
    for question in questions:
        for more in ({"share": 0.02, "fresh": True}, {"share": 0.02}, {"share": 0.03}):
            asked = {"allow_worse": True, **question, **more}
            answer = await service.call("POST", f"{path}/releases", "analyse", json=asked)
            answered += answer.status_code == 201
            assert answer.status_code in (200, 201, 409, 422), answer.text
    return answered


@pytest.mark.long
@pytest.mark.parametrize("kind", ASKED)
@pytest.mark.parametrize("relation", [{}, SECRET], ids=["replaced", "secret"])
@pytest.mark.parametrize("noise", [{}, GAUSSIAN], ids=["laplace", "gaussian"])
async def test_a_charge_that_is_a_micro_off_is_found_in_every_kind_of_answer(
    audited_service: Service,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    relation: dict[str, Any],
    noise: dict[str, Any],
):
    """Balances, pieces, hashes and the head agree with it: only the price does not."""
    monkeypatch.setattr(ledger, "EXAMPLES", 1000)
    answered = await ask_everything(audited_service, kind, **relation, **noise)
    assert answered >= len(ASKED[kind][1])
    async with tampered(audited_service.database_url, UNLOCK) as (connection, audit):
        assert (await audit()).clean
        run = driver(connection).execute
        charged = {(str(row["id"]), row["cohort"]) for row in await driver(connection).fetch(CHARGED)}
        assert len(charged) >= answered / 2
        for release, cohort in charged:
            for statement in LOWERED:
                await run(statement, release, cohort)
        await reseal(connection)
        last = await driver(connection).fetchval("SELECT max(number) FROM release")
        await forge(connection, range(1, last + 1))
        await MOVE_HEAD.run(connection, number=last)
        (finding,) = (await audit()).findings
    assert finding.rule == PRICE_RULE
    assert all(example["charged"] < example["price"] for example in finding.examples)
    found = {(example["release"], example["cohort"]) for example in finding.examples}
    steps = {release for release, _ in charged} - {release for release, _ in found}
    # A piece is priced as its last step left it: a cohort that several steps took less of stands there once.
    assert {cohort for release, cohort in charged if release in steps} <= {cohort for _, cohort in found}
    assert len(steps) < len({release for release, _ in charged})
