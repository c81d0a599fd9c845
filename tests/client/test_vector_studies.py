"""Studies of vectors: sequences in, every digit out, nothing drawn."""

from decimal import Decimal
from typing import Any

import pytest
from dither import AlreadyContributed, InvalidRequest, Record, UnsupportedMechanism

from tests.client.service import COMMUTE, FakeService

PLACES = {**COMMUTE, "slug": "places", "lower": -1, "upper": 1, "dimension": 3}
ADA: dict[str, Any] = {
    "subject": "ada",
    "value": (0.1, "-0.250", Decimal(1)),
    "epsilon": 1,
    "trust": "central",
}


@pytest.fixture(autouse=True)
def places(service: FakeService) -> None:
    service.studies["places"] = dict(PLACES)


def test_a_vector_is_sent_with_every_digit(client: Any, service: FakeService) -> None:
    assert client.study("places").dimension == 3
    for status in ("created", "unchanged"):
        assert client.contribute("places", **ADA).status == status
    assert [body["value"] for body in service.sent("POST")] == [[Decimal("0.1"), Decimal("-0.250"), 1]] * 2
    assert b'"value":[0.1,-0.250,1]' in service.requests("POST")[0][0].content


def test_the_ledger_tells_vectors_apart(client: Any) -> None:
    client.contribute("places", **ADA)
    assert client.contribute("places", **ADA | {"value": [0.1, -0.25, 1]}).status == "unchanged"
    with pytest.raises(AlreadyContributed):
        client.contribute("places", **ADA | {"value": [0.1, 1, -0.25]})
    assert client.replace("places", **ADA | {"value": [1, 1, 1]}).status == "replaced"


def test_public_vectors_and_loads(client: Any, service: FakeService) -> None:
    records = [Record("ada", [0, 0, 1], trust="public"), Record("bob", [0, 1]), Record("cyd", ["0", 0.5, -1])]
    load = client.contribute_many("places", records, epsilon=1, trust="central")
    assert [result.status for result in load.results] == ["created", "refused", "created"]


@pytest.mark.parametrize(
    ("value", "field"),
    [
        (5, "value"),
        ("0.1;0.2;0.3", "value"),
        ("123", "value"),
        ([1, 0], "value"),
        ([1, 0, 1.5], "value.2"),
        ([1, None, 0], "value.1"),
        ([[1], 0, 0], "value.0"),
        ([float("inf"), 0, 0], "value.0"),
    ],
)
def test_what_is_no_vector_of_the_study_is_not_sent(
    client: Any, service: FakeService, value: Any, field: str
) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        client.contribute("places", **ADA | {"value": value})
    assert refusal.value.field == field
    assert service.sent("POST") == []


def test_local_vectors_are_not_contributed(client: Any, service: FakeService) -> None:
    with pytest.raises(UnsupportedMechanism, match="sessions"):
        client.contribute("places", **ADA | {"trust": "local"})
    assert service.sent("POST") == []


def test_a_study_that_takes_no_local_people_says_that_first(client: Any, service: FakeService) -> None:
    service.studies["places"]["trust"] = ["central"]
    with pytest.raises(InvalidRequest, match="one that the study accepts: central"):
        client.contribute("places", **ADA | {"trust": "local"})
    assert service.sent("POST") == []


def test_a_sequence_is_no_number(client: Any, service: FakeService) -> None:
    with pytest.raises(InvalidRequest):
        client.contribute("commute", **ADA | {"value": [5]})
    assert service.sent("POST") == []


def test_the_mean_of_a_vector_is_read_and_drawn_by_coordinate(client: Any) -> None:
    found = client.mean("places")
    assert [one.coordinate for one in found.coordinates] == [0, 1, 2]
    one = found.coordinates[2]
    assert (one.estimate, one.interval.lower, one.sd.estimate) == (32, 30.5, 32)
    assert one.simultaneous == one.population_interval
    assert found.estimate is None
    assert [row["coordinates.coordinate"] for row in found._rows()] == [0, 1, 2]
    assert [(label, value) for label, value, *_ in found._drawn()[1]][1] == ("coordinate 1", 32)
