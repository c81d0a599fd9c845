"""The browser client and its example page, in a real Chromium, against the real service."""

import hmac
import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

import asyncpg
import pytest
from dither.device.gaussian import micro_mu2
from playwright.sync_api import Browser, Page, Request, expect

from tests.support.browser import chromium, need, pages
from tests.support.databases import Server, run_apart
from tests.support.live import ROOT, LiveService, live_service

pytestmark = pytest.mark.system

CLIENT = ROOT / "client" / "js"
VALUE = "34.567891"
POINT = round(34.567891 / 120 * 2**30)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    need((CLIENT / "dist" / "index.js").exists(), "the client is not built")
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def origin() -> Iterator[str]:
    """Where the example page lies: another origin than the service's."""
    with pages(CLIENT) as origin:
        yield origin


@pytest.fixture(scope="module")
def service(postgres_server: Server, origin: str) -> Iterator[LiveService]:
    """One service for all tests here; each of them has people and studies of its own."""
    with postgres_server.database() as url, live_service(url, env={"DITHER_CORS_ORIGINS": origin}) as service:
        yield service


NUMBERS = itertools.count(1)


@dataclass
class Person:
    """Somebody at the example page, and everything that their browser sent to the service."""

    page: Page
    origin: str
    service: LiveService
    token: str
    subject: str
    commute: str
    sleep: str
    sent: list[Request] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def open(self, **fields: str) -> None:
        """Open the page, or open it again, with a form that a link has filled in."""
        known = {"url": self.service.base_url, "token": self.token, "subject": self.subject}
        self.page.goto("about:blank")
        self.page.goto(f"{self.origin}/example/index.html#{urlencode(known | fields)}")
        self.page.wait_for_load_state("networkidle")

    def fill(self, form: str, label: str, text: str) -> None:
        self.page.locator(form).get_by_label(label).fill(text)

    def press(self, form: str, name: str) -> None:
        self.page.locator(form).get_by_role("button", name=name).click()

    def offer(self, study: str, *, value: str = VALUE, epsilon: str, trust: str) -> None:
        """Look a study up and fill in a contribution, without sending it."""
        self.fill("#contribute", "Study", study)
        self.press("#contribute", "Look it up")
        self.fill("#contribute", "Your number", value)
        self.fill("#contribute", "Epsilon", epsilon)
        self.page.locator("#contribute").get_by_label(trust).check()

    def send(self) -> None:
        self.press("#contribute", "Send it")

    def expect(self, place: str, text: str) -> None:
        expect(self.page.locator(place)).to_contain_text(text, timeout=15_000)

    def posted(self, what: str) -> list[dict[str, Any]]:
        """The documents that were posted."""
        return [
            json.loads(request.post_data or "")
            for request in self.sent
            if request.method == "POST" and request.url.endswith(what)
        ]

    def traffic(self) -> str:
        """Everything that left the browser."""
        return "\n".join(
            f"{request.method} {request.url} {request.headers} {request.post_data}" for request in self.sent
        )


@pytest.fixture
def person(service: LiveService, browser: Browser, origin: str) -> Iterator[Person]:
    """A person with a fresh browser profile, a token of their own, and two studies."""
    number = next(NUMBERS)
    context = browser.new_context()
    context.set_default_timeout(15_000)
    subject = f"ada-{number}"
    person = Person(
        page=context.new_page(),
        origin=origin,
        service=service,
        token=service.create_token("contribute", subject=subject),
        subject=subject,
        commute=make_study(service, f"commute-{number}"),
        sleep=make_study(service, f"sleep-{number}"),
    )
    context.on("request", lambda request: person.sent.append(request))
    person.page.on("pageerror", lambda error: person.faults.append(str(error)))
    yield person
    context.close()
    assert person.faults == []


def make_study(service: LiveService, slug: str, **terms: Any) -> str:
    document = {
        "slug": slug,
        "title": "Minutes to work?",
        "trust": ["central", "local"],
        "epsilon": {"min": 0.01, "max": 5},
        **(terms or {"lower": 0, "upper": 120}),
    }
    with service.client() as admin:
        assert admin.post("/v1/studies", json=document).status_code == 201
    return slug


