"""The metrics: each documented, none with a value or an id in a label, and what they count."""

import json
import re
from pathlib import Path

import asyncpg
import yaml
from prometheus_client.parser import text_string_to_metric_families

from app.api.routing import StrictRoute
from app.web.metrics import Metrics
from app.web.problems import KINDS
from tests.api.service import VALUE, Service

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"


def described() -> dict[str, tuple[str, set[str]]]:
    """Name on the page -> type and labels."""
    rows = re.findall(r"^\| `(dither_\w+)` \| (\w+) \|([^|]*)\|", PAGE.read_text(), re.MULTILINE)
    return {name: (kind, set(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows}


async def use(service: Service) -> str:
    """Do a little of everything; returns what an admin sees then."""
    study = await service.study()
    await service.crowd(study, 20)
    await service.contribute(study, "alice")
    await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json={"share": 1})
    await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json={"share": 1, "fresh": True})
    greedy = {**VALUE, "subject": "bob", "epsilon": 9}
    for other in (study, await service.study()):
        await service.call("POST", f"/v1/studies/{other}/contributions", "contribute", json=greedy)
    session = {"protocol": "minimum", "epsilon": 4, "participants": 100, "rounds": 2}
    for _ in range(2):
        made = await service.call("POST", f"/v1/studies/{study}/sessions", "admin", json=session)
    await service.call("POST", f"/v1/sessions/{made.json()['id']}/finish", "admin")
    await service.call("GET", "/v1/studies")
    return (await service.call("GET", "/metrics", "admin")).text


async def test_every_metric_is_documented_as_it_is(service: Service) -> None:
    found = {}
    for family in text_string_to_metric_families(await use(service)):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        if not name.endswith("_created"):
            found[name] = (family.type, labels)
    assert found == described()


async def test_no_label_says_whom_or_what(service: Service) -> None:
    templates = {route.path_format for route in service.app.routes if isinstance(route, StrictRoute)}
    allowed = {
        "method": re.compile("GET|POST|PUT|DELETE|HEAD|any"),
        "route": re.compile("|".join(map(re.escape, [*templates, "unmatched", "/openapi.json"]))),
        "status": re.compile(r"\d{3}"),
        "state": re.compile("open|finished"),
        "version": re.compile(r"[\d.]+"),
        "code": re.compile("|".join(kind.code for kind in KINDS)),
        "le": re.compile(r"[\d.]+|\+Inf"),
    }
    seen = set()
    for family in text_string_to_metric_families(await use(service)):
        for sample in family.samples:
            for label, value in sample.labels.items():
                assert allowed[label].fullmatch(value), (family.name, label, value)
                seen.add(label)
    assert seen == set(allowed)


async def test_they_count_what_was_done(service: Service) -> None:
    samples = {
        (sample.name, sample.labels.get("code")): sample.value
        for family in text_string_to_metric_families(await use(service))
        for sample in family.samples
        if "le" not in sample.labels and "route" not in sample.labels
    }
    assert samples["dither_refusals_total", "budget_exhausted"] == 2
    assert samples["dither_refusals_total", "unauthenticated"] == 1
    assert samples["dither_release_seconds_count", None] == 1
    assert samples["dither_fold_seconds_count", None] == 1
    assert samples["dither_commit_contributions_sum", None] == 3


async def test_sessions_are_counted_by_state(service: Service) -> None:
    text = await use(service)
    found = {
        sample.labels["state"]: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "dither_sessions"
    }
    assert found == {"open": 1, "finished": 1}


UP = {"dither_up", "dither"}
"""Families that strangers see."""


def shown(text: str) -> set[str]:
    return {
        family.name.removesuffix("_created").removesuffix("_info")
        for family in text_string_to_metric_families(text)
    }


async def test_strangers_see_whether_it_is_up_and_nothing_moves(service: Service) -> None:
    """Each person who joins a study that hides its size gets a token and reads the study: a request each."""
    limited = await service.token("admin", studies=frozenset({"a"}))
    strangers = (None, "analyse", "contribute", limited)
    before = [(await service.call("GET", "/metrics", token)).content for token in strangers]
    assert len(set(before)) == 1
    await use(service)
    study = await service.study(relation="add_remove_one")
    for person in ("alice", "bob"):
        wish = {"name": person, "role": "contribute", "subject": person}
        made = await service.call("POST", "/v1/admin/tokens", "admin", json=wish)
        token = made.json()["token"]
        await service.call("GET", f"/v1/studies/{study}", token)
        await service.contribute(study, person)
    assert [(await service.call("GET", "/metrics", token)).content for token in strangers] == before
    assert shown(before[0].decode()) == UP
    assert f'dither_info{{version="{service.app.version}"}} 1.0' in before[0].decode()
    assert "dither_up 1.0" in before[0].decode()


async def test_an_observer_sees_every_metric_and_nothing_else(service: Service) -> None:
    admin = shown(await use(service))
    assert shown((await service.call("GET", "/metrics", "observe")).text) == admin
    assert admin > UP


