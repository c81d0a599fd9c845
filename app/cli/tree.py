"""The commands by their names, each in a module of its own that is loaded when it is asked for."""

import os
import sys
from collections.abc import Container, Mapping, Sequence
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer

from app.cli import print_version
from app.cli.examples import add_examples
from app.cli.extensions import add, add_extension, add_summary, installed
from app.cli.plain_help import PlainGroup, make_plain
from app.core.question import STATISTICS

PASSED_ON = {"allow_extra_args": True, "allow_interspersed_args": False, "ignore_unknown_options": True}
"""Of a command that hands what follows its argument to another program."""


PIPED_WIDTH = 140
"""Columns of help that no terminal shows: no summary is cut off."""


class Command(NamedTuple):
    """Where a command or a group is, and the first paragraph of its help.

    Attributes:
        place: Module under `app.cli` and name in it, of the command or of a mapping of commands; empty for a
            command of another distribution.
        summary: What the list of commands says, which loads none of them.
    """

    place: str
    summary: str


COMMANDS = {
    "serve": Command("serve:serve", "Run the service until it is interrupted."),
    "migrate": Command("database:migrate", "Bring the database's schema up to date."),
    "size": Command(
        "size:size",
        "Say how many people, which epsilon or which share a wanted error takes: what is left "
        "out of these four.",
    ),
    "plan": Command(
        "ask:plan",
        "Show what stands, and what more would give and cost. Nothing is spent.",
    ),
    **{name: Command("ask:ANSWERS", one.summary) for name, one in STATISTICS.items()},
    "change": Command(
        "ask:change",
        "Show how the mean changed since the last study of the series; it reads what is published, free.",
    ),
    "trend": Command(
        "ask:trend",
        "Show the slope of the means of a series of studies, up to this one; free, as a change.",
    ),
    "release": Command(
        "ask:release",
        "Sharpen an answer: a larger share charges the difference; see `dither plan` and `dither mean`.",
    ),
    "releases": Command("ask:releases", "List the answers that were published. Reading them is free."),
    "contribute": Command(
        "contribute:contribute",
        "Contribute the values of a file, with a result for every row; row 1 is the first below the header.",
    ),
    "withdraw": Command(
        "contribute:withdraw",
        "Withdraw a person's contribution: its value is deleted, what was not spent of its epsilon is free.",
    ),
    "budget": Command(
        "subjects:budgets",
        "Show a person's lifetime budget (dither budget PERSON), or raise those of all people.",
    ),
    "doctor": Command(
        "doctor:doctor", "Look for what is wrong with an installation, and say what to do about it."
    ),
    "demo": Command("", "Show the whole service on real surveys of 6,366 people and 23,972 households."),
    "reproduce": Command("", "Recompute the tables and figures of the four papers."),
    "compare": Command("", "Predict and simulate every estimator for a profile of people."),
    "postgres": Command(
        "database:postgres",
        "Run one of PostgreSQL's own programs on the service's database: dither postgres psql "
        '-c "SELECT 1".',
    ),
    "audit": Command(
        "audit:audits",
        "Recompute the whole ledger and verify its hash chain; or audit the privacy of the mechanisms.",
    ),
    "restore-check": Command(
        "restoring:restore_check",
        "Compare a restored database with exports, and retire the studies of which it has forgotten charges.",
    ),
    "token": Command("tokens:tokens", "Create, list, limit, rotate and revoke bearer tokens."),
    "study": Command("studies:studies", "Create, list, show, close and end studies."),
    "invite": Command("invitations:invitations", "Let people answer a study by a link, without an app."),
    "webhook": Command("webhooks:webhooks", "Have addresses told what happens: answers, ends of studies."),
    "schedule": Command("schedules:schedules", "Have questions asked every day, week or month."),
    "publish": Command("publications:publications", "Let everyone read answers, in a file that is signed."),
    "verify": Command(
        "verifying:verify_file",
        "Check without the service that a published file is as it was signed, down to the last digit.",
    ),
    "session": Command("sessions:sessions", "Start sessions, follow their rounds, end them."),
    "subject": Command("subjects:subjects", "Look at people's lifetime budgets, set them, change the key."),
    "simulate": Command("", "Simulate people's devices against a service that runs."),
}


class InPlainWords(PlainGroup):
    """The command, which says what is wrong with options as the service does, and not as their reader."""

    def invoke(self, ctx: Any) -> Any:  # typer's own types, which it does not name
        """Run the subcommand that is asked for."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as refusal:
            from app.settings import plain_words

            refusal.message = plain_words(refusal.message)
            _name_the_variable(refusal)
            raise


def _name_the_variable(refusal: typer.BadParameter) -> None:
    """Have a refusal name the variable of the environment, where that gave the value and no option."""
    ctx, one = refusal.ctx, refusal.param
    if ctx is None or one is None or one.name is None:
        return
    source = ctx.get_parameter_source(one.name)
    if source is not None and source.name == "ENVIRONMENT":
        refusal.param_hint = f"'{one.envvar}'"


def build(loaded: Container[str] | None = None) -> typer.Typer:
    """The command with all subcommands.

    Args:
        loaded: Subcommands that are loaded; of the others there are name and summary. None: all.
    """
    seen = sys.stdout.isatty() and sys.stderr.isatty()
    settings: dict[str, object] = {"help_option_names": ["-h", "--help"]}
    app = typer.Typer(
        name="dither",
        cls=InPlainWords,
        help="Differentially private statistics with personal budgets.",
        no_args_is_help=True,
        # A traceback would show local variables: tokens, values, keys.
        pretty_exceptions_enable=False,
        # Frames of 80 columns would break what another program reads.
        rich_markup_mode="rich" if seen else None,
        context_settings=settings if seen else {**settings, "terminal_width": PIPED_WIDTH},
    )
    app.callback()(_options)
    others = {name: Command("", "Of another distribution.") for name in installed() if " " not in name}
    # Ours come first; what another distribution calls like one of them is not reached.
    for name, (place, summary) in {**COMMANDS, **others, **COMMANDS}.items():
        if loaded is not None and name not in loaded and (place or name in others):
            add_summary(app, name, summary)
        elif place:
            module, _, attribute = place.partition(":")
            found = getattr(import_module(f"app.cli.{module}"), attribute)
            found = found[name] if isinstance(found, Mapping) else found
            add(app, name, found, PASSED_ON if name == "postgres" else None)
        else:
            add_extension(app, name)
    add_examples(app)
    make_plain(app)
    return app


def needed(given: Sequence[str]) -> list[str]:
    """The command that is asked for, or whose options a shell completes."""
    if "_DITHER_COMPLETE" in os.environ:
        typed = os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS", "")
        given = typed.split()[1:]
    return list(given[:1])


def _print_version(wanted: bool) -> None:
    if wanted:
        print_version()
        raise typer.Exit


def _options(
    _: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version),
    ] = False,
) -> None:
    """Differentially private statistics with personal budgets."""
