"""Simulated events, delivered to the subscriptions of their kind."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec

from billfold.events.kinds import CUSTOMER_KINDS, KINDS, PARTNER_KINDS
from billfold.events.schemas import Subscriber, unknown_event_type_error
from billfold.events.webhooks import redelivery
from billfold.events.webhooks.store import EventSimulation
from billfold.http.raw_request import instant_in_body
from billfold.http.schemas import mistakes_in
from billfold.identity.partners.caller import Caller
from billfold.ledger.bank import Bank
from billfold.platform.errors import FieldError, InvalidInput
from billfold.sandbox.routes.operations import sandbox_post

_IGNORED = msgspec.Meta(description="Optional, as in any envelope; ignored.")
Ignored = Annotated[int | str | None, _IGNORED]


class SimulatedEvent(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """An envelope. Some kinds are only for customers and need `customer_id`."""

    event_id: UUID
    event_type: str
    timestamp: datetime
    payload: dict[str, Any]
    customer_id: UUID | None = None
    sequence: Ignored = None
    previous_sequence: Ignored = None
    api_version: Ignored = None
    resource_version: Ignored = None
    object_id: Ignored = None
    external_id: Ignored = None
    metadata: Annotated[dict[str, str] | None, _IGNORED] = None


@sandbox_post("webhook/", name="sandbox_webhook", refuses=("not-found", "duplicate-id"))
async def simulate(caller: Caller, bank: Bank, data: SimulatedEvent) -> None:
    """Simulate an event for the subscriptions of its kind.

    The partner's subscriptions receive it, and with `customer_id` those of that customer. It is in
    the stream, but neither in the log nor in any sequence.
    """
    event = _event(data)
    if data.customer_id is not None:
        await caller.owner(bank, data.customer_id)
    for owner in _owners(caller, data):
        await redelivery.simulate_event(bank.pool, owner, event, now=caller.wall)


def _owners(caller: Caller, data: SimulatedEvent) -> list[Subscriber]:
    owners = [Subscriber(caller.partner_id)] if data.event_type in PARTNER_KINDS else []
    if data.event_type in CUSTOMER_KINDS and data.customer_id is not None:
        owners.append(Subscriber(caller.partner_id, data.customer_id))
    if not owners:
        raise InvalidInput.at("body", "customer_id", msg=f"is required for {data.event_type}", kind="missing")
    return owners


def _event(data: SimulatedEvent) -> EventSimulation:
    """Return the event. Raises InvalidInput for its kind, time and payload."""
    if data.event_type not in KINDS:
        raise InvalidInput([unknown_event_type_error("body", "event_type")])
    return EventSimulation(
        event_id=data.event_id,
        kind=data.event_type,
        raised_at=instant_in_body("timestamp", data.timestamp),
        payload=_payload(data.event_type, data.payload),
    )


def _payload(kind: str, sent: dict[str, Any]) -> str:
    """Return the payload in the form a flow would write."""
    shape = KINDS[kind].payload
    extra = sorted(sent.keys() - set(shape.__struct_fields__))
    mistakes = [FieldError(("body", name), "is not a field of this payload", "extra_forbidden") for name in extra]
    try:
        read = msgspec.convert(sent, shape)
    except msgspec.ValidationError:
        read = None
        mistakes += mistakes_in(msgspec.to_builtins(sent), shape)
    if mistakes:
        raise InvalidInput(FieldError(("body", "payload", *each.loc[1:]), each.msg, each.type) for each in mistakes)
    return msgspec.json.encode(read).decode()
