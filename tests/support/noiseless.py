"""The service without noise, so that the same data give the same answers."""

import pytest

from app.services.sessions import kmeans_release
from app.services.shapes import counts, covariances, found_means, shape_plans, shape_trees
from app.services.statistics import piece_noise, planning


def no_noise(_noise: object, *, queries: int = 1) -> list[int]:
    """In place of every draw of the service, so that the same data give the same answers."""
    return [0] * queries


def without_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put nothing in the place of every draw of the service, while a test lasts."""
    monkeypatch.setattr(planning, "draw", no_noise)
    monkeypatch.setattr(piece_noise, "draw", no_noise)
    monkeypatch.setattr(piece_noise, "refine_laplace", lambda *_: 0)
    monkeypatch.setattr(
        piece_noise, "more_gaussian", lambda noisy, exact, _, part, *_bits: noisy + part * exact
    )
    monkeypatch.setattr(kmeans_release, "draw", no_noise)
    monkeypatch.setattr(shape_plans, "draw", no_noise)
    monkeypatch.setattr(counts, "draw", no_noise)
    monkeypatch.setattr(covariances, "draw", no_noise)
    monkeypatch.setattr(found_means, "draw", no_noise)
    monkeypatch.setattr(shape_trees, "draw", no_noise)
