"""What answers charge, to the micro; `CHARGES=renew` keeps anew what a change of weights moves."""

import json
import os
from pathlib import Path

import pytest

from tests.api.service import open_service
from tests.support.noiseless import without_noise
from tests.upgrades import filling, histories

pytestmark = pytest.mark.long

FILE = Path(__file__).parent / "charges.json"


async def test_random_histories_charge_what_they_always_did(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_noise(monkeypatch)
    async with open_service(database_url, **filling.SETTINGS) as service:
        found = {
            f"{kind} {seed}": await histories.played(service, kind, seed)
            for kind, seed in histories.histories()
        }
    if os.environ.get("CHARGES") == "renew":
        FILE.write_text(histories.as_text(found))
    kept = json.loads(FILE.read_text())
    assert found.keys() == kept.keys()
    for name, events in kept.items():
        for number, (before, now) in enumerate(zip(events, found[name], strict=True)):
            assert now == before, f"{name}, question {number}"
    events = [event for one in kept.values() for event in one]
    charged = [event for event in events if isinstance(event.get("charges"), list)]
    assert len(charged) > 200, "histories that charge little say little"
