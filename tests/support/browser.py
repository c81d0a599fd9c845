"""A real browser, headless, and pages for it to open."""

import io
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from tests.support.live import ROOT

SCREENSHOTS = ROOT / "docs" / "screenshots"

WANTED = os.environ.get("SCREENSHOTS") == "1"
"""Whether `make screenshots` runs the tests, to renew the pictures."""

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # No process is kept ready for a page that may come.
    "--renderer-process-limit=1",
)


def need(present: bool, missing: str) -> None:
    """Skip the test where something of `make setup-browser` is missing; CI must have it all."""
    if not present:
        reason = f"{missing}; run `make setup-browser`"
        assert os.environ.get("DITHER_TEST_BROWSER") != "required", reason
        pytest.skip(reason)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Debian's Chromium, which `make setup-browser` installs."""
    path = shutil.which("chromium")
    need(path is not None, "there is no chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


def keep(page: Page, name: str) -> None:
    """Keep a picture of a page, where pictures are wanted."""
    if WANTED:
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        picture = Image.open(io.BytesIO(page.screenshot(full_page=True)))
        few = picture.convert("RGB").quantize(96, dither=Image.Dither.NONE)
        few.save(SCREENSHOTS / f"{name}.png", optimize=True)


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def pages(directory: Path) -> Iterator[str]:
    """Serve a directory's files; yields the origin."""
    handler = partial(_Quiet, directory=str(directory))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
