"""Signing in with an identity provider, in a real Chromium: cookies and redirects are the browser's own."""

import json

import pytest
from playwright.sync_api import expect

from tests.conftest import LiveServer
from tests.support.browser import chromium
from tests.support.provider import Provider

pytestmark = pytest.mark.system


def test_a_person_signs_in_through_the_provider_and_out_again(
    live_server: LiveServer, issuer: Provider
) -> None:
    # Another name for this machine than the service's: to the browser the provider is another site.
    issuer.issuer = issuer.issuer.replace("127.0.0.1", "localhost")
    settings = {f"DITHER_{name.upper()}": value for name, value in issuer.sign_in_settings.items()}
    settings["DITHER_OIDC_ROLES"] = json.dumps(settings["DITHER_OIDC_ROLES"])
    service = live_server(env=settings)
    with chromium() as browser:
        page = browser.new_page()
        page.goto(f"{service.base_url}/dashboard")
        page.get_by_role("link", name="Sign in with your identity provider").click()
        expect(page).to_have_url(f"{service.base_url}/dashboard")
        expect(page.get_by_role("button", name="Log out")).to_be_visible()
        asked = [path.partition("?")[0] for path in issuer.asked]
        assert asked.index("/authorize") < asked.index("/token")
        page.get_by_role("button", name="Log out").click()
        expect(page.get_by_role("link", name="Sign in with your identity provider")).to_be_visible()

        issuer.person = None
        page.get_by_role("link", name="Sign in with your identity provider").click()
        expect(page.get_by_text("did not sign you in")).to_be_visible()
