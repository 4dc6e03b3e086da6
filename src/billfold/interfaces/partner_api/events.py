"""Events of all customers of the partner: their kinds, lists of them, and the stream."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from billfold.domain import identity
from billfold.domain.events import PARTNER_KINDS
from billfold.domain.webhooks import Owner
from billfold.engine.bank import Bank
from billfold.interfaces.http import event_lists, event_stream
from billfold.interfaces.http.calls import Caller
from billfold.interfaces.http.event_lists import EventQuery, Subscriber
from billfold.interfaces.http.event_stream import STREAMED, StreamQuery
from billfold.interfaces.http.lists import Limit, Offset, OrderedQuery
from billfold.interfaces.http.newsroom import Newsroom
from billfold.interfaces.http.operations import get
from billfold.interfaces.http.raw_request import RawRequest
from billfold.interfaces.http.responses import StreamedResponse
from billfold.interfaces.http.shapes.event import Event, EventType
from billfold.interfaces.http.shapes.pages import CursorList, OffsetList
from billfold.kit.clock import wall_now
from billfold.kit.crypto import hash_token
from billfold.kit.paging import LIMIT_MAX


def subscriber_of(caller: Caller) -> Subscriber:
    """Return the partner as one who is told of events."""
    owner = Owner(caller.partner_id)
    return Subscriber(owner, PARTNER_KINDS, audited_id=caller.own_customer_id)


@get("/api/v1/events/types/")
async def list_event_types(
    caller: Caller, offset: Offset = 0, limit: Limit = LIMIT_MAX
) -> OffsetList[EventType]:
    """List the kinds of events, each with the JSON Schema of its payload."""
    return event_lists.event_types(subscriber_of(caller), offset, limit)


@get("/api/v1/events/", refuses=("not-found",))
async def list_events(
    caller: Caller, bank: Bank, wanted: OrderedQuery, asked: EventQuery
) -> CursorList[Event]:
    """List events with what was attempted to deliver them, the newest first.

    With `subscription_id` they are those that subscription was to be told of. A simulated event
    has no sequence and is listed only there.
    """
    return await event_lists.event_page(caller, bank, subscriber_of(caller), wanted, asked)


@get("/api/v1/events/stream/", **STREAMED)
async def stream_events(
    caller: Caller, bank: Bank, newsroom: Newsroom, request: RawRequest, asked: StreamQuery
) -> StreamedResponse:
    """Follow events as server-sent events.

    A stream begins now, or after the sequence in `Last-Event-ID` or `after_sequence`. It ends when
    the access token does: connect again with a new one and the last id.
    """
    token = (request.header(b"authorization") or "").partition(" ")[2].strip()

    async def standing() -> datetime | None:
        found = await identity.find_credential(bank.pool, bank.vault, hash_token(token), wall_now())
        return None if found is None else found.expires_at

    return await event_stream.event_stream(
        newsroom, subscriber_of(caller), asked.resumed(request), standing
    )


@get("/api/v1/events/{event_id}/")
async def get_event(caller: Caller, bank: Bank, event_id: UUID) -> Event:
    """Read one event with what was attempted to deliver it."""
    return await event_lists.read_event(caller, bank, subscriber_of(caller), event_id)
