"""What docs/assurance.md names exists: invariants and faults of the model, rules of the audit, proofs."""

import ast
import re

import pytest

from app.services.admin import ledger
from app.store.ledger import CHECKS
from tests.model.test_model import FAULTS, PROMISES
from tests.support.live import ROOT

PAGE = (ROOT / "docs" / "assurance.md").read_text(encoding="utf-8")
SECTIONS = re.split(r"^## (?=\d\. )", PAGE.partition("\n## What none of them covers")[0], flags=re.MULTILINE)[
    1:
]
KINDS = ("Model", "Traces", "Storm", "Audit", "Proof", "Not covered")
RULES = {
    *CHECKS,
    *(
        ledger.ROUND_RULE,
        ledger.RANGE_RULE,
        ledger.PIECE_RULE,
        ledger.PRICE_RULE,
        ledger.CHAIN_RULE,
        ledger.HEAD_RULE,
    ),
}


def said(section: str) -> dict[str, str]:
    """What a section says of each kind, on one line."""
    items = re.split(r"^- ", section, flags=re.MULTILINE)[1:]
    found = {}
    for item in items:
        kind, text = re.fullmatch(r"\*\*([\w ]+)\*\*: (.*)", " ".join(item.split())).groups()  # type: ignore[union-attr]
        found[kind] = text
    return found


def test_each_promise_says_what_stands_behind_it_and_what_does_not():
    assert [section[0] for section in SECTIONS] == list("1234567")
    for section in SECTIONS:
        assert tuple(said(section)) == KINDS, section.splitlines()[0]
        assert "tests/model/test_traces.py::" in said(section)["Traces"]
        assert "`tests/" in said(section)["Storm"]


def test_all_invariants_and_faults_of_the_model_are_there_and_no_others():
    named = [name for section in SECTIONS for name in re.findall(r"`(\w+)`", said(section)["Model"])]
    assert sorted(named) == sorted([*PROMISES, *FAULTS])


@pytest.mark.parametrize("section", SECTIONS, ids=[section.splitlines()[0] for section in SECTIONS])
def test_the_rules_of_the_audit_and_the_proofs_exist(section: str):
    kinds = said(section)
    rules = re.findall(r'"([^"]+)"', kinds["Audit"])
    assert rules or kinds["Audit"].startswith("no rule: ")
    assert set(rules) <= RULES
    proofs = re.findall(r"`(app/[\w/]+\.py)`", kinds["Proof"])
    assert proofs
    for proof in proofs:
        assert ast.get_docstring(ast.parse((ROOT / proof).read_text(encoding="utf-8"))), proof
