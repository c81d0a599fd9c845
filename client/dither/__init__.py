"""Dither: contribute to, and ask, a service for differentially private statistics.

A `Client` with a directory is a device. With `trust="local"` a value is randomized on the device, with exact
integer noise, before anything leaves it; the directory remembers every report, so that nothing is ever
drawn twice, and `max_epsilon` is a limit that no service can raise.

>>> with Client("https://dither.example", "a-token", directory=path, transport=service) as device:
...     _ = device.contribute("commute", subject="ada", value=34, epsilon="0.5", trust="local")
...     print(device.ledger().totals["ada"])
0.5
"""

from dither._admin_models import Account, Invitation, NewInvitation, NewToken, Quota, Raise, Token, TokenUsage
from dither._base import __version__
from dither._client import AsyncClient, Client
from dither._errors import (
    AlreadyContributed,
    ConnectionFailed,
    DeviceRefusal,
    DirectoryRequired,
    DitherError,
    EpsilonBelowSpent,
    FieldProblem,
    InvalidRequest,
    LedgerError,
    MaxEpsilonExceeded,
    NoGain,
    ProblemError,
    ProtocolFault,
    ReportAfterSpending,
    ResponseError,
    SaysNothing,
    SessionChanged,
    SessionUnsound,
    StudyChanged,
    StudyUnsound,
    TimedOut,
    TransportError,
    UnsupportedMechanism,
)
from dither._files import RecordFile
from dither._flow import Retry
from dither._models import (
    Amounts,
    BatchProgress,
    BatchResult,
    Bin,
    Budget,
    ChoiceShare,
    Contribution,
    Coordinate,
    Count,
    DeviceLedger,
    EpsilonRange,
    FoundRange,
    GaussianAmounts,
    Interval,
    LabelAnswer,
    LedgerEntry,
    Measure,
    Promise,
    Quartile,
    Record,
    RecordResult,
    Release,
    SearchesPart,
    Spread,
    Statistic,
    Study,
    StudySpending,
)
from dither._plan_models import (
    ExpectedRange,
    Newcomers,
    Plan,
    PlannedEstimator,
    PlannedRefusal,
    Standing,
)
from dither._session_models import Bounds, Participation, Session, SessionEntry, SessionSpending
from dither._stores import Store
from dither._tables import save_table, to_dataframe

__all__ = [
    "Account",
    "AlreadyContributed",
    "Amounts",
    "AsyncClient",
    "BatchProgress",
    "BatchResult",
    "Bin",
    "Bounds",
    "Budget",
    "ChoiceShare",
    "Client",
    "ConnectionFailed",
    "Contribution",
    "Coordinate",
    "Count",
    "DeviceLedger",
    "DeviceRefusal",
    "DirectoryRequired",
    "DitherError",
    "EpsilonBelowSpent",
    "EpsilonRange",
    "ExpectedRange",
    "FieldProblem",
    "FoundRange",
    "GaussianAmounts",
    "Interval",
    "InvalidRequest",
    "Invitation",
    "LabelAnswer",
    "LedgerEntry",
    "LedgerError",
    "MaxEpsilonExceeded",
    "Measure",
    "NewInvitation",
    "NewToken",
    "Newcomers",
    "NoGain",
    "Participation",
    "Plan",
    "PlannedEstimator",
    "PlannedRefusal",
    "ProblemError",
    "Promise",
    "ProtocolFault",
    "Quartile",
    "Quota",
    "Raise",
    "Record",
    "RecordFile",
    "RecordResult",
    "Release",
    "ReportAfterSpending",
    "ResponseError",
    "Retry",
    "SaysNothing",
    "SearchesPart",
    "Session",
    "SessionChanged",
    "SessionEntry",
    "SessionSpending",
    "SessionUnsound",
    "Spread",
    "Standing",
    "Statistic",
    "Store",
    "Study",
    "StudyChanged",
    "StudySpending",
    "StudyUnsound",
    "TimedOut",
    "Token",
    "TokenUsage",
    "TransportError",
    "UnsupportedMechanism",
    "__version__",
    "save_table",
    "to_dataframe",
]

for _name in __all__:
    if hasattr(globals()[_name], "__module__"):
        globals()[_name].__module__ = "dither"  # users read `dither.ProblemError`, not a private module
del _name
