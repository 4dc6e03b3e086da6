"""`billfold trigger`: an event that never happened, to develop a receiver."""

from typing import Annotated

import typer

from billfold.cli.command import CommandGroup, console, key_value_table
from billfold.cli.context import CliContext, CliError
from billfold.events.kinds import KINDS, example_payload
from billfold.platform import ids
from billfold.sandbox.credentials_file import require_sandbox_file
from billfold.sandbox.listen import check_kinds
from billfold.sandbox.sandbox_client import open_partner_api

group = CommandGroup()
Kind = Annotated[str | None, typer.Argument(help="The kind; all are listed if omitted.")]
Fields = Annotated[
    list[str] | None, typer.Option("--set", help="A field of the payload: --set wire_id=5d4c...; may be repeated.")
]
EventId = Annotated[str | None, typer.Option(help="The event's id; an id is delivered once.")]


@group.command("trigger transfers.wire.in.success", "trigger")
def trigger(context: CliContext, kind: Kind = None, *, fields: Fields = None, event_id: EventId = None) -> str | None:
    """Simulate an event in a sandbox, to test a receiver.

    Subscriptions of that kind are called, the partner's and those of the
    sandbox's customer, and `billfold listen` shows it. Nothing happens in the
    bank: no money moves, and the event has no sequence.

    Without a kind this lists all kinds. For real events let
    things happen: `billfold clock advance` lets bills mature, and a wire comes
    by POST /api/v1/sandbox/wire/.
    """
    if kind is None:
        console.print(key_value_table((each.name, each.meaning) for each in KINDS.values()))
        return None
    check_kinds([kind], list(KINDS))
    box = require_sandbox_file(context.settings().state_dir)
    new_id = event_id or str(ids.new())
    with open_partner_api(box) as client:
        client.simulate(
            "webhook",
            event_id=new_id,
            event_type=kind,
            timestamp=client.bank_time(),
            customer_id=box.customer_id,
            payload=payload_of(kind, fields or []),
        )
    return f"{kind} {new_id}"


def payload_of(kind: str, fields: list[str]) -> dict[str, object]:
    """Return the example of a kind with some fields replaced. Raises CliError."""
    payload: dict[str, object] = example_payload(KINDS[kind])
    for field in fields:
        name, equals, value = field.partition("=")
        if name not in KINDS[kind].payload.__struct_fields__ or not equals:
            known = ", ".join(KINDS[kind].payload.__struct_fields__)
            raise CliError(f"{field!r} does not set a field.", f"Write NAME=VALUE; there are {known}.")
        is_number = isinstance(payload.get(name), int) and value.isdigit()
        payload[name] = int(value) if is_number else value
    return payload
