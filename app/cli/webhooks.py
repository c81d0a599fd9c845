"""Commands of an admin over HTTP: addresses that learns what happens."""

from collections.abc import Sequence
from typing import Annotated

import typer
from dither import Client, NewWebhook, Webhook

from app.cli.common import notes, print_table
from app.cli.service_commands import asks_service
from app.core.webhook import EventType

webhooks = typer.Typer(
    no_args_is_help=True, help="Have addresses told what happens: answers, ends of studies."
)

WebhookId = Annotated[str, typer.Argument(metavar="ID", help="Id of a webhook, from `dither webhook list`.")]


def _show_new(made: NewWebhook) -> None:
    notes.print(f"Webhook {made.id}; its secret is shown this once:", markup=False)
    typer.echo(made.secret)


def _show_all(found: Sequence[Webhook]) -> None:
    columns = {"id": "id", "url": "address", "events": "events", "waiting": "waiting", "given_up": "given up"}
    print_table([one.raw for one in found], columns)


@webhooks.command("create")
@asks_service(_show_new)
def create_webhook(
    client: Client,
    address: Annotated[str, typer.Argument(metavar="URL", help="Where events are sent by POST: https://.")],
    event: Annotated[list[EventType], typer.Option(help="What it learns; may be repeated.")],
) -> NewWebhook:
    """Have an address told what happens from now on, and print the secret that it checks signatures with."""
    return client.create_webhook(address, events=[one.value for one in event])


@webhooks.command("list")
@asks_service(_show_all)
def list_webhooks(client: Client) -> list[Webhook]:
    """List all webhooks, without their secrets, and how many events they have not taken."""
    return list(client.webhooks())


@webhooks.command("delete")
@asks_service()
def delete_webhook(client: Client, webhook_id: WebhookId) -> None:
    """Have an address told nothing any more, nor what it was not told yet."""
    client.delete_webhook(webhook_id)
    notes.print(f"Webhook {webhook_id} is deleted.", markup=False)
