"""Figures for admins: right, as new as can be, and each list starts where an index finds it."""

import base64
import csv
import io
import json
from datetime import UTC, datetime
from typing import Any

import asyncpg
import pytest

from app.services.admin.figures import Figures
from app.store import budgets, cohorts, ledger, studies
from app.store.release_lists import PAGE as PAGE_RELEASES
from app.store.sql import Sql
from tests.api.service import Service, assert_no_cursor, assert_problem

EPSILONS = (0.25, 0.5, 1, 1, 2)


async def get(service: Service, path: str, token: str = "admin") -> Any:
    response = await service.call("GET", path, token)
    assert response.status_code == 200, response.text
    return response.json()


@pytest.fixture
async def filled(service: Service) -> str:
    """A study with five central people, a local report and a public value, and one release."""
    study = await service.study(trust=["central", "local", "public"], default_share=0.5)
    for number, epsilon in enumerate(EPSILONS):
        await service.contribute(study, f"p{number}", epsilon=epsilon)
    others = (
        {"subject": "l", "report": 5, "epsilon": 0.75, "trust": "local"},
        {"subject": "k", "value": 5, "trust": "public"},
    )
    for record in others:
        path = f"/v1/studies/{study}/contributions"
        assert (await service.call("POST", path, "contribute", json=record)).status_code == 201
    made = await service.call(
        "POST", f"/v1/studies/{study}/releases", "analyse", json={"estimator": "uniform"}
    )
    assert made.status_code == 201
    await service.api.services.figures.make()
    return study


async def test_the_overview_adds_everybody_up(service: Service, filled: str):
    found = await get(service, "/v1/admin/overview")
    assert (found["subjects"], found["contributions"]) == (7, 7)
    assert found["studies"] == {"open": 1, "closed": 0}
    assert found["releases"] == {"total": 1, "today": 1}
    charged = (await get(service, "/v1/admin/ledger"))["items"]
    spent = 0.75 + sum(line["epsilon"] * line["people"] for line in charged)
    assert found["epsilon"]["reserved"] == pytest.approx(sum(EPSILONS) + 0.75)
    assert found["epsilon"]["spent"] == pytest.approx(spent)
    assert found["epsilon"]["total"] == 70
    assert found["near_exhaustion"]["subjects"] == found["dry"]["studies"] == 0
    assert found["chain"]["number"] == 1
    assert found["chain"]["last_audit"] is None


async def test_histograms_and_percentiles_agree_with_the_accounts(service: Service, filled: str):
    accounts = (await get(service, "/v1/admin/budgets"))["items"]
    found = await get(service, "/v1/admin/budgets/histogram")
    assert found["people"] == len(accounts) == 7
    for kind in ("reserved", "spent"):
        amounts = sorted(account["epsilon"][kind] for account in accounts)
        shown = found[kind]
        assert shown["total"] == pytest.approx(sum(amounts))
        last = shown["bins"][-1]
        for one in shown["bins"]:
            inside = [
                amount
                for amount in amounts
                if one["lower"] <= amount < one["upper"] or (one is last and amount == one["upper"])
            ]
            assert one["people"] == len(inside)
        percentiles = {one["percent"]: one["epsilon"] for one in shown["percentiles"]}
        assert percentiles[50] == amounts[3]
        assert percentiles[100] == amounts[-1]


async def test_a_study_has_the_profile_of_those_who_are_in_it(service: Service, filled: str):
    await service.study(slug="nobody")
    await service.api.services.figures.make()
    found = await get(service, f"/v1/admin/studies/{filled}/profile")
    assert found == {
        **(await get(service, f"/v1/admin/budgets/epsilons?study={filled}")),
        "taken_at": found["taken_at"],
    }
    by_lower = {one["lower"]: one for one in found["bins"]}
    assert (by_lower[1.0]["central"], by_lower[2.0]["central"], by_lower[0.7]["local"]) == (2, 1, 1)
    assert by_lower[0]["public"] == 1
    assert (await get(service, "/v1/admin/studies/nobody/profile"))["bins"] == []
    assert (await get(service, "/v1/admin/budgets/histogram?study=nobody"))["people"] == 0


