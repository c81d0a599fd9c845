"""The faults of `tests/mutants` still fit the code, and name tests that are there."""

import ast

import pytest

from tests.mutants.__main__ import ROOT, Mutant, mutants

FEWEST = 60


def test_every_fault_fits_the_code_and_names_tests_that_are_there():
    listed = mutants()
    assert len({(one.file, one.old, one.new) for one in listed}) == len(listed) >= FEWEST
    for one in listed:
        faulty = one.planted((ROOT / one.file).read_text(encoding="utf-8"))
        ast.parse(faulty)
        assert one.old != one.new
        assert one.tests
        assert all((ROOT / test).exists() for test in one.tests), one


@pytest.mark.parametrize("source", ["a = 1\n", "a = 2\nb = 2\n"])
def test_a_fault_that_does_not_fit_is_refused(source: str):
    with pytest.raises(ValueError, match="times: = 2"):
        Mutant(kind="price", file="app/x.py", old="= 2", new="= 3", tests=()).planted(source)
