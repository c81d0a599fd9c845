"""Every statistic of one of several measures, whoever reported it, or reported another one, or is public."""

from typing import Any

import pytest
from dither.device.choices import ChoiceRandomizer
from dither.device.measures import reports
from dither.device.randomizers import randomizer

from tests.api.service import Service
from tests.api.test_measures import household

MEASURES: dict[str, Any] = {
    "income": {"lower": 0, "upper": 9000},
    "age": {"lower": 18, "upper": 98},
    "party": {"choices": ["red", "green", "blue"]},
}
NAMES = tuple(MEASURES)
DEVICES = (randomizer("hybrid"), randomizer("hybrid"), ChoiceRandomizer(3))
GREEN = 1 << 29
KINDS = ("a", "b")
SHARE = 0.05

QUESTIONS: dict[str, dict[str, Any]] = {
    **{
        statistic: {"statistic": statistic, "measure": "income"}
        for statistic in ("mean", "sum", "variance", "sd", "median", "describe")
    },
    "histogram": {"statistic": "histogram", "measure": "income", "bins": 4},
    "distribution": {"statistic": "distribution", "measure": "income", "at": [1000, 5000]},
    "quantile": {"statistic": "quantile", "measure": "income", "q": 0.9},
    "found range": {"statistic": "mean", "measure": "income", "range": "found"},
    "covariance": {"statistic": "covariance", "of": "income,age"},
    "shares": {"statistic": "shares", "measure": "party"},
    "count": {"statistic": "count"},
}


def device(name: str, kind: str, reported: str) -> dict[str, Any]:
    """What the device of a person sends whose one report is of this measure."""
    while True:
        drawn = reports(DEVICES, (1 << 29, 1 << 29, GREEN), 1_000_000)
        sent = {NAMES[place]: report for place, report in drawn.items()}
        if set(sent) == {reported}:
            attributes = {"kind": kind}
            return {
                "subject": name,
                "reports": sent,
                "epsilon": 1,
                "trust": "local",
                "attributes": attributes,
            }


def teller(name: str, kind: str, trust: str) -> dict[str, Any]:
    """A central or a public person."""
    values = {"income": 4500, "age": 58, "party": "green"}
    private = {} if trust == "public" else {"epsilon": 1}
    return {"subject": name, "values": values, "trust": trust, "attributes": {"kind": kind}, **private}


def silent(kind: str) -> list[dict[str, Any]]:
    """A device that reported neither the number nor the choice that questions are about."""
    return [device(f"age-{kind}", kind, "age")]


PEOPLE: dict[str, list[dict[str, Any]]] = {
    "one silent": silent("a"),
    "silent in each label": [*silent("a"), *silent("b")],
    "silent beside central": [*silent("b"), *(teller(f"c{one}", "a", "central") for one in range(40))],
    "silent beside public": [*silent("b"), *(teller(f"p{one}", "a", "public") for one in range(3))],
    "reporting": [device(f"{name}-{kind}", kind, name) for name in NAMES for kind in KINDS],
    "reporting beside central": [
        *(device(f"{name}-b", "b", name) for name in NAMES),
        *(teller(f"c{one}", KINDS[one % 2], "central") for one in range(40)),
    ],
    "public alone": [teller(f"p{one}", "a", "public") for one in range(3)],
    "public in each label": [teller(f"p{one}", KINDS[one % 2], "public") for one in range(4)],
}


@pytest.mark.parametrize("people", PEOPLE)
async def test_every_statistic_has_an_answer_or_a_refusal(service: Service, people: str) -> None:
    """By steps and with noise of its own, of all people and by label."""
    study = await household(
        service, measures=MEASURES, trust=["central", "local", "public"], attributes={"kind": list(KINDS)}
    )
    path = f"/v1/studies/{study}"
    loaded = await service.call("POST", f"{path}/contributions/batch", "contribute", json=PEOPLE[people])
    assert loaded.json()["created"] == len(PEOPLE[people]), loaded.text
    statuses, tried = {}, 0
    for name, question in QUESTIONS.items():
        for by in ({}, {"by": "kind"}):
            asked = {**question, **by, "share": SHARE, "allow_worse": True}
            for fresh in (False, True):
                document = {**asked, "fresh": True} if fresh else asked
                made = await service.call("POST", f"{path}/releases", "analyse", json=document)
                statuses[name, bool(by), fresh] = made.status_code
                tried += 1
    unusual = {key: status for key, status in statuses.items() if status not in (200, 201, 409, 422)}
    assert not unusual
    assert tried == 4 * len(QUESTIONS)
    if "public" in people:
        shares = await service.call("GET", f"{path}/statistics/shares?measure=party", "analyse")
        assert [one["share"] for one in shares.json()["choices"]] == pytest.approx([0, 1, 0], abs=1e-5)
    assert (await service.api.services.ledger.audit()).clean