def rows(service: LiveService, query: str, *arguments: object) -> list[Any]:
    """What the service's database answers."""
    url = service.database_url
    assert url is not None

    async def read() -> list[Any]:
        connection = await asyncpg.connect(url)
        try:
            return await connection.fetch(query, *arguments)
        finally:
            await connection.close()

    return run_apart(read())


def stored(person: Person) -> tuple[str, int | None, int]:
    """Trust, value or report, and epsilon of the person's contribution to `commute`, in the database."""
    query = """
        SELECT c.trust::text, c.value, c.epsilon
        FROM contribution c JOIN study s ON s.id = c.study_id WHERE s.slug = $1
    """
    [row] = rows(person.service, query, person.commute)
    return row["trust"], row["value"], row["epsilon"]


# --------------------------------------------------------------------------------- contributions


def test_a_central_contribution_is_announced_and_stored(person: Person) -> None:
    person.open(limit="2")
    person.offer(person.commute, epsilon="0.5", trust="The service")
    person.expect("#question", "Minutes to work? A number from 0 to 120")
    person.expect("#preview", f"your number {VALUE} itself")
    assert person.posted("/contributions") == []
    person.send()
    person.expect("#contributed", f'Sent: {{"value":"{VALUE}"}}. It may cost you 0.5 at most.')
    person.expect("#given", "Epsilon 0.5 of your limit of 2.")
    assert stored(person) == ("central", POINT, 500_000)

    person.press("#ledger", "Withdraw")
    person.expect("#contributed", "Withdrawn.")
    person.expect("#given", "Epsilon 0 of")
    assert stored(person) == ("central", None, 0)


def test_of_a_local_contribution_only_the_report_leaves_the_page(person: Person) -> None:
    person.open()
    person.offer(person.commute, epsilon="0.5", trust="No one")
    person.expect("#preview", "Your number itself stays here.")
    person.send()
    person.expect("#contributed", "It may cost you 0.5 at most.")
    [document] = person.posted("/contributions")
    assert document.keys() == {"subject", "report", "epsilon", "trust"}
    assert document["report"] != POINT, "probability 2e-10"
    assert stored(person) == ("local", document["report"], 500_000)
    assert VALUE not in person.traffic()
    assert str(POINT) not in person.traffic()

    # After a reload the same again is the same report again, and nothing is drawn.
    person.open()
    person.expect("#given", "Epsilon 0.5")
    person.offer(person.commute, epsilon="0.5", trust="No one")
    person.send()
    person.expect("#contributed", "The service had it already.")
    assert person.posted("/contributions") == [document, document]
    assert person.page.locator("#ledger tbody tr").count() == 1

    # Another value would be a second draw.
    person.offer(person.commute, value="35", epsilon="0.5", trust="No one")
    person.send()
    person.expect("#contributed", "already_contributed")
    assert len(person.posted("/contributions")) == 2


def test_a_report_whose_answer_was_lost_is_sent_again_after_a_reload(person: Person) -> None:
    taken: list[int] = []

    def lose(route: Any) -> None:
        if not taken:
            taken.append(route.fetch().status)
        route.abort()

    person.open()
    person.offer(person.commute, epsilon="1", trust="No one")
    person.page.route("**/contributions", lose)
    with person.page.expect_event("requestfailed"):
        person.send()
    # The page's world ends while the service already has the report.
    person.page.goto("about:blank")
    person.page.unroute("**/contributions")
    person.open()
    person.expect("#ledger", "pending")
    person.offer(person.commute, epsilon="1", trust="No one")
    person.send()
    person.expect("#contributed", "The service had it already.")
    person.expect("#ledger", "accepted")
    assert taken == [201]
    reports = {document["report"] for document in person.posted("/contributions")}
    assert reports == {stored(person)[1]}


