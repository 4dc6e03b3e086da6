"""Events of all customers of the partner: their kinds, lists of them, and the stream."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from billfold.access.partners import store as partner_store
from billfold.events import pages as event_lists
from billfold.events.kinds import PARTNER_KINDS
from billfold.events.pages import EventQuery, Subscriber
from billfold.events.schemas import Event, EventType
from billfold.events.stream import sse as event_stream
from billfold.events.stream.broadcaster import EventBroadcaster
from billfold.events.stream.sse import STREAM_OPTIONS, StreamQuery
from billfold.events.webhooks.types import SubscriptionOwner
from billfold.http.caller import Caller
from billfold.http.list_params import Limit, Offset, OrderedQuery
from billfold.http.operations import get
from billfold.http.raw_request import RawRequest
from billfold.http.responses import StreamedResponse
from billfold.http.schemas.pages import CursorList, OffsetList
from billfold.ledger.bank import Bank
from billfold.platform.clock import wall_now
from billfold.platform.crypto import hash_token
from billfold.platform.paging import LIMIT_MAX


def subscriber_of(caller: Caller) -> Subscriber:
    """Return the partner as one who is told of events."""
    owner = SubscriptionOwner(caller.partner_id)
    return Subscriber(owner, PARTNER_KINDS, audited_id=caller.own_customer_id)


@get("/api/v1/events/types/")
async def list_event_types(caller: Caller, offset: Offset = 0, limit: Limit = LIMIT_MAX) -> OffsetList[EventType]:
    """List the kinds of events, each with the JSON Schema of its payload."""
    return event_lists.event_types(subscriber_of(caller), offset, limit)


@get("/api/v1/events/", refuses=("not-found",))
async def list_events(caller: Caller, bank: Bank, wanted: OrderedQuery, asked: EventQuery) -> CursorList[Event]:
    """List events with what was attempted to deliver them, the newest first.

    With `subscription_id` they are those that subscription was to be told of. A simulated event
    has no sequence and is listed only there.
    """
    return await event_lists.event_page(caller, bank, subscriber_of(caller), wanted, asked)


@get("/api/v1/events/stream/", **STREAM_OPTIONS)
async def stream_events(
    caller: Caller, bank: Bank, newsroom: EventBroadcaster, request: RawRequest, asked: StreamQuery
) -> StreamedResponse:
    """Follow events as server-sent events.

    A stream begins now, or after the sequence in `Last-Event-ID` or `after_sequence`. It ends when
    the access token does: connect again with a new one and the last id.
    """
    token = (request.header(b"authorization") or "").partition(" ")[2].strip()

    async def find_expiry() -> datetime | None:
        found = await partner_store.find_credential(bank.pool, bank.vault, hash_token(token), wall_now())
        return None if found is None else found.expires_at

    return await event_stream.event_stream(newsroom, subscriber_of(caller), asked.resumed(request), find_expiry)


@get("/api/v1/events/{event_id}/")
async def get_event(caller: Caller, bank: Bank, event_id: UUID) -> Event:
    """Read one event with what was attempted to deliver it."""
    return await event_lists.read_event(caller, bank, subscriber_of(caller), event_id)
