"""The requests whose responses are kept in golden files, in an order that makes each of them meaningful.

One run on one fresh database. Noise is zero, and what differs from run to run (ids, secrets, times, hashes)
is replaced by a name when it is recorded; the requests themselves hold no random value.
"""

import csv
import io
import json
import re
from collections.abc import Iterator
from typing import Any

import httpx

from tests.api.service import Service

Exchange = dict[str, Any]

UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
SECRET = re.compile(
    r"dither_[A-Za-z0-9_-]{43}|(?<=/open/)[A-Za-z0-9_-]{43}|(?<=/take/)[A-Za-z0-9_-]{22}|(?<=whsec_)[A-Za-z0-9+/=]{44}"
)
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)")
DAY = re.compile(r"\b20\d\d-\d\d-\d\d\b")
VOLATILE = frozenset({"hash", "next_cursor", "prefix", "version", "assignment_key", "request_id"})
"""Fields whose text means nothing to a reader."""

SURVEY = {
    "slug": "survey",
    "title": "Minutes to work",
    "lower": 0,
    "upper": 100,
    "trust": ["central", "local", "public"],
    "local_mechanism": "laplace",
}
HIDDEN = {"slug": "hidden", "lower": 0, "upper": 100, "relation": "add_remove_one", "trust": ["central"]}
PLANE = {"slug": "plane", "lower": 0, "upper": 100, "dimension": 2, "trust": ["central", "local", "public"]}
EMPTY = {"slug": "empty", "series": "weekly", "lower": 0, "upper": 1, "epsilons": [1.5, 0.5]}
CENTRAL = {"subject": "ann", "value": 12.5, "epsilon": 1.5, "trust": "central"}
LOCAL = {"subject": "lou", "report": 400000000, "epsilon": 1, "trust": "local"}
PUBLIC = {"subject": "pat", "value": 70, "trust": "public"}
MINIMUM = {"protocol": "minimum", "mode": "budget_split", "epsilon": 4, "participants": 4, "rounds": 2}
QUANTILE = {
    **MINIMUM,
    "protocol": "quantile",
    "quantile": 0.5,
    "mode": "user_split",
    "participants": 1000,
    "rounds": 3,
}
SHAPE = {"slug": "shape", "title": "Hours?", "lower": 0, "upper": 100, "epsilon": {"min": 1, "max": 3}}
SHAPED = {"statistic": "histogram"}
POLL = {
    "slug": "poll",
    "title": "Which party?",
    "choices": ["red", "green", "blue"],
    "trust": ["central", "public"],
}
REGIONS = {
    "slug": "regions",
    "lower": 0,
    "upper": 100,
    "trust": ["central", "public"],
    "attributes": {"region": ["north", "south", "empty"]},
}
HOUSEHOLD = {
    "slug": "household",
    "title": "Income and age?",
    "measures": {"income": {"lower": 0, "upper": 9000}, "age": {"lower": 18, "upper": 98}},
    "trust": ["central", "public"],
}
TRIPS = {
    "slug": "trips",
    "measures": {"place": {"lower": 0, "upper": 1, "dimension": 2}, "age": {"lower": 18, "upper": 98}},
    "trust": ["central", "public"],
}
PAIRS = {**HOUSEHOLD, "attributes": {"region": ["north", "south", "empty"]}}
KMEANS = {"protocol": "kmeans", "epsilon": 4, "rounds": 1, "centres": [[20, 20], [80, 80]]}
CONTRIBUTIONS = "/v1/studies/survey/contributions"