async def test_no_slug_is_taken_for_all_studies_together(service: Service, filled: str):
    await service.study(slug="everybody")
    await service.api.services.figures.make()
    assert (await get(service, "/v1/admin/overview"))["contributions"] == 7
    shown = {one["slug"]: one for one in (await get(service, "/v1/admin/studies"))["items"]}
    assert shown["everybody"]["people"] == 0
    assert (await get(service, "/v1/admin/budgets/histogram?study=everybody"))["people"] == 0


async def test_cohorts_are_listed_as_the_ledger_charges_them(service: Service, filled: str):
    listed: list[dict[str, Any]] = []
    cursor = ""
    while True:
        page = await get(service, f"/v1/admin/studies/{filled}/cohorts?limit=2{cursor}")
        listed += page["items"]
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
    assert sum(one["people"] for one in listed) == 7
    assert len({one["id"] for one in listed}) == len(listed) == 6
    assert not {"total", "total_squares", "value"} & set(listed[0])


async def test_days_are_counted_in_utc_and_paged(service: Service, filled: str):
    connection = await asyncpg.connect(service.database_url)
    await connection.execute(
        "UPDATE contribution SET contributed_on = contributed_on - 3 WHERE epsilon = 1000000"
    )
    await connection.close()
    await service.api.services.figures.make()
    page = await get(service, "/v1/admin/contributions/daily?limit=1")
    assert page["items"] == [{"day": datetime.now(UTC).date().isoformat(), "contributions": 5, "releases": 1}]
    rest = await get(service, f"/v1/admin/contributions/daily?cursor={page['next_cursor']}")
    assert [one["contributions"] for one in rest["items"]] == [2]
    assert rest["next_cursor"] is None


async def test_figures_follow_a_small_installation_at_once(service: Service, filled: str, monkeypatch):
    monkeypatch.setattr("app.services.admin.figures.FRESH_SECONDS", 0)
    monkeypatch.setattr("app.services.admin.figures.FRESH_COST", 0)
    monkeypatch.setattr("app.services.admin.figures.PATIENCE_SECONDS", 10)
    await service.contribute(filled, "late")
    assert (await get(service, "/v1/admin/overview"))["contributions"] == 8


async def test_before_the_first_pass_is_done_there_are_no_figures(service: Service, monkeypatch):
    async def never(self: Figures) -> None:
        return

    monkeypatch.setattr(Figures, "make", never)
    response = await service.call("GET", "/v1/admin/overview", "admin")
    assert_problem(response, "unavailable", 503)
    assert response.headers["retry-after"] == "1"


async def test_what_needs_attention_is_in_the_overview(service: Service):
    study = await service.study(epsilon={"min": 0.1, "max": 10}, default_share=1)
    for number in range(3):
        await service.contribute(study, f"p{number}", epsilon=9.5 if number == 0 else 2)
    path = f"/v1/studies/{study}/releases"
    assert (await service.call("POST", path, "analyse", json={"estimator": "uniform"})).status_code == 201
    report = await service.api.services.ledger.audit()
    await service.api.services.ledger.record(report, at=datetime.now(UTC), actor="test")
    await service.api.services.figures.make()
    found = await get(service, "/v1/admin/overview")
    near = found["near_exhaustion"]
    assert (near["subjects"], near["examples"][0]["reserved"]) == (1, 9.5)
    assert [one["study"] for one in found["dry"]["examples"]] == [study]
    assert found["chain"]["last_audit"]["clean"] is True
    listed = (await get(service, "/v1/admin/studies"))["items"]
    assert listed[0]["can_pay_percent"] == 0


