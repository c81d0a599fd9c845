"""Two histories that differ by what only one person may know look the same to everyone else, byte for byte.

In one history a person puts another value in the place of their own, in the other the same value again. Every
page and document that other people can fetch is compared, over every route, for every role but the admin's:
before and after folds, releases and rounds of K-means. The noisy answers are the same integers in both, so
what is compared is everything else. Random ids are taken out; clocks stand still until they are moved.
"""

import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import product
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from sqlalchemy.ext.asyncio import AsyncConnection

from app.core.contribution import Offer, Outcome
from app.core.ledger import same_value
from app.core.study import Relation
from app.dashboard.pages.assets import device_script
from app.estimators import registry
from app.services.sessions import kmeans_release
from app.services.shapes.questions import SHAPES
from app.services.statistics import saturation
from app.services.statistics.questions import STATISTICS
from app.store import contributions, replacements
from tests.api.service import Service, open_service
from tests.dashboard.browser import Browser
from tests.store.session_kit import HandClock
from tests.support.databases import Server
from tests.support.transcripts import fix_answers, stripped, without_random

DEVICE = device_script().split("/")[1:]

pytestmark = pytest.mark.system

NUMBERS, POINTS, POLL = "numbers", "points", "poll"
CENTRES = [[20, 20], [80, 80]]
OWN = 40
"""The value with which everyone begins."""

SAME, CHANGED = (OWN, OWN, OWN), (70, OWN, 70)
"""What is put in its place, one after the other, in the one history and in the other."""

FILES = {"/openapi.json", "/dashboard/static/{name}"}
"""Paths of what is the same file for all."""

NO_TOKEN = "00000000-0000-4000-8000-000000000000"

Seen = tuple[str, tuple[int, list[tuple[bytes, bytes]], bytes]]
"""Who fetched what, and status, headers and body of the response."""


class Clocks:
    """The services' clock, and the one that caches age by; both move only by hand."""

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        self.wall, self.ticks = HandClock(), 0.0

    def pass_seconds(self, seconds: float) -> None:
        self.wall.pass_seconds(seconds)
        self.ticks += seconds


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    clocks = Clocks()
    monkeypatch.setattr("app.main.SystemClock", lambda: clocks.wall)
    monkeypatch.setattr(saturation, "time", SimpleNamespace(monotonic=lambda: clocks.ticks))
    return clocks


@pytest.fixture(autouse=True)
def same_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise that happens to make the same noisy integers of everybody's data."""
    fix_answers(monkeypatch)
    monkeypatch.setattr(
        kmeans_release, "_noisy", lambda sums, noise: [7_000_000_000 * (place + 1) for place in range(6)]
    )


