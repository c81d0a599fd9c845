"""Studies of choices in the SDK: labels are checked before anything is sent, and read out of tables."""

import io
from typing import Any

import pytest
from dither import (
    AlreadyContributed,
    InvalidRequest,
    Record,
    RecordFile,
    ReportAfterSpending,
    StudyChanged,
    StudyUnsound,
    UnsupportedMechanism,
)
from dither.device.choices import ChoiceRandomizer

from tests.client.service import COMMUTE, FakeService

POLL = {
    **COMMUTE,
    "slug": "poll",
    "choices": ["red", "green", "1,5", "25"],
    "lower": 0,
    "upper": 3,
    "trust": ["central", "public"],
}
ADA: dict[str, Any] = {"subject": "ada", "value": "green", "epsilon": 1, "trust": "central"}


@pytest.fixture(autouse=True)
def poll(service: FakeService) -> None:
    service.studies["poll"] = dict(POLL)


def test_a_label_is_sent_as_it_is_and_remembered(client: Any, service: FakeService) -> None:
    assert client.study("poll").choices == ("red", "green", "1,5", "25")
    assert client.study("commute").choices == ()
    for status in ("created", "unchanged"):
        assert client.contribute("poll", **ADA).status == status
    first, second = service.sent("POST")
    assert first == second
    assert first["value"] == "green"
    assert client.replace("poll", **ADA | {"value": "25"}).status == "replaced"


@pytest.mark.parametrize("value", ["yellow", "Green", 25, 1, ["red"], "", None])
def test_what_is_no_choice_is_not_sent(client: Any, service: FakeService, value: Any) -> None:
    with pytest.raises(InvalidRequest) as refused:
        client.contribute("poll", **ADA | {"value": value})
    assert refused.value.field == "value"
    assert service.sent("POST") == []


def test_tables_hold_labels_also_where_they_look_like_numbers(client: Any, service: FakeService) -> None:
    file = RecordFile(io.BytesIO(b'subject;value\nada;red\nbob;"1,5"\ncyd; 25 \ndan;yellow\neve;\n'))
    load = client.contribute_many("poll", file, epsilon=1, trust="central")
    assert [result.status for result in load.results] == ["created"] * 3 + ["refused"] * 2
    records = [Record("fay", "green"), {"subject": "gus", "value": 25}, ("hal", "red")]
    load = client.contribute_many("poll", records, epsilon=1, trust="central")
    assert [result.status for result in load.results] == ["created"] * 3, "a table's 25 is a label"


def test_a_local_choice_is_reported_once_and_never_sent(client: Any, service: FakeService) -> None:
    service.studies["poll"] |= {"local_mechanism": "choice", "trust": ["local"]}
    local = ADA | {"trust": "local"}
    for status in ("created", "unchanged"):
        assert client.contribute("poll", **local).status == status
    first, second = service.sent("POST")
    assert first == second
    assert "value" not in first
    assert first["report"] in ChoiceRandomizer(4).range(1_000_000)
    with pytest.raises(AlreadyContributed):
        client.contribute("poll", **local | {"value": "red"})
    with pytest.raises(ReportAfterSpending):
        client.replace("poll", **local | {"value": "red", "epsilon": 2})
    service.studies["old"] = {**POLL, "slug": "old", "trust": ["local"], "local_mechanism": "hybrid"}
    with pytest.raises(UnsupportedMechanism):
        client.contribute("old", **local)


def test_a_study_that_changes_its_choices_is_refused(client: Any, service: FakeService) -> None:
    client.contribute("poll", **ADA)
    service.studies["poll"]["choices"] = ["green", "red", "1,5", "25"]
    client.study("poll")
    with pytest.raises(StudyChanged):
        client.contribute("poll", **ADA | {"subject": "bob"})
    service.studies["poll"]["choices"] = ["green", "red"]
    with pytest.raises(StudyUnsound):
        client.study("poll")
