"""Simulated answers, read at one confidence level."""

import pytest

from app.estimators import confidence, every_level

SIMULATED = {"long", "statistical"}


@pytest.fixture(autouse=True)
def one_level(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read many answers at one level, four times as fast, but where a module's LEVELS are what is looked at.

    An answer's noise, its estimate and its interval of 95 % are the same without the others.
    """
    if SIMULATED & set(request.keywords) and not hasattr(request.module, "LEVELS"):
        monkeypatch.setattr(confidence, "OTHERS", ())
        monkeypatch.setattr(every_level, "_merged", lambda found, _: found)
