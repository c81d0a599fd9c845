"""What admins ask of a service: what is sent, what comes back, and what is never sent twice."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import httpx
import pytest
from dither import InvalidRequest, ProblemError, ResponseError, TransportError

from tests.client.service import FakeService, problem

SENT_ONCE: dict[str, Callable[[Any], Any]] = {
    "create_study": lambda client: client.create_study("steps", lower=0, upper=1),
    "create_token": lambda client: client.create_token("app", role="analyse"),
    "rotate_token": lambda client: client.rotate_token("t1"),
    "invite": lambda client: client.invite("commute", kind="open"),
    "publish": lambda client: client.publish("commute", ["r1"], title="Commuting"),
}

REPEATED: dict[str, Callable[[Any], Any]] = {
    "studies": lambda client: list(client.studies()),
    "close_study": lambda client: client.close_study("commute"),
    "raise_budgets": lambda client: client.raise_budgets(epsilon="0.5", reason="another year", key="k"),
    "edit_study": lambda client: client.edit_study("commute", title="Why?", reason="a typo"),
    "narrow_study": lambda client: client.narrow_study("commute", lower="s1", upper="s2"),
    "archive_study": lambda client: client.archive_study("commute", reason="over"),
    "retire_study": lambda client: client.retire_study("commute"),
    "tokens": lambda client: list(client.tokens()),
    "find_token": lambda client: client.find_token("t1"),
    "set_quota": lambda client: client.set_quota("t1", share="0.5", period_seconds=60),
    "lift_quota": lambda client: client.lift_quota("t1"),
    "revoke_token": lambda client: client.revoke_token("t1"),
    "token_usage": lambda client: list(client.token_usage("t1")),
    "set_budget": lambda client: client.set_budget("ada", epsilon=20, reason="asked"),
    "budgets": lambda client: list(client.budgets()),
    "invitations": lambda client: list(client.invitations("commute")),
    "webhooks": lambda client: list(client.webhooks()),
    "schedules": lambda client: list(client.schedules("commute")),
    "publications": lambda client: list(client.publications("commute")),
}


def test_arguments_of_another_kind_are_refused_by_their_names(client: Any, service: FakeService) -> None:
    with pytest.raises(InvalidRequest, match="expires_at must be a datetime with a time zone, not str"):
        client.create_token("app", role="contribute", expires_at="2030-01-31")
    for centres in ([20, 40], 20, ["20"]):
        with pytest.raises(InvalidRequest, match="centres must be a list of points"):
            client.create_session("commute", protocol="kmeans", epsilon=1, rounds=2, centres=centres)
    for measures in (["age"], {"age": [0, 120]}):
        with pytest.raises(InvalidRequest, match=r"measures\S* must be a mapping, such as"):
            client.create_study("x", measures=measures)
    for epsilons in (1, "1", {"a": 1}):
        with pytest.raises(InvalidRequest, match="epsilons must be a list of numbers"):
            client.create_study("x", lower=0, upper=1, epsilons=epsilons)
    for gaussian in (3, "3", (3,), (3, 1e-6, 1)):
        with pytest.raises(InvalidRequest, match="gaussian must be"):
            client.set_budget("ada", epsilon=1, reason="asked", gaussian=gaussian)
    for title in (object(), {1: "2"}):
        with pytest.raises(
            InvalidRequest, match="title is, or holds, what is no text, number, list or mapping"
        ):
            client.edit_study("commute", title=title, reason="a typo")
    assert service.log == []


@pytest.mark.parametrize("key", ["", " ", "k ", "two\nlines", "é", "k" * 201, 0, 7, True, b"k", [], ["k"]])
def test_a_key_that_is_none_is_refused_and_not_replaced_by_a_random_one(
    client: Any, service: FakeService, key: Any
) -> None:
    with pytest.raises(
        InvalidRequest, match=r"^idempotency_key must be a text|^idempotency_key may not begin"
    ):
        client.release("commute", idempotency_key=key)
    with pytest.raises(InvalidRequest, match=r"^key must be a text|^key may not begin"):
        client.raise_budgets(epsilon=1, reason="another year", key=key)
    assert service.log == []


def test_a_key_has_up_to_200_characters(client: Any, service: FakeService) -> None:
    client.raise_budgets(epsilon=1, reason="another year", key="k" * 200)
    assert service.log[-1].headers["idempotency-key"] == "k" * 200


def test_a_subject_of_digits_may_be_an_integer(client: Any, service: FakeService) -> None:
    client.set_budget(7, epsilon=20, reason="asked")
    assert service.log[-1].url.path == "/v1/admin/subjects/7/budget"
    with pytest.raises(InvalidRequest, match="subject"):
        client.set_budget(None, epsilon=20, reason="asked")


@pytest.mark.parametrize("name", SENT_ONCE)
def test_what_would_be_done_twice_is_sent_once(client: Any, service: FakeService, name: str) -> None:
    client.create_token("app", role="contribute")
    service.log.clear()
    service.faults = [service.lose]
    with pytest.raises(TransportError):
        SENT_ONCE[name](client)
    assert len(service.log) == 1
    service.faults = [problem(503, "draining")]
    with pytest.raises(ProblemError):
        SENT_ONCE[name](client)
    assert len(service.log) == 2


@pytest.mark.parametrize("name", SENT_ONCE)
def test_what_was_surely_not_done_is_tried_again(client: Any, service: FakeService, name: str) -> None:
    client.create_token("app", role="contribute")
    service.faults = [problem(429, "too_many_requests")]
    SENT_ONCE[name](client)
    assert service.faults == []


@pytest.mark.parametrize("name", REPEATED)
def test_what_may_be_repeated_is_tried_again(client: Any, service: FakeService, name: str) -> None:
    client.create_token("app", role="contribute")
    service.faults = [service.lose, problem(503, "draining")]
    REPEATED[name](client)
    assert service.faults == []


def test_a_study_is_sent_exactly_and_without_what_was_not_given(client: Any, service: FakeService) -> None:
    client.create_study(
        "steps", lower="-0.10", upper=Decimal("1e3"), epsilon_max="2.50", trust=["local", "central"], delta=0
    )
    assert service.sent("POST") == [
        {
            "slug": "steps",
            "lower": Decimal("-0.10"),
            "upper": 1000,
            "trust": ["local", "central"],
            "epsilon": {"max": Decimal("2.50")},
            "delta": 0,
        }
    ]


def test_epsilons_are_listed_exactly(client: Any, service: FakeService) -> None:
    client.create_study("steps", lower=0, upper=1, epsilons=["0.50", 1, Decimal("1e2")])
    [sent] = service.sent("POST")
    assert sent["epsilons"] == [Decimal("0.50"), 1, 100]
    assert "epsilon" not in sent


def test_links_are_made_as_they_are_wished_and_shown_this_once(client: Any, service: FakeService) -> None:
    expires = datetime(2030, 1, 31, tzinfo=UTC)
    made = client.invite("commute", kind="single", subjects=["ann", "bob"], name="mail", expires_at=expires)
    assert service.sent("POST") == [
        {
            "kind": "single",
            "subjects": ["ann", "bob"],
            "name": "mail",
            "expires_at": "2030-01-31T00:00:00+00:00",
        }
    ]
    assert len(made.urls) == 2
    assert made.urls[0] not in repr(made)
    client.revoke_invitation("commute", made.id)
    assert client.invitation("commute", made.id).state == "revoked"


def test_a_webhook_is_made_with_a_secret_and_deleted(client: Any, service: FakeService) -> None:
    made = client.create_webhook("https://bot.example/dither", events=["released", "study_closed"])
    assert service.sent("POST") == [
        {"url": "https://bot.example/dither", "events": ["released", "study_closed"]}
    ]
    assert made.secret not in repr(made)
    assert [one.events for one in client.webhooks()] == [("released", "study_closed")]
    client.delete_webhook(made.id)
    assert list(client.webhooks()) == []


def test_a_token_says_when_it_expires(client: Any, service: FakeService) -> None:
    expires = datetime(2030, 1, 31, tzinfo=UTC)
    made = client.create_token("app", role="contribute", subject="ada", expires_at=expires)
    assert (made.expires_at, made.created_at.year) == (expires, 2030)
    assert made.token not in repr(made)


def test_lists_are_paged_through(client: Any, service: FakeService) -> None:
    for number in range(5):
        client.create_token(f"app {number}", role="analyse")
    service.log.clear()
    assert [token.name for token in client.tokens(page_size=2)] == [f"app {number}" for number in range(5)]
    assert len(service.log) == 3


@pytest.mark.parametrize("body", ["[]", "{}", '{"items": {}}', '{"items": [], "next_cursor": 1}'])
def test_a_list_that_is_none_is_an_error(client: Any, service: FakeService, body: str) -> None:
    service.faults = [httpx.Response(200, text=body)]
    with pytest.raises(ResponseError):
        list(client.tokens())


@pytest.mark.parametrize("value", ["much", float("nan"), Decimal("inf")])
def test_a_number_that_is_none_is_refused_and_nothing_is_sent(
    client: Any, service: FakeService, value: Any
) -> None:
    for field, ask in (
        ("lower", lambda: client.create_study("x", lower=value, upper=1)),
        (
            "measures.age.upper",
            lambda: client.create_study("x", measures={"age": {"lower": 0, "upper": value}}),
        ),
        ("share", lambda: client.set_quota("t1", share=value, period_seconds=1)),
        ("epsilon", lambda: client.set_budget("ada", epsilon=value, reason="asked")),
        ("epsilon", lambda: client.create_session("commute", protocol="minimum", epsilon=value)),
    ):
        with pytest.raises(InvalidRequest, match=f"^{field} must be a finite decimal number$"):
            ask()
    assert service.log == []


@pytest.mark.parametrize("text", ["", ".", ".."])
def test_an_id_that_would_be_another_address_is_refused(client: Any, service: FakeService, text: str) -> None:
    for ask in (client.revoke_token, client.find_token, client.close_study, client.find_release):
        with pytest.raises(InvalidRequest):
            ask(text)
    assert service.log == []


@pytest.mark.parametrize("other", [["commute"], {"a": 1}, 7, None])
def test_an_id_that_is_no_text_is_refused(client: Any, service: FakeService, other: Any) -> None:
    for ask in (client.study, client.session, client.finish_session, client.find_release):
        with pytest.raises(InvalidRequest, match="must be a name or an id, as text"):
            ask(other)
    with pytest.raises(InvalidRequest, match="study must be a name or an id, as text"):
        client.contribute(other, subject="ada", value=34, epsilon=1, trust="central")
    with pytest.raises(InvalidRequest, match="session must be a name or an id, as text"):
        client.participate(other, subject="ada", value=34)
    assert service.log == []


def test_a_subject_may_be_any_text(client: Any, service: FakeService) -> None:
    client.set_budget("a/b c%", epsilon=1, reason="asked")
    assert service.log[-1].url.raw_path == b"/v1/admin/subjects/a%2Fb%20c%25/budget"


def test_a_question_is_scheduled_and_that_deleted(client: Any, service: FakeService) -> None:
    first = datetime(2031, 1, 1, tzinfo=UTC)
    question = {"statistic": "mean", "share": Decimal("0.1")}
    made = client.create_schedule("commute", question, every="week", quota="0.5", until=0.5, starts_at=first)
    assert json.loads(service.log[-1].content) == {
        "question": {"statistic": "mean", "share": 0.1},
        "every": "week",
        "quota": 0.5,
        "newcomers": False,
        "until": 0.5,
        "starts_at": "2031-01-01T00:00:00+00:00",
    }
    assert (made.due_at, made.quota, made.newcomers) == (first, Decimal("0.5"), False)
    assert client.find_schedule("commute", made.id) == made
    assert [one.id for one in client.schedules("commute")] == [made.id]
    client.delete_schedule("commute", made.id)
    assert list(client.schedules("commute")) == []
    with pytest.raises(InvalidRequest, match="schedule must be a name or an id, as text"):
        client.delete_schedule("commute", "")


def test_answers_are_published_changed_and_withdrawn(client: Any, service: FakeService) -> None:
    until = datetime(2031, 1, 1, tzinfo=UTC)
    made = client.publish("commute", ["r1", "r2"], title="Commuting", slug="commuting", expires_at=until)
    assert (made.url, made.releases, made.state) == (
        "https://dither.example/p/commuting",
        ("r1", "r2"),
        "shown",
    )
    assert made.expires_at == until
    origin = "https://example.org"
    changed = client.publish(
        "commute", ["r2"], title="By car", slug="commuting", replace=True, frames=[origin]
    )
    assert (changed.title, changed.releases, changed.frames) == ("By car", ("r2",), (origin,))
    assert [one.slug for one in client.publications("commute")] == ["commuting"]
    client.withdraw_publication("commute", "commuting")
    assert [one.state for one in client.publications("commute")] == ["withdrawn"]
    with pytest.raises(InvalidRequest, match="publication must be a name or an id, as text"):
        client.publish("commute", ["r1"], title="x", replace=True)
