"""Logs: one JSON object a line on standard error.

Log lines carry ids, codes, names of transactions and durations. They never carry values, reports,
aggregates, noisy answers, external ids or secrets.
"""

import json
import logging
import sys
from collections.abc import Mapping, MutableMapping
from typing import Any

import structlog

LEVELS: Mapping[str, int] = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}

_SHARED: tuple[structlog.types.Processor, ...] = (
    structlog.contextvars.merge_contextvars,
    structlog.processors.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
)


def configure_logging(level: str = "info", *, plain: bool = False) -> None:
    """Send structlog and the standard library's logging to standard error.

    What `structlog.contextvars.bind_contextvars` bound (the request id) is in every line.

    Args:
        level: A key of `LEVELS`.
        plain: For a person at a terminal instead of JSON for a machine.
    """
    renderer: structlog.types.Processor = (
        structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
        if plain
        else structlog.processors.JSONRenderer(serializer=_json)
    )
    errors: tuple[structlog.types.Processor, ...] = () if plain else (_name_exception,)
    structlog.configure(
        processors=[*_SHARED, *errors, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*_SHARED, structlog.stdlib.add_logger_name, *errors],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(LEVELS[level])
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
    # An access log line names the subject that a path names.
    logging.getLogger("uvicorn.access").disabled = True
    for chatty in ("httpx", "httpcore", "asyncio", "alembic"):
        logging.getLogger(chatty).setLevel(max(LEVELS[level], logging.WARNING))


_encode = json.JSONEncoder(default=repr).encode
"""One encoder for all lines: `json.dumps` makes one for each."""


def _json(line: object, **_: object) -> str:
    return _encode(line)


def _name_exception(
    _logger: object, _method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Replace a traceback by the exception's type and where it was raised.

    Its message and its frames may quote what a request held, a database row for example.
    """
    given = event.pop("exc_info", None)
    if given is True:
        given = sys.exc_info()
    if isinstance(given, BaseException):
        given = (type(given), given, given.__traceback__)
    if not given or given[0] is None:
        return event
    kind, error, trace = given
    event["exception"] = f"{kind.__module__}.{kind.__qualname__}"
    causes: list[str] = []
    cause = error.__cause__ or error.__context__
    while cause is not None and len(causes) < 5:
        causes.append(f"{type(cause).__module__}.{type(cause).__qualname__}")
        cause = cause.__cause__ or cause.__context__
    if causes:
        event["causes"] = causes
    places: list[str] = []
    while trace is not None:
        code = trace.tb_frame.f_code
        places.append(f"{trace.tb_frame.f_globals.get('__name__', code.co_filename)}:{trace.tb_lineno}")
        trace = trace.tb_next
    event["raised_at"] = places[-12:]
    return event
