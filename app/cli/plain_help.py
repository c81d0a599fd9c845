"""Help that names what an option takes as people write it, and not by the types of the language."""

from typing import Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperOption


class PlainArgument(TyperArgument):
    """An argument, which its name says enough of."""

    def display_type_rich(self, ctx: Any) -> str | None:
        """No type beside the name."""
        return None


class PlainFlag(TyperOption):
    """An option that takes nothing."""

    def display_type_rich(self, ctx: Any) -> str | None:
        """No type beside the name."""
        return None


class PlainCommand(TyperCommand):
    """A command whose help has names in capitals, and alternatives with bars between them."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, with names for what they take."""
        found: list[Any] = super().get_params(ctx)
        for one in found:
            if isinstance(one, TyperArgument):
                one.metavar = one.metavar or str(one.name).upper()
                one.__class__ = PlainArgument
            elif one.is_flag:
                one.__class__ = PlainFlag
            else:
                one.metavar = one.metavar or _taken(one)
        return found

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
            make_plain(group.typer_instance)


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
