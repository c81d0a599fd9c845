"""How requests are sent, again if need be, and what becomes of faults."""

import asyncio
import email.utils
import inspect
import json
import time
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import dither
import httpx
import pytest
from dither import (
    AsyncClient,
    Client,
    ConnectionFailed,
    DitherError,
    InvalidRequest,
    ProblemError,
    ProtocolFault,
    ResponseError,
    Retry,
    TimedOut,
    TransportError,
)
from dither._errors import HTTPX_ERRORS, HTTPX_MEANINGS, httpx_meaning
from dither._flow import Reply, Request, Send, Sleep, exchange

from tests.client.service import FakeService, problem

Connect = Callable[..., Any]
REQUEST = Request(method="GET", path="/v1/studies/commute")


def drive(retry: Retry, *outcomes: Reply | Exception) -> tuple[list[float], Reply | Exception]:
    """Run an exchange against these outcomes; the waits, and how it ended."""
    flow = exchange(REQUEST, retry)
    waits: list[float] = []
    pending = iter(outcomes)
    effect: Any = next(flow)
    try:
        while True:
            if isinstance(effect, Sleep):
                waits.append(effect.seconds)
                effect = flow.send(None)
                continue
            assert effect == Send(REQUEST)
            outcome = next(pending)
            effect = flow.throw(outcome) if isinstance(outcome, Exception) else flow.send(outcome)
    except StopIteration as end:
        return waits, end.value
    except DitherError as error:
        return waits, error


OK = Reply(status=200, body=b"{}")


def reply(status: int, retry_after: str | None = None) -> Reply:
    return Reply(status=status, body=b"", retry_after=retry_after)


# -- retries


@pytest.mark.parametrize(
    "fault",
    [
        httpx.ConnectError("x"),
        httpx.ReadError("x"),
        httpx.RemoteProtocolError("x"),
        httpx.ProxyError("x"),
        httpx.ReadTimeout("x"),
        httpx.ConnectTimeout("x"),
        reply(429),
        reply(502),
        reply(503),
        reply(504),
    ],
)
def test_what_may_pass_is_tried_again(fault: Reply | Exception) -> None:
    waits, outcome = drive(Retry(), fault, fault, OK)
    assert len(waits) == 2
    assert isinstance(outcome, Reply)
    assert outcome.certain == (isinstance(fault, Reply) and fault.status == 429)


@pytest.mark.parametrize(
    "fault",
    [
        httpx.UnsupportedProtocol("x"),
        httpx.LocalProtocolError("x"),
        httpx.DecodingError("x"),
        httpx.InvalidURL("x"),
        reply(400),
        reply(401),
        reply(404),
        reply(409),
        reply(422),
        reply(500),
        reply(307),
    ],
)
def test_what_stays_is_not_tried_again(fault: Reply | Exception) -> None:
    waits, outcome = drive(Retry(), fault)
    assert waits == []
    assert isinstance(outcome, ProblemError if isinstance(fault, Reply) else TransportError)


def test_tries_end() -> None:
    waits, outcome = drive(Retry(attempts=3), *[httpx.ConnectError("x")] * 3)
    assert len(waits) == 2
    assert isinstance(outcome, ConnectionFailed)
    assert isinstance(outcome.__cause__, httpx.ConnectError)
    waits, outcome = drive(Retry(attempts=3), *[reply(503)] * 3)
    assert len(waits) == 2
    assert isinstance(outcome, ProblemError)
    assert outcome.status == 503


def test_waits_grow_exponentially_with_jitter_and_are_capped() -> None:
    retry = Retry(attempts=9, base_seconds=1, cap_seconds=10)
    samples = [drive(retry, *[reply(503)] * 9)[0] for _ in range(200)]
    for number in range(8):
        longest = min(10, 2**number)
        waits = [sample[number] for sample in samples]
        assert all(0 <= wait < longest for wait in waits)
        assert max(waits) > longest * 0.9
        assert min(waits) < longest * 0.1


