"""Which tests of noise draw from the operating system's entropy at which commit."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.noise import (
    ProductionSource,
    SeededSource,
    commit_id,
    fresh_stand_in,
    is_chosen,
    noise_source,
)

NAMES = [f"tests/statistical/test_noise.py::test_{number}" for number in range(2000)]


def test_a_commit_chooses_a_quarter_and_another_commit_another_one() -> None:
    """500 of 2,000 and 125 of both, within 7 deviations of 19.4 and 10.8; the hash never changes."""
    first, second = ({name for name in NAMES if is_chosen(name, commit)} for commit in ("a1", "b2"))
    assert abs(len(first) - 500) < 136
    assert abs(len(second) - 500) < 136
    assert abs(len(first & second) - 125) < 76


def test_every_name_is_chosen_by_some_commit() -> None:
    """150 commits leave one of 100 names out with a probability of 100 * 0.75^150 = 2e-17."""
    chosen = {name for name in NAMES[:100] for commit in range(150) if is_chosen(name, str(commit))}
    assert len(chosen) == 100


@pytest.mark.parametrize(
    ("setting", "fresh"), [("os", {True}), ("commit", {True, False}), ("seeded", {False}), (None, {False})]
)
def test_the_setting_says_where_draws_come_from(
    monkeypatch: pytest.MonkeyPatch, setting: str | None, fresh: set[bool]
) -> None:
    if setting is None:
        monkeypatch.delenv("DITHER_TEST_ENTROPY", raising=False)
    else:
        monkeypatch.setenv("DITHER_TEST_ENTROPY", setting)
    sources = [noise_source(name, by_commit=ProductionSource) for name in NAMES[:200]]
    assert {isinstance(source, ProductionSource) for source in sources} == fresh
    never = {type(noise_source(name)) for name in NAMES[:200]}
    assert never == ({ProductionSource} if setting == "os" else {SeededSource})


def test_stand_ins_are_repeatable_under_a_name_and_fresh_without_one() -> None:
    """Two fresh sources draw the same 20 numbers with a probability below (1 / 4000)^20."""
    draws = [source.laplace(1000.0, 20).tolist() for source in (SeededSource("a"), SeededSource("a"))]
    assert draws[0] == draws[1]
    assert fresh_stand_in().laplace(1000.0, 20).tolist() != fresh_stand_in().laplace(1000.0, 20).tolist()


@pytest.fixture
def forget_the_commit() -> Iterator[None]:
    commit_id.cache_clear()
    yield
    commit_id.cache_clear()


@pytest.mark.usefixtures("forget_the_commit")
@pytest.mark.parametrize("git", ["missing", "without a repository"])
def test_without_a_commit_the_choice_is_always_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, git: str
) -> None:
    """The same quarter on every run: what a release's archive runs."""
    if git == "missing":
        monkeypatch.setenv("PATH", str(tmp_path))
    else:
        monkeypatch.setenv("GIT_DIR", str(tmp_path))
    assert commit_id() == ""
    assert abs(sum(is_chosen(name, "") for name in NAMES) - 500) < 136
