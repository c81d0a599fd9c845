"""How long it takes from nothing to thirty answers by link and a published mean: `make thirty-answers`.

It does what people do, in a browser: an admin starts the service in an empty directory, logs in, makes a
study and a link for all; thirty people open the link on a phone, answer, and see their receipts, one after
another; the admin makes a token that may ask, logs in with it, asks, and publishes; a stranger reads that.
Each part is printed with the time since the start. Exit status 1 after five minutes.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from playwright.sync_api import Browser, Page, ViewportSize, expect, sync_playwright

from benchmarks.services import free_port
from tools.release import ROOT

PEOPLE = 30
MOST_SECONDS = 300.0
PHONE, DESKTOP = ViewportSize(width=360, height=740), ViewportSize(width=1280, height=800)


@contextmanager
def served(directory: Path, port: int) -> Iterator[str]:
    """The service as `make serve` starts it, once it answers; its address."""
    command = ["make", "serve", f"SERVE_ARGS=--data-dir {directory} --port {port}"]
    address = f"http://127.0.0.1:{port}"
    own = {name: value for name, value in os.environ.items() if not name.startswith("DITHER_")}
    process = subprocess.Popen(command, cwd=ROOT, env=own, start_new_session=True)
    try:
        while not answers(f"{address}/health/ready"):
            if process.poll() is not None:
                raise SystemExit("make serve has ended")
            time.sleep(0.05)
        yield address
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()


def answers(url: str) -> bool:
    """Whether a page is there."""
    try:
        with urlopen(url, timeout=5) as response:  # noqa: S310 - on this machine
            return int(response.status) == 200
    except (URLError, OSError):
        return False


def log_in(browser: Browser, address: str, token: str) -> Page:
    """The dashboard, of the bearer of a token."""
    page = browser.new_context(viewport=DESKTOP, locale="en-GB").new_page()
    page.goto(f"{address}/dashboard/login")
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("button", name="Log out")).to_be_visible()
    return page


def make_study(admin: Page) -> str:
    """A study, and the link for all to answer it."""
    admin.get_by_role("link", name="Studies", exact=True).click()
    admin.get_by_role("link", name="Make a study", exact=True).click()
    admin.get_by_label("Question").fill("Minutes on foot yesterday?")
    admin.get_by_label("Range from").fill("0")
    admin.get_by_label("to", exact=True).first.fill("120")
    admin.get_by_role("button", name="Show what people agree to").click()
    admin.get_by_role("button", name="Make the study").click()
    admin.get_by_text("Make one link for all").click()
    admin.get_by_role("button", name="Make the link", exact=True).click()
    return admin.get_by_label("Link", exact=True).input_value()


def answer(browser: Browser, link: str, value: int) -> None:
    """A person on a phone, who answers and sees the receipt."""
    with browser.new_context(viewport=PHONE, locale="de-DE" if value % 2 else "en-GB") as phone:
        page = phone.new_page()
        page.goto(link)
        page.locator("[name=value]").fill(str(value))
        page.locator("form.answer button").last.click()
        expect(page.get_by_role("status")).to_contain_text(re.compile("is stored|ist gespeichert"))
        expect(page.locator("#given ~ dl").first).to_contain_text(str(value))


def token_that_asks(admin: Page) -> str:
    """A new token for the same person to ask with."""
    admin.get_by_role("link", name="Tokens", exact=True).click()
    admin.get_by_label("Name", exact=True).fill("ada")
    admin.get_by_label("plan and ask").check()
    admin.get_by_role("button", name="Make the token").click()
    return admin.get_by_label("Secret of the new token").input_value()


def publish(analyst: Page) -> str:
    """Ask for the mean and publish it; its address."""
    analyst.get_by_role("link", name="Minutes on foot yesterday?").click()
    analyst.get_by_label("Share", exact=True).fill("1")
    analyst.get_by_role("button", name="Preview the price").click()
    analyst.get_by_role("button", name="Ask for this release").first.click()
    analyst.get_by_role("button", name="Publish this answer").click()
    return analyst.get_by_label("Address").input_value()


def main() -> int:
    """Do it all, and say how long it took; 1 where that was too long."""
    chromium = shutil.which("chromium")
    if chromium is None:
        print("there is no chromium: run `make setup-browser`", file=sys.stderr)
        return 1
    begun = time.monotonic()

    def done(what: str) -> None:
        print(f"{time.monotonic() - begun:6.1f} s  {what}", flush=True)

    with (
        tempfile.TemporaryDirectory() as directory,
        served(Path(directory) / "data", free_port()) as address,
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"]) as browser,
    ):
        done("the service answers")
        admin = log_in(browser, address, (Path(directory) / "data" / "admin.token").read_text().strip())
        link = make_study(admin)
        done("a study and a link for all")
        for number in range(PEOPLE):
            answer(browser, link, 20 + number)
        done(f"{PEOPLE} people have answered and seen their receipts")
        published = publish(log_in(browser, address, token_that_asks(admin)))
        stranger = browser.new_context(viewport=PHONE).new_page()
        stranger.goto(published)
        shown = stranger.locator(".big").first.inner_text()
        done(f"everyone can read it: {' '.join(shown.split())}")
    return int(time.monotonic() - begun > MOST_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