def test_retry_after_is_honored() -> None:
    waits, _ = drive(Retry(base_seconds=0), reply(429, "7"), reply(503, " 2 "), OK)
    assert waits == [7, 2]
    waits, _ = drive(Retry(base_seconds=0), reply(503, "Wed, 21 Oct 2015 07:28:00 -0000"), OK)
    assert waits == [0]
    date = email.utils.format_datetime(email.utils.localtime()).replace("-0000", "GMT")
    [wait], _ = drive(Retry(base_seconds=0), reply(429, date), OK)
    assert 0 <= wait <= 1
    future = email.utils.formatdate(time.time() + 30, usegmt=True)
    [wait], _ = drive(Retry(base_seconds=0), reply(503, future), OK)
    assert 28 <= wait <= 30
    waits, _ = drive(Retry(base_seconds=0), reply(503, "soon"), OK)
    assert waits == [0]


def test_a_service_that_asks_for_too_much_patience_is_not_waited_for() -> None:
    waits, outcome = drive(Retry(patience_seconds=60), reply(429, "61"))
    assert waits == []
    assert isinstance(outcome, ProblemError)


def test_patience_bounds_the_sum_of_waits() -> None:
    waits, outcome = drive(Retry(base_seconds=0), *[reply(503, "25")] * 5)
    assert waits == [25, 25]
    assert isinstance(outcome, ProblemError)
    assert outcome.retry_after == 25
    for _ in range(20):
        waits, _ = drive(Retry(patience_seconds=60), reply(503, "60"), OK)
        assert waits == [60], "jitter does not make it too long"
    waits, outcome = drive(Retry(patience_seconds=0), httpx.ConnectError("x"))
    assert waits == []
    assert isinstance(outcome, ConnectionFailed)


@pytest.mark.parametrize(("retry_after", "said"), [("7", " in 7 s"), (None, "all of it")])
def test_a_quota_that_is_used_up_is_not_waited_for(retry_after: str | None, said: str) -> None:
    body = json.dumps({"code": "quota_exhausted", "detail": "it takes all of it"}).encode()
    waits, outcome = drive(Retry(), Reply(status=429, body=body, retry_after=retry_after))
    assert waits == []
    assert isinstance(outcome, ProblemError)
    assert outcome.retry_after == (None if retry_after is None else 7)
    assert str(outcome).endswith(said)


def test_who_waits_is_told_how_long() -> None:
    told: list[float] = []
    drive(Retry(base_seconds=0, on_wait=told.append), reply(429, "7"), reply(503), reply(503, "2"), OK)
    assert told == [7, 2]


@pytest.mark.parametrize("options", [{"attempts": 0}, {"base_seconds": -1}, {"patience_seconds": -1}])
def test_an_impossible_retry_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="attempts"):
        Retry(**options)


def test_both_clients_wait(connect: Connect, service: FakeService) -> None:
    client = connect(retry=Retry(base_seconds=0.001))
    service.faults = [httpx.ConnectError("x"), problem(503, "unavailable"), problem(429, "rate_limited")]
    assert client.study("commute").slug == "commute"
    assert len(service.log) == 4


def test_every_method_may_be_sent_twice(client: Any, service: FakeService) -> None:
    """Each request is served, its answer lost, and sent again; the outcome is that of one request."""
    ada = {"subject": "ada", "value": 34, "trust": "local", "check_spent": False}

    def lose_one() -> None:
        service.faults = [service.lose]

    lose_one()
    assert client.study("commute").slug == "commute"
    lose_one()
    assert client.contribute("commute", **ada, epsilon=1).status == "unchanged"
    lose_one()
    assert client.replace("commute", **(ada | {"value": 35}), epsilon=2).status == "replaced"
    assert service.holdings["commute", "ada"].epsilon == 2
    lose_one()
    client.withdraw("commute", subject="ada")
    lose_one()
    client.release("commute")
    assert len(service.releases) == 1
    lose_one()
    load = client.contribute_many("commute", [dither.Record("bob", 1)], epsilon=1, trust="central")
    assert (load.created, load.unchanged) == (0, 1)


# -- problems and other answers


