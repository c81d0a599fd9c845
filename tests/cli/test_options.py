"""The SDK's arguments and the commands' options are the fields of the wire's documents; none is forgotten."""

import inspect
from decimal import Decimal
from enum import StrEnum
from typing import Any, get_args

import pytest
import typer
import typer.main
from click import Command
from dither import AsyncClient, Client, _documents
from pydantic import BaseModel

from app.cli.ask import OPTIONS, in_python
from app.cli.http import range_end
from app.cli.tree import build
from app.core.invitation import InvitationKind
from app.core.principal import Role
from app.core.schedule import Every
from app.core.session import SessionProtocol
from app.core.study import Relation, Trust
from app.core.webhook import EventType
from app.sessions.search import Depth, Mode, Threshold
from app.web.documents.budget import LifetimeIn, RaiseIn
from app.web.documents.schedule import ScheduleIn
from app.web.documents.session_in import SessionIn
from app.web.documents.study import StudyIn
from app.web.documents.study_change import ArchiveIn, ReportingRangeIn, StudyEditIn
from app.web.documents.token import QuotaIn, RotateIn, TokenIn

CALLS: dict[str, tuple[type[BaseModel], str, dict[str, str]]] = {
    "create_study": (StudyIn, "study create", {}),
    "edit_study": (StudyEditIn, "study edit", {}),
    "narrow_study": (ReportingRangeIn, "study narrow", {}),
    "archive_study": (ArchiveIn, "study archive", {}),
    "create_session": (SessionIn, "session create", {"centre": "centres"}),
    "create_token": (TokenIn, "token create", {"study": "studies", "role": "roles"}),
    "create_schedule": (ScheduleIn, "schedule create", {}),
    "rotate_token": (RotateIn, "token rotate", {"grace": "grace_seconds"}),
    "set_quota": (QuotaIn, "token limit", {"period": "period_seconds"}),
    "raise_budgets": (RaiseIn, "budget raise", {}),
    "set_budget": (LifetimeIn, "subject set-budget", {}),
}
"""What a method of the SDK sends, the command that calls it, and options that read better than the field."""

ADDRESSES = {"study", "subject", "token", "key"}
"""What is part of the path, where it is no field."""

NOT_FIELDS = {"url", "token", "token_id", "as_json", "help", "lift", "edit", "file"}

NOT_OFFERED = {"create_session": {"clusters"}, "create_schedule": {"question"}, "create_token": {"role"}}
"""clusters: the command counts the centres; question: it has the options of one; role: one of the roles."""


def fields(model: type[BaseModel], prefix: str = "") -> dict[str, Any]:
    """Names of all fields, those within another document too, and their defaults."""
    found: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            found |= fields(field.annotation, f"{name}_")
        else:
            found[prefix + name] = field.default
    return found


def command(path: str) -> Command:
    found: Any = typer.main.get_command(build())
    for name in path.split():
        found = found.commands[name]
    return found


@pytest.mark.parametrize("method", CALLS)
def test_the_sdk_can_send_every_field(method: str) -> None:
    wanted = set(fields(CALLS[method][0]))
    for client in (Client, AsyncClient):
        arguments = set(inspect.signature(getattr(client, method)).parameters) - {"self"}
        assert wanted <= arguments
        assert arguments - wanted <= ADDRESSES


@pytest.mark.parametrize("method", CALLS)
def test_the_command_has_an_option_for_every_field_with_the_same_default(method: str) -> None:
    model, path, renamed = CALLS[method]
    wanted = fields(model)
    options = {renamed.get(str(option.name), str(option.name)): option for option in command(path).params}
    assert set(options) >= set(wanted) - NOT_OFFERED.get(method, set())
    of_question = set(map(in_python, OPTIONS)) if "question" in wanted else set()
    assert set(options) - set(wanted) <= ADDRESSES | NOT_FIELDS | of_question
    for name, option in options.items():
        default = option.default
        if name in wanted and default is not None and default != [] and not option.required:
            assert default == wanted[name], name


@pytest.mark.parametrize(
    ("literal", "choices"),
    [
        (_documents.Role, Role),
        (_documents.Relation, Relation),
        (_documents.InvitationKind, InvitationKind),
        (_documents.EventType, EventType),
        (_documents.Every, Every),
        (_documents.Trust, Trust),
        (_documents.Protocol, SessionProtocol),
        (_documents.Mode, Mode),
        (_documents.Threshold, Threshold),
        (_documents.Depth, Depth),
    ],
)
def test_the_sdk_names_every_choice(literal: Any, choices: type[StrEnum]) -> None:
    assert set(get_args(literal)) == {str(choice) for choice in choices}


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        (["--lower", "0", "--upper", "15.000"], "--upper: 15.000 may mean 15 or 15000"),
        (["--lower", "1,234", "--upper", "9000"], "--lower: 1,234 may mean 1.2340 or 1234"),
        (["--measures", "pay=0,15.000"], "--measures: 15.000 may mean 15 or 15000"),
        (["--measures", "place=-1.500,15,2"], "--measures: -1.500 may mean -1.5000 or -1500"),
    ],
)
def test_an_end_of_a_range_that_may_mean_two_numbers_is_asked_back(given: list[str], asked: str) -> None:
    arguments = ["create", "wages", *given, "--url", "http://127.0.0.1:9", "--token", "t"]
    with pytest.raises(typer.BadParameter) as refused:
        command("study").main(arguments, standalone_mode=False)
    assert asked in str(refused.value)


def test_an_end_of_a_range_that_means_one_number_is_taken() -> None:
    for text, number in (("15.0000", 15), (".5", Decimal("0.5")), ("+5", 5), ("0.125", Decimal("0.125"))):
        assert range_end(text, "--upper") == number
