"""Studies of several measures in the SDK: numbers by name are checked, remembered, and read out of tables."""

import io
from typing import Any

import pytest
from dither import (
    InvalidRequest,
    Record,
    RecordFile,
    ReportAfterSpending,
    StudyChanged,
    StudyUnsound,
    UnsupportedMechanism,
)
from dither.device.randomizers import randomizer

from tests.client.service import COMMUTE, FakeService

HOUSEHOLD = {
    **COMMUTE,
    "slug": "household",
    "measures": {"income": {"lower": 0, "upper": 9000}, "age": {"lower": 18, "upper": 98}},
    "dimension": 2,
    "lower": 0,
    "upper": 1,
    "trust": ["central", "public", "local"],
}
VALUES: dict[str, Any] = {"age": 44, "income": "1200.50"}
ADA: dict[str, Any] = {"subject": "ada", "value": VALUES, "epsilon": 1, "trust": "central"}


@pytest.fixture(autouse=True)
def household(service: FakeService) -> None:
    service.studies["household"] = dict(HOUSEHOLD)


def test_numbers_are_sent_as_they_are_written_in_the_order_of_the_study(
    client: Any, service: FakeService
) -> None:
    measures = client.study("household").measures
    assert [(name, one.lower, one.upper) for name, one in measures.items()] == [
        ("income", 0, 9000),
        ("age", 18, 98),
    ]
    assert client.study("commute").measures == {}
    for status in ("created", "unchanged"):
        assert client.contribute("household", **ADA).status == status
    first, second = service.sent("POST")
    assert first == second
    assert "value" not in first
    assert [(name, float(number)) for name, number in first["values"].items()] == [
        ("income", 1200.5),
        ("age", 44),
    ]
    moved = {"income": 1, "age": 18}
    assert client.replace("household", **ADA | {"value": moved}).status == "replaced"


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"value": 3}, "value"),
        ({"value": [1200, 44]}, "value"),
        ({"value": {"income": 1200}}, "values.age"),
        ({"value": {**VALUES, "size": 2}}, "values.size"),
        ({"value": {**VALUES, "age": 17}}, "values.age"),
        ({"value": {**VALUES, "income": "much"}}, "values.income"),
    ],
)
def test_what_does_not_fit_is_not_sent(
    client: Any, service: FakeService, fields: dict[str, Any], named: str
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        client.contribute("household", **ADA | fields)
    assert refused.value.field == named
    assert service.sent("POST") == []


def test_a_mapping_is_refused_where_a_study_asks_for_one_value(client: Any, service: FakeService) -> None:
    with pytest.raises(InvalidRequest, match="value"):
        client.contribute("commute", **ADA)
    assert service.sent("POST") == []


def test_columns_have_the_names_of_measures(client: Any, service: FakeService) -> None:
    file = RecordFile(io.BytesIO(b"subject;Age;income\nada;44;1200,5\nbob;17;1\ncyd;;1\n"))
    load = client.contribute_many("household", file, epsilon=1, trust="central")
    assert [result.status for result in load.results] == ["created", "refused", "refused"]
    assert [[error.field for error in refusal.errors] for _, refusal in load.refusals] == [
        ["values.age"],
        ["values.age"],
    ]
    records = [
        Record("dan", VALUES),
        {"subject": "eve", "age": 20, "income": 3},
        ("fay", VALUES),
        {"subject": "gus", "value": VALUES},
    ]
    load = client.contribute_many("household", records, epsilon=1, trust="central")
    assert [result.status for result in load.results] == ["created"] * 4


def test_a_file_may_serve_studies_with_other_measures(client: Any) -> None:
    file = RecordFile(io.BytesIO(b"subject,age,income,value\nada,44,1200,\n"), ignore=["nothing"])
    load = client.contribute_many("household", file, epsilon=1, trust="central")
    assert [result.status for result in load.results] == ["created"]
    with pytest.raises(InvalidRequest, match="no field: age, income;"):
        client.contribute_many("commute", file, epsilon=1, trust="central")


def test_a_file_without_values_is_refused_with_a_remedy(client: Any) -> None:
    file = RecordFile(io.BytesIO(b"subject;minutes\nada;44\n"))
    with pytest.raises(InvalidRequest, match=r"has no column value; .*--value-column"):
        client.contribute_many("commute", file, epsilon=1, trust="central")
    with pytest.raises(InvalidRequest, match="row 1 has no column value"):
        client.contribute_many("commute", [{"subject": "ada"}], epsilon=1, trust="central")


def test_a_study_that_changes_its_measures_is_refused(client: Any, service: FakeService) -> None:
    client.contribute("household", **ADA)
    narrow = {**HOUSEHOLD["measures"], "age": {"lower": 18, "upper": 99}}
    service.studies["household"]["measures"] = narrow
    client.study("household")
    with pytest.raises(StudyChanged):
        client.contribute("household", **ADA | {"subject": "bob"})
    for broken in ({**narrow, "age": {"lower": 18, "upper": 18}}, {"age": narrow["age"]}):
        service.studies["household"]["measures"] = broken
        with pytest.raises(StudyUnsound):
            client.study("household")


def test_a_device_reports_as_many_measures_as_its_epsilon_holds_and_the_same_again(
    client: Any, service: FakeService
) -> None:
    service.studies["household"]["local_mechanism"] = "hybrid"
    device = randomizer("hybrid")
    for subject, epsilon, number, each in (("ada", 1, 1, 1_000_000), ("bob", 5, 2, 2_500_000)):
        order = ADA | {"subject": subject, "epsilon": epsilon, "trust": "local"}
        for status in ("created", "unchanged"):
            assert client.contribute("household", **order).status == status
        first, second = service.sent("POST")[-2:]
        assert first == second
        assert "report" not in first
        assert "values" not in first
        assert len(first["reports"]) == number
        assert first["reports"].keys() <= {"income", "age"}
        assert all(int(report) in device.range(each) for report in first["reports"].values())
    assert [str(entry.noise_epsilon) for entry in client.ledger().entries] == ["1", "5"]
    with pytest.raises(ReportAfterSpending):
        client.replace("household", **ADA | {"epsilon": 2, "trust": "local"})
    load = client.contribute_many("household", [Record("cyd", VALUES)], epsilon=5, trust="local")
    assert [result.status for result in load.results] == ["created"]


def test_which_measure_is_reported_is_drawn_anew_for_each_person(client: Any, service: FakeService) -> None:
    """Of 40 people one measure each: that all report the same one has a probability below 1e-11."""
    service.studies["household"]["local_mechanism"] = "duchi"
    people = [Record(f"p{number}", VALUES) for number in range(40)]
    client.contribute_many("household", people, epsilon=1, trust="local")
    reported = [next(iter(held.sent["reports"])) for held in service.holdings.values() if held.sent]
    assert len(reported) == 40
    assert set(reported) == {"income", "age"}


def test_reports_without_a_range_are_not_made_of_measures(client: Any, service: FakeService) -> None:
    with pytest.raises(UnsupportedMechanism, match="laplace reports of several measures"):
        client.contribute("household", **ADA | {"trust": "local"})
    assert service.sent("POST") == []


def test_a_study_that_takes_no_local_people_says_that_first(client: Any, service: FakeService) -> None:
    service.studies["household"]["trust"] = ["central"]
    with pytest.raises(InvalidRequest, match="one that the study accepts: central"):
        client.contribute("household", **ADA | {"trust": "local"})
    assert service.sent("POST") == []


def test_one_value_may_be_given_by_its_name_and_is_sent_without_it(client: Any, service: FakeService) -> None:
    """Whatever makes its reports: it is the value of a study of one."""
    income = HOUSEHOLD["measures"]["income"]
    service.studies["household"] |= {**income, "measures": {"income": income}, "dimension": 1}
    named: dict[str, Any] = ADA | {"value": {"income": 1200}}
    assert client.contribute("household", **named).status == "created"
    assert client.contribute("household", **named | {"value": 1200}).status == "unchanged"
    assert [float(sent["value"]) for sent in service.sent("POST")] == [1200, 1200]
    client.contribute("household", **named | {"subject": "bob", "trust": "local"})
    assert "report" in service.sent("POST")[-1]
    for wrong, field in (
        ({"age": 5}, "values.age"),
        ({}, "values.income"),
        ({"income": -1}, "values.income"),
    ):
        with pytest.raises(InvalidRequest) as refused:
            client.contribute("household", **named | {"value": wrong, "subject": "cyd"})
        assert refused.value.field == field
    client.contribute("commute", **ADA | {"value": {"value": 34}})
    assert service.sent("POST")[-1]["value"] == 34
    load = client.contribute_many(
        "household", RecordFile(io.BytesIO(b"subject,income\ndan,5\n")), epsilon=1, trust="central"
    )
    assert load.created == 1


PARTY = {
    "income": HOUSEHOLD["measures"]["income"],
    "party": {"lower": 0, "upper": 2, "choices": ["red", "green", "blue"]},
}


def test_choices_among_measures_are_checked_sent_as_labels_and_reported_as_sets(
    client: Any, service: FakeService
) -> None:
    service.studies["household"] |= {"measures": PARTY, "local_mechanism": "hybrid"}
    assert client.study("household").measures["party"].choices == ("red", "green", "blue")
    values = {"income": 1200, "party": "green"}
    order = ADA | {"value": values}
    assert client.contribute("household", **order).status == "created"
    assert service.sent("POST")[-1]["values"]["party"] == "green"
    for wrong in ("violet", 1, None):
        with pytest.raises(InvalidRequest, match="must be one of the measure's choices: red, green, blue"):
            client.contribute("household", **order | {"value": {**values, "party": wrong}})
    local = order | {"subject": "bob", "epsilon": 5, "trust": "local"}
    assert client.contribute("household", **local).status == "created"
    sent = service.sent("POST")[-1]["reports"]
    assert sent.keys() == {"income", "party"}
    assert 0 <= sent["party"] < 8
    file = RecordFile(io.BytesIO(b"subject;party;income\ncyd;red;1\ndan;violet;1\n"))
    load = client.contribute_many("household", file, epsilon=1, trust="central")
    assert [result.status for result in load.results] == ["created", "refused"]
    assert [[error.field for error in refusal.errors] for _, refusal in load.refusals] == [["values.party"]]
    service.studies["household"]["measures"] = {**PARTY, "party": {**PARTY["party"], "upper": 5}}
    with pytest.raises(StudyUnsound, match="choices and the range of a measure"):
        client.study("household")


PLANE = {
    **HOUSEHOLD,
    "measures": {"place": {"lower": -1, "upper": 1, "dimension": 2}, "age": {"lower": 18, "upper": 98}},
    "dimension": 3,
    "trust": ["central", "public"],
}
THERE: dict[str, Any] = {"place": ["0.5", -1], "age": 44}


def test_a_measure_of_several_coordinates_is_a_sequence(client: Any, service: FakeService) -> None:
    service.studies["household"] = dict(PLANE)
    assert client.study("household").measures["place"].dimension == 2
    for status in ("created", "unchanged"):
        assert client.contribute("household", **ADA | {"value": THERE}).status == status
    values = service.sent("POST")[0]["values"]
    assert [float(number) for number in values["place"]] == [0.5, -1]
    assert values["age"] == 44
    bad = (0.5, [0.5], [0.5, 2], ["x", 0], "0.5;1")
    fields = ("place", "place", "place.1", "place.0", "place")
    for place, field in zip(bad, fields, strict=True):
        with pytest.raises(InvalidRequest) as refused:
            client.contribute("household", **ADA | {"subject": "bob", "value": {**THERE, "place": place}})
        assert refused.value.field == f"values.{field}"
    file = RecordFile(io.BytesIO(b"subject,age,place\ncyd,20,0.25;0.5\ndan,20,0.25\n"))
    load = client.contribute_many("household", file, epsilon=1, trust="central")
    assert [(row, one.errors[0].field) for row, one in load.refusals] == [(2, "values.place")]


@pytest.mark.parametrize(
    "change",
    [
        {"dimension": 2},
        {"trust": ["central", "local"]},
        {
            "measures": {**PLANE["measures"], "age": {"lower": 18, "upper": 98, "dimension": 0}},
            "dimension": 2,
        },
        {
            "measures": {
                **PLANE["measures"],
                "age": {"lower": 0, "upper": 1, "choices": ["a", "b"], "dimension": 2},
            },
            "dimension": 4,
        },
    ],
)
def test_coordinates_that_make_no_sense_are_refused(
    client: Any, service: FakeService, change: dict[str, Any]
) -> None:
    service.studies["household"] = {**PLANE, **change}
    with pytest.raises(StudyUnsound):
        client.contribute("household", **ADA | {"value": THERE})