def test_two_clients_at_once_draw_one_report(person: Person) -> None:
    person.open()
    reports = person.page.evaluate(
        """async ([url, token, study, subject]) => {
            const { Client } = await import("../dist/index.js");
            const order = { subject, value: 34, epsilon: 1, trust: "local" };
            const both = [new Client(url, token), new Client(url, token)];
            const stored = await Promise.all(both.map((client) => client.contribute(study, order)));
            return stored.map((one) => one.sent.report);
        }""",
        [person.service.base_url, person.token, person.commute, person.subject],
    )
    assert reports == [str(stored(person)[1])] * 2


def test_some_of_several_measures_are_reported(person: Person) -> None:
    number = {"lower": 0, "upper": 9000}
    measures = {"income": number, "party": {"choices": ["red", "blue"]}, "rent": number}
    study = make_study(person.service, f"household-{person.subject}", measures=measures)
    person.open()
    answer = person.page.evaluate(
        """async ([url, token, subject, study]) => {
            const { Client } = await import("../dist/index.js");
            const client = new Client(url, token);
            const value = { income: 4500, party: "red", rent: "450.5" };
            const one = { subject, value, epsilon: 5, trust: "local" };
            const first = await client.contribute(study, one);
            const second = await client.contribute(study, one);
            return [first.status, second.status, await client.given(subject)];
        }""",
        [person.service.base_url, person.token, person.subject, study],
    )
    assert answer == ["created", "unchanged", "5"]
    first, second = person.posted("/contributions")
    assert first == second
    assert len(first["reports"]) == 2
    query = "SELECT vector, c.epsilon FROM contribution c JOIN study s ON s.id = study_id WHERE slug = $1"
    [row] = rows(person.service, query, study)
    assert (row["vector"], row["epsilon"]) == ([first["reports"].get(name) for name in measures], 5_000_000)
    assert "450.5" not in person.traffic()


GAUSSIAN = {"noise": "gaussian", "delta": 1e-6, "epsilon": {"min": 1, "max": 5}}


def test_a_report_with_gaussian_noise_is_announced_and_paid_in_mu2(person: Person) -> None:
    study = make_study(person.service, f"normal-{person.subject}", lower=0, upper=120, **GAUSSIAN)
    person.open(limit="2")
    person.offer(study, epsilon="1", trust="No one")
    person.expect("#question", "epsilon between 1 and 5 at a delta of 0.000001")
    person.expect("#preview", "random noise of about ±5.1e+2")  # 4.2247 ranges
    person.send()
    person.expect("#contributed", "It may cost you 1 at most.")
    person.expect("#given", "Epsilon 1 of your limit of 2.")
    [document] = person.posted("/contributions")
    query = "SELECT value, c.epsilon FROM contribution c JOIN study s ON s.id = study_id WHERE slug = $1"
    [row] = rows(person.service, query, study)
    assert (row["value"], row["epsilon"]) == (document["report"], micro_mu2(1_000_000, 1_000_000))
    assert document["report"] != POINT, "probability 1e-10"
    assert VALUE not in person.traffic()
    with person.service.client() as admin:
        budget = admin.get(f"/v1/subjects/{person.subject}/budget").json()
    assert budget["gaussian"]["mu2"]["spent"] == 0.056028

    # Gone is gone: another report would need a delta of its own.
    person.press("#ledger", "Withdraw")
    person.expect("#contributed", "Withdrawn.")
    person.offer(study, value="35", epsilon="2", trust="No one")
    person.send()
    person.expect("#contributed", "report_after_spending")
    assert person.posted("/contributions") == [document]


