"""Importing a file on its page: a dry run with all that is wrong, nothing stored before one confirmation."""

import io
import re
from collections.abc import Mapping
from typing import Any

import httpx
import openpyxl
import pytest

from app.dashboard import requests
from app.dashboard.requests import parts_of
from tests.api.service import Service
from tests.dashboard.browser import ORIGIN, Browser, text_of

GERMAN = """Name;Kosten;Kantine;epsilon;Ort;Eingang am
Jörg;1.234,56;JA;1;Süd;01.02.2026
Änne;1.500;nein;k. A.;nord;02.02.2026
Zoë;12,5;Nein;0,5;NORD;03.02.2026
Max;0,25;ja;2;süd;04.02.2026
"""

PLAIN = """subject,kosten,kantine,epsilon,ort
Jörg,1234.56,ja,1,süd
Änne,1500,nein,1,nord
Zoë,12.5,nein,.5,nord
Max,.25,ja,2,süd
"""

LUNCH: dict[str, Any] = {
    "title": "Lunch",
    "measures": {
        "kosten": {"lower": 0, "upper": 5000},
        "kantine": {"choices": ["ja", "nein"]},
    },
    "attributes": {"ort": ["nord", "süd"]},
}


async def lunch(service: Service, **fields: Any) -> str:
    """A study of measures, which has no range of its own."""
    document = {"slug": "lunch", **LUNCH, **fields}
    made = await service.call("POST", "/v1/studies", "admin", json=document)
    assert made.status_code == 201, made.text
    return "lunch"


async def give(
    admin: Browser, study: str, content: bytes | None = None, fields: Mapping[str, str] | None = None
) -> httpx.Response:
    """Send the form of the page that was opened last, with a file or with the one that it keeps."""
    found = re.search(r'name="form_token" value="([0-9a-f]*)"', admin.page)
    assert found
    form = {"form_token": found[1], **kept(admin.page), **(fields or {})}
    files: Any = {name: (None, value.encode()) for name, value in form.items()}
    if content is not None:
        files["file"] = ("mittag.csv", content)
    path = f"/dashboard/studies/{study}/import"
    response = await admin.client.post(path, files=files, headers={"Origin": ORIGIN})
    admin.page = response.text
    return response


def kept(page: str) -> dict[str, str]:
    """What the confirmation sends again: the file and the reading, as a browser would."""
    values = dict(re.findall(r'<input [^>]*?name="(?!form_token)(\w+)" value="([^"]*)"', page))
    values |= dict(re.findall(r'<textarea [^>]*?name="(\w+)"[^>]*>([^<]*)</textarea>', page))
    for name, options in re.findall(r'<select [^>]*?name="(\w+)"[^>]*>(.*?)</select>', page):
        chosen = re.search(r'value="([^"]*)" selected', options) or re.search(r'value="([^"]*)"', options)
        values[name] = chosen[1] if chosen else ""
    if not re.search(r'name="ignore_case" value="on" checked', page):
        values.pop("ignore_case", None)
    return values


async def contributed(service: Service) -> int:
    return (await service.rows())["contribution"]


async def test_a_german_file_is_checked_once_and_imported_as_proposed(admin: Browser, service: Service):
    study = await lunch(service)
    await admin.get(f"/dashboard/studies/{study}/import")
    checked = await give(
        admin,
        study,
        GERMAN.replace("\n", "\r\n").encode("cp1252"),
        {"trust": "central", "epsilon": "1"},
    )
    assert checked.status_code == 200
    said = text_of(admin.page)
    for words in (
        "Encoding cp1252",
        "Separator ;",
        "Decimal mark ,",
        "Person Name",
        "Left out Eingang am",
        "Counts as missing empty cells, k. A.",
        "Labels in any case",
        "Kosten 0.25 to 1500; the study takes 0 to 5000",
        "0 of 4 rows would be refused. Nothing was stored.",
    ):
        assert words in said, words
    assert await contributed(service) == 0
    done = await give(admin, study, fields={"confirm": "yes"})
    assert done.status_code == 200
    assert "4 stored, 0 there already, 0 refused." in text_of(admin.page)
    assert await contributed(service) == 4
    # The same people with what was meant: nothing is new.
    await admin.get(f"/dashboard/studies/{study}/import")
    await give(admin, study, PLAIN.encode(), {"trust": "central"})
    assert "0 of 4 rows would be refused" in text_of(admin.page)
    await give(admin, study, fields={"confirm": "yes"})
    assert "0 stored, 4 there already, 0 refused." in text_of(admin.page)


