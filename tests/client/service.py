"""A small service in memory, behind `httpx.MockTransport`: the rules that clients rely on, and faults."""

import gzip
import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import httpx

from tests.client.sessions import FakeSessions

COMMUTE: dict[str, Any] = {
    "slug": "commute",
    "title": "How long is your way to work, in minutes?",
    "lower": 0.0,
    "upper": 120.0,
    "relation": "replace_one",
    "trust": ["central", "local", "public"],
    "epsilon": {"min": 0.001, "max": 5.0},
    "default_share": 0.1,
    "delta": 0.0,
    "dimension": 1,
    "local_mechanism": "laplace",
    "state": "open",
}
SLEEP = {**COMMUTE, "slug": "sleep", "upper": 24}
PLACES = {**COMMUTE, "slug": "places", "dimension": 2}
PARTY = {**COMMUTE, "slug": "party", "lower": 0, "upper": 2, "choices": ["red", "green", "blue"]}
HOUSEHOLD = {
    **COMMUTE,
    "slug": "household",
    "dimension": 2,
    "lower": 0,
    "upper": 1,
    "measures": {"income": {"lower": 0, "upper": 9000}, "age": {"lower": 18, "upper": 98}},
}
TILT = {**COMMUTE, "slug": "tilt", "local_mechanism": "exponential"}

TOKEN: dict[str, Any] = {
    "studies": None,
    "subject": None,
    "expires_at": None,
    "revoked_at": None,
    "created_at": "2030-01-31T12:00:00Z",
    "last_used_on": "2030-01-31",
    "quota": None,
    "by_provider": False,
}

Fault = Exception | httpx.Response | Callable[[httpx.Request], httpx.Response]
"""What happens instead of an answer. A callable may serve the request first and lose the answer."""


_NEAR = {"level": 0.95, "coverage": "worst_case"}
DESCRIBED = {
    "estimate": None,
    "interval": None,
    "count": {"estimate": 400.0, "interval": _NEAR | {"lower": 400.0, "upper": 400.0}},
    **{
        name: {
            "estimate": estimate,
            "standard_error": 0.5,
            "interval": _NEAR | {"lower": estimate - 1, "upper": estimate + 1},
            "population_interval": _NEAR | {"lower": estimate - 3, "upper": estimate + 3},
        }
        for name, estimate in (("mean", 32.0), ("sd", 12.0))
    },
    "quartiles": [
        {"q": q, "estimate": estimate, "interval": _NEAR | {"lower": estimate - 1, "upper": estimate + 1}}
        for q, estimate in ((0.25, 22.0), (0.5, 31.0), (0.75, 40.0))
    ],
}
"""What a description says."""

TABLE = [
    {
        "where": {"party": party, "sex": sex},
        "share": share,
        **{
            name: {"level": 0.95, "coverage": "exact", "lower": share - 0.1, "upper": share + 0.1}
            for name in ("interval", "population_interval", "simultaneous")
        },
    }
    for party, sex, share in (("red", "f", 0.3), ("red", "m", 0.2), ("green", "f", 0.1), ("green", "m", 0.4))
]
"""Two choices."""

SHAPES = (
    "histogram",
    "distribution",
    "quantile",
    "median",
    "describe",
    "shares",
    "count",
    "covariance",
    "correlation",
    "regression",
    "table",
)
"""Statistics that are no mean and not read off one."""

RANGE = {"start": 2**28, "zoom": 10, "lower": 30.0, "upper": 42.0, "outside_at_most": 0.1}
"""Where local people report, once that is found."""

FOUND_RANGE = {"lower": 0.0, "upper": 70.0, "outside_at_most": 0.01, "people_outside_at_most": 4}
"""What a mean over a range that was found says of it."""


@dataclass
class Holding:
    """What the service holds for a subject in a study; `sent` is None once withdrawn."""

    sent: dict[str, Any] | None
    epsilon: Decimal
    spent: Decimal


