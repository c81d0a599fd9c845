"""The client."""

import time
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import TypeVar

import httpx

from dither._base import (
    DEFAULT_CHUNK,
    DEFAULT_TIMEOUT,
    Directory,
    Proxy,
    Timeout,
    to_reply,
)
from dither._client_sessions import ClientSessions
from dither._flow import Effect, Flow, Retry, Send, Sleep
from dither._models import (
    BatchProgress,
    BatchResult,
    Budget,
    Contribution,
    DeviceLedger,
    Plan,
    Record,
    Release,
    Study,
    Trust,
)
from dither._numbers import Numeric, Value
from dither._wire import Parameter

T = TypeVar("T")


class Client(ClientSessions):
    """A Dither service, seen from a device or from an analyst's desk.

    A client with a directory is a device: it keeps a ledger there of everything it gives away, so that
    asking twice never draws noise twice. Use one directory for one service, and keep it. Safe to share
    between threads; several processes may use the same directory.

    Args:
        base_url: Address of the service, without `/v1`.
        token: Bearer token.
        directory: Where the device keeps its ledger, its reports and its key; made when needed. None: a
            client that cannot contribute.
        max_epsilon: The person's own limit for each subject, over everything this device gives away. It is
            checked before anything is sent; no service can raise it. Public values, which have no
            privacy, are refused with it.
        timeout: Seconds for connecting, sending and receiving each, or an `httpx.Timeout`.
        proxy: Address of a proxy. None: what HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY say.
        retry: How often and how patiently requests are tried again.
        transport: Another way to send, for tests.

    Raises:
        InvalidRequest: an argument is not admissible.

    Examples:
        >>> with Client("https://dither.example", "a-token", directory=path, transport=service) as device:
        ...     device.contribute("commute", subject="ada", value=34, epsilon="0.5", trust="local").status
        'created'
    """

    def __init__(
        self,
        base_url: str,
        token: str,
        *,
        directory: Directory | None = None,
        max_epsilon: Numeric | None = None,
        timeout: Timeout = DEFAULT_TIMEOUT,
        proxy: Proxy = None,
        retry: Retry | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        super().__init__(base_url, token, directory=directory, max_epsilon=max_epsilon, retry=retry)
        self._http = httpx.Client(transport=transport, **self._http_options(timeout, proxy))

    def study(self, study: str) -> Study:
        """The description of a study.

        A device remembers the range, the relation and the local mechanism that it sees first and refuses
        to contribute (`StudyChanged`) should they ever differ.

        Privacy: costs nothing.

        Examples:
            >>> print(client.study("commute").epsilon.max)
            5
        """
        return self._run(self._operations.study(study))

    def contribute(
        self,
        study: str,
        *,
        subject: str,
        value: Value,
        epsilon: Numeric | None = None,
        trust: Trust,
        check_spent: bool = True,
    ) -> Contribution:
        """Contribute one value.

        The same again is the same request again: it sends the same report, also after a crash, and the
        service counts it once. Another value needs `replace`.

        Privacy: costs the subject at most `epsilon`, what it has already spent in this study included.
        central: the service sees the value and spends the epsilon on its answers. local: the value does
        not leave the device; the whole epsilon is spent when the report arrives. public: no privacy.

        Args:
            study: The study's slug.
            subject: Whose value it is.
            value: An int, Decimal, float, or the text of a decimal number; taken exactly as it is written.
                In a study of vectors a sequence of these, one a coordinate, central or public.
            epsilon: The most that it may ever cost; rounded down to three significant digits, and it is
                that which holds. None for public only.
            trust: `central`, `local` or `public`.
            check_spent: Ask the service what the subject has spent in this study before a report is drawn,
                as another device may have contributed. False saves the question where that cannot be.

        Raises:
            DeviceRefusal: refused here; nothing was sent.
            ProblemError: the service refused. A refused report has been seen: it stays in the ledger, and
                is sent again where the same is asked again.
            TransportError: no answer. Call again with the same arguments.

        Examples:
            >>> for _ in range(2):
            ...     client.contribute("commute", subject="ada", value=34, epsilon="0.5", trust="local").status
            'created'
            'unchanged'
        """
        flow = self._operations.contribute("contribute", study, subject, value, epsilon, trust, check_spent)
        return self._run(flow)

    def replace(
        self,
        study: str,
        *,
        subject: str,
        value: Value,
        epsilon: Numeric | None = None,
        trust: Trust,
        check_spent: bool = True,
    ) -> Contribution:
        """Put another value in the place of the live one.

        Privacy: what was spent stays spent, and `epsilon` includes it: a new local report is randomized
        with what is left, so replacing one needs a larger epsilon than before.

        Args and Raises: see `contribute`.

        Examples:
            >>> _ = client.contribute("commute", subject="ada", value=34, epsilon="0.5", trust="local")
            >>> client.replace("commute", subject="ada", value=40, epsilon="0.8", trust="local").status
            'replaced'
            >>> [str(entry.noise_epsilon) for entry in client.ledger().entries]
            ['0.5', '0.3']
        """
        flow = self._operations.contribute("replace", study, subject, value, epsilon, trust, check_spent)
        return self._run(flow)

    def withdraw(self, study: str, *, subject: str) -> None:
        """Delete a subject's contribution.

        Privacy: the value is deleted and what was not spent of its epsilon is free again; what was spent
        stays spent for ever. For a central value the device asks the service how much that was.

        Raises:
            ProblemError: 404 where the subject never contributed.

        Examples:
            >>> _ = client.contribute("commute", subject="ada", value=34, epsilon=1, trust="central")
            >>> client.withdraw("commute", subject="ada")
            >>> client.ledger().totals
            {'ada': Decimal('0')}
        """
        self._run(self._operations.withdraw(study, subject))

    def contribute_many(
        self,
        study: str,
        records: Iterable[Record],
        *,
        epsilon: Numeric | None = None,
        trust: Trust | None = None,
        chunk: int = DEFAULT_CHUNK,
        check_spent: bool = True,
        on_progress: Callable[[BatchProgress], None] | None = None,
    ) -> BatchResult:
        """Contribute the values of many subjects.

        Refused records do not sink the others. Where the load breaks off, start it again with the same
        records: what has arrived is `unchanged`, and no report is drawn twice.

        Privacy: each record costs its subject what `contribute` would.

        Args:
            study: The study's slug.
            records: Read once, chunk by chunk.
            epsilon: For records that give none.
            trust: For records that give none.
            chunk: Records in a request.
            check_spent: As in `contribute`: one question for each local subject. Say False for a large load
                of subjects of whom only this device contributes.
            on_progress: Called after each chunk.

        Raises:
            ProblemError: the service refused a whole chunk. Earlier chunks are stored.
            TransportError: no answer. Call again with the same records.

        Examples:
            >>> records = [Record("ada", 34, "0.5"), Record("bob", 51), Record("cyd", -1)]
            >>> load = client.contribute_many("commute", records, epsilon=1, trust="local")
            >>> [(result.status, result.code) for result in load.results]
            [('created', None), ('created', None), ('refused', 'invalid_request')]
        """
        flow = self._operations.contribute_many(
            study, records, epsilon, trust, chunk, check_spent, on_progress
        )
        return self._run(flow)

    def budget(self, subject: str) -> Budget:
        """A subject's lifetime budget, as the service keeps it.

        Privacy: costs nothing.

        Examples:
            >>> print(client.budget("ada").epsilon.remaining)
            10
        """
        return self._run(self._operations.budget(subject))

    def ledger(self, subject: str | None = None) -> DeviceLedger:
        """Everything that this device gave away, or what it gave away for one subject. Sends nothing.

        Examples:
            >>> _ = client.contribute("commute", subject="ada", value=34, epsilon="0.5", trust="local")
            >>> [(entry.study, str(entry.epsilon)) for entry in client.ledger("ada").entries]
            [('commute', '0.5')]
        """
        return self._run(self._operations.ledger(subject))

    def plan(self, study: str, *, statistic: str = "mean", **parameters: Parameter) -> Plan:
        """What a release would cost and how accurate it would be.

        Privacy: costs nothing, and looks at no raw data.

        Args:
            study: The study's slug.
            statistic: What would be asked.
            **parameters: The question's parameters, for example `share`, `epsilon` or `expected_size`.

        Examples:
            >>> best = min(analyst.plan("commute").estimators, key=lambda row: row.predicted_error)
            >>> print(best.estimator, best.predicted_error, best.epsilon_max)
            adpm 0.75 0.25
        """
        return self._run(self._operations.plan(study, statistic, parameters))

    def mean(self, study: str, **parameters: Parameter) -> Release:
        """The mean: the release for this question.

        Privacy: the first to ask this question makes the release, and contributors pay what its
        `epsilon_max` says at most. From then on the same answer comes back and costs nothing.

        Args:
            study: The study's slug.
            **parameters: The question's parameters, for example `estimator`, `share` or `epsilon`.

        Examples:
            >>> first, second = analyst.mean("commute"), analyst.mean("commute")
            >>> first == second
            True
        """
        return self._run(self._operations.mean(study, parameters))

    def release(
        self,
        study: str,
        *,
        statistic: str = "mean",
        idempotency_key: str | None = None,
        **parameters: Parameter,
    ) -> Release:
        """Make a new release.

        Privacy: every call costs contributors what its `epsilon_max` says at most. Tries of one call
        share one Idempotency-Key, so a lost answer is sent again, not paid for again.

        Args:
            study: The study's slug.
            statistic: What is asked.
            idempotency_key: A key of your own, to make calls of different runs one. None: a random one.
            **parameters: The question's parameters, for example `estimator`, `share` or `epsilon`.

        Examples:
            >>> print(analyst.release("commute", estimator="adpm", share="0.5").parameters["share"])
            0.5
        """
        return self._run(self._operations.release(study, statistic, idempotency_key, parameters))

    def releases(self, study: str, *, page_size: int = 100) -> Iterator[Release]:
        """A study's releases, fetched page by page.

        Privacy: costs nothing; they are published.

        Examples:
            >>> _ = analyst.release("commute")
            >>> [release.estimate for release in analyst.releases("commute")]
            [32.0]
        """
        cursor: str | None = None
        while True:
            page = self._run(self._operations.releases_page(study, page_size, cursor))
            yield from page.items
            cursor = page.next_cursor
            if cursor is None:
                return

    def close(self) -> None:
        """Close the connections and the ledger.

        Examples:
            >>> client.close()
        """
        self._http.close()
        self._close_ledger()

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _run(self, flow: Flow[T]) -> T:
        """Carry out what an operation wants done, until it is done."""
        try:
            effect = next(flow)
            while True:
                try:
                    outcome = self._carry_out(effect)
                except Exception as fault:
                    effect = flow.throw(fault)
                else:
                    effect = flow.send(outcome)
        except StopIteration as end:
            result: T = end.value
            return result

    def _carry_out(self, effect: Effect) -> object:
        if isinstance(effect, Send):
            return to_reply(self._http.request(**self._request_options(effect.request)))
        if isinstance(effect, Sleep):
            time.sleep(effect.seconds)
            return None
        return effect.task()
