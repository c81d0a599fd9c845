"""Commands of an admin about people: lifetime budgets over HTTP, and the key that people are known under."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any

import typer
from dither import Budget, Client, Raise

from app.cli.common import console, print_table, show, usage_error
from app.cli.http import number
from app.cli.options import fields_of
from app.cli.plain_help import PlainGroup
from app.cli.rekey import rekey
from app.cli.service_commands import asks_service
from app.web.documents.budget import RaiseIn

subjects = typer.Typer(
    no_args_is_help=True, help="Look at people's lifetime budgets, set them, change the key."
)
subjects.command("rekey")(rekey)


class ShowsByDefault(PlainGroup):
    """A group in which the name of a person stands for `show` and that person."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put `show` before what is no command."""
        if args and args[0] not in {*self.commands, *ctx.help_option_names}:
            args = ["show", *args]
        return super().parse_args(ctx, args)


budgets = typer.Typer(
    cls=ShowsByDefault,
    no_args_is_help=True,
    help="Show a person's lifetime budget (dither budget PERSON), or raise those of all people.",
)

SubjectName = Annotated[str, typer.Argument(metavar="SUBJECT", help="External id of the person.")]


def _pair(text: str) -> tuple[Decimal, Decimal]:
    epsilon, comma, delta = text.partition(",")
    if not comma:
        raise usage_error("--gaussian needs an epsilon and a delta, as 3,0.000001")
    return number(epsilon, "--gaussian"), number(delta, "--gaussian")


def _show_budget(found: Budget) -> None:
    budget: Mapping[str, Any] = found.raw
    columns = {
        "name": "",
        "total": "total",
        "reserved": "reserved",
        "spent": "spent",
        "remaining": "remaining",
    }
    gaussian, promise = budget["gaussian"], budget["in_all"]
    rows = [{"name": "epsilon", **budget["epsilon"]}]
    if gaussian is not None:
        rows += [
            {"name": f"Gaussian noise: epsilon at {gaussian['delta']:g}", **gaussian["epsilon"]},
            {"name": "Gaussian noise: mu^2", **gaussian["mu2"]},
        ]
    print_table(rows, columns, title=f"Lifetime budget of {budget['subject']}")
    if gaussian is not None:
        console.print(
            f"In all this person can lose epsilon {promise['epsilon']:g} at delta {promise['delta']:g}."
        )
    if budget["studies"]:
        columns = {"study": "study", "trust": "trust", "live": "live", "epsilon": "epsilon", "spent": "spent"}
        if any(line["mu2"] is not None for line in budget["studies"]):
            columns |= {"mu2": "mu^2", "mu2_spent": "mu^2 spent"}
        print_table(budget["studies"], columns)
    if budget["sessions"]:
        columns = {name: name for name in ("session", "study", "protocol", "epsilon", "spent")}
        print_table(budget["sessions"], columns)
    if not budget["studies"] and not budget["sessions"]:
        console.print("No study holds any of it.")


def _show_raise(made: Raise) -> None:
    at = f" at delta {made.delta:g}, for Gaussian noise" if made.delta else ""
    console.print(
        f"Raised by {show(made.epsilon)}{at}; a person who is new from now on has {show(made.new_people)}."
    )


@budgets.command("show")
@subjects.command("budget")
@asks_service(_show_budget)
def show_budget(client: Client, subject: SubjectName) -> Budget:
    """Show what a person's lifetime budget is, and what holds it."""
    return client.budget(subject)


@subjects.command("set-budget")
@asks_service(_show_budget)
def set_budget(
    client: Client,
    subject: SubjectName,
    epsilon: Annotated[str, typer.Option(metavar="EPSILON", help="The new lifetime epsilon.")],
    reason: Annotated[str, typer.Option(help="For the audit trail.")],
    gaussian: Annotated[
        str | None,
        typer.Option(
            metavar="EPSILON,DELTA",
            help="The new lifetime budget for Gaussian noise, such as 3,0.000001; as it is if not given.",
        ),
    ] = None,
) -> Budget:
    """Set a person's lifetime budget; never below what is reserved."""
    both = None if gaussian is None else _pair(gaussian)
    return client.set_budget(subject, epsilon=number(epsilon, "--epsilon"), gaussian=both, reason=reason)


@budgets.command("raise")
@fields_of(RaiseIn)
@asks_service(_show_raise)
def raise_budgets(
    client: Client,
    fields: Mapping[str, Any],
    *,
    key: Annotated[str | None, typer.Option(help="With the same key nothing is raised again.")] = None,
) -> Raise:
    """Add to the lifetime budget of every person, and of all who are new from now on. Cannot be undone.

    What a person can lose is then the sum of what was granted.
    """
    return client.raise_budgets(**fields, key=key)