def problem(status: int, code: str, detail: str = "", errors: Any = ()) -> httpx.Response:
    document = {"type": f"urn:dither:problem:{code}", "title": code, "status": status, "code": code}
    return httpx.Response(
        status,
        json={**document, "detail": detail, "errors": list(errors)},
        headers={"content-type": "application/problem+json"},
    )


@dataclass
class FakeService:
    """Serves requests, after the faults that are queued up for them."""

    studies: dict[str, dict[str, Any]] = field(
        default_factory=lambda: {
            study["slug"]: deepcopy(study) for study in (COMMUTE, SLEEP, PLACES, PARTY, HOUSEHOLD, TILT)
        }
    )
    holdings: dict[tuple[str, str], Holding] = field(default_factory=dict)
    releases: list[dict[str, Any]] = field(default_factory=list)
    keys: dict[str, dict[str, Any]] = field(default_factory=dict)
    log: list[httpx.Request] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    lifetime: Decimal = Decimal(10)
    tokens: dict[str, dict[str, Any]] = field(default_factory=dict)
    secrets: int = 0
    invitations: dict[str, dict[str, Any]] = field(default_factory=dict)
    webhooks: dict[str, dict[str, Any]] = field(default_factory=dict)
    publications: dict[str, dict[str, Any]] = field(default_factory=dict)
    schedules: dict[str, dict[str, Any]] = field(default_factory=dict)
    sessions: FakeSessions = field(default_factory=FakeSessions)

    @property
    def transport(self) -> httpx.MockTransport:
        return httpx.MockTransport(self)

    def requests(self, method: str) -> list[tuple[httpx.Request, Any]]:
        """Requests of a method, with their JSON bodies."""
        return [(r, json.loads(r.content, parse_float=Decimal)) for r in self.log if r.method == method]

    def sent(self, method: str) -> list[Any]:
        """JSON bodies of the requests of a method."""
        return [body for _, body in self.requests(method)]

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.log.append(request)
        return self.fail(self.faults.pop(0), request) if self.faults else self.serve(request)

    def fail(self, fault: Fault, request: httpx.Request) -> httpx.Response:
        """Let a fault happen to a request."""
        if isinstance(fault, Exception):
            raise fault
        return fault if isinstance(fault, httpx.Response) else fault(request)

    def lose(self, request: httpx.Request) -> httpx.Response:
        """A fault: serve the request, then lose the answer."""
        self.serve(request)
        raise httpx.ReadError("cut off", request=request)

    def serve(self, request: httpx.Request) -> httpx.Response:
        path = request.url.raw_path.decode().partition("?")[0]
        parts = [httpx.URL(f"http://x/{part}").path[1:] for part in path.removeprefix("/v1/").split("/")]
        if parts[0] == "admin":
            return self._administrate(request, parts[1:])
        if parts[0] == "subjects":
            return self._budget(parts[1])
        if parts[0] == "releases":
            return httpx.Response(200, json=next(row for row in self.releases if row["id"] == parts[1]))
        if parts == ["studies"]:
            return self._studies(request)
        if parts[0] == "sessions":
            sent = json.loads(request.content) if request.method == "POST" else None
            status, answer = self.sessions.serve(request.method, parts[1:], sent)
            return problem(status, answer) if status >= 400 else httpx.Response(status, json=answer)
        study = self.studies.get(parts[1])
        if study is None:
            return problem(404, "not_found", "There is no such study.")
        match [request.method, *parts[2:]]:
            case ["GET"]:
                return httpx.Response(200, json=study)
            case ["PATCH"]:
                study.update(
                    {name: text for name, text in _read(request.content).items() if name != "reason"}
                )
                return httpx.Response(200, json=study)
            case ["POST", "reporting-range"]:
                sent = _read(request.content)
                study["reporting_range"] = {**RANGE, "searches": [sent["lower"], sent["upper"]]}
                return httpx.Response(200, json=study)
            case ["POST", "close" | "archive" | "retire" as verb]:
                study["state"] = {"close": "closed", "archive": "archived", "retire": "retired"}[verb]
                return httpx.Response(200, json=study)
            case ["POST", "contributions"]:
                return self._contribute(study["slug"], _read(request.content))
            case ["PUT", "contributions", subject]:
                return self._replace(study["slug"], subject, _read(request.content))
            case ["DELETE", "contributions", subject]:
                return self._withdraw(study["slug"], subject)
            case ["POST", "contributions", "batch"]:
                return self._batch(study["slug"], request)
            case ["GET", "plan"]:
                return self._plan()
            case ["POST", "plan"]:
                one = {**self._plan().json(), "epsilon_max": 0.1, "mu2_max": None}
                return httpx.Response(200, json={"questions": [one] * 2, "epsilon_max": 0.1, "mu2_max": None})
            case ["GET", "statistics", "mean" | "sum" | "variance" | "sd"]:
                return self._mean(study, dict(request.url.params))
            case ["GET", "statistics", "change" | "trend" as statistic]:
                return httpx.Response(200, json=_series(study["slug"], statistic))
            case ["GET", "statistics", "difference"]:
                asked = dict(request.url.params)
                assert asked.pop("of") == "mean"
                by = asked.pop("between").partition(":")[0]
                return self._mean(study, {"by": by, **asked})
            case ["GET", "statistics", statistic] if statistic in SHAPES:
                return self._shape(study, statistic, dict(request.url.params))
            case ["POST", "releases"]:
                return self._release(study, request)
            case ["POST", "invitations"]:
                return self._invite(study["slug"], _read(request.content))
            case ["GET", "invitations"]:
                return _page(list(self.invitations.values()), dict(request.url.params))
            case [method, "invitations", invitation]:
                found = self.invitations[invitation]
                if method == "DELETE":
                    found |= {"state": "revoked", "revoked_at": "2030-02-01T12:00:00Z"}
                return httpx.Response(204) if method == "DELETE" else httpx.Response(200, json=found)
            case ["POST", "schedules"]:
                return self._schedule(study["slug"], _read(request.content))
            case ["GET", "schedules"]:
                return _page(list(self.schedules.values()), dict(request.url.params))
            case ["DELETE", "schedules", schedule]:
                return httpx.Response(204 if self.schedules.pop(schedule, None) else 404)
            case ["GET", "schedules", schedule]:
                return httpx.Response(200, json=self.schedules[schedule])
            case [_, "publications", *_]:
                return self._published(study["slug"], request, parts[-1])
            case ["GET", "sessions"]:
                return self.sessions.of_study(study["slug"], dict(request.url.params))
            case ["POST", "sessions"]:
                return self.sessions.create(study["slug"], _read(request.content))
            case ["GET", "releases"]:
                return _page(self.releases, dict(request.url.params))
        return problem(404, "not_found")

    # -- administration

    def _invite(self, study: str, sent: dict[str, Any]) -> httpx.Response:
        identity = f"i{len(self.invitations) + 1}"
        number = sent.get("count") or len(sent.get("subjects", ())) or 1
        self.invitations[identity] = {
            "id": identity,
            "study": study,
            "kind": sent["kind"],
            "name": sent.get("name", "Invitation"),
            "limit": sent.get("limit", number),
            "used": 0,
            "state": "valid",
            "created_at": "2030-01-01T12:00:00Z",
            "expires_at": sent.get("expires_at"),
            "revoked_at": None,
        }
        urls = [f"https://dither.example/take/{identity}-{place}" for place in range(number)]
        return httpx.Response(201, json={"id": identity, "urls": urls})

    def _schedule(self, study: str, sent: dict[str, Any]) -> httpx.Response:
        identity = f"s{len(self.schedules) + 1}"
        at = sent.get("starts_at", "2030-01-01T12:00:00Z")
        self.schedules[identity] = {
            "id": identity,
            "study": study,
            "question": {name: str(value) for name, value in sent["question"].items()},
            "every": sent["every"],
            "starts_at": at,
            "share": 0.1,
            "newcomers": sent["newcomers"],
            "until": None if sent.get("until") is None else float(sent["until"]),
            "quota": float(sent["quota"]),
            "token_id": "t1",
            "created_at": "2030-01-01T12:00:00Z",
            "due_at": at,
            "answered": 0,
            "asked_at": None,
            "release": None,
            "refusal": None,
        }
        return httpx.Response(201, json=self.schedules[identity])

    def _published(self, study: str, request: httpx.Request, slug: str) -> httpx.Response:
        now = "2030-01-01T12:00:00Z"
        if request.method == "GET":
            one = self.publications.get(slug)
            found = list(self.publications.values())
            return _page(found, dict(request.url.params)) if one is None else httpx.Response(200, json=one)
        if request.method == "DELETE":
            self.publications[slug] |= {"state": "withdrawn", "withdrawn_at": now}
            return httpx.Response(204)
        sent = _read(request.content)
        slug = slug if request.method == "PUT" else sent.get("slug", f"p{len(self.publications) + 1}")
        self.publications[slug] = {
            "slug": slug,
            "url": f"https://dither.example/p/{slug}",
            "study": study,
            "title": sent["title"],
            "releases": sent["releases"],
            "frames": sent.get("frames", []),
            "state": "shown",
            "created_at": now,
            "changed_at": now,
            "expires_at": sent.get("expires_at"),
            "withdrawn_at": None,
        }
        return httpx.Response(200 if request.method == "PUT" else 201, json=self.publications[slug])

    def _studies(self, request: httpx.Request) -> httpx.Response:
        if request.method == "GET":
            return _page(list(self.studies.values()), dict(request.url.params))
        sent = _read(request.content)
        study = {**COMMUTE, **sent, "epsilon": {**COMMUTE["epsilon"], **sent.get("epsilon", {})}}
        self.studies[study["slug"]] = json.loads(json.dumps(study, default=float))
        return httpx.Response(201, json=self.studies[study["slug"]])

    def _administrate(self, request: httpx.Request, parts: list[str]) -> httpx.Response:
        sent = _read(request.content) if request.content else {}
        match [request.method, *parts]:
            case ["PUT", "subjects", subject, "budget"]:
                self.lifetime = Decimal(sent["epsilon"])
                return self._budget(subject)
            case ["POST", "budgets", "raise"]:
                self.lifetime += Decimal(sent["epsilon"])
                raised = {
                    "epsilon": float(sent["epsilon"]),
                    "at_most": None,
                    "new_people": float(self.lifetime),
                }
                return httpx.Response(200, json=raised)
            case ["GET", "budgets"]:
                people = sorted({subject for _, subject in self.holdings})
                return _page([self._budget(who).json() for who in people], dict(request.url.params))
            case ["POST", "tokens"]:
                return self._secret({**TOKEN, **sent, "id": f"t{len(self.tokens) + 1}"}, 201)
            case ["GET", "tokens"]:
                return _page(list(self.tokens.values()), dict(request.url.params))
            case ["POST", "webhooks"]:
                made = {**sent, "id": f"w{len(self.webhooks) + 1}", "created_at": "2030-01-01T12:00:00Z"}
                self.webhooks[made["id"]] = made | {"waiting": 0, "given_up": 0}
                return httpx.Response(201, json=self.webhooks[made["id"]] | {"secret": "whsec_MTIz"})
            case ["GET", "webhooks"]:
                return _page(list(self.webhooks.values()), dict(request.url.params))
            case ["DELETE", "webhooks", webhook]:
                return httpx.Response(204 if self.webhooks.pop(webhook, None) else 404)
            case ["GET", "webhooks", webhook]:
                return httpx.Response(200, json=self.webhooks[webhook])
        found = self.tokens.get(parts[1])
        if found is None:
            return problem(404, "not_found", "There is no such token.")
        match [request.method, *parts[2:]]:
            case ["GET"]:
                return httpx.Response(200, json=found)
            case ["GET", "usage"]:
                return _page([{"study": "commute", "releases": 1, "used": 0.1}], dict(request.url.params))
            case ["POST", "rotate"]:
                return self._secret(found, 200)
            case ["PUT", "quota"]:
                found["quota"] = {"share": float(sent["share"]), "period_seconds": sent["period_seconds"]}
                return httpx.Response(200, json=found["quota"])
            case ["DELETE"]:
                found["revoked_at"] = "2030-02-01T12:00:00Z"
            case ["DELETE", "quota"]:
                found["quota"] = None
        return httpx.Response(204)

    def _secret(self, token: dict[str, Any], status: int) -> httpx.Response:
        self.tokens[token["id"]] = token
        self.secrets += 1
        return httpx.Response(status, json={**token, "token": f"dither_{self.secrets}"})

    # -- contributions

    def _contribute(self, slug: str, sent: dict[str, Any]) -> httpx.Response:
        held = self.holdings.get((slug, sent["subject"]))
        if held is not None and held.sent is not None:
            if held.sent == sent:
                return _stored(200, slug, sent)
            return problem(409, "contribution_exists")
        return self._store(slug, sent, held.spent if held else Decimal(0), status=201)

    def _replace(self, slug: str, subject: str, sent: dict[str, Any]) -> httpx.Response:
        held = self.holdings.get((slug, subject))
        if held is None or held.sent is None:
            return problem(404, "not_found", "Nothing to replace.")
        sent = {"subject": subject, **sent}
        return (
            _stored(200, slug, sent) if held.sent == sent else self._store(slug, sent, held.spent, status=200)
        )

    def _store(self, slug: str, sent: dict[str, Any], spent: Decimal, *, status: int) -> httpx.Response:
        epsilon = Decimal(sent.get("epsilon", 0))
        local = sent["trust"] == "local"
        if sent["trust"] != "public" and (epsilon < spent or (local and epsilon == spent)):
            return problem(409, "epsilon_below_spent")
        others = sum(
            held.epsilon
            for key, held in self.holdings.items()
            if key[1] == sent["subject"] and key[0] != slug
        )
        if others + epsilon > self.lifetime:
            return problem(
                409, "budget_exhausted", errors=[{"field": "epsilon", "reason": "too little left"}]
            )
        self.holdings[slug, sent["subject"]] = Holding(sent, epsilon, epsilon if local else spent)
        return _stored(status, slug, sent)

    def _withdraw(self, slug: str, subject: str) -> httpx.Response:
        held = self.holdings.get((slug, subject))
        if held is None:
            return problem(404, "not_found")
        held.sent, held.epsilon = None, held.spent
        return httpx.Response(204)

    def _batch(self, slug: str, request: httpx.Request) -> httpx.Response:
        assert request.headers["content-encoding"] == "gzip"
        assert request.headers["content-type"] == "application/x-ndjson"
        statuses = {201: "created", 200: "unchanged", 409: "refused"}
        results = []
        for line in gzip.decompress(request.content).splitlines():
            answer = self._contribute(slug, _read(line))
            status = statuses[answer.status_code]
            told = answer.json()
            names = ("code", "errors") if status == "refused" else ()
            results.append({"status": status} | {name: told[name] for name in names if name in told})
        counts = {name: sum(row["status"] == name for row in results) for name in statuses.values()}
        return httpx.Response(200, json={"results": results, **counts})

    def _budget(self, subject: str) -> httpx.Response:
        lines: list[dict[str, Any]] = [
            {
                "study": slug,
                "trust": held.sent["trust"] if held.sent else "central",
                "live": held.sent is not None,
                "epsilon": float(held.epsilon),
                "spent": float(held.spent),
            }
            for (slug, owner), held in self.holdings.items()
            if owner == subject
        ]
        reserved = sum(line["epsilon"] for line in lines)
        spent = sum(line["spent"] for line in lines)
        total = float(self.lifetime)
        amounts = {"total": total, "reserved": reserved, "spent": spent, "remaining": total - reserved}
        return httpx.Response(
            200,
            json={
                "subject": subject,
                "epsilon": amounts,
                "gaussian": None,
                "in_all": {"epsilon": total, "delta": 0.0},
                "studies": lines,
            },
        )

    # -- questions

    def _plan(self) -> httpx.Response:
        rows = [("adpm", 0.75, 0.25), ("uniform", 1.5, 0.05)]
        names = ("estimator", "predicted_error", "epsilon_max")
        words = "now 32.0 ± 2.1; for another 0.1 of each epsilon ± 1.1, which costs a person at most 0.25"
        planned = [dict(zip(names, row, strict=True)) for row in rows]
        return httpx.Response(200, json={"estimators": planned, "in_words": words})

    def _make(self, study: dict[str, Any], parameters: dict[str, Any]) -> dict[str, Any]:
        interval = {"level": 0.95, "lower": 30.5, "upper": 33.5}
        release = {
            "id": f"r{len(self.releases) + 1}",
            "study": study["slug"],
            "statistic": "mean",
            "estimator": parameters.get("estimator", "adpm"),
            "parameters": parameters,
            "estimate": 32.0,
            "standard_error": 0.5,
            "interval": interval,
            "population_interval": {**interval, "lower": 29.0, "upper": 35.0},
            "relation": study["relation"],
            "epsilon_max": 0.25,
            "created_at": "2030-01-31T12:00:00Z",
        }
        if parameters.get("range") == "found":
            release["range"] = FOUND_RANGE
        self.releases.append(release)
        return release

    def _mean(self, study: dict[str, Any], parameters: dict[str, Any]) -> httpx.Response:
        if study.get("dimension", 1) > 1 and "measures" not in study:
            return httpx.Response(200, json=self._coordinates(study, parameters))
        for release in self.releases:
            if release["parameters"] == parameters:
                return httpx.Response(200, json={**release, "new_contributions": False})
        return httpx.Response(200, json={**self._make(study, parameters), "new_contributions": False})

    def _coordinates(self, study: dict[str, Any], parameters: dict[str, Any]) -> dict[str, Any]:
        """An answer to a question about values of several coordinates."""
        self._make(study, parameters)
        made = self.releases.pop()
        numbers = ("estimate", "standard_error", "interval", "population_interval")
        one = {name: made.pop(name) for name in numbers}
        spread = dict.fromkeys(("variance", "sd"), one)
        together = {"simultaneous": one["population_interval"]}
        places = range(study["dimension"])
        made["coordinates"] = [{"coordinate": place, **one, **together, **spread} for place in places]
        return made

    def _shape(self, study: dict[str, Any], statistic: str, parameters: dict[str, Any]) -> httpx.Response:
        made = {**self._make(study, parameters), "statistic": statistic, "new_contributions": False}
        for name in ("standard_error", "population_interval"):
            made.pop(name, None)
        interval = {"level": 0.95, "coverage": "at_least"}
        if statistic == "describe":
            return httpx.Response(200, json=made | DESCRIBED)
        if statistic == "covariance":
            both = interval | {"lower": 100.0, "upper": 140.0}
            more = {"estimate": 120.0, "interval": both, "population_interval": both}
            if by := parameters.get("by"):
                made["groups"] = [{"where": {by: label}, **more} for label in ("north", "south")]
            return httpx.Response(200, json=made | more | {"measures": ["income", "age"]})
        if statistic in ("correlation", "regression"):
            return httpx.Response(200, json=made | _of_lines(statistic, interval))
        if statistic == "table":
            made |= {"measures": ["party", "sex"], "cells": TABLE, "p_value": 0.0004}
            return httpx.Response(200, json=made | {"estimate": None, "interval": None})
        if statistic == "count":
            return httpx.Response(
                200, json=made | {"estimate": 400.0, "interval": interval | {"lower": 400.0, "upper": 400.0}}
            )
        if statistic in ("quantile", "median"):
            return httpx.Response(
                200, json=made | {"estimate": 58.0, "interval": interval | {"lower": 51.0, "upper": 66.0}}
            )
        starts, ends = (0, 30, 60), (30, 60, 120)
        shares = (0.5, 0.3, 0.2) if statistic == "shares" else (0.4, 0.5, 0.1)
        if statistic == "distribution":
            starts, shares = (0, 0, 0), (0.4, 0.9, 1.0)
        around = [interval | {"lower": share, "upper": share} for share in shares]
        kinds = ("interval", "population_interval", "simultaneous")
        if statistic == "shares":
            made["choices"] = [
                {"choice": choice, "share": share, **dict.fromkeys(kinds, one)}
                for choice, share, one in zip(study["choices"], shares, around, strict=True)
            ]
            del made["estimate"], made["interval"]
            return httpx.Response(200, json=made)
        made["bins"] = [
            {"lower": lower, "upper": upper, "share": share, **dict.fromkeys(kinds, one)}
            for lower, upper, share, one in zip(starts, ends, shares, around, strict=True)
        ]
        for name in ("estimate", "interval"):
            made.pop(name, None)
        return httpx.Response(200, json=made)

    def _release(self, study: dict[str, Any], request: httpx.Request) -> httpx.Response:
        key = request.headers["idempotency-key"]
        if key not in self.keys:
            body = json.loads(request.content)
            assert body.pop("statistic") == "mean"
            self.keys[key] = self._make(study, body)
        return httpx.Response(201, json=self.keys[key])


