"""Answering by a link: the page, the receipt, and what neither of them tells."""

import asyncio
import base64
import re
import secrets
from collections.abc import Iterator
from html import unescape
from typing import Any

import asyncpg
import httpx
import pytest
from dither.device.shapes import HALF, duchi_reach

from app.dashboard.pages.take import SAYS
from app.web.visitors import OF_AN_ADDRESS
from tests.api.service import Service, open_service
from tests.dashboard.browser import ORIGIN, text_of

STRONG = {"trust": "central", "epsilon": "0.5"}
WITHDRAWN = "Nothing was stored: your answer was withdrawn before"
RANGE = {"epsilon": {"min": 0.5, "max": 2}}


async def links(service: Service, study: str, **wish: Any) -> list[str]:
    """New links to a study, without the host."""
    wish = {"kind": "open", **wish}
    made = await service.call("POST", f"/v1/studies/{study}/invitations", "admin", json=wish)
    assert made.status_code == 201, made.text
    return [url.removeprefix(ORIGIN) for url in made.json()["urls"]]


async def send(service: Service, path: str, fields: dict[str, str], **headers: str) -> httpx.Response:
    """Send a form as a browser does that was never here before."""
    async with httpx.AsyncClient(transport=service.transport, base_url=ORIGIN) as client:
        return await client.post(path, data=fields, headers={"Origin": ORIGIN, **headers})


async def opened(service: Service, path: str) -> httpx.Response:
    """Open a page, without a cookie."""
    async with httpx.AsyncClient(transport=service.transport, base_url=ORIGIN) as client:
        response = await client.get(path)
    assert "set-cookie" not in response.headers
    assert response.headers["cache-control"] == "no-store"
    assert "noindex" in response.headers["x-robots-tag"]
    return response


def hidden(page: str, name: str) -> str:
    """The value of a hidden field."""
    found = re.search(rf'name="{name}" value="([^"]*)"', page)
    assert found is not None, page
    return unescape(found[1])


async def held(service: Service, study: str) -> list[asyncpg.Record]:
    """What the ledger holds for a study."""
    connection = await asyncpg.connect(service.database_url)
    try:
        return list(
            await connection.fetch(
                "SELECT c.* FROM contribution c JOIN study ON study.id = c.study_id WHERE slug = $1", study
            )
        )
    finally:
        await connection.close()


async def test_an_answer_by_an_open_link_is_a_contribution_with_a_receipt(service: Service):
    study = await service.study(title="How <b>long</b>?", **RANGE)
    (path,) = await links(service, study)
    page = await opened(service, path)
    assert "<b>long" not in page.text
    assert "right at most 63 times in 100" in text_of(page.text), "epsilon 0.5"
    assert "right at most 74 times in 100" in text_of(page.text), "epsilon 1"
    assert "right at most 89 times in 100" in text_of(page.text), "epsilon 2"
    form = {**STRONG, "value": "37,5", "key": hidden(page.text, "key")}
    sent = await send(service, path, form)
    assert sent.status_code == 200
    assert "Your answer is stored." in text_of(sent.text)
    assert "Your answer 37.5" in text_of(sent.text)
    (row,) = await held(service, study)
    assert (row["epsilon"], row["value"]) == (500_000, round(0.375 * 2**30))

    receipt = hidden(sent.text, "receipt")
    again = await send(service, path, form)
    assert hidden(again.text, "receipt") == receipt
    assert "your answer is stored once" in text_of(again.text)
    assert len(await held(service, study)) == 1

    other = await send(service, path, {**form, "key": hidden((await opened(service, path)).text, "key")})
    assert hidden(other.text, "receipt") != receipt
    assert len(await held(service, study)) == 2