def test_a_problem_carries_what_the_service_says(client: Any, service: FakeService) -> None:
    errors = [{"field": "epsilon", "reason": "too large"}, {"field": "value", "reason": "outside"}]
    service.faults = [problem(422, "invalid_request", "Look at the fields.", errors)]
    with pytest.raises(ProblemError) as refusal:
        client.study("commute")
    error = refusal.value
    assert (error.status, error.code, error.detail) == (422, "invalid_request", "Look at the fields.")
    assert [(row.field, row.reason) for row in error.errors] == [
        ("epsilon", "too large"),
        ("value", "outside"),
    ]
    assert error.request == "GET /v1/studies/commute"
    told = "422 invalid_request: Look at the fields. (epsilon: too large; value: outside)"
    assert str(error) == told


def test_a_problem_has_the_id_of_its_request(client: Any, service: FakeService) -> None:
    document = b'{"code": "internal_fault", "detail": "The fault was logged.", "request_id": "4bf92f35"}'
    service.faults = [
        httpx.Response(500, content=document),
        httpx.Response(403, content=b'{"request_id": 7}'),
    ]
    for expected in ("4bf92f35", ""):
        with pytest.raises(ProblemError) as refusal:
            client.release("commute")
        assert refusal.value.request_id == expected


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'"x"', b'{"code": 7}', b'{"errors": [1]}', b"\xff"])
def test_a_refusal_without_a_problem_document_is_a_problem_too(
    client: Any, service: FakeService, body: bytes
) -> None:
    service.faults = [httpx.Response(403, content=body)]
    with pytest.raises(ProblemError) as refusal:
        client.study("commute")
    assert (refusal.value.status, refusal.value.code) == (403, "http_403")


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"[]", b"{}", b'{"slug": NaN}', b'{"lower": 1e99999999999999999999}', b"[" * 100_000],
)
def test_an_answer_that_is_none_is_an_error(client: Any, service: FakeService, body: bytes) -> None:
    service.faults = [httpx.Response(200, content=body)]
    with pytest.raises(ResponseError):
        client.study("commute")


@pytest.mark.parametrize(
    "change",
    [
        {"id": 1},
        {"estimate": "32"},
        {"estimate": True},
        {"epsilon_max": [1]},
        {"interval": 7},
        {"interval": {"level": 0.95}},
        {"created_at": "yesterday"},
        {"new_contributions": 1},
        {"parameters": "share"},
    ],
)
def test_a_field_of_another_type_is_an_error(
    client: Any, service: FakeService, change: dict[str, Any]
) -> None:
    client.release("commute")
    service.releases[0] |= change
    service.faults = [httpx.Response(200, json=service.releases[0])]
    with pytest.raises(ResponseError):
        client.mean("commute")


def test_an_estimate_may_be_missing_and_a_huge_one_is_an_error(client: Any, service: FakeService) -> None:
    client.release("commute")
    service.faults = [httpx.Response(200, json=service.releases[0] | {"estimate": None})]
    assert client.mean("commute").estimate is None
    huge = json.dumps(service.releases[0]).replace("32.0", "1e999")
    service.faults = [httpx.Response(200, content=huge)]
    with pytest.raises(ResponseError):
        client.mean("commute")


def test_redirects_are_not_followed_with_the_token(client: Any, service: FakeService) -> None:
    service.faults = [httpx.Response(307, headers={"location": "https://elsewhere.example/"})]
    with pytest.raises(ProblemError, match="307"):
        client.study("commute")
    assert len(service.log) == 1


# -- the map of exceptions


RAISED = sorted(
    (
        kind
        for _, kind in inspect.getmembers(httpx, inspect.isclass)
        if issubclass(kind, Exception) and kind.__module__ == "httpx"
    ),
    key=lambda kind: kind.__name__,
)
"""Every exception that httpx exports."""