async def test_releases_and_charges_are_narrowed_down_and_exported(service: Service, filled: str):
    other = await service.study()
    await service.crowd(other, 10)
    path = f"/v1/studies/{other}/releases"
    assert (await service.call("POST", path, "analyse", json={})).status_code == 201
    releases = (await get(service, "/v1/admin/releases"))["items"]
    assert [one["study"] for one in releases] == [other, filled]
    assert [one["number"] for one in (await get(service, f"/v1/admin/releases?study={filled}"))["items"]] == [
        1
    ]
    only = (await get(service, f"/v1/admin/ledger?release={releases[1]['release']}"))["items"]
    assert {line["study"] for line in only} == {filled}
    for path in ("releases", "ledger"):
        assert (await get(service, f"/v1/admin/{path}?study=unknown"))["items"] == []
    nothing = await service.call("GET", "/v1/admin/ledger/export?study=unknown", "admin")
    assert len(nothing.text.splitlines()) == 1, "the header alone"
    lines = (await get(service, "/v1/admin/ledger"))["items"]
    export = await service.call("GET", "/v1/admin/ledger/export", "admin")
    rows = list(csv.DictReader(io.StringIO(export.text)))
    assert [row["cohort_id"] for row in rows] == [str(line["cohort_id"]) for line in lines]
    assert [float(row["epsilon"]) for row in rows] == [line["epsilon"] for line in lines]


async def test_a_person_sees_what_each_release_cost(service: Service, filled: str):
    charges = (await get(service, "/v1/subjects/p2/charges", "contribute"))["items"]
    assert [one["study"] for one in charges] == [filled]
    spent = (await get(service, "/v1/subjects/p2/budget", "contribute"))["epsilon"]["spent"]
    assert sum(one["epsilon"] for one in charges) == pytest.approx(spent)
    assert (await get(service, "/v1/subjects/nobody/charges", "contribute"))["items"] == []
    limited = await service.token("contribute", studies=frozenset({"another"}))
    assert (await get(service, "/v1/subjects/p2/charges", limited))["items"] == []


async def test_a_persons_charges_say_nothing_of_the_releases_of_others(service: Service, filled: str):
    other = await service.study()
    await service.crowd(other)
    foreign = await service.call("POST", f"/v1/studies/{other}/releases", "analyse", json={"share": 0.1})
    await service.call("POST", f"/v1/studies/{filled}/releases", "analyse", json={"share": 0.1})
    path = "/v1/subjects/p2/charges"
    everything = (await get(service, path, "contribute"))["items"]
    assert len(everything) > 1
    assert all(
        set(one) == {"release", "study", "estimator", "epsilon", "mu2", "created_at"} for one in everything
    ), "no place in the chain"
    limited = await service.token("contribute", studies=frozenset({filled}))
    for token in ("contribute", limited):
        found: list[dict[str, Any]] = []
        cursor: str | None = ""
        while cursor is not None:
            page = await get(service, f"{path}?limit=1{cursor and f'&cursor={cursor}'}", token)
            found += page["items"]
            cursor = page["next_cursor"]
            assert cursor is None or base64.urlsafe_b64decode(cursor + "==").decode() == found[-1]["release"]
        assert found == [one for one in everything if token == "contribute" or one["study"] == filled]
    await assert_no_cursor(service, path, limited, foreign.json()["id"])


# Each list, started at its middle, with parameters for that place.
LISTS: dict[str, tuple[Sql[Any], dict[str, Any]]] = {
    "releases": (ledger.PAGES_OF_RELEASES[()], {"number": 10_000, "limit": 50}),
    "releases of a study": (
        ledger.PAGES_OF_RELEASES["study_id",],
        {"number": 10_000, "limit": 50, "study_id": 7},
    ),
    "charges": (ledger.PAGES[()], {"number": 10_000, "cohort": 30, "limit": 50}),
    "charges of a study": (
        ledger.PAGES["study_id",],
        {"number": 10_000, "cohort": 30, "limit": 50, "study_id": 7},
    ),
    "a study's releases": (PAGE_RELEASES, {"study_id": 7, "before": None, "limit": 50, "charges": False}),
    "cohorts": (cohorts.PAGE_COHORTS, {"study_id": 7, "after": 100, "limit": 50}),
    "accounts": (budgets.PAGE, {"after": b"\x80", "limit": 50, "delta": 1}),
    "studies": (studies.PAGE, {"after": "s5", "limit": 50, "slugs": None, "series": None}),
}

