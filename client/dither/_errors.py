"""Everything the SDK raises on purpose.

DitherError
├── DeviceRefusal             refused on this device: no value left it in this call
│   ├── AlreadyContributed    another value (or epsilon, or trust tag) of this subject is live
│   ├── ReportAfterSpending   a report that needs everything, where something was spent before
│   ├── DirectoryRequired     the client has no directory, and no store, to remember reports in
│   ├── EpsilonBelowSpent     nothing is left of the offered epsilon after what was spent
│   ├── InvalidRequest        an argument is not admissible
│   ├── MaxEpsilonExceeded    the person's own limit
│   ├── SessionChanged        the session's description or question is not the one this device saw before
│   ├── SessionUnsound        the session's description or question makes no sense
│   ├── StudyChanged          the description is not the one this device saw before
│   ├── StudyUnsound          the description makes no sense
│   └── UnsupportedMechanism  this SDK cannot randomize for this study
├── LedgerError               the device's ledger cannot be read or written
├── ProblemError              the service refused: an RFC 9457 problem document
│   ├── NoGain                a new release would be worse than one that exists
│   └── SaysNothing           a new release would say no more than that it lies where every one does
├── ResponseError             the service answered something else than the protocol says
└── TransportError            no answer
    ├── ConnectionFailed      not reached, or cut off
    ├── ProtocolFault         what came back is not HTTP
    └── TimedOut              too slow

Every one has a stable `code` and a message that holds no value, report or token.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import ceil
from typing import Any

import httpx


class DitherError(Exception):
    """Root of everything the SDK raises on purpose.

    Attributes:
        code: Stable, machine-readable name of the fault.
    """

    code: str = "error"


class DeviceRefusal(DitherError):
    """Refused on this device: no value left it in this call, and nothing was spent.

    Attributes:
        field: Name of the argument that is to blame.
        reason: Why it was refused.
        also: What else is wrong with the same record.
    """

    code = "device_refusal"
    field: str = ""
    also: "tuple[DeviceRefusal, ...]" = ()

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class InvalidRequest(DeviceRefusal, ValueError):
    """An argument is not admissible.

    Attributes:
        remedy: Arguments of `RecordFile` that may help.
    """

    code = "invalid_request"

    def __init__(self, field: str, reason: str, remedy: Mapping[str, Any] | None = None) -> None:
        super().__init__(f"{field} {reason}")
        self.field = field
        self.reason = reason
        self.remedy = remedy or {}
        self.record: Any = None  # what else a row says


class Faults(list[DeviceRefusal]):
    """Refusals of several fields, raised as one."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: object, trace: object) -> bool:
        if not isinstance(error, InvalidRequest):
            return False
        known = {one.field for one in self}
        self += [one for one in (error, *error.also) if one.field not in known]
        return True

    def check(self) -> None:
        """Raise them, if there are any."""
        if self:
            self[0].also = tuple(self[1:])
            raise self[0]


class AlreadyContributed(DeviceRefusal):
    """The subject has another live contribution in this study; `replace` would put this one in its place."""

    code = "already_contributed"
    field = "subject"


class DirectoryRequired(DeviceRefusal):
    """The client has neither directory nor store, so it could not remember the report that it gives away."""

    code = "directory_required"
    field = "directory"


class EpsilonBelowSpent(DeviceRefusal):
    """Nothing would be left of the offered epsilon: it includes what was already spent in this study.

    Attributes:
        spent: What this subject has spent in this study.
    """

    code = "epsilon_below_spent"
    field = "epsilon"

    def __init__(self, spent: Decimal) -> None:
        super().__init__(
            f"this subject has already spent {spent} in this study, and an epsilon includes what was spent"
        )
        self.spent = spent


class ReportAfterSpending(DeviceRefusal):
    """Something was spent on this subject before, and the study's reports need everything that there is.

    A Gaussian report takes the whole delta of the study, and the range of a bounded one (duchi, piecewise,
    hybrid, optimal) is that of its whole epsilon.
    """

    code = "report_after_spending"
    field = "epsilon"

    def __init__(self) -> None:
        super().__init__("reports of this study need the whole offer, and some was spent")


