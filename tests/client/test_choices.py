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
from dither.device.gaussian import micro_mu2, pure_epsilon

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


@pytest.mark.long
def test_with_gaussian_noise_mu2_pays_for_the_report(client: Any, service: FakeService) -> None:
    """The truth is in a report as often as the pure epsilon of the mu^2 says: five standard deviations."""
    gaussian = {"noise": "gaussian", "delta": 1e-6, "local_mechanism": "choice", "trust": ["local"]}
    service.studies["poll"] |= gaussian
    people, device = 150, ChoiceRandomizer(4)
    for number in range(people):
        client.contribute("poll", subject=f"p{number}", value="green", epsilon=5, trust="local")
    sent = service.sent("POST")
    told = sum(record["report"] >> 1 & 1 for record in sent)
    kept = device.range(pure_epsilon(micro_mu2(5_000_000, 1_000_000))).kept
    assert len(sent) == people
    assert abs(told - people * kept) < 5 * (people * kept * (1 - kept)) ** 0.5
    assert abs(told - people * device.range(5_000_000).kept) > 50, "the whole epsilon would show"