EXPECTED = {
    "CloseError": ConnectionFailed,
    "ConnectError": ConnectionFailed,
    "ConnectTimeout": TimedOut,
    "NetworkError": ConnectionFailed,
    "PoolTimeout": TimedOut,
    "ProxyError": ConnectionFailed,
    "ReadError": ConnectionFailed,
    "ReadTimeout": TimedOut,
    "TimeoutException": TimedOut,
    "WriteError": ConnectionFailed,
    "WriteTimeout": TimedOut,
}
"""What they become here; all others are faults of the protocol."""


def test_every_exception_of_httpx_is_mapped() -> None:
    assert len(RAISED) >= 28
    for kind in RAISED:
        assert issubclass(kind, HTTPX_ERRORS), f"{kind} would get out"
        assert httpx_meaning(kind.__new__(kind)).error is EXPECTED.get(kind.__name__, ProtocolFault), kind
    assert all(issubclass(meaning.error, TransportError) for meaning in HTTPX_MEANINGS.values())


@pytest.mark.parametrize("kind", RAISED)
def test_no_exception_of_httpx_gets_out(connect: Connect, service: FakeService, kind: Any) -> None:
    if issubclass(kind, httpx.HTTPStatusError):
        fault = kind("x", request=httpx.Request("GET", "http://x"), response=httpx.Response(500))
    else:
        fault = kind() if len(inspect.signature(kind).parameters) == 0 else kind("x")
    client = connect(retry=Retry(attempts=1))
    service.faults = [fault]
    with pytest.raises(TransportError) as wrapped:
        client.study("commute")
    assert wrapped.value.__cause__ is fault


# -- configuration


def test_requests_carry_the_token_and_a_name(client: Any, service: FakeService) -> None:
    client.study("commute")
    headers = service.log[0].headers
    assert headers["authorization"] == "Bearer token"
    assert headers["user-agent"] == f"dither/{dither.__version__}"
    assert str(service.log[0].url) == "https://dither.example/v1/studies/commute"


@pytest.mark.parametrize(
    "base", ["http://x", "http://x/", "http://x:80", "http://x/prefix", "http://x/prefix/"]
)
def test_the_service_may_live_under_a_path(base: str) -> None:
    service = FakeService()
    seen: list[str] = []

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append(str(request.url))
        request.url = request.url.copy_with(path=request.url.path.removeprefix("/prefix"))
        return service(request)

    with Client(base, "t", transport=httpx.MockTransport(handle)) as client:
        client.study("commute")
    prefix = "/prefix" if "prefix" in base else ""
    assert seen == [f"http://x{prefix}/v1/studies/commute"]


@pytest.mark.parametrize("base", ["", "x", "ftp://x", "http://", "/v1", 7])
def test_an_address_that_is_none_is_refused(base: Any) -> None:
    for kind in (Client, AsyncClient):
        with pytest.raises(InvalidRequest, match="base_url"):
            kind(base, "t")


@pytest.mark.parametrize("token", ["", "a b", "a\nb", "ä"])
def test_a_token_that_is_none_is_refused(token: str) -> None:
    with pytest.raises(InvalidRequest, match="token"):
        Client("http://x", token)


def test_a_token_may_end_with_the_line_that_it_was_read_from(connect: Connect, service: FakeService) -> None:
    client = Client("https://dither.example", " token\n", transport=service.transport)
    client.study("commute")
    assert service.log[-1].headers["authorization"] == "Bearer token"
    client.close()


def test_a_closed_client_says_so(client: Any, service: FakeService) -> None:
    client.study("commute")
    client.close()
    asked = len(service.log)
    for call in (
        lambda: client.study("commute"),
        lambda: list(client.studies()),
        lambda: client.contribute("commute", subject="ada", value=1, epsilon=1, trust="local"),
    ):
        with pytest.raises(InvalidRequest, match="client is closed"):
            call()
    assert len(service.log) == asked


def test_the_token_is_not_shown() -> None:
    with Client("http://x", "hush") as client:
        assert repr(client) == "Client('http://x')"


def test_time_outs_are_on_by_default_and_can_be_chosen() -> None:
    with Client("http://x", "t") as client:
        timeout = client._http.timeout
        assert (timeout.connect, timeout.read, timeout.write) == (30, 30, 30)
    with Client("http://x", "t", timeout=httpx.Timeout(1, read=5)) as client:
        assert client._http.timeout == httpx.Timeout(1, read=5)
    with Client("http://x", "t", timeout=None) as client:
        assert client._http.timeout.read is None