@dataclass
class History:
    """One service from its first study to its last look.

    Attributes:
        tokens: Who asks the API, and with which token.
        browsers: Who looks at the dashboard.
        seen: What they saw.
    """

    service: Service
    clocks: Clocks
    relation: Relation
    tokens: dict[str, str | None]
    browsers: dict[str, Browser]
    releases: list[str] = field(default_factory=list)
    session: str = ""
    invitation: str = ""
    schedule: str = ""
    codes: list[str] = field(default_factory=list)
    receipt: str = ""
    seen: list[Seen] = field(default_factory=list)

    async def set_up(self) -> None:
        """Three studies with people in them; in one of them somebody is alone in a K-means session."""
        common = {
            "relation": self.relation.value,
            "trust": ["central", "public"],
            "default_share": 0.01,
            "epsilon": {"min": 0.1, "max": 4},
        }
        await self.service.study(slug=NUMBERS, **common)
        await self.service.study(slug=POINTS, dimension=2, **common)
        await self.service.study(slug=POLL, choices=["red", "green"], **common, lower=None, upper=None)
        for name in ("bob", "p1"):
            await self.ask("POST", POLL, subject=name, value="red", trust="central", epsilon=1)
        for place in range(6):
            await self.service.contribute(NUMBERS, f"p{place}", value=place, epsilon=(1, 2)[place % 2])
        for name in ("bob", "carol"):
            await self.service.contribute(NUMBERS, name, value=OWN, epsilon=1)
        await self.ask("POST", NUMBERS, subject="dora", value=OWN, trust="public")
        await self.ask("POST", POINTS, subject="bob", value=[OWN, OWN], trust="central", epsilon=2)
        session = {"protocol": "kmeans", "epsilon": 2, "rounds": 4, "centres": CENTRES}
        made = await self.service.call("POST", f"/v1/studies/{POINTS}/sessions", "admin", json=session)
        assert made.status_code == 201, made.text
        self.session = made.json()["id"]
        await self.invite()
        await self.look()

    async def invite(self) -> None:
        """Two single links, one of which is used."""
        path, wish = f"/v1/studies/{NUMBERS}/invitations", {"kind": "single", "count": 2}
        made = (await self.service.call("POST", path, "admin", json=wish)).json()
        self.invitation = made["id"]
        times = {"every": "day", "until": 1, "quota": 1, "starts_at": "2100-01-01T09:00:00Z"}
        path = f"/v1/studies/{NUMBERS}/schedules"
        scheduled = await self.service.call("POST", path, "admin", json={"question": {}, **times})
        self.schedule = scheduled.json()["id"]
        self.codes = [url.rpartition("/")[2] for url in made["urls"]]
        form = {"value": str(OWN), "epsilon": "1", "trust": "central", "key": "a form"}
        sent = await self.send(f"/take/{self.codes[0]}", form)
        found = re.search(r'name="receipt" value="([^"]+)"', sent.text)
        assert found is not None
        self.receipt = found[1]

    async def send(self, path: str, form: dict[str, str]) -> httpx.Response:
        """Send a form as a person with a link does."""
        sent = await self.service.client.post(path, data=form, headers={"Origin": "http://test"})
        assert sent.status_code == 200, sent.text
        return sent

    async def ask(self, method: str, study: str, **document: Any) -> None:
        """Send a contribution that is accepted."""
        path = f"/v1/studies/{study}/contributions"
        if method == "PUT":
            path += f"/{document.pop('subject')}"
        response = await self.service.call(method, path, "contribute", json=document)
        assert response.status_code in (200, 201), response.text

    async def put(self, value: int, *, all_of_them: bool) -> None:
        """A person sends a value in both studies; others do, too, one of them with another epsilon."""
        await self.ask("PUT", NUMBERS, subject="bob", value=value, trust="central", epsilon=1)
        form = {"value": str(value), "epsilon": "1", "trust": "central", "receipt": self.receipt}
        await self.send("/take/receipt/change", form)
        await self.ask("PUT", POINTS, subject="bob", value=[value, value], trust="central", epsilon=2)
        choice = "red" if value == OWN else "green"
        await self.ask("PUT", POLL, subject="bob", value=choice, trust="central", epsilon=1)
        if all_of_them:
            await self.ask("PUT", NUMBERS, subject="carol", value=value, trust="central", epsilon=3)
            await self.ask("PUT", NUMBERS, subject="dora", value=value, trust="public")

    async def release(self) -> None:
        made = await self.service.call("POST", f"/v1/studies/{NUMBERS}/releases", "analyse", json={})
        assert made.status_code == 201, made.text
        self._saw("analyst released", made)
        self.releases.append(made.json()["id"])

    async def close_round(self, number: int) -> None:
        path = f"/v1/sessions/{self.session}/close-round"
        closed = await self.service.call("POST", path, "admin", json={"round": number})
        assert closed.status_code == 200, closed.text
        self._saw("round closed", closed)

    async def look(self) -> None:
        """Fetch everything, and once more what is cached for a while."""
        for path in self._paths():
            askers = self.browsers if path.startswith("/dashboard") else self.tokens
            for who, asker in askers.items():
                if isinstance(asker, Browser):
                    response = await asker.get(path)
                else:
                    response = await self.service.call("GET", path, asker)
                self._saw(f"{who} {without_random(path.encode()).decode()}", response)
        self.clocks.pass_seconds(60)
        for study in (NUMBERS, POINTS, POLL):
            path = f"/v1/studies/{study}/saturation"
            self._saw(f"analyst {path} later", await self.service.call("GET", path, "analyse"))

    def _saw(self, who: str, response: httpx.Response) -> None:
        assert response.status_code < 500, (who, response.text)
        self.seen.append((who, stripped(response)))

    def _paths(self) -> Iterator[str]:
        """Every path that can be read, of everything there is."""
        for template in sorted(templates(self.service.app.routes)):
            yield from self._filled(template)
            if template.endswith("/{statistic}"):
                for estimator in registry.applicable(self.relation):
                    yield template.format(study=NUMBERS, statistic="mean") + f"?estimator={estimator.name}"
                yield template.format(study=NUMBERS, statistic="quantile") + "?q=0.9"
                yield template.format(study=NUMBERS, statistic="histogram") + "?edges=20,60"
                yield template.format(study=NUMBERS, statistic="mean") + "?range=found"
                yield template.format(study=NUMBERS, statistic="mean") + "?level=0.99"
            if template.endswith(("/plan", "/dashboard/studies/{study}")):
                yield template.format(study=NUMBERS) + "?share=1&epsilon=0.3"
            if template.endswith("/plan"):
                for statistic in ("histogram", "median", "describe", "mean&range=found"):
                    yield template.format(study=NUMBERS) + f"?statistic={statistic}"

    def _filled(self, template: str) -> Iterator[str]:
        everything = {
            "study": (NUMBERS, POINTS, POLL),
            "statistic": (*STATISTICS, *SHAPES, "none"),
            "release": self.releases,
            "session": (self.session,),
            "subject": ("bob", "p1"),
            "token": (NO_TOKEN,),
            "webhook": (NO_TOKEN,),
            "schedule": (self.schedule, NO_TOKEN),
            "invitation": (self.invitation,),
            "code": self.codes,
            "link": ("none",),
            # What is published has a comparison of its own: its digests and signatures are keyed.
            **dict.fromkeys(("publication", "slug"), ("none",)),
            "path": ("none", f"studies/{NUMBERS}"),
            "list": ("releases", "studies", "budgets", "none"),
            "name": ("swagger-ui.css", "swagger-ui-bundle.js", "none"),
            **{name: (value,) for name, value in zip(("version", "part", "module"), DEVICE, strict=True)},
        }
        names = [name for name in everything if f"{{{name}}}" in template]
        assert template.count("{") == len(names), f"nothing is known to fill {template} with"
        for values in product(*(everything[name] for name in names)):
            yield template.format(**dict(zip(names, values, strict=True)))


