"""What an installation holds that later versions are upgraded from: something of every kind."""

import random
from collections.abc import Mapping
from typing import Any

from tests.api.service import Service

SETTINGS: Mapping[str, Any] = {"lifetime_epsilon": 500, "lifetime_gaussian": "500,0.00001"}
"""What the service runs with, before and after: defaults may change from version to version."""

PEOPLE = 40
REGIONS = {"region": ["north", "south"]}
MEASURES = {
    "income": {"lower": 0, "upper": 9000},
    "age": {"lower": 18, "upper": 98},
    "party": {"choices": ["red", "green", "blue"]},
}
SECRET = {"relation": "add_remove_one", "trust": ["central", "public"]}
GAUSSIAN = {"noise": "gaussian", "delta": 0.00001}
EVERY_TRUST = {"trust": ["central", "local", "public"]}

_COMMON = {
    "lower": 0,
    "upper": 100,
    "epsilon": {"min": 0.1, "max": 5},
    "default_share": 0.1,
    "attributes": REGIONS,
}
_NO_RANGE = {name: value for name, value in _COMMON.items() if name not in ("lower", "upper")}

STUDIES: Mapping[str, Mapping[str, Any]] = {
    "numbers": {**_COMMON, **EVERY_TRUST, "tilt": 0.1, "local_mechanism": "laplace"},
    "untilted": {**_COMMON, **EVERY_TRUST, "tilt": 0, "series": "weekly"},
    "tiers": {
        **{name: value for name, value in _COMMON.items() if name != "epsilon"},
        "epsilons": [0.5, 1, 2],
        "tilt": 0.1,
    },
    "secret": {**_COMMON, **SECRET},
    "gaussian": {**_COMMON, **EVERY_TRUST, **GAUSSIAN, "tilt": 0.1, "local_mechanism": "gaussian"},
    "secret-gaussian": {**_COMMON, **SECRET, **GAUSSIAN},
    "poll": {**_NO_RANGE, **EVERY_TRUST, "choices": ["red", "green", "blue"], "tilt": 0.1},
    "secret-poll": {**_NO_RANGE, **SECRET, "choices": ["red", "green", "blue"]},
    "household": {**_NO_RANGE, "measures": MEASURES, **EVERY_TRUST, "tilt": 0.1},
    "secret-household": {**_NO_RANGE, **SECRET, "measures": MEASURES},
    "one-measure": {
        **_NO_RANGE,
        "measures": {"age": {"lower": 18, "upper": 98}},
        "trust": ["central"],
        "tilt": 0.1,
    },
    "places": {**_COMMON, **EVERY_TRUST, "dimension": 2, "tilt": 0.1, "local_mechanism": "laplace"},
    "secret-places": {**_COMMON, **SECRET, "dimension": 2},
    "archived": {**_COMMON, "tilt": 0.1},
    "retired": {**_COMMON, "tilt": 0.1},
    "closed": {**_COMMON, "tilt": 0.1},
}