def test_a_proxy_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    def proxies(client: Client) -> list[str]:
        pools: list[Any] = [getattr(mount, "_pool", None) for mount in client._http._mounts.values()]
        return [pool._proxy_url.host.decode() for pool in pools if hasattr(pool, "_proxy_url")]

    with Client("http://x", "t", proxy="http://proxy.example:3128") as client:
        assert proxies(client) == ["proxy.example"]
    monkeypatch.setenv("HTTP_PROXY", "http://env.example:3128")
    with Client("http://x", "t") as client:
        assert proxies(client) == ["env.example"]


async def test_a_canceled_call_stops(tmp_path: Any) -> None:
    started = asyncio.Event()

    async def hang(request: httpx.Request) -> httpx.Response:
        started.set()
        await asyncio.sleep(60)
        raise AssertionError

    async with AsyncClient(
        "http://x", "t", directory=tmp_path, transport=httpx.MockTransport(hang)
    ) as client:
        task = asyncio.create_task(client.study("commute"))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


# -- questions


def test_a_release_gets_one_key_for_all_its_tries(client: Any, service: FakeService) -> None:
    service.faults = [service.lose, problem(503, "unavailable")]
    client.release("commute", share="0.5")
    client.release("commute", share="0.5")
    keys = [request.headers["idempotency-key"] for request in service.log]
    assert len(keys) == 4
    assert len(set(keys[:3])) == 1
    assert len(set(keys)) == 2
    assert len(service.releases) == 2


def test_a_key_of_ones_own_is_used(client: Any, service: FakeService) -> None:
    ids = {client.release("commute", idempotency_key="monday").id for _ in range(2)}
    assert ids == {"r1"}


def test_parameters_are_sent_exactly(client: Any, service: FakeService) -> None:

    parameters = {
        "share": Decimal("0.10"),
        "expected_size": 100,
        "epsilon": 0.1,
        "estimator": "kvh",
        "flag": True,
    }
    client.mean("commute", **parameters)
    client.release("commute", **parameters)
    assert service.log[0].url.query == b"share=0.10&expected_size=100&epsilon=0.1&estimator=kvh&flag=true"
    assert service.log[1].content == (
        b'{"statistic":"mean","share":0.10,"expected_size":100,"epsilon":0.1,"estimator":"kvh","flag":true}'
    )
    client.plan("commute", share=1)
    client.plan("commute", share=1, fresh=True)
    assert [entry.url.query for entry in service.log[2:]] == [
        b"statistic=mean&share=1",
        b"statistic=mean&share=1&fresh=true",
    ]


@pytest.mark.parametrize("method", ["mean", "plan", "release"])
def test_a_parameter_that_is_no_number_is_refused(client: Any, service: FakeService, method: str) -> None:
    with pytest.raises(InvalidRequest):
        getattr(client, method)("commute", share=float("nan"))
    assert service.log == []


@pytest.mark.parametrize("slug", ["", ".", "..", None])
def test_a_study_that_is_no_slug_is_refused(client: Any, service: FakeService, slug: Any) -> None:
    with pytest.raises(InvalidRequest, match="study"):
        client.study(slug)
    assert service.log == []


def test_a_release_is_read_in_full(client: Any) -> None:
    release = client.mean("commute")
    assert (release.id, release.estimate, release.standard_error) == ("r1", 32.0, 0.5)
    assert (release.interval.level, release.interval.lower, release.interval.upper) == (0.95, 30.5, 33.5)
    assert release.population_interval.upper == 35.0
    assert release.created_at.tzinfo is not None
    assert release.new_contributions is False
    assert release.raw["estimator"] == release.estimator


