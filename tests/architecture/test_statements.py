"""What statements of the store may not do, so that tables of people can be distributed by person."""

import importlib
import pkgutil
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

import app.store
from app.store.sql import Sql

PEOPLE = "subject|contribution|enrolment|answer"
"""Tables with a row or more a person."""

SOURCE = re.compile(r"\b(?:FROM|JOIN|,)\s+(?:LATERAL\s+)?(\w+)(?:\s+(?:AS\s+)?(?!ON\b|JOIN\b|WHERE\b)(\w+))?")
DERIVED = re.compile(r"\)\s+(?:AS\s+)?(\w+)")
REFERENCE = re.compile(r"\b([a-z_]+)\.[a-z_]+\b")

KNOWN = {
    "answers.LOOK_UP": {"joins laterally", "asks for each row"},
    "budgets.PAGE": {"asks for each row"},
    "contributions.LOCK_SUBJECTS": {"locks several people"},
    "enrolments.LOCK_UNSPENT": {"locks several people"},
    "exports.READ_ANSWERS": {"asks for each row"},
}
"""What has to be written in another way before the tables are distributed; nothing may join it."""


def statements() -> Iterator[tuple[str, str]]:
    seen: set[Sql[Any]] = set()
    for found in pkgutil.iter_modules(app.store.__path__):
        module = importlib.import_module(f"app.store.{found.name}")
        for name, value in vars(module).items():
            several = value.values() if isinstance(value, Mapping) else value
            for one in several if isinstance(value, Mapping | tuple) else [value]:
                if isinstance(one, Sql) and one not in seen:
                    seen.add(one)
                    yield f"{found.name}.{name}", one.text


def subqueries(statement: str) -> Iterator[str]:
    """Everything in parentheses that is a query, from its SELECT to its end."""
    for start in re.finditer(r"\(\s*SELECT\b", statement):
        depth = 0
        for place in range(start.start(), len(statement)):
            depth += {"(": 1, ")": -1}.get(statement[place], 0)
            if depth == 0:
                yield statement[start.start() + 1 : place]
                break


def faults(statement: str) -> set[str]:
    found = set()
    if re.search(r"\bctid\b", statement):
        found.add("uses places of rows")
    if re.search(rf"\b(FROM|JOIN) ({PEOPLE})\b", statement) and re.search(r"\bFOR (UPDATE|SHARE)", statement):
        found.add("locks several people")
    for query in subqueries(statement):
        if not re.search(rf"\b(FROM|JOIN) ({PEOPLE})\b", query):
            continue
        if re.search(rf"\bLATERAL\s*\(\s*{re.escape(query.strip())}", statement):
            found.add("joins laterally")
        inside = {name for pair in SOURCE.findall(query) for name in pair if name}
        inside |= {*DERIVED.findall(query), "excluded"}
        if set(REFERENCE.findall(query)) - inside:
            found.add("asks for each row")
    return found


def test_every_statement_can_be_distributed_but_those_that_are_known():
    found: dict[str, set[str]] = {}
    for name, statement in statements():
        if faults(statement):
            found.setdefault(name, set()).update(faults(statement))
    assert found == KNOWN


def test_the_statements_are_all_found():
    names = [name for name, _ in statements()]
    assert len(names) > 150
    assert {"rekey.MOVE", "ledger.CHECKS", "logins.DELETE_EXPIRED", "sessions.READ"} <= set(names)


@pytest.mark.parametrize(
    ("statement", "fault"),
    [
        ("UPDATE answer SET round = 1 WHERE ctid = ANY($1)", "uses places of rows"),
        ("SELECT id FROM subject WHERE id = ANY($1) ORDER BY id FOR UPDATE", "locks several people"),
        (
            "SELECT 1 FROM unnest($1) AS asked (id) LEFT JOIN LATERAL (SELECT spent FROM enrolment"
            " WHERE subject_id = asked.id) AS e ON true",
            "joins laterally",
        ),
        (
            "SELECT s.id, (SELECT count(*) FROM contribution c WHERE c.study_id = s.id) FROM study s",
            "asks for each row",
        ),
    ],
)
def test_a_forbidden_statement_is_seen(statement: str, fault: str):
    assert fault in faults(statement)
    assert not faults("SELECT count(*) FROM subject WHERE id IN (SELECT c.subject_id FROM contribution c)")
