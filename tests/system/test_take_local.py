"""Answering by a link with noise from one's own device, in a real Chromium: the answer leaves it nowhere."""

import base64
import json
import re
import shutil
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qsl, quote, urlsplit

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Request,
    Route,
    expect,
    sync_playwright,
)

from app.dashboard.rendering import HERE
from tests.support.browser import FLAGS, chromium, need, pages
from tests.support.databases import Server
from tests.support.live import ROOT, LiveService, live_service
from tests.system.test_take import fits_and_is_accessible, link
from tests.unit.dashboard.test_typed import TYPED

pytestmark = pytest.mark.system

CLIENT = ROOT / "client" / "js"
VALUE = "34.56789123456"
POINT = round(34.56789123456 / 120 * 2**30)
WALK = {
    "slug": "walk",
    "title": "Minutes on foot yesterday?",
    "lower": 0,
    "upper": 120,
    "trust": ["local"],
    "attributes": {"site": ["north", "south"]},
    "epsilon": {"min": 0.5, "max": 2},
}
MEALS = {
    "slug": "meals",
    "measures": {
        "price": {"lower": 0, "upper": 50},
        "place": {"choices": ["canteen", "at home in the kitchen", "out"]},
    },
    "trust": ["central", "local", "public"],
    "epsilon": {"min": 0.5, "max": 2},
}
GAUSSIAN = {"slug": "walk-gaussian", "lower": 0, "upper": 120, "trust": ["local"], "noise": "gaussian"}
STUDIES = (WALK, MEALS, {**GAUSSIAN, "delta": 1e-6, "epsilon": {"min": 0.5, "max": 2}})


@pytest.fixture(scope="module")
def service(postgres_server: Server) -> Iterator[LiveService]:
    with postgres_server.database() as url, live_service(url) as service:
        with service.client() as admin:
            for study in STUDIES:
                made = admin.post("/v1/studies", json=study)
                assert made.status_code == 201, made.text
        yield service


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@contextmanager
def phone(browser: Browser, **options: Any) -> Iterator[BrowserContext]:
    context = browser.new_context(viewport={"width": 360, "height": 800}, **options)
    yield context
    context.close()


def forms(page: Page) -> list[str]:
    """The bodies that a page sends, as they come."""
    sent: list[str] = []

    def note(request: Request) -> None:
        if request.method == "POST":
            sent.append(request.post_data or "")

    page.on("request", note)
    return sent


def answer(page: Page, value: str = VALUE) -> None:
    page.get_by_label("Your answer", exact=True).fill(value)
    page.get_by_label("south").check()
    page.get_by_role("button", name="Send", exact=True).click()


@contextmanager
def lost_answer(page: Page) -> Iterator[None]:
    """What is sent within gets no answer."""
    with page.expect_event("requestfailed"):
        yield
    page.wait_for_function("location.protocol === 'chrome-error:'")


def noted(page: Page) -> None:
    """Wait until the page of a receipt has noted on its device that the answer arrived."""
    expect(page.locator("main[data-held]")).to_have_count(0)


ORDERS: tuple[Literal["little", "big"], ...] = ("little", "big")