def _page(rows: list[dict[str, Any]], query: dict[str, str]) -> httpx.Response:
    start = int(query.get("cursor", 0))
    end = start + int(query["limit"])
    cursor = str(end) if end < len(rows) else None
    return httpx.Response(200, json={"items": rows[start:end], "next_cursor": cursor})


def _read(body: bytes) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(body, parse_float=Decimal)
    return document


def _stored(status: int, slug: str, sent: dict[str, Any]) -> httpx.Response:
    epsilon = float(sent["epsilon"]) if "epsilon" in sent else None
    document = {"study": slug, "subject": sent["subject"], "trust": sent["trust"], "epsilon": epsilon}
    return httpx.Response(status, json={**document, "epsilon_used_at_most": epsilon})


def _series(study: str, statistic: str) -> dict[str, Any]:
    """A change or a trend of two studies."""
    interval = {"level": 0.95, "lower": 0.05, "upper": 0.57, "coverage": "exact"}
    answer = {"created_at": "2030-01-31T12:00:00Z", "release": "r1", "estimate": 6.1, "interval": interval}
    since = "mood-1" if statistic == "change" else None
    return {
        "statistic": statistic,
        "of": "mean",
        "series": "mood",
        "study": study,
        "since": since,
        "estimate": 0.31,
        "standard_error": 0.1,
        "interval": interval,
        "population_interval": interval,
        "answers": [{"study": one, **answer} for one in ("mood-1", study)],
        "without_answer": [],
        "in_words": "0.31 (0.05 to 0.57) since mood-1 (95% interval)",
    }


def _of_lines(statistic: str, interval: dict[str, Any]) -> dict[str, Any]:
    """A correlation of 0.5 with a line of slope 2 through 10, or that line."""

    def number(value: float) -> dict[str, Any]:
        ends = interval | {"lower": value - 1, "upper": value + 1}
        return {"estimate": value, "interval": ends, "population_interval": ends}

    band = [{"at": at, "estimate": 10 + 2 * at, "lower": 2 * at, "upper": 20 + 2 * at} for at in (0.0, 9.0)]
    line = {"slope": number(2.0), "intercept": number(10.0), "band": band}
    shown = {"r_squared": 0.25, "r_squared_interval": interval | {"lower": 0.0, "upper": 1.0}}
    if statistic == "regression":
        there = {"at": 9.0, "estimate": 28.0, "interval": interval | {"lower": 18.0, "upper": 38.0}}
        about = {"of": "income", "on": "age", "estimate": None, "interval": None, "prediction": there}
        return shown | line | about
    return shown | number(0.5) | {"measures": ["income", "age"], "lines": [line, line]}
