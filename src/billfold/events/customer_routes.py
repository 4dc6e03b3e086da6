"""Events of the customer: their kinds, lists of them, and the stream."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from billfold.access.oauth import access_tokens
from billfold.access.users.rules import PERMISSIONS
from billfold.events import pages as event_lists
from billfold.events.kinds import CUSTOMER_KINDS
from billfold.events.pages import EventQuery, Subscriber
from billfold.events.schemas import Event, EventType
from billfold.events.stream import sse as event_stream
from billfold.events.stream.broadcaster import EventBroadcaster
from billfold.events.stream.sse import STREAM_OPTIONS, StreamQuery
from billfold.events.webhooks.types import SubscriptionOwner
from billfold.http.customer_api.member import CustomerCaller
from billfold.http.limits.rate_groups import EVENTS
from billfold.http.list_params import Limit, Offset, OrderedQuery
from billfold.http.operations import get, with_scope
from billfold.http.raw_request import RawRequest
from billfold.http.responses import StreamedResponse
from billfold.http.schemas.pages import CursorList, OffsetList
from billfold.ledger.bank import Bank
from billfold.platform.clock import wall_now
from billfold.platform.paging import LIMIT_MAX

SCOPE = "subscriptions.read"
READS = with_scope(SCOPE, EVENTS)


def subscriber_of(member: CustomerCaller) -> Subscriber:
    """Return the customer as one who is told of events."""
    owner = SubscriptionOwner(member.partner_id, member.customer_id)
    return Subscriber(owner, CUSTOMER_KINDS, audited_id=member.customer_id)


@get("/api/v1/events/types/", READS)
async def list_event_types(
    member: CustomerCaller, offset: Offset = 0, limit: Limit = LIMIT_MAX
) -> OffsetList[EventType]:
    """List the kinds of events, each with the JSON Schema of its payload."""
    return event_lists.event_types(subscriber_of(member), offset, limit)


@get("/api/v1/events/", READS, refuses=("not-found",))
async def list_events(member: CustomerCaller, bank: Bank, wanted: OrderedQuery, asked: EventQuery) -> CursorList[Event]:
    """List events with what was attempted to deliver them, the newest first.

    With `subscription_id` they are those that subscription was to be told of. A simulated event
    has no sequence and is listed only there.
    """
    return await event_lists.event_page(member, bank, subscriber_of(member), wanted, asked)


@get("/api/v1/events/stream/", READS, **STREAM_OPTIONS)
async def stream_events(
    member: CustomerCaller, bank: Bank, newsroom: EventBroadcaster, request: RawRequest, asked: StreamQuery
) -> StreamedResponse:
    """Follow events as server-sent events.

    A stream begins now, or after the sequence in `Last-Event-ID` or `after_sequence`. It ends when
    the access token does: connect again with a new one and the last id.
    """
    token = (request.header(b"authorization") or "").partition(" ")[2].strip()

    async def find_expiry() -> datetime | None:
        access = await access_tokens.find_access_token(bank.pool, token, wall_now())
        if access is None or SCOPE not in access.scopes:
            return None
        may = PERMISSIONS.get(access.role, frozenset())
        return access.expires_at if SCOPE in may else None

    return await event_stream.event_stream(newsroom, subscriber_of(member), asked.resumed(request), find_expiry)


@get("/api/v1/events/{event_id}/", READS)
async def get_event(member: CustomerCaller, bank: Bank, event_id: UUID) -> Event:
    """Read one event with what was attempted to deliver it."""
    return await event_lists.read_event(member, bank, subscriber_of(member), event_id)