def encodings(value: str, point: int) -> list[bytes]:
    """A number as text, as bytes and on the grid of its study, as requests and files may have it.

    Random texts hold none of them: each has a probability below 1e-8.
    """
    texts = {value, value.replace(".", ","), str(point), f"{point:x}", f"{float(value):e}"}
    raw = [text.encode(how) for text in texts for how in ("utf-8", "utf-16-le", "utf-16-be")]
    raw += [struct.pack(form, float(value)) for form in ("<d", ">d")]
    raw += [point.to_bytes(size, order) for size in (4, 8) for order in ORDERS]
    found = []
    for one in raw:
        found += [one.hex().encode(), one.hex().upper().encode(), quote(one).encode()]
        # Wherever it begins among other bytes: what Base64 makes of its middle.
        for lead in range(3):
            text = base64.b64encode(bytes(lead) + one)
            middle = text[-(-lead * 8 // 6) + (1 if lead else 0) : len(text) - 4]
            found += [middle, middle.replace(b"+", b"-").replace(b"/", b"_")]
    return raw + [one for one in found if len(one) >= 6]


def test_the_search_finds_a_value_in_every_encoding() -> None:
    for text in (VALUE, VALUE.replace(".", ","), str(POINT)):
        for hidden in (text.encode(), text.encode("utf-16-le"), text.encode().hex().encode()):
            assert any(one in b"abc" + hidden + b"xyz" for one in encodings(VALUE, POINT))
        for lead in (b"", b"a", b"ab", b"abc"):
            kept = base64.b64encode(lead + text.encode() + b"xyz")
            assert any(one in kept for one in encodings(VALUE, POINT))
    assert any(one in b"x" + struct.pack("<d", float(VALUE)) for one in encodings(VALUE, POINT))


def test_a_local_answer_is_in_no_request_no_storage_and_no_log(service: LiveService, tmp_path: Path) -> None:
    path = shutil.which("chromium")
    need(path is not None, "there is no chromium")
    address = link(service, "walk", kind="open")
    requests: list[bytes] = []
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            tmp_path / "profile",
            executable_path=path,
            args=list(FLAGS),
            viewport={"width": 360, "height": 800},
        )
        page = context.new_page()
        page.on(
            "request",
            lambda request: requests.append(
                f"{request.url} {json.dumps(request.all_headers())} {request.post_data}".encode()
            ),
        )
        console: list[str] = []
        page.on("console", lambda message: console.append(message.text))
        page.on("pageerror", lambda error: console.append(str(error)))
        page.goto(address)
        answer(page, VALUE.replace(".", ","))
        expect(page.get_by_role("status")).to_contain_text("Your answer is stored")
        expect(page.get_by_text("the true one never left it")).to_be_visible()
        noted(page)
        page.reload()
        expect(page.get_by_role("status")).to_contain_text("stored once")
        page.goto(address)
        expect(page.get_by_text("An answer came from this device")).to_be_visible()
        assert context.cookies() == []
        assert page.evaluate("Object.keys(localStorage).length + Object.keys(sessionStorage).length") == 0
        context.close()
    assert console == []
    assert {urlsplit(one.split()[0].decode()).netloc for one in requests} == {
        urlsplit(service.base_url).netloc
    }
    sent = [one for one in requests if b"report=" in one]
    assert len(sent) == 2
    assert b"attributes.site=south" in sent[0]
    wanted = encodings(VALUE, POINT)
    everything = b"\n".join(requests)
    assert not [one for one in wanted if one in everything]
    kept = [one for one in (tmp_path / "profile").rglob("*") if one.is_file()]
    assert any(b"dither-take" in one.read_bytes() for one in kept), "the ledger is on the disk"
    # Files of the browser and logs hold many numbers, so that only long encodings tell.
    doubles = [struct.pack(form, float(VALUE)) for form in ("<d", ">d")]
    telling = doubles + [one for one in wanted if len(one) >= 10]
    assert not [(file, one) for file in kept for one in telling if one in file.read_bytes()]
    logged = service.output().encode()
    assert b"/take/{code}" in logged
    assert not [one for one in telling if one in logged]


def test_after_a_lost_connection_the_same_report_is_sent_again(
    service: LiveService, browser: Browser
) -> None:
    address = link(service, "walk", kind="single", count=1)
    with phone(browser) as context:
        page = context.new_page()
        sent = forms(page)

        def lost(route: Route) -> None:
            """It arrives, and what the service says does not."""
            if route.request.method != "POST":
                route.continue_()
            elif len(sent) == 1:
                route.abort("connectionreset")
            else:
                route.fetch()
                route.abort("connectionreset")

        page.goto(address)
        page.route("**/take/*", lost)
        with lost_answer(page):
            answer(page)
        page.goto(address)
        expect(page.get_by_text("An answer is under way.")).to_be_visible()
        expect(page.get_by_role("button", name="Send", exact=True)).to_be_hidden()
        fits_and_is_accessible(page)
        with lost_answer(page):
            page.get_by_role("button", name="Send it again").click()
        page.unroute("**/take/*")
        page.goto(address)
        expect(page.get_by_role("heading", name="There is an answer already")).to_be_visible()
        expect(page.get_by_text("An answer is under way.")).to_be_visible()
        fits_and_is_accessible(page)
        page.get_by_role("button", name="Send it again").click()
        expect(page.get_by_text("This form was sent before")).to_be_visible()
        noted(page)
        assert len(sent) == 3
        assert len(set(sent)) == 1
        page.goto(address)
        expect(page.get_by_role("heading", name="There is an answer already")).to_be_visible()
        expect(page.get_by_text("An answer is under way.")).to_be_hidden()


def test_two_tabs_never_make_two_reports_of_one_answer(service: LiveService, browser: Browser) -> None:
    address = link(service, "walk", kind="open")
    with phone(browser) as context:
        first, second = context.new_page(), context.new_page()
        sent = [forms(one) for one in (first, second)]
        for page in (first, second):
            page.goto(address)
        first.route("**/take/*", lambda route: route.abort())
        with lost_answer(first):
            answer(first)
        answer(second, "70")
        expect(second.get_by_text("An answer is under way.")).to_be_visible()
        assert (len(sent[0]), len(sent[1])) == (1, 0)
        second.get_by_role("button", name="Send it again").click()
        expect(second.get_by_role("status")).to_contain_text("Your answer is stored")
        assert sent[1] == sent[0]


def test_a_report_that_a_budget_refused_is_in_no_ones_way_on_a_later_visit(
    service: LiveService, browser: Browser
) -> None:
    with service.client() as admin:
        budget = {"epsilon": 0.75, "reason": "used up"}
        assert admin.put("/v1/admin/subjects/poor/budget", json=budget).is_success
    address = link(service, "meals", kind="single", subjects=["poor"])
    with phone(browser) as context:
        page = context.new_page()
        sent = forms(page)
        page.goto(address)
        fill_meals(page)
        page.locator("[name=trust][value=local]").check()
        page.locator("[name=epsilon]").last.check()
        page.get_by_role("button", name="Send", exact=True).click()
        refused = page.get_by_text("the answer that was made on this device was not taken")
        for _ in range(2):
            expect(refused).to_be_visible()
            expect(page.get_by_text("An answer is under way.")).to_be_hidden()
            expect(page.get_by_role("button", name="Send", exact=True)).to_be_visible()
            # There is no second noise, but the same report where the budget has room by now.
            expect(page.locator("[name=trust][value=local]")).to_be_disabled()
            page.goto("about:blank")
            page.goto(address)
        # The words of the last refusal stand until the next one comes: the request is what is waited for.
        with page.expect_response(lambda response: response.request.method == "POST"):
            page.get_by_role("button", name="Send it again", exact=True).locator("visible=true").click()
        expect(refused).to_be_visible()
        assert len(sent) == 2
        assert sent[0] == sent[1]
        fill_meals(page)
        page.locator("[name=trust][value=central]").check()
        page.locator("[name=epsilon]").first.check()
        page.get_by_role("button", name="Send", exact=True).click()
        expect(page.get_by_role("heading", name="Your receipt")).to_be_visible()


def fill_meals(page: Page) -> None:
    page.locator("[name='values.price']").fill("12")
    page.locator("[name='values.place']").first.check()


def test_a_reload_of_what_failed_sends_the_same_report(service: LiveService, browser: Browser) -> None:
    with phone(browser) as context:
        page = context.new_page()
        sent = forms(page)
        page.goto(link(service, "walk", kind="open"))
        page.route("**/take/*", lambda route: route.abort())
        with lost_answer(page):
            answer(page)
        page.unroute("**/take/*")
        page.reload()
        expect(page.get_by_role("status")).to_contain_text("Your answer is stored")
        assert len(sent) == 2
        assert len(set(sent)) == 1


@pytest.mark.parametrize("width", [360, 1280])
def test_several_measures_are_reported_with_the_keyboard_alone(
    service: LiveService, browser: Browser, width: int
) -> None:
    with phone(browser, color_scheme="dark" if width == 360 else "light") as context:
        page = context.new_page()
        page.set_viewport_size({"width": width, "height": 800})
        sent = forms(page)
        page.goto(link(service, "meals", kind="single", count=1))
        page.get_by_label("No one.").wait_for()
        fits_and_is_accessible(page)
        page.get_by_label("price").focus()
        page.keyboard.type("8,50")
        for key in ("Tab", "ArrowDown", "Tab", "ArrowDown", "ArrowDown"):
            page.keyboard.press(key)
        expect(page.get_by_label("at home in the kitchen")).to_be_checked()
        expect(page.get_by_label("No one.")).to_be_checked()
        page.keyboard.press("Enter")
        expect(page.get_by_role("status")).to_contain_text("Your answer is stored")
        fits_and_is_accessible(page)
        (fields,) = (dict(parse_qsl(one)) for one in sent)
        assert set(fields) - {"key", "trust", "epsilon"} in ({"reports.price"}, {"reports.place"})
        assert re.fullmatch("-?[0-9]+", next(fields[name] for name in fields if name.startswith("reports.")))
        expect(page.get_by_text("Change it")).to_be_visible()


def test_a_study_with_gaussian_noise_takes_a_report(service: LiveService, browser: Browser) -> None:
    with phone(browser) as context:
        page = context.new_page()
        page.goto(link(service, "walk-gaussian", kind="open"))
        page.get_by_label("Your answer", exact=True).fill(VALUE)
        page.get_by_role("button", name="Send", exact=True).click()
        expect(page.get_by_role("status")).to_contain_text("Your answer is stored")
        expect(page.get_by_text("cannot be changed")).to_be_visible()
        page.get_by_text("Delete your answer").click()
        page.get_by_role("button", name="Withdraw my answer").click()
        expect(page.get_by_role("status")).to_contain_text("deleted")


@pytest.mark.parametrize(
    ("text", "says"), [("900", "Look at what is marked"), ("1,234", "thousands or decimals")]
)
def test_a_number_that_is_wrong_or_unclear_is_marked_and_not_sent(
    service: LiveService, browser: Browser, text: str, says: str
) -> None:
    with phone(browser) as context:
        page = context.new_page()
        sent = forms(page)
        page.goto(link(service, "walk", kind="open"))
        answer(page, text)
        expect(page.get_by_role("alert").filter(visible=True)).to_contain_text(says)
        field = page.get_by_label("Your answer", exact=True)
        expect(field).to_have_attribute("aria-invalid", "true")
        expect(field).to_have_value(text)
        fits_and_is_accessible(page)
        assert sent == []
        answer(page)
        expect(page.get_by_role("status")).to_contain_text("Your answer is stored")


def test_a_german_answers_with_a_comma(service: LiveService, browser: Browser) -> None:
    with phone(browser, locale="de-DE") as context:
        page = context.new_page()
        sent = forms(page)
        page.goto(link(service, "walk", kind="open"))
        page.get_by_label("Ihre Antwort", exact=True).fill("1.234")
        page.get_by_label("south").check()
        page.get_by_role("button", name="Senden", exact=True).click()
        expect(page.get_by_role("alert").filter(visible=True)).to_contain_text(
            "Tausender oder Nachkommastellen"
        )
        assert sent == []
        page.get_by_label("Ihre Antwort", exact=True).fill("12,5")
        fits_and_is_accessible(page)
        page.get_by_role("button", name="Senden", exact=True).click()
        expect(page.get_by_role("status")).to_contain_text("Ihre Antwort ist gespeichert")
        noted(page)
        fits_and_is_accessible(page)
        copies = page.get_by_role("button", name="Kopieren")
        expect(copies).to_have_count(2)
        copies.first.click()
        expect(page.get_by_role("button", name=re.compile("Kopiert|Markiert"))).to_be_visible()
        page.get_by_role("button", name="English").click()
        expect(page.get_by_text("the true one never left it")).to_be_visible()
        assert page.get_by_text("Delete your answer").count() == 1


@pytest.mark.parametrize("lacks", ["scripts", "storage"])
def test_where_a_device_cannot_add_noise_the_page_says_so_and_offers_the_other_trusts(
    service: LiveService, browser: Browser, lacks: str
) -> None:
    with phone(browser, java_script_enabled=lacks != "scripts") as context:
        if lacks == "storage":
            context.add_init_script(
                "indexedDB.open = () => { throw new DOMException('no', 'SecurityError') }"
            )
        page = context.new_page()
        sent = forms(page)
        page.goto(link(service, "walk", kind="open"))
        expect(page.get_by_text("this browser has not all of them")).to_be_visible()
        expect(page.get_by_role("button", name="Send", exact=True)).to_be_hidden()
        page.goto(link(service, "meals", kind="open"))
        expect(page.get_by_text("this browser has not all of them")).to_be_visible()
        expect(page.get_by_label("No one.")).to_be_hidden()
        page.get_by_label("price").fill("8.5")
        page.get_by_label("out", exact=True).check()
        page.get_by_role("button", name="Send", exact=True).click()
        expect(page.get_by_role("status")).to_contain_text("Your answer is stored")
        assert "trust=central" in sent[0]


def test_a_device_reads_numbers_as_the_service_does(service: LiveService, browser: Browser) -> None:
    with phone(browser) as context:
        page = context.new_page()
        page.goto(link(service, "walk", kind="open"))
        address = urlsplit(str(page.locator("script[type=module]").get_attribute("src"))).path
        read = f"""async ([texts, mark]) => {{
            const {{ typed }} = await import("{address.replace("answer.js", "typed.js")}");
            return texts.map((text) => [text, typed(text, mark)]);
        }}"""
        for mark, meant in TYPED.items():
            assert dict(page.evaluate(read, [list(meant), mark])) == meant


@pytest.fixture(scope="module")
def embedding(postgres_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An origin whose page frames that of a link, as the service allows, and another page of the service."""
    folder = tmp_path_factory.mktemp("site")
    with (
        postgres_server.database() as url,
        pages(folder) as origin,
        live_service(url, env={"DITHER_EMBED_ORIGINS": f"https://other.example {origin}"}) as service,
    ):
        with service.client() as admin:
            assert admin.post("/v1/studies", json=MEALS).status_code == 201
        lunch = f'<iframe src="{link(service, "meals", kind="open")}" title="Lunch"></iframe>'
        other = f'<iframe src="{service.base_url}/docs" title="Other"></iframe>'
        (folder / "index.html").write_text(
            f'<!doctype html><html lang="en"><title>School</title>{lunch}{other}'
        )
        yield origin


def framed(context: BrowserContext, origin: str) -> tuple[Page, list[str]]:
    """The page of an origin, and which frames it may not hold, as they come."""
    page = context.new_page()
    refused: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if "frame-ancestors" in message.text:
            refused.append(message.text)

    page.on("console", note)
    page.goto(origin)
    return page, refused


@pytest.mark.parametrize("trust", ["No one.", "This service."])
def test_a_page_of_an_origin_that_was_named_holds_the_page_of_a_link(
    embedding: str, browser: Browser, trust: str
) -> None:
    with phone(browser) as context:
        page, refused = framed(context, embedding)
        frame = page.frame_locator("iframe[title=Lunch]")
        frame.get_by_label("price").fill("8.5")
        frame.get_by_label("out", exact=True).check()
        frame.get_by_label(trust).check()
        frame.get_by_role("button", name="Send", exact=True).click()
        expect(frame.get_by_role("status")).to_contain_text("Your answer is stored")
        assert context.cookies() == []
        assert len(refused) == 1, "the other page of the service"


def test_no_other_origin_holds_the_page_of_a_link(embedding: str, browser: Browser) -> None:
    with phone(browser) as context:
        page, refused = framed(context, embedding.replace("127.0.0.1", "localhost"))
        expect(page.frame_locator("iframe[title=Lunch]").get_by_label("price")).to_have_count(0)
        assert len(refused) == 2


def test_the_modules_that_are_served_are_a_fresh_build(tmp_path: Path) -> None:
    compiler = CLIENT / "node_modules" / ".bin" / "tsc"
    need(compiler.exists() and shutil.which("node") is not None, "TypeScript is not installed")
    command = [str(compiler), "-p", str(CLIENT / "tsconfig.page.json"), "--outDir", str(tmp_path)]
    subprocess.run(command, check=True, timeout=120)
    built = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*.js")}
    served = HERE / "static" / "device"
    assert built == {
        path.relative_to(served): path.read_bytes() for path in served.rglob("*") if path.is_file()
    }
