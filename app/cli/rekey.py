"""`dither subject rekey`: change the subject key."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.common import (
    CommandFailed,
    DataDir,
    console,
    in_database,
    load_settings,
    notes,
    readable,
    usage_error,
)
from app.core.numbers import counted
from app.settings import Settings
from app.store.keyfile import KEY_FILE, load_key, load_or_create_key, replace_secret

if TYPE_CHECKING:
    from app.services.admin.rekeying import Rekeyed
    from app.store.database import Database


def rekey(
    ids: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            callback=readable,
            help="Every person's external id, one a line, UTF-8; - is standard input.",
        ),
    ],
    new_key: Annotated[
        Path, typer.Option(metavar="FILE", help="The new key, in hexadecimal; made there if there is none.")
    ],
    leave_unknown: Annotated[
        bool, typer.Option("--leave-unknown", help="Go on although a person's id is not in the file.")
    ] = False,
    data_dir: DataDir = None,
) -> None:
    """Change the key that turns external ids into subjects.

    The database does not know the external ids, so bring them. Stop every service first. All digests are
    replaced in one transaction, or none. A key in the data directory is replaced, too; otherwise give the new
    one to the services as DITHER_SUBJECT_KEY before they start again.
    """
    settings = load_settings(data_dir)
    if settings.data_dir is None and settings.subject_key is None:
        raise usage_error("give --data-dir DIR with the present key in it, or set DITHER_SUBJECT_KEY")
    if settings.data_dir is not None and _same_file(new_key, settings.data_dir / KEY_FILE):
        raise usage_error("--new-key names the key in use; name another file, which is made")
    old, new = _present_key(settings), load_or_create_key(new_key)
    done = in_database(settings, lambda database: _rekey(database, _lines(ids), old, new, leave_unknown))
    if done.done:
        console.print(f"{counted(done.moved, 'person is', 'people are')} known under the new key.")
    else:
        console.print("The database has the new key already.")
    if done.left:
        left = counted(done.left, "person was", "people were")
        notes.print(f"{left} left: their budgets can no longer be found.")
    if settings.subject_key is None and settings.data_dir is not None:
        replace_secret(settings.data_dir / KEY_FILE, load_key(new_key).hex())
    else:
        notes.print(f"Give the services the key in {new_key} as DITHER_SUBJECT_KEY.", markup=False)


async def _rekey(
    database: "Database", ids: Iterator[str], old: bytes, new: bytes, leave_unknown: bool
) -> "Rekeyed":
    from app.core.clock import SystemClock  # with the store, longer to load than most commands run
    from app.services.admin.rekeying import rekey_subjects
    from app.services.subjects import SubjectKey

    return await rekey_subjects(
        database, SystemClock(), ids, old=SubjectKey(old), new=SubjectKey(new), leave_unknown=leave_unknown
    )


def _present_key(settings: Settings) -> bytes:
    key = settings.subject_key_bytes
    if key is not None:
        return key
    assert settings.data_dir is not None, "checked above"
    return load_key(settings.data_dir / KEY_FILE)


def _same_file(one: Path, other: Path) -> bool:
    return one.exists() and other.exists() and one.samefile(other)


def _lines(path: str) -> Iterator[str]:
    """The ids in a file, exactly as they are between the ends of lines, without a mark of the byte order."""
    try:
        source = sys.stdin.buffer if path == "-" else Path(path).open("rb")  # noqa: SIM115 - closed below
        with source:
            for number, line in enumerate(source):
                name = line.decode("utf-8" if number else "utf-8-sig").rstrip("\r\n")
                if name:
                    yield name
    except UnicodeDecodeError:
        raise CommandFailed(f"{path} is not UTF-8") from None
