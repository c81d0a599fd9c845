"""Logs: JSON on standard error, with what was bound and without what must not be there."""

import json
import logging

import pytest
import structlog

from app.logging import configure_logging


@pytest.fixture(autouse=True)
def restored():
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()


def lines(capsys) -> list[dict[str, object]]:
    captured = capsys.readouterr()
    assert captured.out == ""
    return [json.loads(line) for line in captured.err.splitlines()]


def test_both_kinds_of_loggers_write_json_with_the_request_id(capsys):
    configure_logging()
    structlog.contextvars.bind_contextvars(request_id="r1")
    structlog.get_logger("app").info("release_stored", study="commute")
    logging.getLogger("library").warning("watch %s", "out")
    ours, theirs = lines(capsys)
    assert (ours["event"], ours["study"], ours["request_id"]) == ("release_stored", "commute", "r1")
    assert (theirs["event"], theirs["level"], theirs["request_id"]) == ("watch out", "warning", "r1")


def test_less_severe_lines_are_left_out(capsys):
    configure_logging("warning")
    structlog.get_logger("app").info("quiet")
    logging.getLogger("library").info("quiet")
    logging.getLogger("uvicorn.access").error("GET /v1/subjects/alice/budget")
    assert lines(capsys) == []


def test_an_exception_is_named_and_placed_but_never_quoted(capsys):
    configure_logging()
    try:
        try:
            raise ValueError("the value was 42.5")
        except ValueError as error:
            raise KeyError("subject alice") from error
    except KeyError:
        structlog.get_logger("app").exception("request_failed")
        logging.getLogger("library").exception("task failed")
    text = [json.dumps(line) for line in lines(capsys)]
    assert len(text) == 2
    for line in text:
        assert "KeyError" in line
        assert "ValueError" in line
        assert "test_logging" in line
        assert "42.5" not in line
        assert "alice" not in line