async def test_a_receipt_shows_the_cost_and_changes_and_withdraws(service: Service):
    study = await service.study(**RANGE)
    (path,) = await links(service, study)
    receipt = hidden((await send(service, path, {**STRONG, "value": "20"})).text, "receipt")
    await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json={"share": 0.2})
    shown = text_of((await send(service, "/take/receipt", {"receipt": receipt})).text)
    assert "Your answer 20" in shown
    assert "Spent for good epsilon 0.1 Can still be spent epsilon 0.4" in shown

    change = {"receipt": receipt, "trust": "central", "epsilon": "1", "value": "80"}
    changed = text_of((await send(service, "/take/receipt/change", change)).text)
    assert "Your answer was changed." in changed
    assert "Spent for good epsilon 0.1 Can still be spent epsilon 0.9" in changed
    wrong = await send(service, "/take/receipt/change", {**change, "value": "101"})
    assert wrong.status_code == 422
    assert "must be a number from 0 to 100, written in digits" in text_of(wrong.text)

    for words in ("Your answer was deleted.", "Your answer was deleted."):
        gone = await send(service, "/take/receipt/withdraw", {"receipt": receipt})
        assert words in text_of(gone.text)
    (row,) = await held(service, study)
    assert (row["value"], row["epsilon"]) == (None, 100_000)
    late = await send(service, path, {**STRONG, "value": "20"})
    assert hidden(late.text, "receipt") != receipt, "another form is another answer"
    # In another tab the form to change it is still there.
    refused = await send(service, "/take/receipt/change", change)
    assert refused.status_code == 404
    assert WITHDRAWN in text_of(refused.text)
    assert hidden(refused.text, "receipt") == receipt
    assert None in [row["value"] for row in await held(service, study)]


async def test_the_link_of_a_receipt_opens_it_in_place_of_its_code(service: Service):
    study = await service.study(**RANGE)
    (path,) = await links(service, study)
    sent = await send(service, path, {**STRONG, "value": "20"})
    found = re.search(r'id="address"[^>]*value="([^"]*)"', sent.text)
    assert found is not None
    entrance = await opened(service, "/take/receipt")
    assert 'maxlength="500"' in entrance.text
    shown = await send(service, "/take/receipt", {"receipt": f" {found[1]} "})
    assert shown.status_code == 200
    assert hidden(shown.text, "receipt") == hidden(sent.text, "receipt")
    assert (await send(service, "/take/receipt", {"receipt": found[1][:-1]})).status_code == 404


async def test_a_form_that_is_sent_again_brings_nothing_back_that_was_withdrawn(service: Service):
    study = await service.study(**RANGE)
    (path,) = await links(service, study, kind="single", count=1)
    form = {**STRONG, "value": "20", "key": "k" * 40}
    receipt = hidden((await send(service, path, form)).text, "receipt")
    await send(service, "/take/receipt/withdraw", {"receipt": receipt})
    again = await send(service, path, form)
    assert "Withdrawn: your answer was deleted." in text_of(again.text)
    assert WITHDRAWN in text_of(again.text)
    assert "stored once" not in text_of(again.text)
    assert [row["value"] for row in await held(service, study)] == [None]


async def test_two_people_with_one_single_link_at_once_give_one_answer(service: Service):
    study = await service.study(**RANGE)
    paths = await links(service, study, kind="single", count=5)
    for path in paths:
        forms = [{**STRONG, "value": str(value), "key": f"form {value}"} for value in (10, 20, 30)]
        done = await asyncio.gather(*(send(service, path, form) for form in forms))
        assert sorted(one.status_code for one in done) == [200, 409, 409]
        kept = next(form for form, one in zip(forms, done, strict=True) if one.status_code == 200)
        assert "There is an answer already" in text_of((await opened(service, path)).text)
        repeated = await send(service, path, kept)
        assert f"Your answer {kept['value']}" in text_of(repeated.text)
    assert len(await held(service, study)) == len(paths)


async def test_a_full_link_says_so_and_its_limit_holds_at_once(service: Service):
    study = await service.study(**RANGE)
    (path,) = await links(service, study, limit=3)
    forms = [{**STRONG, "value": str(value), "key": f"form {value}"} for value in range(8)]
    done = await asyncio.gather(*(send(service, path, form) for form in forms))
    assert sorted(one.status_code for one in done) == [200] * 3 + [409] * 5
    full = next(one for one in done if one.status_code == 409)
    assert "has all the answers that it takes" in text_of(full.text)
    assert len(await held(service, study)) == 3
    assert (await opened(service, path)).text == full.text


