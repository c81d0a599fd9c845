"""A question has the digest that it always had: another one would not find what was paid for."""

from pathlib import Path

import pytest

from tests.upgrades import digests


def test_every_question_has_the_digest_that_is_kept() -> None:
    found, kept = list(digests.found()), digests.kept()
    assert found == kept, "a former question has another digest, or a new one was not added to the file"
    assert len(kept) >= 60


def test_adding_questions_changes_none_that_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "digests.json"
    monkeypatch.setattr(digests, "FILE", file)
    digests.main()
    rows = digests.kept()
    other = [{**rows[0], "digest": "00"}, *rows[1:-1]]
    file.write_text(digests.as_text(other))
    digests.main()
    assert digests.kept() == [*other, rows[-1]]