def templates(routes: Sequence[Any]) -> Iterator[str]:
    """The paths of all routes that can be read, but for files that are the same for all."""
    for route in routes:
        if getattr(route, "routes", None):
            yield from (route.path + path for path in templates(route.routes))
        elif "GET" in (route.methods or ()) and route.path not in FILES:
            yield route.path_format


@asynccontextmanager
async def history(url: str, clocks: Clocks, relation: Relation) -> AsyncIterator[History]:
    """A service with a token of every kind that is no admin's."""
    clocks.start()
    async with open_service(url) as service:
        analyst, stranger = Browser(service), Browser(service)
        await analyst.log_in("analyse")
        digest = service.api.services.subject_key.digest
        made = History(
            service=service,
            clocks=clocks,
            relation=relation,
            browsers={"analyst": analyst, "stranger": stranger},
            tokens={
                "analyst": "analyse",
                "observer": await service.token("observe"),
                "stranger": None,
                "another person": await service.token("contribute", subject=digest("p1")),
            },
        )
        try:
            await made.set_up()
            yield made
        finally:
            await analyst.client.aclose()
            await stranger.client.aclose()


async def replacing(url: str, clocks: Clocks, relation: Relation, values: Sequence[int]) -> list[Seen]:
    """What others see while people put these values in the place of theirs, one after the other."""
    async with history(url, clocks, relation) as made:
        made.tokens["application"] = "contribute"
        await made.put(values[0], all_of_them=False)
        await made.look()
        await made.release()
        await made.close_round(1)
        await made.put(values[1], all_of_them=False)
        await made.close_round(2)
        await made.look()
        await made.release()
        await made.put(values[2], all_of_them=True)
        await made.look()
        await made.release()
        await made.look()
        return made.seen