class Recorder:
    """Sends requests and keeps what came back, by the file that it belongs to."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._names: dict[str, str] = {}
        self._cohorts: dict[int, str] = {}
        self._numbers: dict[int, str] = {}
        self.files: dict[str, list[Exchange]] = {}

    async def __call__(
        self, file: str, method: str, path: str, role: str | None = None, *, by: str = "", **options: Any
    ) -> httpx.Response:
        """Send one request and record the exchange; `by` sorts a list whose order is that of random ids."""
        response = await self._service.call(method, path, role, **options)
        sent = {
            name: value for name, value in options.items() if name in ("json", "params", "headers", "content")
        }
        exchange: Exchange = {"request": f"{method} {self._named(path)}", "as": role or "no token"}
        exchange |= {name: self._settled(value) for name, value in sent.items()}
        exchange |= {"status": response.status_code, "response": self._body(response, by)}
        self.files.setdefault(file, []).append(exchange)
        return response

    def _body(self, response: httpx.Response, by: str) -> object:
        media_type = response.headers.get("content-type", "").partition(";")[0]
        if media_type == "text/csv":
            return self._settled(list(csv.DictReader(io.StringIO(response.text))))
        if media_type.endswith("json"):
            document = json.loads(response.content)
            if by:
                document["items"].sort(key=lambda item: item[by])
            return self._settled(document)
        return self._named(response.text).splitlines() if response.content else None

    def _settled(self, value: object, field: str = "") -> object:
        """The value with everything that differs from run to run replaced by a name."""
        match value:
            case dict():
                return {name: self._settled(item, name) for name, item in value.items()}
            case list():
                return [self._settled(item, field) for item in value]
            case str() if field in VOLATILE:
                return f"<{field}>"
            # Databases of a test run are used again, and their sequences go on, each from where it is.
            case int() | str() if field == "cohort_id":
                return self._cohorts.setdefault(int(value), f"<cohort {len(self._cohorts) + 1}>")
            case int() if field == "id":
                return self._numbers.setdefault(value, f"<number {len(self._numbers) + 1}>")
            case str():
                return self._named(value)
            case _:
                return value

    def _named(self, text: str) -> str:
        text = SECRET.sub("<secret>", text)
        text = UUID.sub(lambda found: self._names.setdefault(found[0], f"<id {len(self._names) + 1}>"), text)
        return DAY.sub("<day>", TIME.sub("<time>", text))


async def run(service: Service) -> dict[str, list[Exchange]]:
    """Play the whole script; returns the exchanges by file."""
    record = Recorder(service)
    await _studies(record)
    await _contributions(record)
    await _batches(record)
    await _releases(record)
    await _secret_sizes(record)
    await _searches(record)
    await _clusters(record)
    await _subjects(record)
    await _tokens(record)
    await _figures(record)
    await _retirement(record)
    await _refusals(record)
    await _shapes(record)
    await _choices(record)
    await _labels(record)
    await _measures(record)
    await _invitations(record)
    await _webhooks(record)
    await _publications(record)
    await _schedules(record)
    return record.files


async def _studies(record: Recorder) -> None:
    for study in (SURVEY, HIDDEN, PLANE, EMPTY):
        await record("studies", "POST", "/v1/studies", "admin", json=study)
    await record("studies", "POST", "/v1/studies", "admin", json=EMPTY)
    await record("studies", "POST", "/v1/studies", "admin", json={**EMPTY, "upper": 0, "surprise": 1})
    await record("studies", "GET", "/v1/studies", "analyse", params={"limit": 2})
    for role in ("contribute", "analyse", "admin"):
        await record("studies", "GET", "/v1/studies/survey", role)
    await record("studies", "GET", "/v1/studies/unknown", "admin")
    await record("studies", "POST", "/v1/studies/empty/close", "admin")
    await record("studies", "POST", "/v1/studies/empty/close", "admin")


async def _contributions(record: Recorder) -> None:
    for document in (CENTRAL, LOCAL, PUBLIC, CENTRAL, {**CENTRAL, "value": 13}):
        await record("contributions", "POST", CONTRIBUTIONS, "contribute", json=document)
    inadmissible: list[object] = [
        {**CENTRAL, "value": 101},
        {**CENTRAL, "epsilon": "0"},
        {**LOCAL, "value": 1},
        {"subject": "", "trust": "none"},
        [],
    ]
    for refused in inadmissible:
        await record("contributions", "POST", CONTRIBUTIONS, "contribute", json=refused)
    await record(
        "contributions",
        "POST",
        CONTRIBUTIONS,
        "contribute",
        json={**CENTRAL, "subject": "max", "epsilon": 11},
    )
    await record(
        "contributions",
        "POST",
        CONTRIBUTIONS,
        "contribute",
        content='{"subject": "x", "subject": "y"}',
        headers={"content-type": "application/json"},
    )
    await record(
        "contributions",
        "POST",
        CONTRIBUTIONS,
        "contribute",
        content="{",
        headers={"content-type": "application/json"},
    )
    await record(
        "contributions",
        "POST",
        CONTRIBUTIONS,
        "contribute",
        content="x",
        headers={"content-type": "text/plain"},
    )
    for epsilon in (1.5, 1):
        other = {**CENTRAL, "value": 0, "epsilon": epsilon}
        await record("contributions", "POST", "/v1/studies/empty/contributions", "contribute", json=other)
    replacement = {"value": 14, "epsilon": 2, "trust": "central"}
    await record("contributions", "PUT", f"{CONTRIBUTIONS}/ann", "contribute", json=replacement)
    await record("contributions", "PUT", f"{CONTRIBUTIONS}/nemo", "contribute", json=replacement)
    await record("contributions", "POST", CONTRIBUTIONS, "contribute", json={**CENTRAL, "subject": "leaver"})
    for subject in ("leaver", "leaver", "nemo"):
        await record("contributions", "DELETE", f"{CONTRIBUTIONS}/{subject}", "contribute")
    await record("contributions", "GET", "/v1/studies/survey/saturation", "contribute")


async def _batches(record: Recorder) -> None:
    path = f"{CONTRIBUTIONS}/batch"
    crowd = [
        {"subject": f"p{number}", "value": number % 100, "epsilon": 1, "trust": "central"}
        for number in range(300)
    ]
    await record._service.call("POST", path, "contribute", json=crowd)
    records = [CENTRAL, {**CENTRAL, "subject": "bea"}, {**CENTRAL, "subject": "bob", "value": "12"}, 7, LOCAL]
    await record("batches", "POST", path, "contribute", json=records)
    await record(
        "batches",
        "POST",
        path,
        "contribute",
        content="subject,value,epsilon,trust\ncy,1,1,central\ncy,1,1,central\ndee,,1,central\neve,3\n",
        headers={"content-type": "text/csv"},
    )
    await record(
        "batches",
        "POST",
        path,
        "contribute",
        content='{"subject":"fay","value":5,"trust":"public"}\n{"subject":\n',
        headers={"content-type": "application/x-ndjson"},
    )
    await record(
        "batches",
        "POST",
        f"{path}?epsilon=1&trust=central",
        "contribute",
        content="Subject, Value\ncy,1\nida,x\n",
        headers={"content-type": "text/csv"},
    )
    await record("batches", "POST", path, "contribute", json={"subject": "gil"})
    await record("batches", "POST", path, "contribute", content="a,b\n", headers={"content-type": "text/csv"})
    await record("batches", "POST", path, "contribute", content="<a/>", headers={"content-type": "text/xml"})


async def _releases(record: Recorder) -> None:
    mean = "/v1/studies/survey/statistics/mean"
    await record("releases", "GET", "/v1/studies/survey/plan", "analyse")
    several = {
        "questions": [{"statistic": "mean"}, {"statistic": "sd"}, {"statistic": "median", "share": 0.2}]
    }
    await record("releases", "POST", "/v1/studies/survey/plan", "analyse", json=several)
    await record(
        "releases",
        "GET",
        "/v1/studies/survey/plan",
        "analyse",
        params={"estimator": "uniform", "share": "0.1"},
    )
    await record("releases", "GET", "/v1/admin/studies/survey/plan", "admin")
    question = {"estimator": "uniform", "share": "0.1"}
    await record("releases", "GET", mean, "analyse", params=question)
    await record("releases", "GET", mean, "analyse", params=question)
    made = await record(
        "releases",
        "POST",
        "/v1/studies/survey/releases",
        "analyse",
        json={"estimator": "optimal", "share": 0.2},
    )
    refused = {"estimator": "optimal", "share": 0.01}
    await record("releases", "POST", "/v1/studies/survey/releases", "analyse", json=refused)
    for statistic in ("sd", "sum", "mode"):
        path = f"/v1/studies/survey/statistics/{statistic}"
        await record("releases", "GET", path, "analyse", params=question)
    await record("releases", "GET", mean, "analyse", params={"estimator": "nothing"})
    await record("releases", "GET", mean, "analyse", params={"share": "2", "surprise": "1"})
    await record("releases", "POST", "/v1/studies/survey/releases", "analyse", json={"statistic": "mode"})
    await record("releases", "GET", "/v1/studies/survey/releases", "analyse", params={"limit": 1})
    for role in ("analyse", "admin"):
        await record("releases", "GET", f"/v1/releases/{made.json()['id']}", role)
    await record("releases", "GET", "/v1/releases/00000000-0000-4000-8000-000000000000", "analyse")
    await record("releases", "GET", "/v1/studies/empty/statistics/mean", "analyse")
    await record("releases", "GET", "/v1/studies/survey/saturation", "analyse")


async def _shapes(record: Recorder) -> None:
    people = [
        {"subject": f"s{number}", "value": number % 80, "epsilon": 1 + number % 3, "trust": "central"}
        for number in range(4000)
    ]
    for study in (SHAPE, {**SHAPE, "slug": "hidden-shape", "relation": "add_remove_one"}):
        slug = study["slug"]
        await record._service.call("POST", "/v1/studies", "admin", json=study)
        for start in (0, 2000):
            await record._service.call(
                "POST",
                f"/v1/studies/{slug}/contributions/batch",
                "contribute",
                json=people[start : start + 2000],
            )
        bins = {"edges": "20,50"}
        await record("shapes", "GET", f"/v1/studies/{slug}/plan", "analyse", params=SHAPED | bins)
        for statistic in ("histogram", "distribution"):
            path = f"/v1/studies/{slug}/statistics/{statistic}"
            await record("shapes", "GET", path, "analyse", params=bins)
        await record("shapes", "GET", f"/v1/studies/{slug}/statistics/median", "analyse")
        for path in ("plan", "statistics/mean"):
            params = {"range": "found", "range_part": "0.2"}
            await record("shapes", "GET", f"/v1/studies/{slug}/{path}", "analyse", params=params)
        await record("shapes", "GET", f"/v1/studies/{slug}/statistics/describe", "analyse")
        question = {"statistic": "quantile", "q": 0.9, "candidates": 200}
        made = await record("shapes", "POST", f"/v1/studies/{slug}/releases", "analyse", json=question)
        for role in ("analyse", "admin"):
            await record("shapes", "GET", f"/v1/releases/{made.json()['id']}", role)
    wrong = {"statistic": "histogram", "edges": [50, 20], "bins": 3}
    await record("shapes", "POST", "/v1/studies/shape/releases", "analyse", json=wrong)
    await record("shapes", "GET", "/v1/studies/plane/statistics/median", "analyse")


async def _choices(record: Recorder) -> None:
    """What of a poll does not depend on noise: its terms, refusals, and public people alone."""
    await record("choices", "POST", "/v1/studies", "admin", json=POLL)
    for wrong in ({**POLL, "slug": "odd", "lower": 0}, {"slug": "odd", "choices": ["a"]}, {"slug": "odd"}):
        await record("choices", "POST", "/v1/studies", "admin", json=wrong)
    path = "/v1/studies/poll/contributions"
    for value in ("red", "yellow", 1):
        person = {"subject": "vera", "value": value, "trust": "public"}
        await record("choices", "POST", path, "contribute", json=person)
    await record("choices", "GET", "/v1/studies/poll/statistics/mean", "analyse")
    await record("choices", "GET", "/v1/studies/survey/statistics/shares", "analyse")
    people = [
        {"subject": f"v{number}", "value": POLL["choices"][number % 3 // 2], "epsilon": 1, "trust": "central"}
        for number in range(3000)
    ]
    for start in (0, 1500):
        batch = people[start : start + 1500]
        await record._service.call("POST", f"{path}/batch", "contribute", json=batch)
    await record("choices", "GET", "/v1/studies/poll/plan", "analyse", params={"statistic": "shares"})
    await record("choices", "GET", "/v1/studies/poll/statistics/shares", "analyse")


async def _labels(record: Recorder) -> None:
    """A study with attributes: its terms, contributions, answers by labels and what is read off them."""
    await record("labels", "POST", "/v1/studies", "admin", json=REGIONS)
    path = "/v1/studies/regions"
    for labels in ({"region": "north"}, {"region": "west"}, {}):
        person = {"subject": "nora", "value": 30, "trust": "public", "attributes": labels}
        await record("labels", "POST", f"{path}/contributions", "contribute", json=person)
    people = [
        {
            "subject": f"r{number}",
            "value": (20, 80)[number % 2],
            "epsilon": 2,
            "trust": "central",
            "attributes": {"region": ("north", "south")[number % 2]},
        }
        for number in range(200)
    ]
    await record._service.call("POST", f"{path}/contributions/batch", "contribute", json=people)
    asked = {"by": "region", "estimator": "uniform", "share": 0.5}
    await record("labels", "GET", f"{path}/plan", "analyse", params=asked)
    await record("labels", "GET", f"{path}/statistics/mean", "analyse", params=asked)
    asked = {"estimator": "uniform", "simultaneous": True, "standardize": "region:north=.3,south=.7,empty=0"}
    await record("labels", "GET", f"{path}/statistics/mean", "analyse", params=asked)
    asked = {"estimator": "uniform", "of": "mean", "between": "region:south,north"}
    await record("labels", "GET", f"{path}/statistics/difference", "analyse", params=asked)
    wrong = {**asked, "between": "region:south,empty"}
    await record("labels", "GET", f"{path}/statistics/difference", "analyse", params=wrong)
    for path_of in ("plan", "statistics/mean"):
        params = {"by": "region", "range": "found", "share": 0.5}
        await record("labels", "GET", f"{path}/{path_of}", "analyse", params=params)
    wrong = {"statistic": "mean", "standardize": "region:north=.3,south=.6,empty=0"}
    await record("labels", "POST", f"{path}/releases", "analyse", json=wrong)


async def _measures(record: Recorder) -> None:
    """Several measures: terms, refusals, public people alone, and covariances by label."""
    await record("measures", "POST", "/v1/studies", "admin", json=HOUSEHOLD)
    for wrong in ({**HOUSEHOLD, "slug": "odd", "lower": 0}, {"slug": "odd", "measures": {"income": {}}}):
        await record("measures", "POST", "/v1/studies", "admin", json=wrong)
    path = "/v1/studies/household/contributions"
    for values in ({"income": 1200, "age": 44}, {"income": 9001}, {"income": 0, "age": 20, "size": 2}, [1]):
        person = {"subject": "hugo", "values": values, "trust": "public"}
        await record("measures", "POST", path, "contribute", json=person)
    for question in ({}, {"measure": "size"}, {"measure": "income"}):
        await record("measures", "GET", "/v1/studies/household/statistics/mean", "analyse", params=question)
    question = {"measure": "income", "statistic": "median"}
    await record("measures", "GET", "/v1/studies/household/plan", "analyse", params=question)
    await record("measures", "POST", "/v1/studies", "admin", json=TRIPS)
    places: list[Any] = [[0, 0.5], [1, 0], [2, 0], 1]
    for place in places:
        person = {"subject": f"{place}", "values": {"place": place, "age": 30}, "trust": "public"}
        await record("measures", "POST", "/v1/studies/trips/contributions", "contribute", json=person)
    for statistic in ("mean", "sd", "median"):
        path = f"/v1/studies/trips/statistics/{statistic}"
        await record("measures", "GET", path, "analyse", params={"measure": "place"})

    people = [
        {
            "subject": f"h{number}",
            "values": {"income": 30 * number, "age": 20 + number % 60},
            "epsilon": 2,
            "trust": "central",
            "attributes": {"region": ("north", "south")[number % 2]},
        }
        for number in range(200)
    ]
    for slug, relation in (("pairs", "replace_one"), ("hidden-pairs", "add_remove_one")):
        study = {**PAIRS, "slug": slug, "relation": relation}
        await record._service.call("POST", "/v1/studies", "admin", json=study)
        path = f"/v1/studies/{slug}"
        await record._service.call("POST", f"{path}/contributions/batch", "contribute", json=people)
        asked = {"measures": "income,age", "by": "region", "share": 0.4}
        await record(
            "measures", "GET", f"{path}/plan", "analyse", params={**asked, "statistic": "covariance"}
        )
        await record("measures", "GET", f"{path}/statistics/covariance", "analyse", params=asked)
        line = {"of": "income", "on": "age", "share": 0.4, "at": 40}
        await record("measures", "GET", f"{path}/statistics/regression", "analyse", params=line)
        if relation == "replace_one":
            together = {"measures": "income,age", "share": 0.4}
            await record("measures", "GET", f"{path}/statistics/correlation", "analyse", params=together)


async def _secret_sizes(record: Recorder) -> None:
    await record("secret-sizes", "GET", "/v1/studies/hidden/plan", "analyse", params={"expected_size": "100"})
    await record(
        "secret-sizes",
        "GET",
        "/v1/studies/hidden/statistics/mean",
        "analyse",
        params={"estimator": "transformed"},
    )
    for number in range(40):
        person = {"subject": f"h{number}", "value": number, "epsilon": 1, "trust": "central"}
        await record._service.call("POST", "/v1/studies/hidden/contributions", "contribute", json=person)
    await record(
        "secret-sizes",
        "POST",
        "/v1/studies/hidden/releases",
        "analyse",
        json={"estimator": "hourglass", "expected_size": 40},
    )


async def _searches(record: Recorder) -> None:
    path = "/v1/studies/survey/sessions"
    made = (await record("sessions", "POST", path, "admin", json=MINIMUM)).json()["id"]
    await record("sessions", "POST", path, "admin", json={**MINIMUM, "protocol": "mode", "epsilon": 0})
    await record("sessions", "GET", f"/v1/sessions/{made}", "analyse")
    await record("sessions", "GET", f"/v1/sessions/{made}/round", "contribute")
    answers = f"/v1/sessions/{made}/answers"
    await record("sessions", "POST", answers, "contribute", json={"subject": "sam", "round": 2, "answer": 1})
    await record("sessions", "POST", answers, "contribute", json={"subject": "sam", "round": 1, "answer": 2})
    for answer in (1, 1, 0):
        await record(
            "sessions", "POST", answers, "contribute", json={"subject": "sam", "round": 1, "answer": answer}
        )
    await record("sessions", "POST", f"/v1/sessions/{made}/close-round", "admin", json={"round": 1})
    await record("sessions", "POST", answers, "contribute", json={"subject": "tim", "round": 1, "answer": 1})
    await record("sessions", "GET", f"/v1/sessions/{made}/round", "contribute")
    await record("sessions", "POST", f"/v1/sessions/{made}/finish", "admin")
    await record("sessions", "GET", f"/v1/sessions/{made}/round", "contribute")
    await record("sessions", "POST", path, "admin", json=QUANTILE)
    await record("sessions", "GET", path, "contribute", params={"limit": 1})
    await record("sessions", "GET", "/v1/sessions/00000000-0000-4000-8000-000000000000", "admin")


async def _clusters(record: Recorder) -> None:
    people = [
        {"subject": f"k{number}", "value": [number % 100, number % 100], "epsilon": 4, "trust": "central"}
        for number in range(200)
    ]
    await record._service.call("POST", "/v1/studies/plane/contributions/batch", "contribute", json=people)
    made = (await record("clusters", "POST", "/v1/studies/plane/sessions", "admin", json=KMEANS)).json()["id"]
    await record("clusters", "GET", f"/v1/sessions/{made}/round", "contribute")
    closed = await record("clusters", "POST", f"/v1/sessions/{made}/close-round", "admin", json={"round": 1})
    release = closed.json()["path"][0]["release"]
    for role in ("analyse", "admin"):
        await record("clusters", "GET", f"/v1/releases/{release}", role)
    await record("clusters", "GET", "/v1/studies/plane/statistics/mean", "analyse")


async def _subjects(record: Recorder) -> None:
    for subject in ("ann", "leaver", "nemo"):
        await record("subjects", "GET", f"/v1/subjects/{subject}/budget", "contribute")
    await record("subjects", "GET", "/v1/subjects/ann/charges", "admin")
    await record("subjects", "POST", "/v1/subjects/ann/links", "admin")
    path = "/v1/admin/subjects/ann/budget"
    await record("subjects", "PUT", path, "admin", json={"epsilon": 20, "reason": "asked for it"})
    await record("subjects", "PUT", path, "admin", json={"epsilon": 0, "reason": "too little"})
    await record("subjects", "PUT", path, "admin", json={"epsilon": -1})
    await record("subjects", "GET", "/v1/admin/budgets", "admin", params={"limit": 2})


async def _webhooks(record: Recorder) -> None:
    path = "/v1/admin/webhooks"
    wish = {"url": "https://webhooks.invalid/dither", "events": ["released", "study_closed"]}
    made = (await record("webhooks", "POST", path, "admin", json=wish)).json()["id"]
    await record("webhooks", "POST", path, "admin", json=wish | {"url": "http://webhooks.invalid/"})
    await record("webhooks", "POST", path, "admin", json=wish | {"url": "https://127.0.0.1/"})
    await record("webhooks", "POST", path, "admin", json=wish | {"events": ["born"]})
    await record("webhooks", "GET", path, "admin")
    await record("webhooks", "GET", f"{path}/{made}", "admin")
    await record("webhooks", "DELETE", f"{path}/{made}", "admin")
    await record("webhooks", "GET", f"{path}/{made}", "admin")


async def _schedules(record: Recorder) -> None:
    path = "/v1/studies/regions/schedules"
    wish = {
        "question": {"statistic": "mean", "estimator": "uniform", "share": 0.01},
        "every": "month",
        "starts_at": "2100-01-31T09:00:00Z",
        "quota": 1,
    }
    made = (await record("schedules", "POST", path, "admin", json={**wish, "newcomers": True})).json()["id"]
    # A list is by ids, which are random: with a second schedule it would have two orders.
    await record("schedules", "GET", path, "analyse", by="every")
    await record("schedules", "POST", path, "admin", json={**wish, "until": 0.5, "question": {}})
    await record("schedules", "POST", path, "admin", json={**wish, "newcomers": True, "until": 0.5})
    await record("schedules", "POST", path, "admin", json={**wish, "question": {"share": 2, "fresh": True}})
    await record("schedules", "GET", f"{path}/{made}", "analyse")
    await record("schedules", "DELETE", f"{path}/{made}", "admin")
    await record("schedules", "GET", f"{path}/{made}", "analyse")


async def _invitations(record: Recorder) -> None:
    path = "/v1/studies/household/invitations"
    poster = {"kind": "open", "limit": 200, "name": "poster", "expires_at": "2100-01-01T00:00:00+01:00"}
    made = (await record("invitations", "POST", path, "admin", json=poster)).json()["id"]
    two = {"kind": "single", "count": 2}
    single = (await record("invitations", "POST", path, "admin", json=two)).json()["id"]
    await record(
        "invitations",
        "POST",
        path,
        "admin",
        json={"kind": "single", "subjects": ["ann", "bob"], "name": "mail"},
        headers={"Accept": "text/csv"},
    )
    await record("invitations", "POST", path, "admin", json={"kind": "single", "limit": 2})
    hidden = {"kind": "open"}
    await record("invitations", "POST", "/v1/studies/hidden/invitations", "admin", json=hidden)
    await record("invitations", "GET", f"{path}/{made}", "admin")
    await record("invitations", "GET", f"{path}/{single}/qr", "admin")
    await record("invitations", "DELETE", f"{path}/{made}", "admin")
    await record("invitations", "GET", path, "admin", by="name")


async def _publications(record: Recorder) -> None:
    path = "/v1/studies/survey/publications"
    releases = (await record("publications", "GET", "/v1/studies/survey/releases", "analyse")).json()["items"]
    shown = {"releases": [releases[0]["id"]], "title": "What came out"}
    first = {**shown, "slug": "what-came-out", "expires_at": "2100-01-01T00:00:00+01:00"}
    await record("publications", "POST", path, "analyse", json=first)
    await record("publications", "POST", path, "analyse", json=first)
    await record("publications", "POST", path, "admin", json={"releases": [], "title": "", "frames": ["x"]})
    frames = {**shown, "frames": ["https://example.org"]}
    await record("publications", "PUT", f"{path}/what-came-out", "analyse", json=frames)
    await record("publications", "GET", f"{path}/what-came-out", "admin")
    await record("publications", "DELETE", f"{path}/what-came-out", "admin")
    await record("publications", "GET", path, "analyse")
    await record("publications", "GET", "/.well-known/dither-keys.json")


async def _tokens(record: Recorder) -> None:
    wish = {"name": "app", "role": "analyse", "studies": ["survey"]}
    made = (await record("tokens", "POST", "/v1/admin/tokens", "admin", json=wish)).json()["id"]
    await record("tokens", "POST", "/v1/admin/tokens", "admin", json={"name": "", "role": "king"})
    path = f"/v1/admin/tokens/{made}"
    await record("tokens", "GET", path, "admin")
    await record("tokens", "PUT", f"{path}/quota", "admin", json={"share": 0.5, "period_seconds": 3600})
    await record("tokens", "GET", f"{path}/usage", "admin")
    await record("tokens", "DELETE", f"{path}/quota", "admin")
    await record("tokens", "POST", f"{path}/rotate", "admin", json={"grace_seconds": 60})
    await record("tokens", "DELETE", path, "admin")
    await record("tokens", "GET", "/v1/admin/tokens", "admin", by="name")


async def _figures(record: Recorder) -> None:
    for path in (
        *("overview", "chain", "contributions/daily", "budgets/histogram", "budgets/epsilons"),
        *(
            "studies",
            "studies/survey/profile",
            "studies/survey/cohorts",
            "releases",
            "ledger",
            "ledger/export",
        ),
    ):
        await record("figures", "GET", f"/v1/admin/{path}", "admin")
    await record("figures", "GET", "/v1/admin/audit", "admin", params={"limit": 12})


async def _retirement(record: Recorder) -> None:
    more = {"epsilon": 0.5, "at_most": 20, "reason": "another year"}
    for document in (more, {"epsilon": 0}):
        await record("subjects", "POST", "/v1/admin/budgets/raise", "admin", json=document)
    german = {"title": "Minuten zur Arbeit?"}
    edit = {
        "title": "Minutes to work?",
        "description": "One way.",
        "texts": {"de": german},
        "reason": "clearer",
    }
    await record("studies", "PATCH", "/v1/studies/survey", "admin", json=edit)
    await record("studies", "PATCH", "/v1/studies/survey", "admin", json={**edit, "lower": 5})
    await record("studies", "GET", "/v1/studies", "admin", params={"series": "weekly"})
    await record("studies", "POST", "/v1/studies/survey/reporting-range", "admin", json={})
    await record("studies", "POST", "/v1/studies/survey/archive", "admin", json={})
    for _ in range(2):
        await record(
            "studies", "POST", "/v1/studies/survey/archive", "admin", json={"reason": "the week is over"}
        )
    await record("studies", "POST", "/v1/studies/survey/retire", "admin")
    await record("subjects", "GET", "/v1/subjects/ann/budget", "admin")
    wish = {"reason": "restored from an old backup"}
    for _ in range(2):
        await record("studies", "POST", "/v1/studies/plane/retire", "admin", json=wish)
    await record("studies", "POST", "/v1/studies/plane/retire", "admin", json={})
    await record(
        "studies", "POST", "/v1/studies/plane/contributions", "contribute", json={**PUBLIC, "value": [1, 1]}
    )


async def _refusals(record: Recorder) -> None:
    await record("refusals", "GET", "/health/live")
    await record("refusals", "GET", "/health/ready")
    await record("refusals", "GET", "/v1/studies")
    await record("refusals", "GET", "/v1/studies", "dither_" + "x" * 43)
    await record("refusals", "GET", "/v1/admin/tokens", "analyse")
    await record("refusals", "PATCH", "/v1/studies", "admin")
    await record("refusals", "GET", "/v1/nothing", "admin")


def operations(files: dict[str, list[Exchange]]) -> Iterator[tuple[str, str]]:
    """Method and path of each recorded request."""
    for exchanges in files.values():
        for exchange in exchanges:
            method, path = exchange["request"].split(" ", 1)
            yield method, path