MIDDLE = "SELECT id FROM release WHERE study_id = $1 ORDER BY number OFFSET 50 LIMIT 1"

FILL = """
    INSERT INTO study (slug, title, lower, upper, relation, trust, epsilon_min, epsilon_max, default_share,
                       delta, dimension, local_mechanism, created_at)
    SELECT 's' || n, 't', '0', '1', 'replace_one', '{central}', 1, 10, 1, 0, 1, 'laplace', now()
    FROM generate_series(1, 200) n ORDER BY n;
    INSERT INTO cohort (study_id, epoch, trust, epsilon, carried, before, count, total, total_squares,
                        spent)
    SELECT (SELECT min(id) FROM study) + n % 200, 1, 'central', n, 0, 0, 1, 0, 0, 0
    FROM generate_series(1, 4000) n;
    INSERT INTO release (id, number, study_id, question, sequence, epoch, estimator, estimator_version, noise,
                         body, estimate, epsilon_max, previous_hash, hash, created_at)
    SELECT gen_random_uuid(), n, (SELECT min(id) FROM study) + n % 200, '\\x00', n, 1, 'adpm', 1, '{}',
           '{"estimate":1}', 1, 0, '\\x00', '\\x00', now()
    FROM generate_series(1, 20000) n;
    INSERT INTO charge_block (release_id, cohorts, amounts)
    SELECT release.id, ARRAY[first + number * 7 % 4000, first + (number * 7 + 1) % 4000], '{1,1}'
    FROM release, (SELECT min(id) AS first FROM cohort) AS cohort;
    INSERT INTO subject (id, budget, reserved, gaussian_budget, gaussian_reserved)
    SELECT sha256(convert_to(CAST(n AS text), 'UTF8')), 10, 0, 0, 0 FROM generate_series(1, 20000) n;
    ANALYZE study; ANALYZE cohort; ANALYZE release; ANALYZE charge_block; ANALYZE subject;
"""


@pytest.mark.slow
async def test_a_page_in_the_middle_of_a_list_costs_what_is_on_it(service: Service):
    connection = await asyncpg.connect(service.database_url)
    try:
        for statement in FILL.strip().rstrip(";").split(";"):
            await connection.execute(statement)
        first = await connection.fetchval("SELECT min(id) FROM study") - 1
        lowest = await connection.fetchval("SELECT min(id) FROM cohort") - 1
        for name, (query, parameters) in LISTS.items():
            given: dict[str, Any] = {**parameters}
            if "study_id" in given:
                given["study_id"] = first + 7
            if "before" in given:
                given["before"] = await connection.fetchval(MIDDLE, given["study_id"])
            if name == "cohorts":
                given["after"] = lowest + 100
            read = await _rows_read(connection, query, given)
            assert read <= 1_000, f"{name} reads {read} rows"
    finally:
        await connection.close()


async def _rows_read(connection: asyncpg.Connection, query: Sql[Any], given: dict[str, Any]) -> int:
    """Rows that a statement reads from tables and indexes, those thrown away included."""
    explained = f"EXPLAIN (ANALYZE, FORMAT JSON) {query.text}"
    plan = json.loads(await connection.fetchval(explained, *query.arguments(given)))

    def rows(node: dict[str, Any]) -> float:
        below = node.get("Plans", [])
        thrown = sum(value for key, value in node.items() if key.startswith("Rows Removed"))
        own = (node["Actual Rows"] + thrown) * node["Actual Loops"] if not below else 0
        return float(own) + sum(rows(child) for child in below)

    return int(rows(plan[0]["Plan"]))
