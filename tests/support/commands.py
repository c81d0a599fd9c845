"""The command line, run in this process."""

import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
import structlog

from app.cli import main
from app.cli.common import console


@dataclass(frozen=True)
class Done:
    """What a command left behind."""

    status: int
    output: str
    errors: str


@pytest.fixture
def dither(monkeypatch, capfd) -> Iterator[Callable[..., Done]]:
    """Run `dither ARGUMENTS` with nothing of DITHER_* in the environment but the given variables.

    Tables are `width` characters wide.
    """
    handlers, level = logging.getLogger().handlers[:], logging.getLogger().level

    def run(*arguments: str, width: int = 200, **variables: str) -> Done:
        with monkeypatch.context() as patch:
            for name in [name for name in os.environ if name.startswith("DITHER_")]:
                patch.delenv(name)
            patch.setattr(console, "width", width)
            for name, value in variables.items():
                patch.setenv(name, value)
            capfd.readouterr()
            try:
                main(arguments)
                status = 0
            except SystemExit as exit:
                status = int(exit.code or 0)
            captured = capfd.readouterr()
        return Done(status=status, output=captured.out, errors=captured.err)

    yield run
    logging.getLogger().handlers[:] = handlers
    logging.getLogger().setLevel(level)
    structlog.reset_defaults()
