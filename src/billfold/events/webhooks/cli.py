"""`billfold trigger`: an event that never happened, for those who develop a receiver."""

from __future__ import annotations

from typing import Annotated

import typer

from billfold.cli.context import CannotGoOn, ground_of
from billfold.cli.output import done
from billfold.events.cli import check_kinds
from billfold.events.kinds import KINDS
from billfold.events.payload_schemas import example_payload
from billfold.platform import ids
from billfold.sandbox.credentials_file import sandbox_of

Kind = Annotated[str | None, typer.Argument(help="Which kind; without one all are listed.")]
Fields = Annotated[
    list[str] | None,
    typer.Option("--set", help="A field of the payload: --set wire_id=5d4c...; may be repeated."),
]
EventId = Annotated[
    str | None, typer.Option(help="The event's id; the same id again is not told again.")
]


def trigger(
    ctx: typer.Context,
    kind: Kind = None,
    *,
    fields: Fields = None,
    event_id: EventId = None,
) -> None:
    """Pretend that something happened in a sandbox, to try a receiver.

    Subscriptions of that kind are called, the partner's and those of the
    sandbox's customer, and `billfold listen` shows it. Nothing happens in the
    bank: no money moves, and the event has no sequence.

    Without a kind this lists all there are. For events that are true let
    things happen: `billfold clock advance` lets bills mature, and a wire comes
    by POST /api/v1/sandbox/wire/.
    """
    if kind is None:
        for each in KINDS.values():
            typer.echo(f"{each.name:<40} {each.meaning}")
        return
    check_kinds([kind], list(KINDS))
    settings = ground_of(ctx).settings()
    box = sandbox_of(settings.state_dir)
    made = event_id or str(ids.new())
    with ground_of(ctx).outside(settings, customer=False) as outside:
        outside.simulate(
            {
                "event_id": made,
                "event_type": kind,
                "timestamp": outside.bank_time(),
                "customer_id": box.customer_id,
                "payload": payload_of(kind, fields or []),
            }
        )
    done(f"{kind} {made}")


def payload_of(kind: str, fields: list[str]) -> dict[str, object]:
    """Return the example of a kind with some fields replaced. Raises CannotGoOn."""
    payload: dict[str, object] = example_payload(kind)
    for field in fields:
        name, equals, value = field.partition("=")
        if name not in KINDS[kind].payload.__struct_fields__ or not equals:
            known = ", ".join(KINDS[kind].payload.__struct_fields__)
            raise CannotGoOn(f"{field!r} sets no field.", f"Write NAME=VALUE; there are {known}.")
        is_number = isinstance(payload.get(name), int) and value.isdigit()
        payload[name] = int(value) if is_number else value
    return payload
