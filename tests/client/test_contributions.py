"""What a device sends, what it refuses to send, and what it remembers."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import httpx
import pytest
from dither import (
    AlreadyContributed,
    EpsilonBelowSpent,
    InvalidRequest,
    LedgerError,
    MaxEpsilonExceeded,
    ProblemError,
    ResponseError,
    Retry,
    StudyChanged,
    StudyUnsound,
    TransportError,
    UnsupportedMechanism,
)
from dither.device.randomizers import randomizer

from app.core.study import LocalMechanism
from tests.client.service import COMMUTE, RANGE, FakeService, Holding, problem
from tests.support.reports import report_range

Connect = Callable[..., Any]
ADA: dict[str, Any] = {"subject": "ada", "value": 34, "epsilon": 1, "trust": "local"}


def test_a_central_value_is_sent_as_it_was_written(client: Any, service: FakeService) -> None:
    value = Decimal("34.10000000000000000000000001")
    client.contribute("commute", subject="ada", value=value, epsilon="1.23999", trust="central")
    assert service.sent("POST") == [
        {"subject": "ada", "value": value, "epsilon": Decimal("1.23"), "trust": "central"}
    ]


def test_a_local_report_hides_the_value(client: Any, service: FakeService) -> None:
    client.contribute("commute", subject="ada", value=34, epsilon=0.5, trust="local")
    [sent] = service.sent("POST")
    assert sent.keys() == {"subject", "report", "epsilon", "trust"}
    assert type(sent["report"]) is int
    assert sent["epsilon"] == Decimal("0.5")


def test_a_public_value_has_no_epsilon(client: Any, service: FakeService) -> None:
    stored = client.contribute("commute", subject="ada", value="34", trust="public")
    assert service.sent("POST") == [{"subject": "ada", "value": 34, "trust": "public"}]
    assert stored.epsilon is None


def test_the_same_again_sends_the_same_report(client: Any, service: FakeService) -> None:
    statuses = [client.contribute("commute", **ADA).status for _ in range(3)]
    assert statuses == ["created", "unchanged", "unchanged"]
    first, *rest = service.sent("POST")
    assert rest == [first, first]


def test_a_report_survives_a_restart(connect: Connect, service: FakeService) -> None:
    connect().contribute("commute", **ADA)
    connect().contribute("commute", **ADA)
    first, second = service.sent("POST")
    assert first == second


def test_a_report_survives_a_lost_answer_and_an_unreachable_service(
    connect: Connect, service: FakeService
) -> None:
    client = connect()
    client.study("commute")
    service.faults = [service.lose, *[httpx.ConnectError("refused")] * 4]
    with pytest.raises(TransportError):
        client.contribute("commute", **ADA, check_spent=False)
    assert [entry.state for entry in client.ledger().entries] == ["pending"]
    assert connect().contribute("commute", **ADA).status == "unchanged"
    reports = {sent["report"] for sent in service.sent("POST")}
    assert len(reports) == 1
    assert [entry.state for entry in client.ledger().entries] == ["accepted"]


@pytest.mark.parametrize(
    "change", [{"value": 35}, {"epsilon": 2}, {"trust": "central"}, {"trust": "public", "epsilon": None}]
)
def test_another_contribution_of_a_live_subject_is_refused_on_the_device(
    client: Any, service: FakeService, change: dict[str, Any]
) -> None:
    client.contribute("commute", **ADA)
    with pytest.raises(AlreadyContributed):
        client.contribute("commute", **(ADA | change))
    assert len(service.sent("POST")) == 1


def test_values_that_are_equal_on_the_grid_are_the_same(client: Any, service: FakeService) -> None:
    for value in (34, 34.0, "34.00", Decimal("3.4E1")):
        client.contribute("commute", **(ADA | {"value": value}))
    assert len({sent["report"] for sent in service.sent("POST")}) == 1


def test_replacing_randomizes_with_what_is_left(client: Any, service: FakeService) -> None:
    client.contribute("commute", **ADA)
    stored = client.replace("commute", **(ADA | {"value": 35, "epsilon": "1.25"}))
    assert (stored.status, stored.epsilon) == ("replaced", Decimal("1.25"))
    entries = client.ledger().entries
    assert [(entry.noise_epsilon, entry.state) for entry in entries] == [
        (Decimal(1), "replaced"),
        (Decimal("0.25"), "accepted"),
    ]
    assert client.ledger().totals == {"ada": Decimal("1.25")}
    assert "subject" not in service.sent("PUT")[0]


def test_replacing_again_with_the_same_draws_nothing(client: Any, service: FakeService) -> None:
    client.contribute("commute", **ADA)
    for _ in range(2):
        client.replace("commute", **(ADA | {"value": 35, "epsilon": 2}))
    first, second = service.sent("PUT")
    assert first == second


def test_replacing_with_nothing_left_is_refused_on_the_device(client: Any, service: FakeService) -> None:
    client.contribute("commute", **ADA)
    with pytest.raises(EpsilonBelowSpent) as refusal:
        client.replace("commute", **(ADA | {"value": 35}))
    assert refusal.value.spent == 1
    assert service.sent("PUT") == []


def test_what_other_devices_spent_is_taken_off(connect: Connect, service: FakeService, tmp_path: Any) -> None:
    connect().contribute("commute", **ADA)
    other = connect(directory=tmp_path / "other")
    other.replace("commute", **(ADA | {"epsilon": 3}))
    assert [entry.noise_epsilon for entry in other.ledger().entries] == [Decimal(2)]


def test_a_withdrawn_subject_comes_back_with_what_is_left(
    connect: Connect, service: FakeService, tmp_path: Any
) -> None:
    client = connect()
    client.contribute("commute", **ADA)
    client.withdraw("commute", subject="ada")
    assert [entry.state for entry in client.ledger().entries] == ["withdrawn"]
    assert client.ledger().totals == {"ada": Decimal(1)}
    other = connect(directory=tmp_path / "other")
    other.contribute("commute", **(ADA | {"epsilon": "1.5"}))
    assert [entry.noise_epsilon for entry in other.ledger().entries] == [Decimal("0.5")]


def test_check_spent_false_saves_the_question(client: Any, service: FakeService) -> None:
    client.contribute("commute", **ADA, check_spent=False)
    assert [request.url.path for request in service.log] == [
        "/v1/studies/commute",
        "/v1/studies/commute/contributions",
    ]


def test_check_spent_false_still_asks_what_was_used_of_a_central_value(
    client: Any, service: FakeService
) -> None:
    client.contribute("commute", subject="ada", value=34, epsilon=1, trust="central")
    service.holdings["commute", "ada"].spent = Decimal("0.3")
    client.replace("commute", **ADA, check_spent=False)
    assert client.ledger().entries[-1].noise_epsilon == Decimal("0.7")
    assert client.ledger().totals == {"ada": Decimal(1)}


def test_where_nobody_says_what_was_used_of_a_central_value_it_counts_in_full(
    client: Any, service: FakeService
) -> None:
    client.contribute("commute", subject="ada", value=34, epsilon=1, trust="central")
    service.faults = [problem(403, "forbidden")]
    with pytest.raises(EpsilonBelowSpent):
        client.replace("commute", **ADA)


def test_a_server_cannot_lower_what_this_device_spent(client: Any, service: FakeService) -> None:
    client.contribute("commute", **ADA)
    service.holdings["commute", "ada"].spent = Decimal(0)
    client.replace("commute", **(ADA | {"value": 35, "epsilon": "1.1"}))
    assert client.ledger().entries[-1].noise_epsilon == Decimal("0.1")


def test_withdrawing_a_central_value_frees_what_was_not_spent(client: Any, service: FakeService) -> None:
    client.contribute("commute", subject="ada", value=34, epsilon=4, trust="central")
    service.holdings["commute", "ada"].spent = Decimal("0.3")
    client.withdraw("commute", subject="ada")
    assert client.ledger().totals == {"ada": Decimal("0.3")}
    client.withdraw("commute", subject="ada")
    with pytest.raises(ProblemError, match="404 not_found"):
        client.withdraw("commute", subject="bob")


def test_withdrawing_what_never_arrived_settles_it(client: Any, service: FakeService) -> None:
    client.study("commute")
    service.faults = [httpx.ConnectError("refused")] * 5
    with pytest.raises(TransportError):
        client.contribute("commute", subject="ada", value=34, epsilon=1, trust="central")
    with pytest.raises(ProblemError, match="404"):
        client.withdraw("commute", subject="ada")
    assert [entry.state for entry in client.ledger().entries] == ["refused"]
    assert client.ledger().totals == {"ada": Decimal(0)}


@pytest.mark.parametrize("status", [None, 403, 500])
def test_a_withdrawn_value_counts_in_full_where_nobody_says_what_was_spent(
    connect: Connect, service: FakeService, status: int | None
) -> None:
    fault = httpx.ReadTimeout("x") if status is None else problem(status, "x")
    client = connect(retry=Retry(attempts=1))
    client.contribute("commute", subject="ada", value=34, epsilon=1, trust="central")
    service.faults = [service.serve, fault]
    client.withdraw("commute", subject="ada")
    assert [entry.state for entry in client.ledger().entries] == ["withdrawn"]
    assert client.ledger().totals == {"ada": Decimal(1)}


def test_a_question_that_is_not_answered_stops_a_local_contribution(
    connect: Connect, service: FakeService
) -> None:
    client = connect(retry=Retry(attempts=1))
    client.study("commute")
    service.faults = [problem(500, "internal_fault")]
    with pytest.raises(ProblemError, match="500"):
        client.contribute("commute", **ADA)
    assert client.ledger().entries == ()


def test_a_central_offer_may_not_be_less_than_the_reports_already_given(
    client: Any, service: FakeService
) -> None:
    client.contribute("commute", **ADA)
    with pytest.raises(EpsilonBelowSpent):
        client.replace("commute", subject="ada", value=34, epsilon="0.5", trust="central")
    client.replace("commute", subject="ada", value=34, epsilon=1, trust="central")
    assert client.ledger().totals == {"ada": Decimal(1)}


def test_a_smaller_central_offer_gives_the_rest_back(connect: Connect) -> None:
    client = connect(max_epsilon=4)
    client.contribute("commute", subject="ada", value=34, epsilon=4, trust="central")
    client.replace("commute", subject="ada", value=34, epsilon=1, trust="central")
    assert client.ledger().totals == {"ada": Decimal(1)}


# -- the person's own limit


def test_max_epsilon_holds_over_all_studies_of_a_subject(connect: Connect, service: FakeService) -> None:
    client = connect(max_epsilon=2)
    client.contribute("commute", **(ADA | {"epsilon": "1.5"}))
    with pytest.raises(MaxEpsilonExceeded) as refusal:
        client.contribute("sleep", subject="ada", value=7, epsilon="0.501", trust="central")
    assert (refusal.value.limit, refusal.value.given) == (Decimal(2), Decimal("1.5"))
    client.contribute("sleep", subject="ada", value=7, epsilon="0.5", trust="central")
    client.contribute("sleep", subject="bob", value=7, epsilon=2, trust="central")
    assert [sent["subject"] for sent in service.sent("POST")] == ["ada", "ada", "bob"]


def test_max_epsilon_is_not_raised_by_the_server_or_by_a_restart(
    connect: Connect, service: FakeService
) -> None:
    service.lifetime = Decimal(1000)
    service.studies["commute"]["epsilon"]["max"] = 1000
    connect(max_epsilon=2).contribute("commute", **ADA)
    with pytest.raises(MaxEpsilonExceeded):
        connect(max_epsilon=2).replace("commute", **(ADA | {"value": 35, "epsilon": 3}))


def test_max_epsilon_refuses_public_values(connect: Connect, service: FakeService) -> None:
    with pytest.raises(MaxEpsilonExceeded):
        connect(max_epsilon=1000).contribute("commute", subject="ada", value=34, trust="public")
    assert service.sent("POST") == []


def test_what_is_given_already_may_be_sent_again_under_a_smaller_limit(connect: Connect) -> None:
    connect().contribute("commute", **ADA)
    connect().contribute("sleep", subject="ada", value=7, trust="public")
    careful = connect(max_epsilon="0.5")
    assert careful.contribute("commute", **ADA).status == "unchanged"
    assert careful.contribute("sleep", subject="ada", value=7, trust="public").status == "unchanged"


def test_a_report_counts_towards_the_limit_after_a_public_value_replaced_it(connect: Connect) -> None:
    frank = connect()
    frank.contribute("commute", **ADA)
    frank.replace("commute", subject="ada", value=34, trust="public")
    assert frank.ledger().totals == {"ada": Decimal(1)}
    careful = connect(max_epsilon="1.5")
    sleep = {"subject": "ada", "value": 7, "trust": "central"}
    with pytest.raises(MaxEpsilonExceeded) as refusal:
        careful.contribute("sleep", **sleep, epsilon="0.501")
    assert (refusal.value.limit, refusal.value.given) == (Decimal("1.5"), Decimal(1))
    careful.contribute("sleep", **sleep, epsilon="0.5")
    with pytest.raises(MaxEpsilonExceeded):
        careful.replace("commute", **(ADA | {"value": 35, "epsilon": "1.01"}))
    assert careful.ledger().totals == {"ada": Decimal("1.5")}


@pytest.mark.parametrize("limit", ["-1", "soon", "nan"])
def test_a_limit_that_is_none_is_refused(connect: Connect, limit: str) -> None:
    with pytest.raises(InvalidRequest, match="max_epsilon"):
        connect(max_epsilon=limit)


def test_a_limit_needs_a_directory(connect: Connect) -> None:
    with pytest.raises(InvalidRequest, match="directory"):
        connect(max_epsilon=1, directory=None)


# -- refusals by the service


def test_a_refused_report_is_counted_and_sent_again(connect: Connect, service: FakeService) -> None:
    client = connect()
    service.lifetime = Decimal("0.5")
    with pytest.raises(ProblemError) as refusal:
        client.contribute("commute", **ADA)
    assert (refusal.value.status, refusal.value.code) == (409, "budget_exhausted")
    assert [(error.field, error.reason) for error in refusal.value.errors] == [("epsilon", "too little left")]
    assert [entry.state for entry in client.ledger().entries] == ["refused"]
    assert client.ledger().totals == {"ada": Decimal(1)}  # the service has seen it
    service.lifetime = Decimal(10)
    assert client.contribute("commute", **ADA).status == "created"
    first, second = service.sent("POST")
    assert first == second


def test_a_refused_report_leaves_less_for_another_one(client: Any, service: FakeService) -> None:
    service.lifetime = Decimal("0.5")
    with pytest.raises(ProblemError):
        client.contribute("commute", **ADA)
    with pytest.raises(EpsilonBelowSpent):
        client.contribute("commute", **(ADA | {"epsilon": "0.5"}))
    service.lifetime = Decimal(10)
    client.contribute("commute", **(ADA | {"epsilon": "1.5", "value": 35}))
    assert client.ledger().entries[-1].noise_epsilon == Decimal("0.5")


@pytest.mark.long
def test_a_report_with_little_left_is_one_that_the_service_takes(client: Any, service: FakeService) -> None:
    """The service counts no refused report and takes the next one for less noisy than it is."""
    client.study("commute")
    possible = report_range(LocalMechanism.LAPLACE, 1_010_000)
    for number in range(50):
        ada = ADA | {"subject": f"p{number}"}
        service.faults = [problem(403, "forbidden")]
        with pytest.raises(ProblemError):
            client.contribute("commute", **ada, check_spent=False)
        client.contribute("commute", **(ada | {"epsilon": "1.01"}))
    reports = [sent["report"] for sent in service.sent("POST") if sent["epsilon"] == Decimal("1.01")]
    assert len(reports) == 50
    assert all(report in possible for report in reports)
    assert {possible.lower, possible.upper} & {*reports}  # half of them lie further out


def test_a_refused_report_adds_to_what_the_service_counts(client: Any, service: FakeService) -> None:
    client.study("commute")
    service.faults = [problem(403, "forbidden")]
    with pytest.raises(ProblemError):
        client.contribute("commute", **(ADA | {"epsilon": "0.5"}), check_spent=False)
    client.contribute("commute", subject="ada", value=34, epsilon=1, trust="central")
    assert client.ledger().totals == {"ada": Decimal("1.5")}
    service.holdings["commute", "ada"].spent = Decimal("0.3")
    client.replace("commute", **(ADA | {"epsilon": "1.5"}))
    assert client.ledger().entries[-1].noise_epsilon == Decimal("0.7")


def test_a_refused_central_value_costs_nothing(client: Any, service: FakeService) -> None:
    service.lifetime = Decimal("0.5")
    with pytest.raises(ProblemError):
        client.contribute("commute", subject="ada", value=34, epsilon=1, trust="central")
    assert client.ledger().totals == {"ada": Decimal(0)}
    client.contribute("commute", subject="ada", value=34, epsilon="0.5", trust="central")
    assert client.ledger().totals == {"ada": Decimal("0.5")}


def test_a_refusal_after_a_lost_answer_settles_nothing(client: Any, service: FakeService) -> None:
    client.study("commute")
    service.faults = [service.lose, problem(403, "forbidden")]
    with pytest.raises(ProblemError, match="403"):
        client.contribute("commute", subject="ada", value=34, epsilon=1, trust="central")
    assert [entry.state for entry in client.ledger().entries] == ["pending"]
    assert client.ledger().totals == {"ada": Decimal(1)}


def test_a_forgotten_pending_value_makes_room_once_the_service_says_it_has_none(
    client: Any, service: FakeService
) -> None:
    client.study("commute")
    service.faults = [httpx.ConnectError("refused")] * 5
    with pytest.raises(TransportError):
        client.contribute("commute", subject="ada", value=34, epsilon=1, trust="central")
    other = {"subject": "ada", "value": 35, "epsilon": 1, "trust": "central"}
    with pytest.raises(AlreadyContributed):
        client.contribute("commute", **other)
    with pytest.raises(ProblemError, match="404"):
        client.replace("commute", **other)
    assert client.contribute("commute", **other).status == "created"
    assert client.ledger().totals == {"ada": Decimal(1)}


def test_a_pending_value_stays_pending_when_a_later_try_is_not_let_in(
    client: Any, service: FakeService
) -> None:
    client.study("commute")
    service.faults = [service.lose, *[httpx.ConnectError("refused")] * 4]
    central = {"subject": "ada", "value": 34, "epsilon": 1, "trust": "central"}
    with pytest.raises(TransportError):
        client.contribute("commute", **central)
    service.faults = [problem(403, "forbidden")]
    with pytest.raises(ProblemError, match="403"):
        client.contribute("commute", **central)
    assert [entry.state for entry in client.ledger().entries] == ["pending"]
    assert client.ledger().totals == {"ada": Decimal(1)}


@pytest.mark.parametrize("arrived", [True, False])
def test_a_pending_report_is_sent_again_after_its_replacement_was_refused(
    connect: Connect, service: FakeService, arrived: bool
) -> None:
    """A second draw for the same value would give away twice what is counted."""
    client = connect()
    client.study("commute")
    service.faults = [service.lose if arrived else httpx.ConnectError("refused")] * 5
    with pytest.raises(TransportError):
        client.contribute("commute", **ADA, check_spent=False)
    service.faults = [problem(403, "forbidden")]
    with pytest.raises(ProblemError, match="403"):
        client.replace("commute", **(ADA | {"value": 35, "epsilon": "1.5"}), check_spent=False)
    assert [entry.state for entry in client.ledger().entries] == ["pending", "refused"]
    client.close()
    again = connect()
    assert again.contribute("commute", **ADA).status == ("unchanged" if arrived else "created")
    again.replace("commute", **ADA)
    reports = [sent["report"] for sent in (*service.sent("POST"), service.sent("PUT")[-1])]
    assert len(reports) == 7
    assert len(set(reports)) == 1
    entries = again.ledger().entries
    assert [entry.noise_epsilon for entry in entries] == [Decimal(1), Decimal("0.5")]
    assert [entry.state for entry in entries] == ["accepted", "refused"]


def test_a_pending_value_stays_counted_when_the_service_holds_something(
    connect: Connect, service: FakeService, tmp_path: Any
) -> None:
    """What exists may be this very value: the service tells it only to the token that sent it."""
    client = connect()
    client.study("commute")
    service.faults = [httpx.ConnectError("refused")] * 5
    central = {"subject": "ada", "value": 34, "epsilon": 1, "trust": "central"}
    with pytest.raises(TransportError):
        client.contribute("commute", **central)
    connect(directory=tmp_path / "other").contribute("commute", **(central | {"value": 35}))
    with pytest.raises(ProblemError, match="contribution_exists"):
        client.contribute("commute", **central)
    assert client.ledger().totals == {"ada": Decimal(1)}


def test_noise_that_no_service_takes_is_not_sent(
    client: Any, service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dither.device.randomizers.discrete_laplace", lambda t, s, bits: 1 << 63)
    with pytest.raises(LedgerError):
        client.contribute("commute", **ADA)
    assert service.sent("POST") == []
    assert client.ledger().entries == ()


def test_a_value_that_another_device_contributed_is_left_alone(
    connect: Connect, service: FakeService, tmp_path: Any
) -> None:
    connect().contribute("commute", **ADA)
    other = connect(directory=tmp_path / "other")
    for epsilon in ("0.5", 2):
        with pytest.raises(AlreadyContributed, match="another device"):
            other.contribute("commute", **(ADA | {"value": 35, "epsilon": epsilon}))
    assert other.ledger().entries == (), "no report was drawn"
    with pytest.raises(ProblemError) as refusal:
        other.contribute("commute", **(ADA | {"value": 35, "epsilon": 2}), check_spent=False)
    assert refusal.value.code == "contribution_exists"


def test_a_server_that_claims_a_larger_epsilon_is_not_believed(client: Any, service: FakeService) -> None:
    client.study("commute")
    service.faults = [
        httpx.Response(201, json={"study": "commute", "subject": "ada", "trust": "central", "epsilon": 1.01})
    ]
    with pytest.raises(ResponseError):
        client.contribute("commute", subject="ada", value=34, epsilon=1, trust="central")


# -- arguments and descriptions


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"value": 120.5}, "value"),
        ({"value": -1}, "value"),
        ({"value": float("nan")}, "value"),
        ({"value": float("inf")}, "value"),
        ({"value": 1e200}, "value"),
        ({"value": True}, "value"),
        ({"value": None}, "value"),
        ({"value": "1_0"}, "value"),
        ({"value": " 34"}, "value"),
        ({"value": "٣"}, "value"),
        ({"value": Decimal("sNaN")}, "value"),
        ({"value": 10**5000}, "value"),
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": -1}, "epsilon"),
        ({"epsilon": "5.01"}, "epsilon"),
        ({"epsilon": "0.0009999"}, "epsilon"),
        ({"epsilon": float("inf")}, "epsilon"),
        ({"epsilon": None}, "epsilon"),
        ({"epsilon": 1, "trust": "public"}, "epsilon"),
        ({"trust": "secret"}, "trust"),
        ({"trust": None}, "trust"),
        ({"subject": ""}, "subject"),
        ({"subject": ".."}, "subject"),
        ({"subject": "a" * 257}, "subject"),
        ({"subject": "\ud800"}, "subject"),
        ({"subject": "a\0b"}, "subject"),
        ({"subject": 7.0}, "subject"),
    ],
)
def test_an_inadmissible_argument_is_refused_before_anything_is_sent(
    client: Any, service: FakeService, change: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        client.contribute("commute", **(ADA | change))
    assert refusal.value.field == field
    assert service.sent("POST") == []
    assert client.ledger().entries == ()


def test_a_trust_tag_that_the_study_does_not_accept_is_refused(client: Any, service: FakeService) -> None:
    service.studies["commute"]["trust"] = ["central"]
    with pytest.raises(InvalidRequest, match="trust"):
        client.contribute("commute", **ADA)


@pytest.mark.parametrize("subject", ["a/b", "ä ?#%", "a%2Fb", "…", 'x"y', "'"])
def test_any_text_names_a_subject(client: Any, service: FakeService, subject: str) -> None:
    client.contribute("commute", **(ADA | {"subject": subject}))
    client.replace("commute", **(ADA | {"subject": subject, "epsilon": 2}))
    assert client.budget(subject).studies[0].spent == 2
    client.withdraw("commute", subject=subject)
    assert {owner for _, owner in service.holdings} == {subject}


@pytest.mark.parametrize(
    "change",
    [
        {"lower": 1},
        {"upper": 121},
        {"upper": 120.00000001},
        {"relation": "add_remove_one"},
        {"local_mechanism": "gaussian"},
        {"noise": "gaussian", "delta": 1e-6},
    ],
)
def test_a_study_that_changed_is_refused(
    connect: Connect, service: FakeService, change: dict[str, Any]
) -> None:
    connect().contribute("commute", **ADA)
    service.studies["commute"] |= change
    with pytest.raises(StudyChanged) as refusal:
        connect().contribute("commute", subject="bob", value=34, epsilon=1, trust="central")
    assert len(refusal.value.fields) == 1
    assert [sent["subject"] for sent in service.sent("POST")] == ["ada"]


def test_a_study_that_was_only_looked_at_may_not_change_either(
    connect: Connect, service: FakeService
) -> None:
    connect().study("commute")
    service.studies["commute"]["upper"] = 1200
    with pytest.raises(StudyChanged):
        connect().contribute("commute", **ADA)


def test_what_may_change_about_a_study_may_change(connect: Connect, service: FakeService) -> None:
    connect().contribute("commute", **ADA)
    service.studies["commute"] |= {"title": "?", "upper": 120, "default_share": 1, "new_field": {}}
    connect().contribute("commute", **(ADA | {"subject": "bob"}))


@pytest.mark.parametrize(
    "change",
    [
        {"lower": 120},
        {"upper": -1},
        {"relation": "none"},
        {"epsilon": {"min": 0, "max": 1}},
        {"epsilon": {"min": 2, "max": 1}},
        {"epsilons": [1, 1000]},
        {"delta": 1},
        {"dimension": 0},
        {"slug": "sleep"},
    ],
)
def test_a_study_that_makes_no_sense_is_refused(
    client: Any, service: FakeService, change: dict[str, Any]
) -> None:
    service.faults = [httpx.Response(200, json=COMMUTE | change)]
    with pytest.raises(StudyUnsound):
        client.contribute("commute", **ADA)


@pytest.mark.parametrize("change", [{"lower": None}, {"upper": "wide"}, {"trust": "local"}, {"epsilon": 1}])
def test_a_description_that_is_none_is_refused(
    client: Any, service: FakeService, change: dict[str, Any]
) -> None:
    service.faults = [httpx.Response(200, json=COMMUTE | change)]
    with pytest.raises(ResponseError):
        client.study("commute")


@pytest.mark.parametrize(
    "change",
    [
        {"local_mechanism": "rappor"},
        {"local_mechanism": None},
        {"local_mechanism": "gaussian"},
        {"local_mechanism": "gaussian", "noise": "gaussian", "delta": 9e-13},
        {"dimension": 2},
    ],
)
def test_no_report_is_made_without_a_known_randomizer(
    client: Any, service: FakeService, change: dict[str, Any]
) -> None:
    service.studies["commute"] |= change
    with pytest.raises(UnsupportedMechanism):
        client.contribute("commute", **ADA)
    assert client.ledger().entries == ()


def test_without_a_directory_a_value_can_be_withdrawn(connect: Connect, service: FakeService) -> None:
    service.holdings["commute", "ada"] = Holding({}, Decimal(1), Decimal(1))
    connect(directory=None).withdraw("commute", subject="ada")
    assert service.holdings["commute", "ada"].sent is None


def test_a_description_is_fetched_once(client: Any, service: FakeService) -> None:
    for subject in ("ada", "bob"):
        client.contribute("commute", subject=subject, value=34, epsilon=1, trust="central")
    assert len([r for r in service.log if r.method == "GET"]) == 1


INSIDE = {**RANGE, "searches": ["a", "b"]}


@pytest.mark.parametrize("value", [0, 34, 41.9, 120])
@pytest.mark.parametrize("mechanism", ["hybrid", "optimal", "laplace"])
def test_a_report_is_made_inside_the_reporting_range_and_says_so(
    connect: Connect, service: FakeService, monkeypatch: pytest.MonkeyPatch, mechanism: str, value: float
) -> None:
    service.studies["commute"] |= {"reporting_range": INSIDE, "local_mechanism": mechanism}
    drawn: list[int] = []
    kind = type(randomizer(mechanism))
    draw = kind.draw

    def drawing(self: Any, offset: int, epsilon: int, bits: Any) -> int:
        drawn.append(offset)
        return draw(self, offset, epsilon, bits)

    monkeypatch.setattr(kind, "draw", drawing)
    first, other = connect(), {**ADA, "value": value}
    first.contribute("commute", **other)
    # The same again: nothing is drawn, and what it states is remembered.
    service.studies["commute"] |= {"reporting_range": None}
    connect().contribute("commute", **other)
    one, again = service.sent("POST")
    assert one == again
    assert one["reporting_range"] == f"{2**28}/10"
    point = round(Decimal(str(value)) / 120 * 2**30)
    moved = min(max(point, 2**28), 2**28 + 2**30 // 10)
    assert drawn == [10 * (moved - 2**28) - 2**29]
    connect().contribute("commute", **{**ADA, "subject": "bob"})
    assert "reporting_range" not in service.sent("POST")[-1]


@pytest.mark.parametrize(
    "wrong", [{"zoom": 1}, {"zoom": 0}, {"start": -1}, {"start": 2**30 - 2**30 // 10 + 1}]
)
def test_a_reporting_range_outside_the_range_is_refused(
    client: Any, service: FakeService, wrong: dict[str, int]
) -> None:
    service.studies["commute"] |= {"reporting_range": {**INSIDE, **wrong}}
    with pytest.raises(StudyUnsound):
        client.contribute("commute", **ADA)
    assert service.sent("POST") == []