class MaxEpsilonExceeded(DeviceRefusal):
    """The person's own limit would be exceeded. No server can raise it.

    Attributes:
        limit: The client's `max_epsilon`.
        given: What this device has given away for the subject, over all studies.
    """

    code = "max_epsilon_exceeded"
    field = "epsilon"

    def __init__(self, *, limit: Decimal, given: Decimal) -> None:
        super().__init__(f"{given} of the own limit of {limit} is given away already; this does not fit")
        self.limit = limit
        self.given = given


class StudyChanged(DeviceRefusal):
    """The study's description is not the one this device saw before. Descriptions never change.

    Attributes:
        fields: What differs.
    """

    code = "study_changed"
    field = "study"

    def __init__(self, fields: Sequence[str]) -> None:
        super().__init__(f"the study is not the one this device saw before: {', '.join(fields)} differ")
        self.fields = tuple(fields)


class StudyUnsound(DeviceRefusal):
    """The study's description makes no sense, for example a range that is empty."""

    code = "study_unsound"
    field = "study"


class SessionChanged(DeviceRefusal):
    """A session is not the one this device saw before, or asks another question in a round it asked before.

    Descriptions never change, and a round has one question: another one would cost a second time.

    Attributes:
        fields: What differs.
    """

    code = "session_changed"
    field = "session"

    def __init__(self, fields: Sequence[str]) -> None:
        super().__init__(f"the session is not the one this device saw before: {', '.join(fields)} differ")
        self.fields = tuple(fields)


class SessionUnsound(DeviceRefusal):
    """The session makes no sense, for example answers that cost more than the total that it states."""

    code = "session_unsound"
    field = "session"


class UnsupportedMechanism(DeviceRefusal):
    """This SDK cannot randomize a value for this study; nothing weaker is sent instead."""

    code = "unsupported_mechanism"
    field = "trust"


class LedgerError(DitherError):
    """The device's ledger cannot be read or written. Nothing is sent without it."""

    code = "ledger_error"


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """One offending field of a request, without its value.

    Attributes:
        field: Its name.
        reason: Why it was refused.
    """

    field: str
    reason: str


class ProblemError(DitherError):
    """The service refused, with an RFC 9457 problem document.

    Attributes:
        status: HTTP status.
        code: The document's `code`, or `http_<status>` where a proxy answered in the service's place.
        detail: One sentence for a person; may be empty.
        errors: The offending fields.
        request: Method and path of the request.
        request_id: Under which the service has it in its log; empty where a proxy answered.
        retry_after: Seconds after which it may be asked again; None where the service does not say.
    """

    def __init__(
        self,
        *,
        status: int,
        code: str,
        detail: str = "",
        errors: Sequence[FieldProblem] = (),
        request: str = "",
        request_id: str = "",
        retry_after: float | None = None,
        certain: bool = True,
    ) -> None:
        # The detail of a single field is that field and its reason.
        rows = "; ".join(row for one in errors if (row := f"{one.field}: {one.reason}") != detail)
        told = " ".join(filter(None, [detail, rows and f"({rows})"]))
        again = "" if retry_after is None else f"; it may be asked again in {ceil(retry_after):,} s"
        super().__init__(f"{status} {code}" + (f": {told}" if told else "") + again)
        self.status = status
        self.code = code
        self.detail = detail
        self.errors = tuple(errors)
        self.request = request
        self.request_id = request_id
        self.retry_after = retry_after
        # False where an earlier try of the same request may have been accepted unseen.
        self._certain = certain

    @property
    def _refuses(self) -> bool:
        """Whether the service surely stored nothing of this request."""
        return self._certain and 400 <= self.status < 500


class NoGain(ProblemError):
    """A new release would be worse than one that exists, or would leave most people out; nothing was spent.

    `mean` reads the best one so far; `release(..., allow_worse=True)` makes the new one anyway.
    """

    code = "no_gain"

    def __str__(self) -> str:
        return f"{super().__str__()}; in the SDK release(..., allow_worse=True)"


