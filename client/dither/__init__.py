"""Dither: contribute to, and ask, a service for differentially private statistics.

A `Client` with a directory is a device. With `trust="local"` a value is randomized on the device, with exact
integer noise, before anything leaves it; the directory remembers every report, so that nothing is ever
drawn twice, and `max_epsilon` is a limit that no service can raise.

>>> with Client("https://dither.example", "a-token", directory=path, transport=service) as device:
...     _ = device.contribute("commute", subject="ada", value=34, epsilon="0.5", trust="local")
...     print(device.ledger().totals["ada"])
0.5
"""

import typing

if typing.TYPE_CHECKING:
    from dither._answers import (
        Bin,
        CellShare,
        ChoiceShare,
        Coordinate,
        Count,
        FoundRange,
        Interval,
        LabelAnswer,
        Line,
        LineNumber,
        LinePoint,
        Prediction,
        Quartile,
        Release,
        SearchesPart,
        Series,
        SeriesAnswer,
        Spread,
        Statistic,
    )
    from dither._base import __version__
    from dither._client import AsyncClient, Client
    from dither._documents import (
        Account,
        Amounts,
        Bounds,
        Budget,
        Contribution,
        EpsilonRange,
        GaussianAmounts,
        Invitation,
        Measure,
        NewInvitation,
        NewToken,
        NewWebhook,
        Promise,
        Publication,
        Quota,
        Raise,
        ReportingRange,
        Schedule,
        Session,
        SessionSpending,
        Study,
        StudySpending,
        StudyText,
        Token,
        TokenUsage,
        Webhook,
    )
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
        BatchProgress,
        BatchResult,
        DeviceLedger,
        LedgerEntry,
        Participation,
        Record,
        RecordResult,
        SessionEntry,
    )
    from dither._operations import check_records
    from dither._plans import (
        ExpectedRange,
        ExpectedValues,
        Newcomers,
        Plan,
        PlannedEstimator,
        PlannedQuestion,
        PlannedRefusal,
        Plans,
        Standing,
    )
    from dither._stores import Store
    from dither._tables import save_table, to_dataframe
else:

    def __getattr__(name):
        """Load all names at the first one."""
        if name not in __all__:
            raise AttributeError(name)
        from dither import (
            _answers,
            _base,
            _client,
            _documents,
            _errors,
            _files,
            _models,
            _operations,
            _plans,
            _tables,
        )

        for module in (
            _answers,
            _base,
            _client,
            _documents,
            _errors,
            _files,
            _models,
            _operations,
            _plans,
            _tables,
        ):
            for key, value in vars(module).items():
                if key in __all__:
                    globals()[key] = value
                    if key != "__version__":
                        value.__module__ = "dither"
        return globals()[name]


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
    "CellShare",
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
    "ExpectedValues",
    "FieldProblem",
    "FoundRange",
    "GaussianAmounts",
    "Interval",
    "InvalidRequest",
    "Invitation",
    "LabelAnswer",
    "LedgerEntry",
    "LedgerError",
    "Line",
    "LineNumber",
    "LinePoint",
    "MaxEpsilonExceeded",
    "Measure",
    "NewInvitation",
    "NewToken",
    "NewWebhook",
    "Newcomers",
    "NoGain",
    "Participation",
    "Plan",
    "PlannedEstimator",
    "PlannedQuestion",
    "PlannedRefusal",
    "Plans",
    "Prediction",
    "ProblemError",
    "Promise",
    "ProtocolFault",
    "Publication",
    "Quartile",
    "Quota",
    "Raise",
    "Record",
    "RecordFile",
    "RecordResult",
    "Release",
    "ReportAfterSpending",
    "ReportingRange",
    "ResponseError",
    "Retry",
    "SaysNothing",
    "Schedule",
    "SearchesPart",
    "Series",
    "SeriesAnswer",
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
    "StudyText",
    "StudyUnsound",
    "TimedOut",
    "Token",
    "TokenUsage",
    "TransportError",
    "UnsupportedMechanism",
    "Webhook",
    "__version__",
    "check_records",
    "save_table",
    "to_dataframe",
]
