"""Bits from the operating system."""

import pytest

from app.core.errors import InternalFault
from app.mechanisms.entropy import system_bits


def test_bits_come_from_the_operating_system():
    assert len({system_bits(64) for _ in range(100)}) == 100
    assert {system_bits(1) for _ in range(200)} == {0, 1}


def test_no_entropy_is_a_fault(monkeypatch):
    def broken(count):
        raise OSError("no entropy")

    monkeypatch.setattr("app.mechanisms.entropy.secrets.randbits", broken)
    with pytest.raises(InternalFault):
        system_bits(1)
