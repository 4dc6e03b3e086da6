"""Events of the customer: their kinds, lists of them, and the stream."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from billfold.domain import oauth
from billfold.domain.events import CUSTOMER_KINDS
from billfold.domain.people import PERMISSIONS
from billfold.domain.webhooks import Owner
from billfold.engine.bank import Bank
from billfold.interfaces.customer_api.member import Member
from billfold.interfaces.http import event_lists, event_stream
from billfold.interfaces.http.event_lists import EventQuery, Subscriber
from billfold.interfaces.http.event_stream import STREAMED, StreamQuery
from billfold.interfaces.http.lists import Limit, Offset, OrderedQuery
from billfold.interfaces.http.newsroom import Newsroom
from billfold.interfaces.http.operations import get, with_scope
from billfold.interfaces.http.rate_groups import EVENTS
from billfold.interfaces.http.raw_request import RawRequest
from billfold.interfaces.http.responses import StreamedResponse
from billfold.interfaces.http.shapes.event import Event, EventType
from billfold.interfaces.http.shapes.pages import CursorList, OffsetList
from billfold.kit.clock import wall_now
from billfold.kit.paging import LIMIT_MAX

SCOPE = "subscriptions.read"
READS = with_scope(SCOPE, EVENTS)


def subscriber_of(member: Member) -> Subscriber:
    """Return the customer as one who is told of events."""
    owner = Owner(member.partner_id, member.customer_id)
    return Subscriber(owner, CUSTOMER_KINDS, audited_id=member.customer_id)


@get("/api/v1/events/types/", READS)
async def list_event_types(
    member: Member, offset: Offset = 0, limit: Limit = LIMIT_MAX
) -> OffsetList[EventType]:
    """List the kinds of events, each with the JSON Schema of its payload."""
    return event_lists.event_types(subscriber_of(member), offset, limit)


@get("/api/v1/events/", READS, refuses=("not-found",))
async def list_events(
    member: Member, bank: Bank, wanted: OrderedQuery, asked: EventQuery
) -> CursorList[Event]:
    """List events with what was attempted to deliver them, the newest first.

    With `subscription_id` they are those that subscription was to be told of. A simulated event
    has no sequence and is listed only there.
    """
    return await event_lists.event_page(member, bank, subscriber_of(member), wanted, asked)


@get("/api/v1/events/stream/", READS, **STREAMED)
async def stream_events(
    member: Member, bank: Bank, newsroom: Newsroom, request: RawRequest, asked: StreamQuery
) -> StreamedResponse:
    """Follow events as server-sent events.

    A stream begins now, or after the sequence in `Last-Event-ID` or `after_sequence`. It ends when
    the access token does: connect again with a new one and the last id.
    """
    token = (request.header(b"authorization") or "").partition(" ")[2].strip()

    async def standing() -> datetime | None:
        access = await oauth.find_access(bank.pool, token, wall_now())
        if access is None or SCOPE not in access.scopes:
            return None
        may = PERMISSIONS.get(access.role, frozenset())
        return access.expires_at if SCOPE in may else None

    return await event_stream.event_stream(
        newsroom, subscriber_of(member), asked.resumed(request), standing
    )


@get("/api/v1/events/{event_id}/", READS)
async def get_event(member: Member, bank: Bank, event_id: UUID) -> Event:
    """Read one event with what was attempted to deliver it."""
    return await event_lists.read_event(member, bank, subscriber_of(member), event_id)