def test_bins_of_a_histogram_are_read_and_edges_are_sent_exactly(client: Any, service: FakeService) -> None:
    found = client.histogram("commute", edges=[Decimal("30.0"), 60], share="0.10")
    assert service.log[-1].url.query == b"edges=30.0%2C60&share=0.10"
    assert [(one.lower, one.upper, one.share) for one in found.bins] == [
        *((0.0, 30.0, 0.4), (30.0, 60.0, 0.5), (60.0, 120.0, 0.1))
    ]
    assert found.bins[0].simultaneous.level == 0.95
    assert (found.estimate, found.population_interval) == (None, None)
    client.distribution("commute", bins=4)
    assert service.log[-1].url.query == b"bins=4"
    assert client.quantile("commute", Decimal("0.90")).estimate == 58
    assert service.log[-1].url.query == b"q=0.90"
    assert client.median("commute").bins is None


def test_a_description_is_read_and_drawn(client: Any, service: FakeService) -> None:
    found = client.describe("commute", share="0.5")
    assert service.log[-1].url.query == b"share=0.5"
    assert (found.count.estimate, found.mean.estimate, found.sd.interval.upper) == (400, 32, 13)
    assert [(one.q, one.estimate) for one in found.quartiles] == [(0.25, 22), (0.5, 31), (0.75, 40)]
    assert found.estimate is None
    assert [(row["quartiles.q"], row["mean.estimate"]) for row in found._rows()] == [
        (0.25, 32.0),
        (0.5, 32.0),
        (0.75, 32.0),
    ]
    assert [label for label, *_ in found._drawn()[1]] == ["quantile 0.25", "quantile 0.5", "quantile 0.75"]
    frame = found.to_dataframe()
    parts = ["count", "mean", "sd", "quantile 0.25", "quantile 0.5", "quantile 0.75"]
    assert frame["of"].tolist() == parts
    assert frame["estimate"].tolist() == [400, 32, 12, 22, 31, 40]
    assert frame["upper"].tolist() == [400, 33, 13, 23, 32, 41]
    assert "count 400 (400 to 400); mean 32 (31 to 33); sd 12 (11 to 13); quantile 0.25 22" in str(found)


def test_a_covariance_by_labels_is_read_and_drawn(client: Any, service: FakeService) -> None:
    found = client.covariance("commute", "income", "age", by="region")
    assert service.log[-1].url.query == b"measures=income%2Cage&by=region"
    assert [(one.where["region"], one.estimate) for one in found.groups] == [("north", 120), ("south", 120)]
    assert found.groups[0].population_interval.upper == 140
    assert [one.value for one in found._drawn()[1]] == [120, 120, 120]


def test_a_correlation_and_a_line_are_read(client: Any, service: FakeService) -> None:
    found = client.correlation("commute", "income", "age")
    assert service.log[-1].url.query == b"measures=income%2Cage"
    assert (found.estimate, found.r_squared, found.lines[1].slope.estimate) == (0.5, 0.25, 2.0)
    line = client.regression("commute", of="income", on="age", by="region", at=9)
    assert service.log[-1].url.query == b"of=income&on=age&by=region&at=9"
    assert (line.prediction.at, line.prediction.estimate, line.prediction.interval.upper) == (9, 28, 38)
    assert (line.of, line.on, line.slope.interval.upper, line.intercept.estimate) == ("income", "age", 3, 10)
    assert [(one.at, one.lower, one.upper) for one in line.band] == [(0, 0, 20), (9, 18, 38)]
    frame = line.to_dataframe()
    assert frame["of"].tolist()[:4] == ["slope", "intercept", "r_squared", "prediction"]
    assert frame["estimate"].notna().all()
    assert "slope 2 (1 to 3); intercept 10" in str(line)


def test_a_table_is_read_and_drawn(client: Any, service: FakeService) -> None:
    found = client.table("commute", "party", "sex", by="region,age")
    assert service.log[-1].url.query == b"measures=party%2Csex&by=region%2Cage"
    assert [dict(one.where) for one in found.cells][:2] == [
        {"party": "red", "sex": "f"},
        {"party": "red", "sex": "m"},
    ]
    assert (found.cells[3].share, found.cells[3].interval.upper, found.p_value) == (0.4, 0.5, 0.0004)
    assert [(one.label, one.value) for one in found._drawn()[1]][:2] == [("red, f", 0.3), ("red, m", 0.2)]


