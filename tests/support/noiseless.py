"""The service without noise, so that the same data give the same answers."""

import sys
from collections.abc import Callable, Mapping
from types import ModuleType

import pytest

import app.services  # noqa: F401  (so that every module of it that draws is there)
from app.mechanisms.draw import draw
from app.mechanisms.refined_gaussian import more_gaussian
from app.mechanisms.refined_laplace import refine_laplace


def no_noise(_noise: object, *, queries: int = 1) -> list[int]:
    """In place of every draw of the service, so that the same data give the same answers."""
    return [0] * queries


def without_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put nothing in the place of every draw of the service, while a test lasts."""
    silent: Mapping[Callable[..., object], Callable[..., object]] = {
        draw: no_noise,
        refine_laplace: lambda *_: 0,
        more_gaussian: lambda noisy, exact, _, part, *_bits: noisy + part * exact,
    }
    for noisy, quiet in silent.items():
        for module in drawing(noisy.__name__, noisy):
            monkeypatch.setattr(module, noisy.__name__, quiet)


def drawing(name: str, sampler: object) -> list[ModuleType]:
    """The modules of the service that have imported a sampler."""
    return [
        module
        for place, module in sorted(sys.modules.items())
        if place.startswith("app.services.") and vars(module).get(name) is sampler
    ]
