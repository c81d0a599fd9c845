"""Secrets in the data directory: files that only their owner may read."""

import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SUBJECT_KEY_BYTES = 32

KEY_FILE = "subject.key"
"""Name of the file of the subject key in the data directory."""


class KeyFileError(Exception):
    """A secret in the data directory cannot be used; the message never quotes it."""


def load_or_create_key(path: Path) -> bytes:
    """The key in a file, made on first use. Several processes may call this at once: one key wins.

    Args:
        path: The file, in hexadecimal, mode 0600.

    Raises:
        KeyFileError: the file is damaged, readable by others, or cannot be read or made.
    """
    try:
        if not path.exists():
            write_secret(path, secrets.token_hex(SUBJECT_KEY_BYTES))
        return load_key(path)
    except OSError as error:
        raise KeyFileError(f"{path}: {error.strerror}") from error


def load_key(path: Path) -> bytes:
    """The key in a file.

    Raises:
        KeyFileError: there is none, it is damaged, or others may read it.
    """
    try:
        if path.stat().st_mode & 0o077:
            raise KeyFileError(f"{path} can be read by others: chmod 600 it, and think about who did")
        key = bytes.fromhex(path.read_text().strip())
    except OSError as error:
        raise KeyFileError(f"{path}: {error.strerror}") from error
    except ValueError:
        raise KeyFileError(f"{path} is damaged: it must hold a key in hexadecimal") from None
    if len(key) < SUBJECT_KEY_BYTES:
        raise KeyFileError(f"{path} is damaged: the key must have at least {SUBJECT_KEY_BYTES} bytes")
    return key


def write_secret(path: Path, secret: str) -> bool:
    """Write a secret to a new file, mode 0600, complete or not at all; False if the file exists."""
    with _scratch(path, secret) as scratch:
        try:
            os.link(scratch, path)
        except FileExistsError:
            return False
    return True


def replace_secret(path: Path, secret: str) -> None:
    """Write a secret to a file, mode 0600, in the place of what is there."""
    with _scratch(path, secret) as scratch:
        os.replace(scratch, path)


@contextmanager
def _scratch(path: Path, secret: str) -> Iterator[Path]:
    """A file beside `path` with the secret in it, on the disk; what was done with it is, too, afterwards."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    scratch = Path(name)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(secret + "\n")
            file.flush()
            os.fsync(file.fileno())
        yield scratch
    finally:
        scratch.unlink(missing_ok=True)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
