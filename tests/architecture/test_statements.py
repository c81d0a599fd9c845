"""What statements of the store may not do, so that tables of people can be distributed by person."""

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import PrimaryKeyConstraint, UniqueConstraint

import app.store
from app.store.sql import Sql
from app.store.tables import metadata

PEOPLE = "subject|contribution|enrolment|answer"
"""Tables with a row or more a person."""

SOURCE = re.compile(r"\b(?:FROM|JOIN|,)\s+(?:LATERAL\s+)?(\w+)(?:\s+(?:AS\s+)?(?!ON\b|JOIN\b|WHERE\b)(\w+))?")
DERIVED = re.compile(r"\)\s+(?:AS\s+)?(\w+)")
REFERENCE = re.compile(r"\b([a-z_]+)\.[a-z_]+\b")

READS_PEOPLE = re.compile(rf"\b(FROM|JOIN) ({PEOPLE})\b")

LOCKS = re.compile(r"\bFOR (UPDATE|SHARE)")

ONE_PERSON = re.compile(r"\bWHERE (?:id|subject_id) = \$\d+ FOR UPDATE\s*$")

MAKES_SUBJECTS = re.compile(r"\bINSERT INTO subject\b(?!.*\bFROM subject\b)", re.DOTALL)
"""New ones: who gets another key is there already."""

SET_CLAUSE = re.compile(
    rf"\bUPDATE ({PEOPLE})\b.*?\bSET\b(.*?)(?:\bFROM\b|\bWHERE\b|\bRETURNING\b|$)", re.DOTALL
)

CONFLICT_CLAUSE = re.compile(r"\bDO UPDATE SET\b(.*?)(?:\bWHERE\b|\bRETURNING\b|$)", re.DOTALL)

AFTER_CONFLICT = re.compile(r"\bDO UPDATE SET\b(.*?)(?:\bRETURNING\b|\n\s*\)|$)", re.DOTALL)

STABLE = re.compile(r"CAST\((?!\$\d)|::|\bnow\(|\bCURRENT_|\bpg_|\bset_config\b|\bto_\w+\(|\bencode\(")
"""What PostgreSQL does not evaluate to the same value everywhere; a cast of a parameter it does."""


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
    if READS_PEOPLE.search(statement) and LOCKS.search(statement) and not ONE_PERSON.search(statement):
        found.add("locks several people")
    changed = [assigned for _, assigned in SET_CLAUSE.findall(statement)]
    if re.search(rf"\bINSERT INTO ({PEOPLE})\b", statement):
        changed += CONFLICT_CLAUSE.findall(statement)
        if "SELECT" in statement and any("$" in rest for rest in AFTER_CONFLICT.findall(statement)):
            found.add("leaves a parameter to the nodes")
    for assigned in changed:
        if STABLE.search(assigned):
            found.add("sets what each node may evaluate for itself")
        if re.search(r"\[\s*\d*\s*:\s*\d*\s*\]", assigned):
            found.add("sets a slice")
        if re.search(r"(?:^|,)\s*(?:subject_id|id)\s*=", assigned):
            found.add("moves people")
    if MAKES_SUBJECTS.search(statement) and "subject_key_holds()" not in statement:
        found.add("makes subjects under any key")
    for query in subqueries(statement):
        if not READS_PEOPLE.search(query):
            continue
        if re.search(rf"\bLATERAL\s*\(\s*{re.escape(query.strip())}", statement):
            found.add("joins laterally")
        inside = {name for pair in SOURCE.findall(query) for name in pair if name}
        inside |= {*DERIVED.findall(query), "excluded"}
        if set(REFERENCE.findall(query)) - inside:
            found.add("asks for each row")
    return found


def test_every_statement_can_be_distributed():
    assert [(name, faults(statement)) for name, statement in statements() if faults(statement)] == []


def test_every_key_of_a_person_starts_with_the_person():
    for name in PEOPLE.split("|"):
        table = metadata.tables[name]
        person = "id" if name == "subject" else "subject_id"
        unique = [
            one for one in table.constraints if isinstance(one, PrimaryKeyConstraint | UniqueConstraint)
        ]
        keys = [list(one.columns) for one in (*unique, *(one for one in table.indexes if one.unique))]
        assert keys
        assert [key[0].name for key in keys] == [person] * len(keys)


def test_a_decision_rests_on_rows_and_not_on_their_number():
    """`Sql.run` returns nothing; what the driver says of a statement is read for BEGIN and COMMIT only."""
    assert inspect.signature(Sql.run).return_annotation is None
    for module in Path(app.store.__path__[0]).glob("*.py"):
        assert "rowcount" not in module.read_text(), module.name


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
        (
            "UPDATE enrolment SET report = CAST(given.report AS bigint[]) FROM unnest($1) AS given (report)",
            "sets what each node may evaluate for itself",
        ),
        (
            "INSERT INTO contribution SELECT 1 ON CONFLICT (a) DO UPDATE SET epoch = excluded.epoch::int",
            "sets what each node may evaluate for itself",
        ),
        (
            "INSERT INTO contribution SELECT $1 FROM given ON CONFLICT (id) DO UPDATE SET epoch = $2",
            "leaves a parameter to the nodes",
        ),
        ("UPDATE contribution SET vector = vector[1:1] WHERE study_id = $1", "sets a slice"),
        (
            "UPDATE answer SET subject_id = rekeyed.new FROM rekeyed WHERE subject_id = rekeyed.old",
            "moves people",
        ),
        ("INSERT INTO subject (id, budget) VALUES ($1, $2)", "makes subjects under any key"),
    ],
)
def test_a_forbidden_statement_is_seen(statement: str, fault: str):
    assert faults(statement) == {fault} or fault in {"joins laterally"} <= faults(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT count(*) FROM subject WHERE id IN (SELECT c.subject_id FROM contribution c)",
        "SELECT id FROM subject WHERE id = $1 FOR UPDATE",
        "UPDATE subject SET reserved = reserved + more.epsilon FROM unnest($1) AS more (id, epsilon)",
    ],
)
def test_what_can_be_distributed_is_not_taken_for_a_fault(statement: str):
    assert not faults(statement)