async def withdrawing(url: str, clocks: Clocks, *, leaves: bool) -> list[Seen]:
    """What others see while a person withdraws, or does not."""
    async with history(url, clocks, Relation.ADD_REMOVE_ONE) as made:
        # Who watches the service counts its requests, and so sees that one more was sent.
        del made.tokens["observer"]
        for number in (1, 2):
            await made.release()
            await made.close_round(number)
            if leaves and number == 1:
                for study in (NUMBERS, POINTS, POLL):
                    path = f"/v1/studies/{study}/contributions/bob"
                    assert (await made.service.call("DELETE", path, "contribute")).status_code == 204
                await made.send("/take/receipt/withdraw", {"receipt": made.receipt})
            await made.look()
        return made.seen


def differences(first: Sequence[Seen], second: Sequence[Seen]) -> list[tuple[str, Any, Any]]:
    """Where two transcripts are not the same."""
    return [(who, one, other) for (who, one), (_, other) in zip(first, second, strict=True) if one != other]


@pytest.mark.parametrize(
    "relation", [Relation.REPLACE_ONE, pytest.param(Relation.ADD_REMOVE_ONE, marks=pytest.mark.slow)]
)
async def test_whether_a_replacement_changed_the_value_shows_to_no_one_else(
    postgres_server: Server, clocks: Clocks, relation: Relation
):
    with postgres_server.database() as one, postgres_server.database() as other:
        same = await replacing(one, clocks, relation, SAME)
        changed = await replacing(other, clocks, relation, CHANGED)
    assert differences(same, changed) == []
    pages = {who for who, _ in same}
    assert len(pages) > 150
    bodies = [body for who, (status, _, body) in same if status == 200]
    assert any(b'"new_contributions":true' in body for body in bodies) == (relation is Relation.REPLACE_ONE)
    assert any(b"<svg" in body for body in bodies), "plots are compared too"


async def test_whether_a_person_of_a_secret_study_left_shows_to_no_one_else(
    postgres_server: Server, clocks: Clocks
):
    with postgres_server.database() as one, postgres_server.database() as other:
        left = await withdrawing(one, clocks, leaves=True)
        stayed = await withdrawing(other, clocks, leaves=False)
    assert differences(left, stayed) == []


@pytest.mark.slow
async def test_the_comparison_sees_a_replacement_that_does_nothing(
    postgres_server: Server, clocks: Clocks, monkeypatch: pytest.MonkeyPatch
):
    """A control: where the same value again leaves the row as it is, the same comparison fails."""
    replace = replacements.replace

    async def lazily(connection: AsyncConnection, study_id: int, offer: Offer) -> Outcome | None:
        holding = (await contributions.read_holdings(connection, study_id, [offer.subject]))[offer.subject]
        if same_value(holding, offer):
            return Outcome.UNCHANGED
        return await replace(connection, study_id, offer)

    monkeypatch.setattr(replacements, "replace", lazily)
    with postgres_server.database() as one, postgres_server.database() as other:
        same = await replacing(one, clocks, Relation.REPLACE_ONE, SAME)
        changed = await replacing(other, clocks, Relation.REPLACE_ONE, CHANGED)
    found = differences(same, changed)
    assert any("statistics/mean" in who for who, _, _ in found), "new_contributions"
    assert any("/v1/sessions/" in who for who, _, _ in found), "whether a lone participant's round publishes"
