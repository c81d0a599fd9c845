"""What a study says in several languages: on the page to answer, the receipt and the person's statement."""

from pathlib import Path
from typing import Any

import pytest

from app.dashboard import rendering
from app.dashboard.languages import HERE, load
from tests.api.service import Service, assert_problem
from tests.dashboard.browser import Browser, text_of
from tests.dashboard.test_take import hidden, links, opened, send

GERMAN = {"Accept-Language": "de-DE"}
SAID: dict[str, Any] = {
    "title": "Was kostet Ihr Essen?",
    "description": "In Euro.",
    "labels": {"price": "Preis", "place": "Ort", "home": "daheim", "site": "Standort", "north": "Norden"},
}


@pytest.fixture
async def meals(service: Service) -> str:
    slug = await service.study(
        title="What do you pay?",
        description="In euros.",
        lower=None,
        upper=None,
        measures={"price": {"lower": 0, "upper": 50}, "place": {"choices": ["home", "out"]}},
        attributes={"site": ["north", "south"]},
        trust=["central"],
    )
    change = {"texts": {"de": SAID}, "reason": "people read it"}
    edited = await service.call("PATCH", f"/v1/studies/{slug}", "admin", json=change)
    assert edited.status_code == 200, edited.text
    assert edited.json()["texts"] == {"de": SAID}
    return slug


async def test_a_study_says_it_from_the_moment_that_it_is_made(service: Service) -> None:
    wish = {"slug": "party", "choices": ["red", "blue"]}
    said: dict[str, Any] = {
        # Swapped, but told apart.
        "fr": {"labels": {"red": "blue", "blue": "red"}},
        "de": {"title": "Welche?", "labels": {"red": "rot"}},
        "es": {"description": "Elige."},
    }
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"de": {"labels": {"green": "grün"}}}, "names of the study's measures"),
        ({"german": {}}, "code of a language"),
        ({"de": {"name": "?"}}, "unknown"),
        ({"de": None}, "object"),
        # People could not tell one from the other.
        ({"de": {"labels": {"red": "rot", "blue": "rot"}}}, "another one is called"),
        ({"de": {"labels": {"red": "blue"}}}, "another one is called"),
    ]
    for texts, reason in wrong:
        refused = await service.call("POST", "/v1/studies", "admin", json={**wish, "texts": texts})
        problem = assert_problem(refused, "invalid_request", 422)
        assert reason in str(problem["errors"]), problem
        assert problem["errors"][0]["field"].startswith("texts")
    made = await service.call("POST", "/v1/studies", "admin", json={**wish, "texts": said})
    assert made.status_code == 201, made.text
    assert made.json()["texts"]["de"] == said["de"] | {"description": None}
    # Sent again it is the same study; one that says something else is another one.
    others: list[tuple[dict[str, Any], int]] = [(said, 200), ({}, 200), ({"de": {"title": "Wer?"}}, 409)]
    for other, status in others:
        again = await service.call("POST", "/v1/studies", "admin", json={**wish, "texts": other})
        assert again.status_code == status, again.text
    (path,) = await links(service, "party")
    german = text_of((await service.client.get(path, headers=GERMAN)).text)
    assert "Welche?" in german
    assert "rot" in german


async def test_people_read_a_study_in_their_language(service: Service, meals: str) -> None:
    (path,) = await links(service, meals)
    page = await opened(service, path)
    assert "What do you pay?" in text_of(page.text)
    assert "Preis" not in page.text
    german = await service.client.get(path, headers=GERMAN)
    text = text_of(german.text)
    for said in ("Was kostet Ihr Essen?", "In Euro.", "Preis", "Ort", "daheim", "Standort", "Norden"):
        assert said in text
    # What is sent are the study's own labels; what has no other name keeps it.
    assert 'value="home"' in german.text
    assert 'value="daheim"' not in german.text
    assert "south" in text
    fields = {"values.price": "8,5", "values.place": "home", "attributes.site": "north"}
    fields |= {"trust": "central", "key": hidden(german.text, "key")}
    fields["epsilon"] = german.text.partition('name="epsilon" value="')[2].partition('"')[0]
    sent = await send(service, path, fields, **GERMAN)
    assert sent.status_code == 200, text_of(sent.text)
    text = " ".join(text_of(sent.text).split())
    for said in ("Was kostet Ihr Essen?", "Preis 8,5", "Ort daheim", "Standort Norden"):
        assert said in text
    assert "place" not in text


