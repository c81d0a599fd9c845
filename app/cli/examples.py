"""An example for every command, shown below its help."""

from collections.abc import Mapping

import typer

from app.core.question import STATISTICS

EXAMPLES: Mapping[str, str] = {
    **{name: f"{name} {one.example}" for name, one in STATISTICS.items()},
    "serve": "serve --data-dir .dither --port 8000",
    "migrate": "migrate --data-dir .dither",
    "plan": "plan commute --share 0.2 --statistic sd",
    "size": "size --error 1 --range 0 120 --epsilon 0.5",
    "change": "change mood-2",
    "trend": "trend mood-2",
    "release": "release commute --share 0.1 --key 2030-01",
    "releases": "releases commute",
    "contribute": "contribute commute people.xlsx --trust central --epsilon 1",
    "withdraw": "withdraw commute ada",
    "budget show": "budget show ada",
    "budget raise": 'budget raise --epsilon 0.5 --at-most 20 --reason "another year"',
    "doctor": "doctor --data-dir .dither --backups /srv/backups",
    "postgres": "postgres --data-dir .dither pg_dump --format custom",
    "restore-check": "restore-check releases.jsonl --data-dir .dither",
    "audit export": "audit export --data-dir .dither",
    "token create": "token create app --role contribute --study commute",
    "token list": "token list",
    "token revoke": "token revoke 6f1c2a8e-8f43-4a6b-9d3c-0c6d1b0f4c11",
    "token limit": "token limit 6f1c2a8e-8f43-4a6b-9d3c-0c6d1b0f4c11 --share 0.2 --period 86400",
    "token usage": "token usage 6f1c2a8e-8f43-4a6b-9d3c-0c6d1b0f4c11",
    "token rotate": "token rotate 6f1c2a8e-8f43-4a6b-9d3c-0c6d1b0f4c11",
    "token recover": "token recover --data-dir .dither",
    "study create": "study create commute --lower 0 --upper 120 --trust central --trust local --series work",
    "study list": "study list --series mood --json",
    "study show": "study show commute",
    "study edit": 'study edit commute --title "How long is your way?" --reason "a typo"',
    "study close": "study close commute",
    "study narrow": "study narrow commute --lower 6f1c2a8e-8f43-4a6b-9d3c-0c6d1b0f4c11 "
    "--upper 7a20b51c-8f43-4a6b-9d3c-0c6d1b0f4c11",
    "study archive": 'study archive commute --reason "the week is over"',
    "study retire": "study retire commute",
    "invite open": 'invite open commute --limit 200 --name "poster at the entrance"',
    "invite single": "invite single commute --count 50",
    "invite list": "invite list commute",
    "invite show": "invite show commute 6f1c2a8e-8f43-4a6b-9d3c-0c6d1b0f4c11",
    "invite revoke": "invite revoke commute 6f1c2a8e-8f43-4a6b-9d3c-0c6d1b0f4c11",
    "webhook create": "webhook create https://bot.example.org/dither --event released --event study_closed",
    "webhook list": "webhook list",
    "webhook delete": "webhook delete 6f1c2a8e-8f43-4a6b-9d3c-0c6d1b0f4c11",
    "schedule create": "schedule create commute --every week --newcomers --quota 5 --share 0.1",
    "schedule list": "schedule list commute",
    "schedule delete": "schedule delete commute 6f1c2a8e-8f43-4a6b-9d3c-0c6d1b0f4c11",
    "publish create": "publish create commute --release 6f1c2a8e-8f43-4a6b-9d3c-0c6d1b0f4c11 --title Ways",
    "publish list": "publish list commute",
    "publish change": "publish change commute w --release 6f1c2a8e-8f43-4a6b-9d3c-0c6d1b0f4c11 --title Ways",
    "publish withdraw": "publish withdraw commute ways-6f1c2a8e",
    "verify": "verify our-ways.json --keys dither-keys.json",
    "session create": "session create commute --protocol minimum --epsilon 1 --participants 500",
    "session list": "session list commute",
    "session show": "session show 6f1c2a8e-8f43-4a6b-9d3c-0c6d1b0f4c11",
    "session close-round": "session close-round 6f1c2a8e-8f43-4a6b-9d3c-0c6d1b0f4c11 --round 1",
    "session finish": "session finish 6f1c2a8e-8f43-4a6b-9d3c-0c6d1b0f4c11",
    "subject rekey": "subject rekey people.txt --new-key new.key --data-dir .dither",
    "subject budget": "subject budget ada",
    "subject set-budget": 'subject set-budget ada --epsilon 20 --reason "asked for more"',
}
"""Words after `dither`, by those that name the command. Commands of other distributions have their own."""


def add_examples(app: typer.Typer, path: str = "") -> None:
    """Put the examples below the help of an application's commands."""
    for command in app.registered_commands:
        name = command.name or (command.callback.__name__ if command.callback else "")
        example = EXAMPLES.get(f"{path} {name}".strip())
        if example is not None:
            command.epilog = f"Example: dither {example}"
    for group in app.registered_groups:
        if group.typer_instance is not None:
            add_examples(group.typer_instance, f"{path} {group.name or ''}".strip())
