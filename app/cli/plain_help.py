"""Help that names what an option takes as people write it, and not by the types of the language."""

from typing import Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption


class PlainGroup(TyperGroup):
    """A group of commands whose help has no types of the language."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, with names for what they take."""
        return [_plain(one) for one in super().get_params(ctx)]


class PlainCommand(TyperCommand):
    """A command whose help has names in capitals, and alternatives with bars between them."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, with names for what they take."""
        return [_plain(one) for one in super().get_params(ctx)]

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The line of usage: arguments as they are named, in brackets if they may be left out."""
        pieces = [self.options_metavar] if self.options_metavar else []
        for one in self.get_params(ctx):
            if isinstance(one, TyperArgument):
                name = str(one.metavar)
                many = "..." if one.nargs != 1 and not name.endswith(("...", "]")) else ""
                pieces.append(name + many if one.required or name.startswith("[") else f"[{name}]{many}")
        return pieces


def make_plain(app: typer.Typer) -> None:
    """Have all commands of an application show plain help."""
    for command in app.registered_commands:
        command.cls = PlainCommand
    for group in app.registered_groups:
        if group.typer_instance is not None:
            info = group.typer_instance.info
            # A placeholder stands there where no class was given.
            info.cls = info.cls if isinstance(info.cls, type) else PlainGroup
            make_plain(group.typer_instance)


def _plain(one: Any) -> Any:
    """A parameter as help names it: what an argument or a flag is called says enough of it."""
    if isinstance(one, TyperArgument) or one.is_flag:
        one.display_type_rich = _no_type
    if isinstance(one, TyperArgument):
        one.metavar = one.metavar or str(one.name).upper()
    elif not one.is_flag:
        one.metavar = one.metavar or _taken(one)
    return one


def _no_type(ctx: Any) -> None:
    """Nothing beside the name."""


def _taken(option: TyperOption) -> str | None:
    """What stands behind an option: its alternatives, a number, or its own name."""
    # Versions of typer before 0.29 name types well enough.
    kind = getattr(option, "type_descriptor", None)
    if kind is None:
        return None
    if kind.choices is not None:
        return "|".join(str(getattr(choice, "value", choice)) for choice in kind.choices)
    word = max(option.opts, key=len).strip("-").upper()
    return "NUMBER" if kind.annotation in (int, float) else word