async def test_unknown_expired_and_revoked_codes_get_equal_bytes(service: Service):
    study = await service.study(**RANGE)
    (revoked,) = await links(service, study)
    (expired,) = await links(service, study, expires_at="2100-01-01T00:00:00Z")
    used = (await links(service, study, kind="single", count=1))[0]
    await send(service, used, {**STRONG, "value": "1"})
    listed = (await service.call("GET", f"/v1/studies/{study}/invitations", "admin")).json()["items"]
    for one in listed:
        if one["expires_at"] is None:
            path = f"/v1/studies/{study}/invitations/{one['id']}"
            assert (await service.call("DELETE", path, "admin")).status_code == 204
    connection = await asyncpg.connect(service.database_url)
    await connection.execute("UPDATE invitation SET expires_at = now() WHERE expires_at IS NOT NULL")
    await connection.close()
    forged = "/take/AAAAAAAAAAAAAAAAAAAAAA"
    pages = [await opened(service, path) for path in (forged, revoked, expired, used, "/take/%C3%A4")]
    assert {(one.status_code, one.content) for one in pages} == {(404, pages[0].content)}
    for path in (forged, revoked, expired, used):
        sent = await send(service, path, {**STRONG, "value": "50", "key": "another"})
        assert (sent.status_code, sent.content) == (404, pages[0].content)
    lost = await send(service, "/take/receipt", {"receipt": "AAAAAAAAAAAAAAAAAAAAAA"})
    assert (lost.status_code, lost.content) == (404, pages[0].content)
    assert len(await held(service, study)) == 1


ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
"""Of codes."""


