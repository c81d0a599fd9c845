"""Secrets in the data directory."""

import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from app.store.keyfile import KeyFileError, load_key, load_or_create_key, replace_secret, write_secret


def test_a_key_is_made_once_and_only_its_owner_reads_it(tmp_path):
    path = tmp_path / "subject.key"
    key = load_or_create_key(path)
    assert len(key) == 32
    assert load_or_create_key(path) == key == load_key(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == ["subject.key"]


def test_of_many_who_make_a_key_at_once_one_wins(tmp_path):
    with ThreadPoolExecutor(8) as threads:
        keys = set(threads.map(load_or_create_key, [tmp_path / "subject.key"] * 32))
    assert len(keys) == 1


def test_a_key_that_others_can_read_is_refused(tmp_path):
    path = tmp_path / "subject.key"
    load_or_create_key(path)
    path.chmod(0o640)
    with pytest.raises(KeyFileError, match="can be read by others"):
        load_or_create_key(path)


@pytest.mark.parametrize("text", ["", "abc", "zz" * 32, "ab" * 31])
def test_a_damaged_key_is_refused_without_being_quoted_or_replaced(tmp_path, text):
    path = tmp_path / "subject.key"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(KeyFileError, match="damaged") as refusal:
        load_or_create_key(path)
    assert not text or text not in str(refusal.value)
    assert path.read_text() == text


def test_a_place_that_cannot_be_written_is_a_clear_error(tmp_path):
    with pytest.raises(KeyFileError, match="No such file or directory"):
        load_or_create_key(tmp_path / "missing" / "subject.key")


def test_a_secret_is_written_once_unless_it_is_replaced(tmp_path):
    path = tmp_path / "admin.token"
    assert write_secret(path, "first")
    assert not write_secret(path, "second")
    assert path.read_text() == "first\n"
    replace_secret(path, "third")
    assert path.read_text() == "third\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
