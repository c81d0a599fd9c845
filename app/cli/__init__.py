"""The command `dither`. What a command needs is loaded when it is asked for: help and version need little."""

import gc
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from io import TextIOWrapper


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 failed, 2 not understood, 130 interrupted."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A terminal or a file that is not UTF-8 shows other letters by their numbers.
            stream.reconfigure(errors="backslashreplace")
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given == ["--version"]:
        print_version()
        return
    try:
        from app.cli.tree import build, needed

        with collector_at_rest():
            command = build(needed(given))
        command(args=given, prog_name="dither")
    except KeyboardInterrupt:
        # While modules load: within a command its reader says so.
        raise SystemExit(130) from None
    except Exception as error:
        from app.cli.common import notes
        from app.cli.http import failure_of

        failure = failure_of(error)
        if failure is None and isinstance(error, UnicodeEncodeError) and any(map(_is_no_text, given)):
            failure = "an argument is not text in UTF-8, as this terminal or script should send it", 2
        if failure is None:
            raise
        message, status = failure
        notes.print("error:", message, style="red", markup=False)
        raise SystemExit(status) from None


def _is_no_text(argument: str) -> bool:
    """Whether an argument holds bytes that are not UTF-8, which Python keeps as halves of surrogate pairs."""
    return any("\ud800" <= letter <= "\udfff" for letter in argument)


@contextmanager
def collector_at_rest() -> Iterator[None]:
    """Load modules without the garbage collector, which would walk them again and again and find nothing."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def print_version() -> None:
    """Print which version this is."""
    sys.stdout.write(f"dither {version('dither-server')}\n")