QUESTIONS: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "numbers": (
        {"share": 0.04},
        {"share": 0.08},
        {"estimator": "uniform", "share": 0.03},
        {"estimator": "adpm", "share": 0.02},
        {"estimator": "optimal", "shrinkage": "none", "share": 0.02},
        {"share": 0.02, "tilt": 1},
        {"share": 0.02, "epsilon": 0.1},
        {"statistic": "sum"},
        {"statistic": "sd"},
        {"by": "region", "share": 0.03},
        {"by": "region", "share": 0.06},
        {"statistic": "difference", "of": "mean", "between": "region:north,south"},
        {"where": "region:north", "share": 0.03},
        {"statistic": "histogram", "bins": 4, "share": 0.03},
        {"statistic": "histogram", "bins": 4, "share": 0.06},
        {"statistic": "distribution", "bins": 4},
        {"statistic": "histogram", "edges": "30,60", "by": "region", "share": 0.03},
        {"statistic": "median", "candidates": 20, "share": 0.03},
        {"statistic": "quantile", "q": 0.9, "candidates": 20, "share": 0.03},
        {"statistic": "describe", "candidates": 20, "share": 0.03},
        {"range": "found", "share": 0.03},
        {"statistic": "count"},
    ),
    "untilted": ({"share": 0.2}, {"share": 0.4}, {"statistic": "variance"}, {"share": 0.1, "variance": 200}),
    "tiers": ({"share": 0.1}, {"share": 0.2}),
    "secret": (
        {"share": 0.1},
        {"share": 0.1, "expected_size": 40},
        {"statistic": "variance", "share": 0.1},
        {"estimator": "hourglass", "share": 0.1, "expected_size": 40},
        {"by": "region", "share": 0.1},
        {"statistic": "count", "share": 0.1},
        {"statistic": "histogram", "bins": 4, "share": 0.1},
        {"statistic": "median", "candidates": 20, "share": 0.1},
        {"statistic": "describe", "candidates": 20, "share": 0.1},
        {"range": "found", "share": 0.1},
    ),
    "gaussian": (
        {"share": 0.1},
        {"share": 0.2},
        {"estimator": "uniform", "share": 0.1},
        {"by": "region", "share": 0.1},
        {"statistic": "histogram", "bins": 4, "share": 0.1},
        {"statistic": "median", "candidates": 20, "share": 0.1},
        {"range": "found", "share": 0.1},
    ),
    "secret-gaussian": (
        {"share": 0.1},
        {"statistic": "sd", "share": 0.1},
        {"statistic": "count", "share": 0.1},
    ),
    "poll": (
        {"statistic": "shares", "share": 0.1},
        {"statistic": "shares", "share": 0.2},
        {"statistic": "shares", "by": "region", "share": 0.1},
    ),
    "secret-poll": ({"statistic": "shares", "share": 0.1},),
    "household": (
        {"measure": "income", "share": 0.1},
        {"measure": "income", "share": 0.2},
        {"measure": "age", "by": "region", "share": 0.1},
        {"measure": "party", "statistic": "shares", "share": 0.1},
        {"measure": "age", "statistic": "median", "candidates": 20, "share": 0.1},
        {"statistic": "covariance", "measures": "income,age", "share": 0.1},
        {"statistic": "covariance", "measures": "income,age", "by": "region", "share": 0.1},
    ),
    "secret-household": (
        {"measure": "age", "share": 0.1},
        {"statistic": "covariance", "measures": "income,age", "share": 0.1, "expected_size": 40},
    ),
    "one-measure": ({"share": 0.1}, {"measure": "age", "statistic": "sd"}),
    "places": ({"share": 0.1}, {"share": 0.2}, {"statistic": "sd"}, {"by": "region", "share": 0.1}),
    "secret-places": ({"share": 0.1}, {"statistic": "variance", "share": 0.1}),
    "archived": ({"share": 0.3},),
    "retired": ({"share": 0.3},),
    "closed": ({"share": 0.3},),
}
"""What analysts ask of each study, in this order; a mean where none is named."""

SINCE_1_0: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "numbers": ({"statistic": "median", "by": "region", "share": 0.05},),
    "household": (
        {"statistic": "correlation", "measures": "income,age", "share": 0.1},
        {"statistic": "correlation", "measures": "income,age", "by": "region", "share": 0.1},
    ),
    "secret-household": ({"statistic": "correlation", "measures": "income,age", "share": 0.1},),
}
"""What the installation of 0.9.0 was not asked; random histories ask it no more than they did."""

PUBLICATION = "/p/a-year.json"
"""Where everyone reads an answer."""

KEYED = {"statistic": "mean", "share": 0.5}
"""What is asked of the study `untilted` with a key."""

KEY = {"Idempotency-Key": "of-the-former-version"}

PERSONS = ("p0", "p1", "p2", "p3", "p7", "p9", "new", "nobody")
"""Whose statements are kept: central, local and public people, one who left, a newcomer, and a stranger."""

ANSWERS = (("s0", 1), ("s1", 0), ("s2", 1))


async def fill(service: Service) -> None:
    """Fill a fresh installation, its clock and its noise being the real ones."""
    for slug, definition in STUDIES.items():
        await _sent(service, "POST", "/v1/studies", "admin", json={"slug": slug, **definition})
    for slug in STUDIES:
        await _contribute(service, slug)
    for slug in ("numbers", "secret", "household", "archived"):
        await _sent(service, "DELETE", f"/v1/studies/{slug}/contributions/p7", "contribute")
    for asked in (QUESTIONS, SINCE_1_0):
        for slug, questions in asked.items():
            for question in questions:
                await _ask(service, slug, question)
    # Who comes and goes after the first answers makes pieces of their own.
    for slug in ("numbers", "secret", "gaussian"):
        person = {"subject": "new", "value": 90, "epsilon": 2, "trust": "central"}
        await _sent(
            service,
            "POST",
            f"/v1/studies/{slug}/contributions",
            "contribute",
            json={**person, "attributes": {"region": "north"}},
        )
        await _sent(service, "DELETE", f"/v1/studies/{slug}/contributions/p9", "contribute")
        await _ask(service, slug, {"share": 0.25})
    await _sent(service, "POST", "/v1/studies/untilted/releases", "analyse", json=KEYED, headers=KEY)
    fresh = {"share": 0.05, "fresh": True, "allow_worse": True}
    await _sent(service, "POST", "/v1/studies/untilted/releases", "analyse", json=fresh)
    await _sessions(service)
    await _administer(service)


async def _sent(service: Service, method: str, path: str, role: str, **options: Any) -> Any:
    response = await service.call(method, path, role, **options)
    assert response.is_success, f"{method} {path} {options}: {response.text}"
    return response.json() if response.content else None