async def test_every_fault_of_every_row_is_said_and_the_other_rows_are_imported(
    admin: Browser, service: Service
):
    study = await lunch(service, trust=["central", "local", "public"])
    await admin.get(f"/dashboard/studies/{study}/import")
    content = "subject,kosten,kantine,epsilon,trust,ort\n"
    content += "a,1,ja,1,central,nord\nb,x,<b>,9999,nobody,west\nc,2,nein,1,local,nord\nd,3,ja,,public,süd\n"
    await give(admin, study, content.encode(), {"trust": "central"})
    said = text_of(admin.page)
    assert "2 of 4 rows would be refused" in said
    for field in ("trust", "epsilon", "values.kosten", "values.kantine", "attributes.ort"):
        assert field in said.partition("What is wrong")[2].partition("Row 1 is")[0], field
    # A value that is to be random before it leaves a machine is not taken.
    assert "must be one that the study accepts: central, public" in said
    assert "<b>" not in admin.page
    await give(admin, study, fields={"confirm": "yes"})
    assert "2 stored, 0 there already, 0 refused. 2 rows were left out" in text_of(admin.page)
    assert await contributed(service) == 2


async def test_what_is_proposed_can_be_said_otherwise(admin: Browser, service: Service):
    study = await service.study(lower=0, upper=120)
    await admin.get(f"/dashboard/studies/{study}/import")
    content = b"who;day;minutes;note\r\nann;2.2.2026;1.005;x\r\nbob;3.2.2026;60;y\r\n"
    await give(admin, study, content, {"trust": "central", "epsilon": "1", "decimals": ","})
    said = text_of(admin.page)
    assert "Person who" in said
    assert "Value minutes" in said
    assert "1 of 2 rows would be refused" in said
    await give(admin, study, fields={"decimals": "."})
    assert "0 of 2 rows would be refused" in text_of(admin.page)
    assert await contributed(service) == 0
    await give(admin, study, fields={"confirm": "yes"})
    assert "2 stored" in text_of(admin.page)


async def test_an_excel_file_is_imported(admin: Browser, service: Service):
    study = await service.study(lower=0, upper=120)
    book = openpyxl.Workbook()
    assert book.active is not None
    for row in (("subject", "value"), (7, 12.5), ("Zoë", 60)):
        book.active.append(row)
    book.save(content := io.BytesIO())
    await admin.get(f"/dashboard/studies/{study}/import")
    await give(admin, study, content.getvalue(), {"trust": "central", "epsilon": "1"})
    assert "0 of 2 rows would be refused" in text_of(admin.page)
    await give(admin, study, fields={"confirm": "yes"})
    assert "2 stored" in text_of(admin.page)


async def test_rows_that_budgets_refuse_are_named(admin: Browser, service: Service):
    study = await service.study(lower=0, upper=120, epsilon={"min": 0.001, "max": 1000})
    await admin.get(f"/dashboard/studies/{study}/import")
    await give(admin, study, b"subject,value,epsilon\na,1,1\nb,2,1000\n", {"trust": "central"})
    await give(admin, study, fields={"confirm": "yes"})
    said = text_of(admin.page)
    assert "1 stored, 0 there already, 1 refused." in said
    assert "1 2" in said.partition("Which")[2]


@pytest.mark.parametrize(
    ("content", "fields", "words"),
    [
        (None, {}, "file: is missing"),
        (b"", {}, "file: is empty"),
        (None, {"content": "?"}, "content: is not one of this form's"),
        (b"\x1f\x8b123", {}, "is compressed"),
        (b"PK\3\4 no", {}, "damaged Excel file"),
        (b"PAR1", {}, "Parquet"),
        (b"value\n1\n", {"subject": "who"}, "has no column who"),
        (b"subject,value\na,1\n", {"encoding": "klingon"}, "none that Python knows"),
        (b"subject,value\na,1\n", {"trust": "local"}, "must be central or public"),
        (b"subject,value\na,1\n", {"decimals": "x"}, "must be a point or a comma"),
    ],
)
async def test_what_cannot_be_read_is_explained(
    admin: Browser, service: Service, content: bytes | None, fields: dict[str, str], words: str
):
    study = await service.study()
    await admin.get(f"/dashboard/studies/{study}/import")
    refused = await give(admin, study, content, {"trust": "central", "epsilon": "1", **fields})
    assert refused.status_code == 422
    assert words in text_of(admin.page)
    assert await contributed(service) == 0