class SaysNothing(ProblemError):
    """A new release would say no more than that it lies in the range; nothing was spent.

    `release(..., allow_worse=True)` makes it anyway.

    Attributes:
        share: The least that would do; None where none would.
        people: How many would do at the share that was asked; None where no number would.
    """

    code = "says_nothing"
    share: float | None = None
    people: int | None = None

    def __str__(self) -> str:
        return f"{super().__str__()}; in the SDK release(..., allow_worse=True)"


class ResponseError(DitherError):
    """The service answered something else than the protocol says."""

    code = "unexpected_response"


class TransportError(DitherError):
    """No answer came. The request may have arrived; sending the same again is safe."""

    code = "transport"


class ConnectionFailed(TransportError):
    """The service, or the proxy before it, could not be reached or cut the connection."""

    code = "connection_failed"


class ProtocolFault(TransportError):
    """What was to be sent or what came back is not HTTP."""

    code = "protocol_fault"


class TimedOut(TransportError):
    """The service was too slow."""

    code = "timed_out"


@dataclass(frozen=True, slots=True)
class Meaning:
    """What an exception of httpx means here, and whether the next try may do better."""

    error: type[TransportError]
    retry: bool


_FAULT = Meaning(ProtocolFault, retry=False)
HTTPX_MEANINGS: Mapping[type[Exception], Meaning] = {
    httpx.TimeoutException: Meaning(TimedOut, retry=True),
    httpx.NetworkError: Meaning(ConnectionFailed, retry=True),
    httpx.ProxyError: Meaning(ConnectionFailed, retry=True),
    httpx.RemoteProtocolError: Meaning(ProtocolFault, retry=True),
    httpx.HTTPError: _FAULT,
    httpx.InvalidURL: _FAULT,
    httpx.CookieConflict: _FAULT,
    httpx.StreamError: _FAULT,
}
"""The one map from httpx's exceptions to ours. The nearest base class counts; the last four are the roots."""

PROXY = "dither.proxy"
"""Extension of a request of httpx: the proxy that it goes through."""

HTTPX_ERRORS = tuple(HTTPX_MEANINGS)


def httpx_meaning(fault: Exception) -> Meaning:
    """What an exception of httpx means here."""
    return next(HTTPX_MEANINGS[kind] for kind in type(fault).__mro__ if kind in HTTPX_MEANINGS)


def no_answer(fault: Exception) -> str:
    """What to tell a person of an exception of httpx: the address, the fault, and what to look at."""
    told = f"{type(fault).__name__}: {fault}"
    try:
        url = fault.request.url if isinstance(fault, httpx.RequestError) else None
    except RuntimeError:  # it says that it belongs to no request
        url = None
    if url is None:
        return told
    address = f"{url.scheme}://{url.netloc.decode()}"
    if "CERTIFICATE_VERIFY_FAILED" in told:
        if "ismatch" in told:
            return f"the certificate of {address} is one for another name: {told}"
        remedy = "name its authority's certificate with DITHER_CA (ca=) if it is one of your own"
        return f"the certificate of {address} is not trusted here; {remedy}: {told}"
    proxy = fault.request.extensions.get(PROXY) if isinstance(fault, httpx.RequestError) else None
    if proxy is not None and isinstance(fault, httpx.ConnectError | httpx.ConnectTimeout | httpx.ProxyError):
        where = "proxy=, HTTP_PROXY, HTTPS_PROXY, ALL_PROXY; NO_PROXY goes without"
        return f"the proxy {proxy}, through which {address} is asked, does not let through ({where}): {told}"
    if "SSL" in told:
        return f"{address} does not answer with TLS; is it https, and its port? {told}"
    if isinstance(fault, httpx.ConnectError):
        return f"nothing answers at {address}; is this its address, and is it running (dither serve)? {told}"
    return f"{told}, from {address}"
