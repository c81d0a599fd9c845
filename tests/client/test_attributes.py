"""Attributes: labels are checked before anything is sent, remembered, and read out of tables."""

import io
from decimal import Decimal
from typing import Any

import pytest
from dither import AlreadyContributed, InvalidRequest, Record, RecordFile, StudyChanged

from tests.client.service import COMMUTE, FakeService

DECLARED = {"region": ["north", "south"], "wave": ["1", "2"]}
REGIONS = {**COMMUTE, "slug": "regions", "attributes": DECLARED}
LABELS = {"wave": "1", "region": "south"}
ADA: dict[str, Any] = {
    "subject": "ada",
    "value": 34,
    "epsilon": 1,
    "trust": "local",
    "attributes": LABELS,
}


@pytest.fixture(autouse=True)
def regions(service: FakeService) -> None:
    service.studies["regions"] = dict(REGIONS)


def test_labels_are_sent_in_the_order_of_the_study_and_remembered(client: Any, service: FakeService) -> None:
    assert client.study("regions").attributes == DECLARED
    assert client.study("commute").attributes == {}
    for status in ("created", "unchanged"):
        assert client.contribute("regions", **ADA).status == status
    first, second = service.sent("POST")
    assert first == second, "nothing is drawn twice"
    assert list(first["attributes"].items()) == [("region", "south"), ("wave", "1")]
    other = {**ADA, "attributes": {**LABELS, "region": "north"}}
    with pytest.raises(AlreadyContributed):
        client.contribute("regions", **other)
    assert client.replace("regions", **other | {"epsilon": 2}).status == "replaced"
    client.contribute("commute", **ADA | {"attributes": None})
    assert "attributes" not in service.sent("POST")[-1]


@pytest.mark.parametrize(
    ("attributes", "field"),
    [
        (None, "attributes.region"),
        ({"region": "north"}, "attributes.wave"),
        ({**LABELS, "region": "west"}, "attributes.region"),
        ({**LABELS, "wave": 1}, "attributes.wave"),
        ({**LABELS, "sex": "f"}, "attributes.sex"),
    ],
)
def test_labels_that_the_study_does_not_have_are_not_sent(
    client: Any, service: FakeService, attributes: Any, field: str
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        client.contribute("regions", **ADA | {"attributes": attributes})
    assert refused.value.field == field
    assert service.sent("POST") == []


ROWS: list[Any] = [
    Record("ada", 34, attributes=LABELS),
    {"subject": "bob", "value": 20, "region": "north", "Wave": 2},
    {"subject": "cyd", "value": 20, "region": "", "wave": "2"},
]
FILE = b"subject;value;Region;wave\nada;34;south;1\nbob;20;north;2\ncyd;20;;2\n"


@pytest.mark.parametrize("records", [ROWS, RecordFile(io.BytesIO(FILE))])
def test_tables_have_a_column_for_each_attribute(client: Any, service: FakeService, records: Any) -> None:
    load = client.contribute_many("regions", records, epsilon=1, trust="central")
    assert [result.status for result in load.results] == ["created", "created", "refused"]
    [(row, refusal)] = load.refusals
    assert (row, refusal.errors[0].field) == (3, "attributes.region")
    held = [service.holdings["regions", subject].sent or {} for subject in ("ada", "bob")]
    assert [sent["attributes"] for sent in held] == [
        {"region": "south", "wave": "1"},
        {"region": "north", "wave": "2"},
    ]


def test_a_label_is_not_one_of_two_columns(client: Any) -> None:
    file = RecordFile(io.BytesIO(b"subject,value,region,wave,Wave\nada,34,south,1,2\n"))
    with pytest.raises(InvalidRequest, match="has two columns wave"):
        client.contribute_many("regions", file, epsilon=1, trust="central")
    other = [{"subject": "ada", "value": 34, "region": "south", "wave": 1, "sex": "f"}]
    with pytest.raises(InvalidRequest, match=r"no field: sex; .* trust, region, wave;"):
        client.contribute_many("regions", other, epsilon=1, trust="central")


def test_of_whom_goes_over_the_wire_as_one_text(client: Any, service: FakeService) -> None:
    client.contribute("commute", **ADA | {"attributes": None})
    for where in ({"region": "north", "wave": "1"}, "region:north,wave:1"):
        client.mean("commute", where=where)
        client.plan("commute", where=where)
        client.release("commute", where=where)
    sent = [dict(request.url.params).get("where") for request in service.log if request.method == "GET"]
    assert sent.count("region:north,wave:1") == 4
    assert [body["where"] for body in service.sent("POST")[1:]] == ["region:north,wave:1"] * 2


def test_labels_and_shares_go_over_the_wire_as_one_text(client: Any, service: FakeService) -> None:
    for between in ({"region": ["north", "south"]}, "region:north,south"):
        client.difference("commute", between=between)
    for shares in ({"region": {"north": 0.4, "south": Decimal("0.60")}}, "region:north=0.4,south=0.60"):
        client.mean("commute", standardize=shares, simultaneous=True)
    several = {"region": {"north": 0.4, "south": 0.6}, "age": {"-39": Decimal("0.5"), "40-": 0.5}}
    client.mean("commute", standardize=several)
    asked = [dict(request.url.params) for request in service.log if request.method == "GET"]
    assert asked.pop() == {"standardize": "region:north=0.4,south=0.6;age:-39=0.5,40-=0.5"}
    assert asked[-4:-2] == [{"of": "mean", "between": "region:north,south"}] * 2
    wanted = {"standardize": "region:north=0.4,south=0.60", "simultaneous": "true"}
    assert asked[-2:] == [wanted] * 2


def test_a_study_that_asks_for_more_later_is_refused(client: Any, service: FakeService) -> None:
    client.contribute("commute", **{**ADA, "attributes": None})
    service.studies["commute"] = {**COMMUTE, "attributes": DECLARED}
    client.study("commute")
    with pytest.raises(StudyChanged) as refused:
        client.contribute("commute", **ADA | {"subject": "bob"})
    assert "attributes" in str(refused.value)