def test_choices_and_measures_are_reported_where_noise_is_gaussian(person: Person) -> None:
    choices = {"choices": ["red", "green", "blue"]}
    number = {"lower": 0, "upper": 9000}
    poll = make_study(person.service, f"poll-{person.subject}", **choices, **GAUSSIAN)
    measures = {"income": number, "party": choices, "rent": number}
    household = make_study(person.service, f"home-{person.subject}", measures=measures, **GAUSSIAN)
    person.open()
    told = person.page.evaluate(
        """async ([url, token, subject, poll, household]) => {
            const { Client } = await import("../dist/index.js");
            const client = new Client(url, token);
            const answers = { income: 4500, party: "red", rent: "450.5" };
            const told = [];
            for (const [study, value] of [[poll, "green"], [household, answers]]) {
                for (let time = 0; time < 2; time += 1) {
                    const one = { subject, value, epsilon: 5, trust: "local" };
                    told.push((await client.contribute(study, one)).status);
                }
            }
            return [...told, await client.given(subject)];
        }""",
        [person.service.base_url, person.token, person.subject, poll, household],
    )
    assert told == ["created", "unchanged", "created", "unchanged", "10"]
    report, again, reports, once_more = person.posted("/contributions")
    assert (report, reports) == (again, once_more)
    assert report["report"] in range(8)
    assert len(reports["reports"]) == 1, "the pure epsilon is below 5, and there is room for one"
    query = """
        SELECT slug, value, vector, c.epsilon FROM contribution c JOIN study s ON s.id = study_id
        WHERE slug = any($1::text[]) ORDER BY slug DESC
    """
    first, second = rows(person.service, query, [poll, household])
    assert (first["value"], first["epsilon"]) == (report["report"], micro_mu2(5_000_000, 1_000_000))
    assert second["vector"] == [reports["reports"].get(name) for name in measures]
    assert second["epsilon"] == first["epsilon"]
    assert "450.5" not in person.traffic()


def test_the_persons_own_limit_holds_before_anything_is_sent(person: Person) -> None:
    person.open(limit="0.8")
    person.offer(person.commute, epsilon="0.5", trust="No one")
    person.send()
    person.expect("#contributed", "It may cost you 0.5 at most.")
    for trust in ("No one", "The service"):
        person.offer(person.sleep, epsilon="0.301", trust=trust)
        person.send()
        person.expect("#contributed", "max_epsilon_exceeded")
    assert len(person.posted("/contributions")) == 1
    person.offer(person.sleep, epsilon="0.3", trust="No one")
    person.send()
    person.expect("#given", "Epsilon 0.8 of your limit of 0.8.")


def test_a_study_that_changed_is_refused(person: Person) -> None:
    person.open()
    person.offer(person.commute, epsilon="0.5", trust="No one")

    def widen(route: Any) -> None:
        response = route.fetch()
        route.fulfill(response=response, json={**response.json(), "upper": 1200})

    person.page.route(f"**/v1/studies/{person.commute}", widen)
    person.send()
    person.expect("#contributed", "description_changed")
    assert person.posted("/contributions") == []


def test_the_services_refusals_are_shown(person: Person) -> None:
    person.open(token="wrong")
    person.press("#contribute", "Look it up")
    person.expect("#contributed", "invalid_request")
    person.fill("#contribute", "Study", person.commute)
    person.press("#contribute", "Look it up")
    person.expect("#contributed", "unauthenticated")


def test_a_page_of_another_origin_is_kept_out(person: Person) -> None:
    with pages(CLIENT) as elsewhere:
        person.origin = elsewhere
        person.open()
        code = person.page.evaluate(
            """async ([url, token, study]) => {
                const { Client } = await import("../dist/index.js");
                const client = new Client(url, token, { retry: { attempts: 1 } });
                return client.study(study).catch((fault) => fault.code);
            }""",
            [person.service.base_url, person.token, person.commute],
        )
    assert code == "connection_failed"


# --------------------------------------------------------------------------------------- sessions


def start_session(person: Person, **fields: Any) -> dict[str, Any]:
    """Start a search for the minimum in the person's study."""
    document = {
        "protocol": "minimum",
        "mode": "budget_split",
        "rounds": 3,
        "epsilon": 3,
        "participants": 500,
        **fields,
    }
    with person.service.client() as admin:
        response = admin.post(f"/v1/studies/{person.commute}/sessions", json=document)
    assert response.status_code == 201, response.text
    return dict(response.json())


