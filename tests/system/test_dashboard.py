"""The dashboard in a real Chromium, against the real service: as admin, as analyst, as a person.

`make screenshots` runs it too, and keeps pictures of every page in docs/screenshots.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.support.browser import WANTED, chromium, keep, need
from tests.support.databases import Server
from tests.support.live import ROOT, LiveService, live_service
from tests.support.sample_studies import COMMUTE, PLACES, RENT, SLEEP, fill

pytestmark = pytest.mark.system

AXE = ROOT / "client" / "js" / "node_modules" / "axe-core" / "axe.min.js"

DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}
SCREENS = {"desktop": DESKTOP, "phone": PHONE}
SCHEMES = ("light", "dark")
LOOKS = [
    (name, scheme)
    for name in SCREENS
    for scheme in SCHEMES
    if WANTED or (name == "desktop") is (scheme == "light")
]
"""Screens and schemes that every page is looked at with: both of each, and for pictures all pairs."""

ADMIN_PAGES = {
    "overview": "",
    "studies": "/studies",
    "study": f"/studies/{COMMUTE}",
    "study-of-vectors": f"/studies/{PLACES}",
    "budgets": "/budgets",
    "budgets-of-a-study": f"/budgets?study={RENT}",
    "ledger": "/ledger",
    "charges": "/ledger/charges",
    "tokens": "/tokens",
    "audit": "/audit",
    "new-study": "/new-study",
    "size": "/size",
}
ANALYST_PAGES = {
    "studies": "/studies",
    "study": f"/studies/{COMMUTE}",
    "study-that-sharpens": f"/studies/{RENT}",
    "study-of-vectors": f"/studies/{PLACES}",
    "study-with-a-secret-size": f"/studies/{SLEEP}?expected_size=700",
}


@dataclass
class Visit:
    """A browser window that somebody is logged in with; it remembers what went wrong in it."""

    service: LiveService
    context: BrowserContext
    page: Page
    complaints: list[str] = field(default_factory=list)

    @property
    def base(self) -> str:
        return f"{self.service.base_url}/dashboard"

    def open(self, path: str) -> None:
        """Open a page, which must be there and fit the screen."""
        response = self.page.goto(f"{self.base}{path}")
        assert response is not None
        assert response.status == 200, path
        self.fits()

    def fits(self) -> None:
        """Nothing sticks out to the right."""
        width = self.page.locator("html").evaluate("page => page.scrollWidth")
        assert width <= self.page.viewport_size["width"]  # type: ignore[index]  # it was set

    def log_in(self, token: str) -> None:
        """Log in the way people do."""
        self.page.goto(f"{self.base}/login")
        self.page.get_by_label("Token").fill(token)
        self.page.get_by_role("button", name="Log in").click()
        expect(self.page.get_by_role("button", name="Log out")).to_be_visible()

    def check(self) -> list[str]:
        """What axe finds serious."""
        self.page.evaluate(AXE.read_text())
        found: dict[str, Any] = self.page.evaluate("axe.run({resultTypes: ['violations']})")
        return [
            f"{one['id']}: {node['html'][:160]}"
            for one in found["violations"]
            if one["impact"] in ("serious", "critical")
            for node in one["nodes"][:3]
        ]

    def keep(self, name: str) -> None:
        """Keep a picture of the page, where pictures are wanted."""
        keep(self.page, name)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    need(AXE.exists(), "axe is not installed")
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def service(postgres_server: Server) -> Iterator[LiveService]:
    """One service for all tests here."""
    with postgres_server.database() as url, live_service(url) as service:
        yield service


@pytest.fixture(scope="module")
def tokens(service: LiveService) -> dict[str, str]:
    """A token of each role, on a service with people in it."""
    return fill(service)


@pytest.fixture
def visit(browser: Browser, service: LiveService, tokens: dict[str, str]) -> Iterator[Any]:
    """A function that opens a window; whatever any of them complained of fails the test."""
    visits: list[Visit] = []

    def open_window(
        *, viewport: dict[str, int] = DESKTOP, scheme: str = "light", javascript: bool = True
    ) -> Visit:
        context = browser.new_context(
            viewport=viewport,  # type: ignore[arg-type]  # as it should be
            color_scheme=scheme,  # type: ignore[arg-type]  # light or dark
            java_script_enabled=javascript,
            reduced_motion="reduce",
        )
        visit = Visit(service, context, context.new_page())
        visit.page.set_default_timeout(20_000)
        visit.page.on(
            "console",
            lambda message: (
                visit.complaints.append(message.text) if message.type in ("error", "warning") else None
            ),
        )
        visit.page.on("pageerror", lambda error: visit.complaints.append(str(error)))
        visit.page.on(
            "request",
            lambda request: (
                None
                if request.url.startswith(service.base_url)
                else visit.complaints.append(f"asked {request.url}")
            ),
        )
        visits.append(visit)
        return visit

    yield open_window
    for one in visits:
        one.context.close()
    assert [complaint for one in visits for complaint in one.complaints] == []


def session_pages(service: LiveService) -> dict[str, str]:
    """The pages of the sessions that are held."""
    pages = {}
    with service.client() as admin:
        for name, study in (("session", COMMUTE), ("clusters", PLACES)):
            sessions = admin.get(f"/v1/studies/{study}/sessions").json()["items"]
            pages[name] = f"/sessions/{sessions[0]['id']}"
    return pages


@pytest.mark.parametrize(("name", "scheme"), LOOKS)
def test_every_page_of_an_admin_is_accessible_and_fits(visit, service, tokens, name, scheme):
    admin = visit(viewport=SCREENS[name], scheme=scheme)
    admin.page.goto(f"{admin.base}/login")
    assert admin.check() == []
    admin.keep(f"login-{name}-{scheme}")
    admin.log_in(tokens["admin"])
    for page, path in {**ADMIN_PAGES, **session_pages(service)}.items():
        admin.open(path)
        assert admin.check() == [], page
        admin.keep(f"{page}-{name}-{scheme}")
    admin.open("/budgets")
    admin.page.get_by_label("External id").fill("alice")
    admin.page.get_by_role("button", name="Show the statement").click()
    admin.fits()
    assert admin.check() == []
    admin.keep(f"statement-{name}-{scheme}")


@pytest.mark.parametrize(("name", "scheme"), LOOKS)
def test_every_page_of_an_analyst_is_accessible_and_fits(visit, service, tokens, name, scheme):
    analyst = visit(viewport=SCREENS[name], scheme=scheme)
    analyst.log_in(tokens["analyse"])
    for page, path in {**ANALYST_PAGES, **session_pages(service)}.items():
        analyst.open(path)
        assert analyst.check() == [], page
        if page == "study":
            analyst.keep(f"ask-{name}-{scheme}")
        if page == "study-that-sharpens":
            analyst.keep(f"{page}-{name}-{scheme}")
    released = analyst.service
    with released.client() as admin:
        newest = admin.get(f"/v1/studies/{COMMUTE}/releases").json()["items"][0]["id"]
    analyst.open(f"/releases/{newest}")
    assert analyst.check() == []
    analyst.keep(f"release-{name}-{scheme}")


def test_an_analyst_asks_for_a_release_and_sees_it(visit, service, tokens):
    analyst = visit()
    analyst.log_in(tokens["analyse"])
    page = analyst.page
    expect(page).to_have_url(re.compile("/dashboard/studies$"))
    expect(page.get_by_role("link", name="Budgets", exact=True)).to_have_count(0)
    page.get_by_role("link", name="How long is your way to work?").click()
    page.get_by_label("Estimator", exact=True).select_option("adpm")
    page.get_by_label("Share", exact=True).fill("0.07")
    page.get_by_role("button", name="Preview the price").click()
    price = page.locator(".price")
    expect(price).to_contain_text("adpm would charge no person more than")
    promised = price.locator("strong").nth(1).inner_text().removeprefix("ε ")
    page.get_by_role("button", name="Ask for this release").click()
    expect(page).to_have_url(re.compile("/dashboard/releases/"))
    expect(page.get_by_text("Epsilon charged at most")).to_be_visible()
    facts = page.locator("dl.facts").inner_text()
    assert promised in facts, "what it cost is what was promised"
    assert "0.07" in facts
    released = page.url.rsplit("/", 1)[1]
    page.get_by_role("link", name="How long is your way to work?").click()
    page.get_by_role("heading", name="All answers").click()
    expect(page.locator(f'a[href$="{released}"]').last).to_be_visible()


@pytest.mark.parametrize("javascript", [True, False], ids=["with scripts", "without"])
def test_a_refusal_is_in_view_and_has_the_focus(visit, service, tokens, javascript):
    analyst, admin = (visit(viewport=PHONE, javascript=javascript) for _ in range(2))
    analyst.log_in(tokens["analyse"])
    analyst.open(f"/studies/{COMMUTE}?share=0.001&fresh=true")
    analyst.page.get_by_role("button", name="Ask for this release").click()
    expect(analyst.page.get_by_role("alert")).to_contain_text("interval would be")
    admin.log_in(tokens["admin"])
    admin.open("/tokens")
    admin.page.get_by_label("Name", exact=True).fill("of no role")
    admin.page.get_by_role("button", name="Make the token").click()
    expect(admin.page.locator("fieldset[aria-invalid=true]")).to_contain_text("give one role")
    for one in (analyst, admin):
        alert = one.page.get_by_role("alert")
        expect(alert).to_be_in_viewport()
        expect(alert).to_be_focused()
        if javascript:
            assert one.check() == []
        one.complaints[:] = [text for text in one.complaints if "409" not in text and "422" not in text]


@pytest.mark.parametrize(("name", "scheme"), LOOKS)
def test_labels_are_compared_by_keyboard_and_each_plot_has_its_table(visit, service, tokens, name, scheme):
    slug, labels = f"towns-{name}-{scheme}", ("north", "south", "east")
    study = {"slug": slug, "lower": 0, "upper": 100, "attributes": {"town": labels}, "default_share": 0.2}
    people = [
        {"subject": f"{slug}-{n}", "value": 20 + 20 * (n % 3), "epsilon": 4, "trust": "central"}
        | {"attributes": {"town": labels[n % 3]}}
        for n in range(90)
    ]
    with service.client() as client:
        assert client.post("/v1/studies", json=study).status_code == 201
    with service.client(tokens["contribute"]) as device:
        assert device.post(f"/v1/studies/{slug}/contributions/batch", json=people).json()["created"] == 90
    analyst = visit(viewport=SCREENS[name], scheme=scheme)
    analyst.log_in(tokens["analyse"])
    analyst.open(f"/studies/{slug}")
    page = analyst.page
    page.get_by_label("Statistic", exact=True).select_option("difference")
    page.get_by_text("Labels together", exact=True).press("Enter")
    page.get_by_label("Difference between").fill("town:south,north")
    page.get_by_label("Intervals that hold together").press("Space")
    assert analyst.check() == []
    analyst.keep(f"labels-asked-{name}-{scheme}")
    page.get_by_label("Difference between").press("Enter")
    expect(page.locator(".price")).to_contain_text("would charge no person more than")
    expect(page.get_by_label("Intervals that hold together")).to_be_checked()
    page.get_by_role("button", name="Ask for this release").press("Enter")
    expect(page.get_by_text("The mean of south less that of north")).to_be_visible()
    plots = page.locator(f"svg.plot.{'narrow' if name == 'phone' else 'wide'}")
    expect(plots).to_have_count(2)
    for figure in page.locator("figure").all():
        expect(figure.get_by_role("img")).to_have_count(1)
        expect(figure.locator("table")).to_be_visible()
    expect(page.get_by_role("columnheader", name="all labels together")).to_be_visible()
    analyst.fits()
    assert analyst.check() == []
    analyst.keep(f"labels-{name}-{scheme}")


@pytest.mark.parametrize(("name", "scheme"), LOOKS)
def test_steps_are_drawn_as_they_are_in_the_table(visit, service, tokens, name, scheme):
    """Error against epsilon: four steps go right and down, and what may come next is open."""
    analyst = visit(viewport=SCREENS[name], scheme=scheme)
    analyst.log_in(tokens["analyse"])
    analyst.open(f"/studies/{RENT}")
    figure = analyst.page.get_by_role("figure").filter(has_text="Error against epsilon spent")
    plot = figure.get_by_role("img", name="Half of the 95 % interval against the epsilon spent")
    expect(plot).to_be_visible()
    assert plot.count() == 1, "one of the two drawings is hidden"
    taken = plot.locator("circle.step.taken").evaluate_all(
        "dots => dots.map(dot => [dot.cx.baseVal.value, dot.cy.baseVal.value, getComputedStyle(dot).fill])"
    )
    assert len(taken) == 4
    across, down = [dot[0] for dot in taken], [dot[1] for dot in taken]
    assert across == sorted(across)
    assert down == sorted(down)
    ahead = plot.locator("circle.step.ahead")
    assert ahead.count() == 2
    fill = ahead.first.evaluate("dot => getComputedStyle(dot).fill")
    assert fill not in {dot[2] for dot in taken}
    assert "newcomers only: ±" in str(plot.locator("circle.step.ahead title").first.text_content())
    figure.get_by_text("Steps, the first one first").click()
    rows = figure.locator("tbody tr")
    assert rows.count() == 4
    halves = [float(text) for text in figure.locator("tbody tr td:nth-child(5)").all_inner_texts()]
    assert halves == sorted(halves, reverse=True)
    titles = plot.locator("circle.step.taken title").all_text_contents()
    assert [float(title.split("± ")[1].split()[0]) for title in titles] == pytest.approx(halves, rel=1e-3)
    analyst.fits()


def test_an_analyst_sees_nothing_of_single_people_or_of_secret_counts(visit, tokens):
    analyst = visit()
    analyst.log_in(tokens["analyse"])
    analyst.open(f"/studies/{SLEEP}?expected_size=700")
    text = analyst.page.locator("main").inner_text()
    assert "Profile" not in text
    assert "751" not in text
    for path in ("/budgets", "/ledger", "/tokens"):
        response = analyst.page.goto(f"{analyst.base}{path}")
        assert response is not None
        assert response.status == 403
    analyst.complaints[:] = [one for one in analyst.complaints if "403" not in one]


def test_an_admin_finds_a_subject_and_changes_their_budget(visit, service, tokens):
    admin = visit()
    admin.log_in(tokens["admin"])
    page = admin.page
    page.get_by_role("link", name="Budgets", exact=True).click()
    page.get_by_label("External id").fill("zoe")
    page.get_by_role("button", name="Show the statement").click()
    expect(page.get_by_role("heading", name="Statement")).to_be_visible()
    expect(page.locator("table").first).to_contain_text(RENT)
    assert "zoe" not in page.url
    page.get_by_label("Epsilon", exact=True).fill("5")
    page.get_by_label("Reason").fill("asked for less")
    page.get_by_role("button", name="Change it").click()
    expect(page.get_by_role("alert")).to_contain_text("more than that is reserved already")
    page.get_by_label("Epsilon", exact=True).fill("25")
    page.get_by_label("Reason").fill("asked for more")
    page.get_by_role("button", name="Change it").click()
    expect(page.get_by_role("status")).to_contain_text("The lifetime budget was changed.")
    with service.client() as client:
        assert client.get("/v1/subjects/zoe/budget").json()["epsilon"]["total"] == 25
    admin.complaints[:] = [one for one in admin.complaints if "409" not in one]


def test_an_admin_makes_a_token_and_revoking_it_ends_its_login_at_once(visit, tokens):
    admin, analyst = visit(), visit()
    admin.log_in(tokens["admin"])
    page = admin.page
    page.get_by_role("link", name="Tokens", exact=True).click()
    page.get_by_label("Name").fill("for a week")
    page.get_by_label("plan and ask").check()
    page.locator(f"[name=studies][value={SLEEP}]").check()
    page.get_by_role("button", name="Make the token").click()
    secret = page.get_by_label("Secret of the new token").input_value()
    analyst.log_in(secret)
    expect(analyst.page.locator("tbody tr")).to_have_count(1)
    page.get_by_label("Revoke for a week").click()
    page.get_by_role("button", name="Revoke for a week").click()
    expect(page.get_by_role("row", name=re.compile("for a week"))).to_contain_text("revoked")
    analyst.page.reload()
    expect(analyst.page).to_have_url(re.compile("/dashboard/login$"))


def test_an_admin_follows_the_ledger_and_takes_it_away(visit, service, tokens):
    admin = visit()
    admin.log_in(tokens["admin"])
    page = admin.page
    page.get_by_role("link", name="Ledger", exact=True).click()
    page.get_by_label("Study").fill(COMMUTE)
    page.get_by_role("button", name="Filter").click()
    expect(page).to_have_url(re.compile(f"study={COMMUTE}"))
    rows = page.locator("tbody tr")
    expect(rows.first).to_be_visible()
    assert rows.count() >= 5
    assert all(COMMUTE in row for row in rows.all_inner_texts())
    page.get_by_role("link", name="Charges of release 1", exact=True).click()
    expect(page).to_have_url(re.compile("charges.release="))
    expect(page.locator("tbody tr").first).to_be_visible()
    charged = page.locator("tbody tr").count()
    with page.expect_download() as download:
        page.get_by_role("link", name="Charges as CSV").click()
    lines = Path(download.value.path()).read_text().splitlines()
    assert lines[0].startswith("number,release,study,estimator")
    assert len(lines) == charged + 1


def test_a_study_is_closed_on_its_page(visit, service, tokens):
    with service.client() as client:
        assert client.post("/v1/studies", json={"slug": "short", "lower": 0, "upper": 1}).status_code == 201
    admin = visit()
    admin.log_in(tokens["admin"])
    admin.open("/studies/short")
    admin.page.get_by_text("Take no more contributions").click()
    admin.page.get_by_role("button", name="Close short").click()
    expect(admin.page.locator(".pill").first).to_have_text("closed")


@pytest.mark.parametrize("javascript", [True, False], ids=["with scripts", "without"])
def test_a_study_is_described_and_archived_and_what_it_held_is_free(visit, service, tokens, javascript):
    slug = "week-1" if javascript else "week-2"
    with service.client() as client:
        study = {"slug": slug, "series": "weeks", "lower": 0, "upper": 10}
        assert client.post("/v1/studies", json=study).status_code == 201
    value = {"subject": f"walker-{slug}", "value": 3, "epsilon": 2, "trust": "central"}
    with service.client(tokens["contribute"]) as device:
        assert device.post(f"/v1/studies/{slug}/contributions", json=value).status_code == 201
    admin = visit(viewport=PHONE, javascript=javascript)
    admin.log_in(tokens["admin"])
    admin.open("/studies?series=weeks")
    page = admin.page
    page.get_by_role("link", name=slug).first.click()
    page.get_by_text("What is said of it").click()
    page.get_by_label("Question", exact=True).fill(f"How was {slug}?")
    page.get_by_label("Reason for the change").fill("people read it")
    page.get_by_role("button", name="Change it").click()
    expect(page.get_by_role("heading", name=f"How was {slug}?")).to_be_visible()
    page.get_by_text("End it for good").click()
    page.get_by_label("Reason for the end").fill("the week is over")
    page.get_by_role("button", name=f"Archive {slug}").click()
    expect(page.locator(".pill").first).to_have_text("archived")
    admin.fits()
    with service.client() as client:
        assert client.get(f"/v1/subjects/walker-{slug}/budget").json()["epsilon"]["reserved"] == 0
    # Who did it, and why, is one step away.
    page.get_by_role("link", name="Who archived it, and why").click()
    expect(page.locator("main")).to_contain_text("the week is over")
    expect(page.locator("main")).to_contain_text("people read it")


def test_a_budget_is_changed_and_who_did_it_is_found(visit, service, tokens):
    admin = visit()
    admin.log_in(tokens["admin"])
    admin.open("/budgets")
    page = admin.page
    page.get_by_label("External id").fill("yves")
    page.get_by_role("button", name="Show the statement").click()
    page.get_by_label("Epsilon", exact=True).fill("31")
    page.get_by_label("Reason").fill("yves asked for more")
    page.get_by_role("button", name="Change it").click()
    expect(page.get_by_role("status").last).to_contain_text("was changed")
    page.get_by_role("link", name="Who changed this budget").click()
    expect(page.locator("main")).to_contain_text("yves asked for more")
    expect(page.locator("main")).to_contain_text("31")
    admin.open("/budgets")
    page.get_by_text("Add to the lifetime budget of every person").click()
    page.get_by_label("Add epsilon").fill("0.5")
    page.get_by_label("Reason").fill("another year for all")
    page.get_by_role("button", name="Raise all budgets").click()
    expect(page.get_by_role("status").first).to_contain_text("was raised by 0.5")
    with service.client() as client:
        assert client.get("/v1/subjects/yves/budget").json()["epsilon"]["total"] == 31.5
    page.get_by_text("Add to the lifetime budget of every person").click()
    page.get_by_role("link", name="Who raised them before").click()
    expect(page.locator("main")).to_contain_text("another year for all")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_person_opens_their_link_once_and_withdraws(visit, service, tokens, scheme):
    subject = f"person-of-{scheme}"
    with service.client(tokens["contribute"]) as device:
        value = {"subject": subject, "value": 30, "epsilon": 1, "trust": "central"}
        assert device.post(f"/v1/studies/{COMMUTE}/contributions", json=value).status_code == 201
        link = device.post(f"/v1/subjects/{subject}/links").json()["url"]
    phone = visit(viewport=PHONE, scheme=scheme)
    page = phone.page
    page.goto(link)
    assert phone.check() == []
    page.get_by_role("button", name="Show my data").click()
    expect(page.get_by_role("heading", name="Your data")).to_be_visible()
    expect(page.get_by_role("heading", name="How long is your way to work?")).to_be_visible()
    phone.fits()
    assert phone.check() == []
    assert subject not in page.content()
    phone.keep(f"person-phone-{scheme}")
    page.get_by_text("Withdraw", exact=True).click()
    page.get_by_role("button", name="Delete my answer").click()
    expect(page.get_by_role("status")).to_contain_text("was deleted")
    again = visit()
    again.page.goto(link)
    again.page.get_by_role("button", name="Show my data").click()
    expect(again.page.get_by_role("heading", name="Closed")).to_be_visible()
    expect(again.page.get_by_text("The link was used already")).to_be_visible()
    again.complaints[:] = [one for one in again.complaints if "404" not in one]
    with service.client(tokens["contribute"]) as device:
        statement = device.get(f"/v1/subjects/{subject}/budget").json()
    assert statement["epsilon"]["reserved"] == 0


def test_a_running_session_is_followed_without_loading_the_page(visit, service, tokens):
    with service.client() as client:
        wish = {"protocol": "minimum", "mode": "budget_split", "rounds": 3, "epsilon": 3, "participants": 4}
        session = client.post(f"/v1/studies/{RENT}/sessions", json=wish).json()["id"]
    analyst = visit()
    analyst.log_in(tokens["analyse"])
    analyst.open(f"/sessions/{session}")
    page = analyst.page
    expect(page.locator("#live")).to_contain_text("No round is closed yet.")
    with service.client(tokens["contribute"]) as device:
        for number in range(4):
            answer = {"subject": f"runner-{number}", "round": 1, "answer": 1}
            assert device.post(f"/v1/sessions/{session}/answers", json=answer).status_code == 201
    expect(page.locator("#live tbody tr")).to_have_count(1, timeout=10_000)
    expect(page.locator("#live")).not_to_contain_text("No round is closed yet.")
    with service.client() as client:
        assert client.post(f"/v1/sessions/{session}/finish").status_code == 200
    expect(page.locator("#live")).to_have_attribute("data-state", "finished", timeout=10_000)


def test_everything_is_read_without_scripts_and_reached_by_the_keyboard(visit, service, tokens):
    plain = visit(javascript=False)
    plain.page.goto(f"{plain.base}/login")
    plain.page.get_by_label("Token").fill(tokens["admin"])
    plain.page.get_by_label("Token").press("Enter")
    expect(plain.page.get_by_role("heading", name="Overview")).to_be_visible()
    for path in ADMIN_PAGES.values():
        plain.open(path)
        expect(plain.page.locator("h1")).to_be_visible()
    plain.open("")
    plain.page.keyboard.press("Tab")
    expect(plain.page.get_by_role("link", name="Skip to the content")).to_be_focused()
    for name in ("Dither", "Overview", "Studies", "Sizing", "Budgets"):
        plain.page.keyboard.press("Tab")
        expect(plain.page.get_by_role("link", name=name, exact=True).first).to_be_focused()
    plain.page.keyboard.press("Enter")
    expect(plain.page.get_by_role("heading", name="Budgets", exact=True)).to_be_visible()