async def test_a_file_has_a_limit(admin: Browser, service: Service, monkeypatch: pytest.MonkeyPatch):
    study = await service.study()
    monkeypatch.setattr(requests, "MOST_UPLOADED", 1000)
    await admin.get(f"/dashboard/studies/{study}/import")
    for content in (b"subject,value\n" + 400 * b"a,1\n", 100_000 * b"a"):
        page = admin.page
        refused = await give(admin, study, content, {"trust": "central", "epsilon": "1"})
        assert refused.status_code in (413, 422)
        admin.page = page
    # One that unpacks to more than a batch may hold.
    book = openpyxl.Workbook()
    book.save(packed := io.BytesIO())
    monkeypatch.undo()
    limits = service.api.limits
    object.__setattr__(limits, "batch_content", 1000)
    refused = await give(admin, study, packed.getvalue(), {"trust": "central", "epsilon": "1"})
    assert refused.status_code == 422
    assert "unpacks to more than 1000 bytes" in text_of(admin.page)


async def test_studies_that_take_no_files_say_so(admin: Browser, service: Service):
    local = await service.study(slug="quiet", trust=["local"])
    await admin.get(f"/dashboard/studies/{local}/import")
    assert f"dither contribute {local} FILE" in text_of(admin.page)
    closed = await service.study(slug="over")
    await service.call("POST", f"/v1/studies/{closed}/close", "admin")
    await admin.get(f"/dashboard/studies/{closed}/import")
    assert "takes no more answers" in text_of(admin.page)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("multipart/form-data", b"--x\r\n"),
        ("multipart/form-data; boundary=x", b""),
        ("multipart/form-data; boundary=x", b"--x--\r\n"),
        ("multipart/form-data; boundary=x", b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n'),
        ("multipart/form-data; boundary=x", b"--x\r\n\r\n1\r\n--x--"),
        ("multipart/form-data; boundary=x", b'--x\r\nContent-Disposition: form-data; name="a"\r\n--x--'),
        ("multipart/form-data; boundary=\xe9", b"--x--"),
        (
            "multipart/form-data; boundary=x",
            9 * b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n\r\n',
        ),
    ],
)
def test_a_form_that_breaks_off_is_none(kind: str, body: bytes):
    with pytest.raises(ValueError):  # noqa: PT011 - what the reader of forms refuses
        list(parts_of(kind, body, 5))


def test_a_file_keeps_its_bytes():
    content = bytes(range(256)) + b"\r\n--y\n\r--x-\r\n\r\n"
    body = (
        b'--xy\r\nContent-Disposition: form-data; name="file"; filename="a\\"b"\r\nContent-Type: a/b\r\n\r\n'
    )
    parts = parts_of('multipart/form-data; boundary="xy"', body + content + b"\r\n--xy--\r\n", 5)
    assert list(parts) == [("file", 'a"b', content)]


async def test_a_browser_keeps_the_file_where_no_other_is_chosen_and_an_empty_one_is_another(
    admin: Browser, service: Service
):
    study = await service.study()
    await admin.get(f"/dashboard/studies/{study}/import")
    await give(admin, study, b"subject,value\na,1\n", {"trust": "central", "epsilon": "1"})
    page = admin.page
    token = re.search(r'name="form_token" value="([0-9a-f]*)"', page)
    assert token
    await give(admin, study, b"subject,value\n", {"trust": "central", "epsilon": "1"})
    assert "The file has no row below its header. Nothing was stored." in text_of(admin.page)
    assert "would be refused" not in text_of(admin.page)
    for chosen, words in (("", "0 of 1 row would be refused"), ("empty.csv", "file: is empty")):
        lines = [f'Content-Disposition: form-data; name="file"; filename="{chosen}"\r\n\r\n']
        for name, value in ({"form_token": token[1]} | kept(page)).items():
            lines.append(f'Content-Disposition: form-data; name="{name}"\r\n\r\n{value}')
        response = await admin.client.post(
            f"/dashboard/studies/{study}/import",
            content="".join(f"--x\r\n{line}\r\n" for line in lines) + "--x--\r\n",
            headers={"Origin": ORIGIN, "Content-Type": "multipart/form-data; boundary=x"},
        )
        assert words in text_of(response.text)