def participate(person: Person, session: str) -> None:
    """Look a session up, and take part in it."""
    person.fill("#participate", "Session", session)
    person.press("#participate", "Look it up")
    person.fill("#participate", "Your number", VALUE)
    person.press("#participate", "Take part")


def stored_answers(person: Person, session: str) -> list[tuple[int, int]]:
    """Round and answer of everything that the database holds for a session."""
    query = "SELECT round, answer FROM answer WHERE session_id = $1 ORDER BY round"
    return [(row["round"], row["answer"]) for row in rows(person.service, query, UUID(session))]


def test_a_page_answers_the_rounds_of_a_session(person: Person) -> None:
    session = start_session(person, answers_per_round=1)["id"]
    person.open(limit="5")
    participate(person, session)
    person.expect("#rounds", "You are asked 3 of its 3 yes-or-no questions")
    person.expect("#rounds", "Each answer costs you 1, all together at most 3.")
    person.expect("#participated", "3 of your answers counted. It cost you 3.")
    person.expect("#given", "Epsilon 3 of your limit of 5.")
    sent = person.posted("/answers")
    assert [document.keys() for document in sent] == [{"subject", "round", "answer"}] * 3
    assert stored_answers(person, session) == [(document["round"], document["answer"]) for document in sent]
    assert VALUE not in person.traffic()
    with person.service.client() as admin:
        described = admin.get(f"/v1/sessions/{session}").json()
        budget = admin.get(f"/v1/subjects/{person.subject}/budget").json()
    assert described["state"] == "finished"
    assert budget["epsilon"]["spent"] == 3
    person.press("#participate", "Look it up")
    person.expect("#participated", f"It is over. The estimate is {described['estimate']:g}")


def test_a_page_waits_for_its_round_of_a_split_session(person: Person) -> None:
    session = start_session(person, mode="user_split", rounds=4, answers_per_round=None)
    key = bytes.fromhex(session["assignment_key"])
    digest = hmac.digest(key, person.subject.encode(), "sha256")
    own = 1 + int.from_bytes(digest[:8], "big") % 4
    person.open()
    participate(person, session["id"])
    person.expect("#rounds", "You are asked 1 of its 4 yes-or-no questions")
    with person.service.client() as admin:
        for number in range(1, own):
            closed = admin.post(f"/v1/sessions/{session['id']}/close-round", json={"round": number})
            assert closed.status_code == 200, closed.text
    person.expect("#participated", "1 of your answers counted. It cost you 3.")
    [document] = person.posted("/answers")
    assert document["round"] == own
    assert stored_answers(person, session["id"]) == [(own, document["answer"])]


def test_after_a_reload_the_same_answer_is_sent_and_nothing_is_drawn(person: Person) -> None:
    count_draws = """
        window.draws = 0;
        const draw = crypto.getRandomValues.bind(crypto);
        crypto.getRandomValues = (bytes) => { window.draws += 1; return draw(bytes); };
    """
    person.page.add_init_script(count_draws)
    session = start_session(person, answers_per_round=2)["id"]
    taken: list[int] = []

    def lose(route: Any) -> None:
        if not taken:
            taken.append(route.fetch().status)
        route.abort()

    person.open()
    person.page.route("**/answers", lose)
    with person.page.expect_event("requestfailed"):
        participate(person, session)
    assert person.page.evaluate("window.draws") > 0
    person.page.goto("about:blank")
    person.page.unroute("**/answers")

    person.open()
    person.expect("#ledger", "pending")
    person.expect("#given", "Epsilon 3.")
    with person.page.expect_response("**/answers") as answered:
        participate(person, session)
    assert (taken, answered.value.status) == ([201], 200)
    person.expect("#ledger", "accepted")
    assert person.page.evaluate("window.draws") == 0
    first, *others = person.posted("/answers")
    assert len(others) >= 1
    assert all(other == first for other in others)
    assert stored_answers(person, session) == [(1, first["answer"])]
    person.press("#participate", "Stop")
    person.expect("#participated", "Stopped.")
    with person.service.client() as admin:  # which need not be held up by somebody who has left
        assert admin.post(f"/v1/sessions/{session}/finish").status_code == 200