def guesses(codes: list[str], many: int) -> Iterator[str]:
    """Codes that no link has: made up, and such as differ little from those that links have."""
    known = set(codes)
    near = {
        f"{code[:place]}{letter}{code[place + 1 :]}"
        for code in codes
        for place in (0, len(code) // 2, len(code) - 1)
        for letter in ALPHABET
    }
    near |= {
        odd for code in codes for odd in (code[:-1], f"{code}A", f"{code}=", code.swapcase(), code[::-1])
    }
    yield from sorted(near - known)[:many]
    for _ in range(many - len(near - known)):
        yield secrets.token_urlsafe(16)


@pytest.mark.parametrize(
    "many", [pytest.param(500, marks=pytest.mark.long), pytest.param(100_000, marks=pytest.mark.slow)]
)
async def test_guesses_of_codes_tell_nothing(service: Service, many: int):
    """One of 10^5 is right with a probability below 1e-33."""
    study, secret = await service.study(**RANGE), await service.study(relation="add_remove_one", **RANGE)
    paths = await links(service, study)
    for slug in (study, secret):
        paths += await links(service, slug, kind="single", count=2)
    for path in paths[::2]:
        assert (await send(service, path, {**STRONG, "value": "5", "key": "mine"})).status_code == 200
    before = await service.rows()
    seen = set()
    async with httpx.AsyncClient(transport=service.transport, base_url=ORIGIN) as client:
        for code in guesses([path.removeprefix("/take/") for path in paths], many):
            page = await client.get(f"/take/{code}")
            told = [(name, value) for name, value in page.headers.items() if name != "x-request-id"]
            seen.add((page.status_code, page.content, tuple(told)))
        assert len(seen) == 1
        assert {one[0] for one in seen} == {404}
        for code in guesses([path.removeprefix("/take/") for path in paths], OF_AN_ADDRESS // 4):
            for path, form in (
                (f"/take/{code}", {**STRONG, "value": "5"}),
                ("/take/receipt", {"receipt": code}),
            ):
                refused = await client.post(path, data=form, headers={"Origin": ORIGIN})
                assert (refused.status_code, refused.content) == (404, page.content)
    assert await service.rows() == before


async def test_of_a_study_with_a_secret_size_no_page_tells_which_links_were_used(service: Service):
    study = await service.study(relation="add_remove_one", **RANGE)
    wish = {"kind": "open"}
    refused = await service.call("POST", f"/v1/studies/{study}/invitations", "admin", json=wish)
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["field"] == "kind"
    paths = await links(service, study, kind="single", count=2)
    path = f"/v1/studies/{study}/invitations"

    async def seen() -> list[bytes]:
        listed = await service.call("GET", path, "admin")
        (one,) = listed.json()["items"]
        assert one["used"] is None
        shown = await service.call("GET", f"{path}/{one['id']}", "admin")
        pages = [await opened(service, link) for link in paths]
        assert {page.status_code for page in pages} == {200}
        return [listed.content, shown.content, *(page.content for page in pages)]

    before = await seen()
    assert before[-1] == before[-2]
    assert "right at most 63 times in 100 whether you took part at all, and at most 74" in text_of(
        before[-1].decode()
    )
    sent = await send(service, paths[0], {**STRONG, "value": "1", "key": "mine"})
    assert sent.status_code == 200
    assert await seen() == before
    wrong = [await send(service, link, {**STRONG, "value": "1000"}) for link in paths]
    assert wrong[0].content == wrong[1].content
    assert (await send(service, paths[0], {**STRONG, "value": "1", "key": "not mine"})).status_code == 409


async def test_people_with_ids_of_their_own_have_one_budget_over_all_studies(service: Service):
    one, other = await service.study(**RANGE), await service.study(epsilon={"min": 0.5, "max": 10})
    wish = {"kind": "single", "subjects": ["ann", "bob"]}
    (ann, _), (again, _) = await links(service, one, **wish), await links(service, other, **wish)
    assert (await send(service, ann, {"trust": "central", "epsilon": "2", "value": "5"})).status_code == 200
    budget = (await service.call("GET", "/v1/subjects/ann/budget", "admin")).json()
    assert budget["epsilon"]["reserved"] == 2
    too_much = await send(service, again, {"trust": "central", "epsilon": "10", "value": "5", "key": "k"})
    assert too_much.status_code == 409
    assert "your privacy budget has too little left for this step" in text_of(too_much.text)
    assert (
        await send(service, again, {"trust": "central", "epsilon": "0.5", "value": "5"})
    ).status_code == 200
    (twice,) = await links(service, one, kind="single", subjects=["ann"])
    refused = await send(service, twice, {**STRONG, "value": "5"})
    assert refused.status_code == 409
    assert "There is an answer already" in text_of(refused.text)


async def test_everything_that_a_study_asks_for_has_a_field(service: Service):
    study = await service.study(
        lower=None,
        upper=None,
        measures={
            "height": {"lower": 100, "upper": 250},
            "party": {"choices": ["red", "blue"]},
            "place": {"lower": 0, "upper": 1, "dimension": 2},
        },
        attributes={"region": ["north", "south"]},
        trust=["central", "public"],
        **RANGE,
    )
    (path,) = await links(service, study)
    page = (await opened(service, path)).text
    names = {"values.height", "values.party", "values.place.0", "values.place.1", "attributes.region"}
    assert set(re.findall(r'name="([a-z]+\.[^"]+)"', page)) == names
    nothing = await send(service, path, {"trust": "public"})
    assert nothing.status_code == 422
    assert set(re.findall(r'id="e-([^"]+)"', nothing.text)) >= {"values.height", "attributes.region"}
    given = {
        "values.height": "181,5",
        "values.party": "blue",
        "values.place.0": "0.25",
        "values.place.1": "1",
        "attributes.region": "south",
    }
    unclear = await send(service, path, {"trust": "public", **given, "values.height": "1,815"})
    assert "may be thousands or decimals" in text_of(unclear.text)
    sent = await send(service, path, {"trust": "public", **given})
    assert sent.status_code == 200, text_of(sent.text)
    for words in ("height 181.5", "party blue", "place, number 1 0.25", "place, number 2 1", "region south"):
        assert words in text_of(sent.text)


@pytest.mark.parametrize(
    "fields", [{"value": "a lot"}, {"value": "-1"}, {"epsilon": "7"}, {"trust": "all"}, {"value": ""}]
)
async def test_a_wrong_answer_is_marked_and_can_be_sent_again(service: Service, fields: dict[str, str]):
    study = await service.study(**RANGE)
    (path,) = await links(service, study)
    wrong = await send(service, path, {**STRONG, "value": "5", "key": "mine", **fields})
    assert wrong.status_code == 422
    assert "Nothing was stored." in text_of(wrong.text)
    assert f'id="e-{next(iter(fields))}"' in wrong.text
    assert hidden(wrong.text, "key") == "mine"
    assert not await held(service, study)


async def test_a_closed_study_takes_no_answer_and_its_receipts_withdraw(service: Service):
    study = await service.study(**RANGE)
    (path,) = await links(service, study)
    receipt = hidden((await send(service, path, {**STRONG, "value": "20"})).text, "receipt")
    await service.call("POST", f"/v1/studies/{study}/close", "admin")
    for page in (await opened(service, path), await send(service, path, {**STRONG, "value": "9"})):
        assert page.status_code == 409
        assert "This study takes no more answers" in text_of(page.text)
    assert "/take/receipt/change" not in (await send(service, "/take/receipt", {"receipt": receipt})).text
    gone = await send(service, "/take/receipt/withdraw", {"receipt": receipt})
    assert "Your answer was deleted." in text_of(gone.text)
    wish = {"kind": "single", "count": 1}
    late = await service.call("POST", f"/v1/studies/{study}/invitations", "admin", json=wish)
    assert late.json()["code"] == "study_closed"


async def test_a_study_of_local_people_takes_a_report_and_no_value(service: Service):
    study = await service.study(trust=["local"], **RANGE)
    (path,) = await links(service, study)
    page = await opened(service, path)
    assert "your own device, before it is sent" in text_of(page.text)
    form = {"trust": "local", "epsilon": "0.5", "key": hidden(page.text, "key")}
    for wrong in (STRONG, {**form, "value": "5"}, form, {**form, "report": "a lot"}):
        assert (await send(service, path, {"value": "5", **wrong})).status_code == 422
    assert not await held(service, study)
    report = {**form, "report": str(2**30 // 3)}
    sent = await send(service, path, report)
    assert sent.status_code == 422, "no report of this epsilon"
    assert f'data-refused="{form["key"]}"' in sent.text
    sent = await send(service, path, {**report, "report": str(HALF - duchi_reach(500_000))})
    assert sent.status_code == 200, text_of(sent.text)
    assert f'data-held="{form["key"]}"' in sent.text
    assert "the true one never left it" in text_of(sent.text)
    assert "cannot be changed" in text_of(sent.text)
    assert "/take/receipt/change" not in sent.text
    (row,) = await held(service, study)
    assert row["trust"] == "local"


async def test_a_receipt_of_a_report_shows_the_labels_that_were_sent_as_they_are(service: Service):
    regions = {"region": ["north", "south"]}
    study = await service.study(trust=["local"], local_mechanism="duchi", attributes=regions, **RANGE)
    (path,) = await links(service, study)
    key = hidden((await opened(service, path)).text, "key")
    report = str(HALF - duchi_reach(500_000))
    form = {"trust": "local", "epsilon": "0.5", "key": key, "report": report, "attributes.region": "south"}
    sent = await send(service, path, form)
    assert "the true one never left it. region south What it has cost" in text_of(sent.text)
    gone = await send(service, "/take/receipt/withdraw", {"receipt": hidden(sent.text, "receipt")})
    assert "region south" not in text_of(gone.text)


@pytest.mark.parametrize(
    ("trust", "given", "tags", "steps"),
    [
        (["central", "local"], "2", [], []),
        (["central", "local"], "0.5", ["central"], ["1", "2"]),
        (["central", "local", "public"], "2", ["public"], []),
    ],
)
async def test_a_receipt_of_a_report_offers_what_leaves_a_value_something_to_spend(
    service: Service, trust: list[str], given: str, tags: list[str], steps: list[str]
):
    study = await service.study(trust=trust, local_mechanism="duchi", **RANGE)
    (path,) = await links(service, study)
    key = hidden((await opened(service, path)).text, "key")
    report = str(HALF - duchi_reach(int(float(given) * 1_000_000)))
    sent = await send(service, path, {"trust": "local", "epsilon": given, "key": key, "report": report})
    assert sent.status_code == 200, text_of(sent.text)
    assert re.findall(r'name="trust" value="([^"]+)"', sent.text) == tags
    assert re.findall(r'name="epsilon" value="([^"]+)"', sent.text) == steps
    assert ("cannot be changed" in text_of(sent.text)) is (not tags)
    if tags:
        form = {"receipt": hidden(sent.text, "receipt"), "trust": tags[0], "value": "5"}
        form |= {"epsilon": steps[0]} if steps else {}
        changed = await send(service, "/take/receipt/change", form)
        assert "Your answer was changed." in text_of(changed.text)


@pytest.mark.parametrize(
    ("trust", "wish", "scripts"),
    [
        (["central", "local"], {}, True),
        (["central", "public"], {}, False),
        (["local"], {"dimension": 2}, False),
        (["local"], {"epsilon": {"min": 1.2341, "max": 1.2349}}, False),
    ],
)
async def test_a_page_offers_noise_of_the_device_where_its_script_can_add_it(
    service: Service, trust: list[str], wish: dict[str, Any], scripts: bool
):
    (path,) = await links(service, await service.study(trust=trust, **(RANGE | wish)))
    page = (await opened(service, path)).text
    assert ('value="local" required disabled' in page) is scripts
    assert ("data-study=" in page) is scripts
    says = "this browser has not all of them" if scripts else "answer in the app"
    assert (says in text_of(page)) is ("local" in trust)


async def test_the_steps_of_a_study_with_reports_are_epsilons_that_a_report_may_have(service: Service):
    study = await service.study(trust=["central", "local"], epsilon={"min": 0.12345, "max": 2.34567})
    (path,) = await links(service, study)
    shown = re.findall(r'name="epsilon" value="([^"]+)"', (await opened(service, path)).text)
    assert shown == ["0.124", "0.538", "2.34"]


GERMAN = {"Accept-Language": "de-DE,de;q=0.9,en;q=0.8"}


async def test_a_page_reads_and_writes_numbers_as_people_of_its_language_do(service: Service):
    study = await service.study(lower=0, upper=20000, **RANGE)
    (path,) = await links(service, study)
    async with httpx.AsyncClient(transport=service.transport, base_url=ORIGIN, headers=GERMAN) as client:
        page = await client.get(path)
        assert '<html lang="de">' in page.text
        assert "Eine Zahl von 0 bis 20.000." in text_of(page.text)
        assert "Höchstens in 63 von 100 Fällen" in text_of(page.text)
        assert "(epsilon 0,5)" in text_of(page.text)
    unclear = await send(service, path, {**STRONG, "value": "1.234"}, **GERMAN)
    assert unclear.status_code == 422
    assert "Das können Tausender oder Nachkommastellen sein" in text_of(unclear.text)
    for written in ("1.234,5", "1234,5", "1234.5"):
        sent = await send(service, path, {**STRONG, "value": written}, **GERMAN)
        assert "Danke. Ihre Antwort ist gespeichert." in text_of(sent.text)
        assert "Ihre Antwort 1.234,5" in text_of(sent.text)
        assert 'name="value" inputmode="decimal" autocomplete="off" required value="1234,5"' in sent.text
        assert "Kann noch verbraucht werden epsilon 0,5" in text_of(sent.text)
    assert {row["value"] for row in await held(service, study)} == {round(1234.5 / 20000 * 2**30)}
    forged = await send(service, "/take/receipt", {"receipt": "x"}, **GERMAN)
    assert "Hier ist nichts" in text_of(forged.text)


async def test_a_language_that_was_chosen_on_the_page_stays(service: Service):
    study = await service.study(**RANGE)
    (path,) = await links(service, study)
    page = (await opened(service, path)).text
    assert '<a href="?language=de" lang="de" hreflang="de">Deutsch</a>' in page
    assert '<a href="?language=en" lang="en" hreflang="en" aria-current="true">English</a>' in page
    german = (await opened(service, f"{path}?language=de")).text
    assert 'href="/take/receipt?language=de"' in german
    assert 'action="' not in german, "the form goes where the page is"
    sent = await send(service, f"{path}?language=de", {**STRONG, "value": "12,5"})
    assert 'action="/take/receipt/change?language=de"' in sent.text
    assert 'action="/take/receipt/withdraw?language=de"' in sent.text
    assert 'formaction="/take/receipt?language=en"' in sent.text
    receipt = hidden(sent.text, "receipt")
    gone = await send(service, "/take/receipt/withdraw?language=de", {"receipt": receipt})
    assert "Ihre Antwort wurde gelöscht." in text_of(gone.text)
    unknown = (await opened(service, f"{path}?language=%22%3E%3Cb%3E")).text
    assert unknown == page.replace(hidden(page, "key"), hidden(unknown, "key"))


async def test_only_pages_of_links_are_framed_and_only_by_origins_that_are_named(database_url: str):
    origins = "https://school.example http://localhost:8080"
    async with open_service(database_url, embed_origins=origins.replace(" ", ", ")) as service:
        study = await service.study(**RANGE)
        (path,) = await links(service, study)
        sent = await send(service, path, {**STRONG, "value": "5"})
        for page in (await opened(service, path), sent, await opened(service, "/take/receipt")):
            assert f"frame-ancestors {origins}" in page.headers["content-security-policy"]
            assert "'none'; style-src" in page.headers["content-security-policy"]
        unknown = await opened(service, "/take/AAAAAAAAAAAAAAAAAAAAAA")
        assert f"frame-ancestors {origins}" in unknown.headers["content-security-policy"]
        for path in ("/dashboard/login", "/dashboard/person/open/x", "/docs"):
            async with httpx.AsyncClient(transport=service.transport, base_url=ORIGIN) as client:
                other = await client.get(path)
            assert "frame-ancestors 'none'" in other.headers["content-security-policy"]


async def test_forms_of_other_sites_are_refused(service: Service):
    study = await service.study(**RANGE)
    (path,) = await links(service, study)
    for headers in ({"Origin": "http://evil.test"}, {"Origin": "null"}):
        assert (await send(service, path, {**STRONG, "value": "5"}, **headers)).status_code == 403
    async with httpx.AsyncClient(transport=service.transport, base_url=ORIGIN) as client:
        cross = await client.post(path, data=STRONG, headers={"Sec-Fetch-Site": "cross-site"})
    assert cross.status_code == 403
    assert not await held(service, study)


async def test_an_address_sends_as_many_forms_a_minute_as_thirty_phones_do(service: Service):
    taken = 0
    while (refused := await send(service, "/take/receipt", {"receipt": "x"})).status_code == 404:
        taken += 1
    assert taken >= OF_AN_ADDRESS
    assert refused.status_code == 429
    assert int(refused.headers["retry-after"]) >= 1
    assert "Wait a minute" in text_of(refused.text)


async def test_no_log_line_has_a_code_or_a_receipt(service: Service, capsys: pytest.CaptureFixture[str]):
    study = await service.study(**RANGE)
    paths = [*(await links(service, study)), *(await links(service, study, kind="single", count=1))]
    secrets = []
    for path in paths:
        await opened(service, path)
        sent = await send(service, path, {**STRONG, "value": "42.125", "key": "the key of a form"})
        receipt = hidden(sent.text, "receipt")
        await send(service, "/take/receipt", {"receipt": receipt})
        secrets += [path.removeprefix("/take/"), receipt]
    await opened(service, "/take/forged-code-of-a-link")
    logged = "".join(capsys.readouterr())
    assert logged.count("/take/{code}") == 5
    assert logged.count("/take/receipt") == 2
    for secret in (*secrets, "forged-code-of-a-link", "42.125", "the key of a form"):
        assert secret not in logged


async def test_the_database_holds_no_code_and_no_receipt(service: Service):
    study = await service.study(**RANGE)
    paths = [*(await links(service, study)), *(await links(service, study, kind="single", count=2))]
    secrets = [path.removeprefix("/take/") for path in paths]
    for path in paths:
        sent = await send(service, path, {**STRONG, "value": "42.125"})
        secrets.append(hidden(sent.text, "receipt"))
    connection = await asyncpg.connect(service.database_url)
    rows = [
        str(dict(row))
        for table in ("invitation", "ticket", "audit", "contribution", "subject", "idempotency")
        for row in await connection.fetch(f"SELECT * FROM {table}")
    ]
    await connection.close()
    for secret in secrets:
        raw = base64.urlsafe_b64decode(secret + "==")
        assert len(raw) == 16
        for row in rows:
            assert secret not in row
            assert str(raw)[2:-1] not in row


def test_every_refusal_says_what_to_do():
    for title, advice in SAYS.values():
        assert title
        assert advice.endswith(".")