async def test_a_service_that_is_not_ready_is_down(service: Service) -> None:
    connection = await asyncpg.connect(service.database_url)
    try:
        revision = await connection.fetchval("SELECT version_num FROM alembic_version")
        await connection.execute("UPDATE alembic_version SET version_num = 'another'")
        for token in (None, "observe"):
            response = await service.call("GET", "/metrics", token)
            assert response.status_code == 200
            assert "dither_up 0.0" in response.text
            assert "dither_http" not in response.text
    finally:
        await connection.execute("UPDATE alembic_version SET version_num = $1", revision)
        await connection.close()


def test_a_fresh_process_shows_every_family() -> None:
    text = Metrics("1.2.3").exposition(private=True).decode()
    names = re.findall(r"^# TYPE (\w+) (?:counter|gauge|histogram)$", text, re.M)
    assert {name for name in names if not name.endswith("_created")} == set(described())


# -- what watches them


DEPLOY = PAGE.parents[1] / "deploy"

OF_PROMETHEUS = {"up"}
"""What Prometheus itself says of each target."""

ADDED = {"job", "instance"}
"""Labels that Prometheus adds to each sample."""

WORDS = {
    *(
        "sum",
        "count",
        "max",
        "rate",
        "increase",
        "histogram_quantile",
        "topk",
        "vector",
        "by",
        "or",
        "label_values",
    ),
}
"""Functions and operators of PromQL in the examples."""


def grafana() -> dict[str, str]:
    """Expression by title; variables have a value, as Grafana puts one in."""
    document = json.loads((DEPLOY / "grafana.json").read_text())
    found = {
        f"{panel['title']} {target['refId']}": target["expr"]
        for panel in document["panels"]
        for target in panel["targets"]
    }
    found |= {one["name"]: one["query"] for one in document["templating"]["list"] if one["type"] == "query"}
    return {
        name: text.replace("$__rate_interval", "5m").replace("$job", ".*") for name, text in found.items()
    }


def alerts() -> dict[str, str]:
    """Expression by alert."""
    [group] = yaml.safe_load((DEPLOY / "alerts.yml").read_text())["groups"]
    for rule in group["rules"]:
        assert {"summary", "description"} == set(rule["annotations"])
        assert rule["labels"]["severity"] in ("warning", "critical")
    return {rule["alert"]: rule["expr"] for rule in group["rules"]}


def unknown(expression: str, samples: dict[str, list[dict[str, str]]]) -> list[str]:
    """What of an expression no sample has: metrics, labels, codes, states; and brackets that stay open."""
    unquoted = re.sub(r'"[^"]*"', "", expression)
    wrong = [one for one in ("()", "{}", "[]") if unquoted.count(one[0]) != unquoted.count(one[1])]
    bare = re.sub(r'"[^"]*"|\[[^\]]*\]', "", expression)
    grouped = [name.strip() for names in re.findall(r"by \(([^)]*)\)", bare) for name in names.split(",")]
    bare = re.sub(r"by \([^)]*\)|\{[^}]*\}", " ", bare)
    names = set(re.findall(r"[a-z_][a-z_]*", bare)) - WORDS - ({"job"} if "label_values" in bare else set())
    wrong += sorted(names - set(samples) - OF_PROMETHEUS)
    labels = {label for name in names for one in samples.get(name, ()) for label in one} | ADDED
    wrong += sorted(set(grouped) - labels)
    for name, selector in re.findall(r'([a-z_]+)\{((?:[^"}]|"[^"]*")*)\}', expression):
        for label, value in re.findall(r'(\w+)(?:=|!=|=~|!~)"([^"]*)"', selector):
            had = {one.get(label) for one in samples.get(name, ())} - {None}
            if label not in labels:
                wrong.append(label)
            elif label == "code":
                wrong += [value] if value not in {kind.code for kind in KINDS} else []
            elif label == "state":
                wrong += [value] if value not in had else []
    return wrong


async def test_dashboard_and_alerts_ask_for_what_there_is(service: Service) -> None:
    samples: dict[str, list[dict[str, str]]] = {}
    for family in text_string_to_metric_families(await use(service)):
        for sample in family.samples:
            samples.setdefault(sample.name, []).append(dict(sample.labels))
    assert len(grafana()) >= 12
    assert len(alerts()) >= 6
    for name, expression in (grafana() | alerts()).items():
        assert unknown(expression, samples) == [], name
    watched = " ".join((grafana() | alerts()).values())
    for documented in described():
        assert documented.removesuffix("_total") in watched, "a metric that nothing shows"
    templates = {route.path_format for route in service.app.routes if isinstance(route, StrictRoute)}
    assert set(re.findall(r'route!="([^"]*)"', watched)) <= templates
    # The check sees what is wrong.
    for wrong in (
        "sum(dither_https_requests_total)",
        "sum by (path) (dither_up)",
        'dither_up{study="a"}',
        'dither_refusals_total{code="no_money"}',
        "sum(rate(dither_up[5m])",
    ):
        assert unknown(wrong, samples), wrong


def test_prometheus_reads_the_alerts() -> None:
    config = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())
    assert [(DEPLOY / name).exists() for name in config["rule_files"]] == [True]