async def _ask(service: Service, slug: str, question: Mapping[str, Any]) -> None:
    if "share" in question:
        document = {"statistic": "mean", **question, "allow_worse": True}
        await _sent(service, "POST", f"/v1/studies/{slug}/releases", "analyse", json=document)
        return
    method, path, options = request(slug, question)
    await _sent(service, method, path, "analyse", **options)


def request(slug: str, question: Mapping[str, Any]) -> tuple[str, str, dict[str, Any]]:
    """Method, path and options of the request that reads a question's answer."""
    parameters = {name: value for name, value in question.items() if name != "statistic"}
    path = f"/v1/studies/{slug}/statistics/{question.get('statistic', 'mean')}"
    return "GET", path, {"params": parameters}


async def _contribute(service: Service, slug: str) -> None:
    """Forty people."""
    source = random.Random(slug)
    records = [record(slug, f"p{number}", number, source) for number in range(PEOPLE)]
    path = f"/v1/studies/{slug}/contributions/batch"
    result = await _sent(service, "POST", path, "contribute", json=records)
    assert result["created"] == PEOPLE, result


def record(kind: str, subject: str, number: int, source: random.Random) -> dict[str, Any]:
    """Somebody's contribution: central at one of three epsilons, one in ten local or public where taken."""
    study = STUDIES[kind]
    found: dict[str, Any] = {
        "subject": subject,
        "epsilon": (0.5, 1, 2)[number % 3],
        "trust": "central",
        "attributes": {"region": ("north", "south")[number % 2]},
    }
    if number % 10 == 1 and "public" in study.get("trust", ()):
        found |= {"trust": "public"}
        del found["epsilon"]
    if number % 10 == 2 and "local" in study.get("trust", ()) and kind in ("numbers", "gaussian"):
        # On the grid of 2^30 steps, as a device makes it.
        found |= {"trust": "local", "report": source.randrange(2**29, 2**30), "epsilon": 2}
    elif "measures" in study:
        values = {"income": source.randrange(9000), "age": 18 + source.randrange(80), "party": "green"}
        found["values"] = {name: values[name] for name in study["measures"]}
    elif "choices" in study:
        found["value"] = study["choices"][source.randrange(3)]
    elif "dimension" in study:
        found["value"] = [source.randrange(100), source.randrange(100)]
    else:
        found["value"] = source.randrange(100)
    return found


async def _sessions(service: Service) -> None:
    """A search that has ended, one that is open, and two rounds of clusters."""
    search = {"protocol": "quantile", "quantile": 0.5, "mode": "budget_split", "epsilon": 4, "rounds": 2}
    search |= {"participants": 4}
    for slug, ends in (("untilted", True), ("numbers", False)):
        made = await _sent(service, "POST", f"/v1/studies/{slug}/sessions", "admin", json=search)
        for subject, answer in ANSWERS:
            document = {"subject": subject, "round": 1, "answer": answer}
            await _sent(service, "POST", f"/v1/sessions/{made['id']}/answers", "contribute", json=document)
        if ends:
            await _sent(service, "POST", f"/v1/sessions/{made['id']}/finish", "admin")
    clusters = {"protocol": "kmeans", "epsilon": 0.4, "rounds": 2, "centres": [[20, 20], [80, 80]]}
    made = await _sent(service, "POST", "/v1/studies/places/sessions", "admin", json=clusters)
    for number in (1, 2):
        path = f"/v1/sessions/{made['id']}/close-round"
        await _sent(service, "POST", path, "admin", json={"round": number})


async def _administer(service: Service) -> None:
    wish = {"name": "limited", "role": "analyse", "studies": ["numbers"]}
    made = await _sent(service, "POST", "/v1/admin/tokens", "admin", json=wish)
    quota = {"share": 0.5, "period_seconds": 3600}
    await _sent(service, "PUT", f"/v1/admin/tokens/{made['id']}/quota", "admin", json=quota)
    own = {"epsilon": 600, "reason": "asked for it"}
    await _sent(service, "PUT", "/v1/admin/subjects/p3/budget", "admin", json=own)
    mean = await _sent(service, *request("untilted", {})[:2], "analyse")
    page = {"releases": [mean["id"]], "title": "A year", "slug": "a-year"}
    await _sent(service, "POST", "/v1/studies/untilted/publications", "analyse", json=page)
    invitation = {"kind": "single", "count": 2}
    await _sent(service, "POST", "/v1/studies/untilted/invitations", "admin", json=invitation)
    webhook = {"url": "https://webhooks.invalid/", "events": ["session_closed"]}
    await _sent(service, "POST", "/v1/admin/webhooks", "admin", json=webhook)
    reason = {"reason": "it is over"}
    await _sent(service, "POST", "/v1/studies/closed/close", "admin")
    await _sent(service, "POST", "/v1/studies/archived/archive", "admin", json=reason)
    await _sent(service, "POST", "/v1/studies/retired/retire", "admin", json=reason)