def test_a_word_that_python_has_itself_is_said_with_a_mark_after_it(
    client: Any, service: FakeService
) -> None:
    client.median("commute", for_="estimate")
    assert service.log[-1].url.query == b"for=estimate"
    client.plan("commute", statistic="median", for_="estimate")
    assert service.log[-1].url.query == b"statistic=median&for=estimate"
    client.release("commute", for_="estimate")
    assert json.loads(service.log[-1].content)["for"] == "estimate"


def test_a_range_that_is_found_is_read(client: Any, service: FakeService) -> None:
    found = client.mean("commute", range="found", range_part="0.20")
    assert service.log[-1].url.query == b"range=found&range_part=0.20"
    assert (found.range.lower, found.range.upper) == (0.0, 70.0)
    assert (found.range.outside_at_most, found.range.people_outside_at_most) == (0.01, 4)
    assert client.mean("commute").range is None


@pytest.mark.parametrize(
    ("field", "arguments"),
    [
        ("where", {"where": [("region", "north")]}),
        ("standardize", {"standardize": ["region"]}),
        ("standardize", {"standardize": {"region": ["north"]}}),
    ],
)
def test_arguments_of_another_kind_say_what_is_needed(
    client: Any, service: FakeService, field: str, arguments: Any
) -> None:
    with pytest.raises(InvalidRequest, match="such as") as refusal:
        client.mean("commute", **arguments)
    assert (refusal.value.field, refusal.value.reason.startswith("must be a mapping")) == (field, True)
    with pytest.raises(InvalidRequest, match="between must be a mapping"):
        client.difference("commute", between=["north", "south"])
    assert service.log == []


def test_a_list_of_names_is_sent_with_commas_between_and_none_is_not_sent(
    client: Any, service: FakeService
) -> None:
    client.mean("commute", by=["region"], level=None)
    assert service.log[-1].url.query == b"by=region"
    client.mean("commute", by=("region", "age"), where=None)
    assert service.log[-1].url.query == b"by=region%2Cage"


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"by": {"region": "north"}}, "by must be text, a list or a finite decimal number"),
        ({"by": ["region", None]}, "by must be text, a list or a finite decimal number"),
        ({"share": float("nan")}, "share must be a finite decimal number"),
    ],
)
def test_what_no_query_can_hold_is_refused_and_said(
    client: Any, service: FakeService, asked: dict[str, Any], reason: str
) -> None:
    with pytest.raises(InvalidRequest, match=f"^{reason}$"):
        client.mean("commute", **asked)
    assert service.log == []


@pytest.mark.parametrize("edges", [[1, float("nan")], [float("inf")], 5, {"a": 1}])
def test_edges_that_are_no_numbers_are_refused(client: Any, service: FakeService, edges: list[float]) -> None:
    with pytest.raises(InvalidRequest, match="edges"):
        client.histogram("commute", edges=edges)
    assert service.log == []


def test_releases_are_paged_through(client: Any, service: FakeService) -> None:
    for _ in range(5):
        client.release("commute")
    assert [release.id for release in client.releases("commute", page_size=2)] == [
        "r1",
        "r2",
        "r3",
        "r4",
        "r5",
    ]
    pages = [r.url.query.decode() for r in service.log if r.method == "GET"]
    assert pages == ["limit=2", "limit=2&cursor=2", "limit=2&cursor=4"]


def test_fields_of_a_later_service_do_no_harm(client: Any, service: FakeService) -> None:
    service.studies["commute"]["something"] = {"new": [1]}
    study = client.study("commute")
    assert study.raw["something"] == {"new": [1]}
    assert json.dumps(study.raw["something"])


@pytest.mark.parametrize("until", [0.5, "0.5"])
def test_a_half_width_is_sent_in_place_of_a_share(
    client: Any, service: FakeService, until: float | str
) -> None:
    client.release("commute", until=until)
    assert json.loads(service.log[-1].content)["until"] in (0.5, "0.5")