async def test_a_statement_names_studies_in_the_language_of_the_person(service: Service, meals: str) -> None:
    record = {"subject": "ada", "values": {"price": 8, "place": "home"}, "epsilon": 1, "trust": "central"}
    record |= {"attributes": {"site": "north"}}
    sent = await service.call("POST", f"/v1/studies/{meals}/contributions", "contribute", json=record)
    assert sent.status_code == 201, sent.text
    made = await service.call("POST", "/v1/subjects/ada/links", "contribute")
    person = Browser(service)
    try:
        link = made.json()["url"].removeprefix("http://test")
        await person.get(link)
        await person.post(link)
        await person.get("/dashboard/person?language=de")
        assert "Was kostet Ihr Essen? In Euro." in " ".join(text_of(person.page).split())
        await person.get("/dashboard/person?language=en")
        assert "What do you pay? In euros." in " ".join(text_of(person.page).split())
    finally:
        await person.client.aclose()


async def test_another_language_is_a_file_and_a_text(
    service: Service, meals: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "de.po").write_bytes((HERE / "de.po").read_bytes())
    (tmp_path / "fr.po").write_text('msgid ""\nmsgstr "Language: fr\\n"\n\nmsgid "Send"\nmsgstr "Envoyer"\n')
    monkeypatch.setattr(rendering, "catalogs", lambda: load(tmp_path))
    change = {"texts": {"fr": {"title": "Combien payez-vous ?"}}, "reason": "more people"}
    edited = await service.call("PATCH", f"/v1/studies/{meals}", "admin", json=change)
    assert edited.json()["texts"].keys() == {"de", "fr"}
    (path,) = await links(service, meals)
    french = text_of((await service.client.get(path, headers={"Accept-Language": "fr"})).text)
    for said in ("Combien payez-vous ?", "Envoyer", "In euros.", "price"):
        assert said in french


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        ({"de": {"labels": {"nothing": "nichts"}}}, "names of the study's measures"),
        ({"deutsch": {"title": "?"}}, "code of a language"),
        ({"de": {"titel": "?"}}, "titel"),
        ({"de": {"title": "\n"}}, "title"),
        ({}, "give a title"),
    ],
)
async def test_a_text_that_cannot_be_is_refused_with_its_field(
    service: Service, meals: str, texts: dict[str, Any], reason: str
) -> None:
    change = {"texts": texts, "reason": "so"}
    refused = await service.call("PATCH", f"/v1/studies/{meals}", "admin", json=change)
    assert refused.status_code == 422
    assert reason in refused.text
    read = (await service.call("GET", f"/v1/studies/{meals}", "admin")).json()
    assert read["texts"] == {"de": SAID}


async def test_an_admin_says_it_in_another_language_on_the_page(
    admin: Browser, service: Service, meals: str
) -> None:
    path = f"/dashboard/studies/{meals}"
    await admin.get(path)
    assert "In other languages: de" in text_of(admin.page)
    form = {"language": "es", "title": "¿Cuánto?", "description": "", "labels": "price: precio\nhome: casa"}
    for wrong, said in (
        (form | {"reason": ""}, "reason"),
        (form | {"reason": "so", "labels": "price"}, "needs lines such as"),
        (form | {"reason": "so", "labels": "cost: costo"}, "names of the study"),
        (form | {"reason": "so", "labels": "home: casa\nout: casa"}, "another one is called"),
        (form | {"reason": "so", "language": "E"}, "code of a language"),
    ):
        assert (await admin.post(f"{path}/texts", wrong)).status_code == 422
        assert said in text_of(admin.page)
        assert 'value="¿Cuánto?"' in admin.page, "what was written stays"
    assert (await admin.post(f"{path}/texts", form | {"reason": "so"})).status_code == 303
    read = (await service.call("GET", f"/v1/studies/{meals}", "admin")).json()["texts"]
    assert read["es"] == {
        "title": "¿Cuánto?",
        "description": None,
        "labels": {"price": "precio", "home": "casa"},
    }
    assert read["de"] == SAID
    await admin.get(path)
    gone = {"language": "es", "title": "", "description": "", "labels": "", "reason": "not read"}
    assert (await admin.post(f"{path}/texts", gone)).status_code == 303
    read = (await service.call("GET", f"/v1/studies/{meals}", "admin")).json()["texts"]
    assert read == {"de": SAID}
    await admin.get(f"/dashboard/audit?target={meals}")
    assert "languages es" in text_of(admin.page)


async def test_a_study_is_made_again_after_it_says_something_in_another_language(service: Service) -> None:
    """What it says is no part of what people agreed to."""
    document = {"slug": "again", "lower": 0, "upper": 9, "title": "How many?"}
    assert (await service.call("POST", "/v1/studies", "admin", json=document)).status_code == 201
    change = {"texts": {"de": {"title": "Wie viele?"}}, "reason": "so"}
    assert (await service.call("PATCH", "/v1/studies/again", "admin", json=change)).status_code == 200
    again = await service.call("POST", "/v1/studies", "admin", json=document)
    assert (again.status_code, again.json()["texts"]["de"]["title"]) == (200, "Wie viele?")