def test_the_persons_own_limit_holds_for_a_session(person: Person) -> None:
    session = start_session(person, answers_per_round=1)["id"]
    person.open(limit="2.9")
    participate(person, session)
    person.expect("#participated", "max_epsilon_exceeded")
    assert person.posted("/answers") == []
    person.expect("#given", "Epsilon 0 of your limit of 2.9.")


def test_an_epsilon_that_is_raised_after_the_description_is_refused(person: Person) -> None:
    session = start_session(person, answers_per_round=1)["id"]

    def raise_epsilon(route: Any) -> None:
        response = route.fetch()
        route.fulfill(response=response, json={**response.json(), "epsilon_per_answer": 1.5})

    person.page.route(f"**/sessions/{session}/round*", raise_epsilon)
    person.open()
    participate(person, session)
    person.expect("#participated", "description_changed")

    # Nor may the description itself change once it was shown.
    person.page.unroute_all()
    person.page.route(f"**/sessions/{session}", raise_epsilon)
    person.press("#participate", "Take part")
    person.expect("#participated", "description_")
    assert person.posted("/answers") == []
    assert stored_answers(person, session) == []


# -------------------------------------------------------------------------------------- the page


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_field_has_a_name_and_text_stands_out(person: Person, scheme: Any) -> None:
    person.page.emulate_media(color_scheme=scheme)
    person.open()
    person.offer(person.commute, epsilon="0.5", trust="No one")
    for control in person.page.locator("input, button").all():
        assert control.evaluate("item => (item.labels?.[0] ?? item).textContent.trim() !== ''")
    ids = person.page.evaluate("[...document.querySelectorAll('[id]')].map(item => item.id)")
    assert len(set(ids)) == len(ids)
    for place in ("h1", "header p", "#preview", "#contribute legend", "#contribute button[type=submit]"):
        assert contrast(person.page, place) >= 4.5, place


def contrast(page: Page, place: str) -> float:
    """Contrast of a text against what is behind it, by WCAG 2.2, section 1.4.3."""
    colors = page.locator(place).first.evaluate(
        """item => {
            const ink = getComputedStyle(item).color;
            let behind = "rgba(0, 0, 0, 0)";
            for (; item && behind === "rgba(0, 0, 0, 0)"; item = item.parentElement)
                behind = getComputedStyle(item).backgroundColor;
            return [ink, behind];
        }"""
    )

    def luminance(color: str) -> float:
        channels = [int(text) / 255 for text in re.findall(r"\d+", color)[:3]]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted(luminance(color) for color in colors)
    return (high + 0.05) / (low + 0.05)


def test_the_device_of_the_documentation_works(person: Person) -> None:
    page = (ROOT / "docs" / "devices-js.md").read_text(encoding="utf-8")
    [code] = re.findall(r"^```js\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert code.count("\n") <= 16
    session = start_session(person, rounds=1, epsilon=1.5, answers_per_round=1)["id"]
    for told, real in {
        "./dist/index.js": f"{person.origin}/dist/index.js",
        "https://dither.example": person.service.base_url,
        "a-token": person.token,
        "a-session": session,
        '"commute"': f'"{person.commute}"',
        '"ada"': f'"{person.subject}"',
    }.items():
        assert told in code
        code = code.replace(told, real)
    said: list[str] = []
    person.page.on("console", lambda message: said.append(message.text) if message.type == "log" else None)
    person.page.goto(f"{person.origin}/example/style.css")  # a page without a policy of its own
    person.page.evaluate(
        "code => import(URL.createObjectURL(new Blob([code], {type: 'text/javascript'})))", code
    )
    [document] = person.posted("/contributions")
    assert said[:1] + said[2:] == ["Minutes to work? 0.0 120.0", "1 answers counted", "2 of 2 is given away"]
    assert said[1].startswith("created 0.5")
    assert stored(person) == ("local", document["report"], 500_000)
    assert len(stored_answers(person, session)) == 1
