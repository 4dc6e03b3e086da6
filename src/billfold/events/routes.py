"""Operations on events: their types, lists of them, and the stream."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec

from billfold.data_keys.keys import DataKeys
from billfold.events import store
from billfold.events.broadcaster import EventBroadcaster
from billfold.events.kinds import KINDS
from billfold.events.schemas import Event, EventType, Subscriber, render_type, require_kinds
from billfold.events.sequencer import sequence_events
from billfold.events.sse import STREAM_OPTIONS, StreamQuery, event_stream
from billfold.events.store import EventFilter, LoggedEvent, envelope_of
from billfold.events.webhooks import store as webhook_store
from billfold.events.webhooks.subscriptions import subscriber_of
from billfold.http.operations import SIGNED, get, with_scope
from billfold.http.parameters import Limit, Offset, OrderedQuery, Part, Query, Since, page_of
from billfold.http.raw_request import RawRequest
from billfold.http.responses import StreamedResponse
from billfold.http.schemas import CursorList, OffsetList
from billfold.identity.partners import store as partner_store
from billfold.identity.partners.caller import Caller
from billfold.identity.users.rules import PERMISSIONS
from billfold.ledger.bank import Bank
from billfold.oauth import grants
from billfold.oauth.caller import AnyCaller
from billfold.platform.clock import wall_now
from billfold.platform.crypto import hash_token
from billfold.platform.database.paging import LIMIT_MAX

SCOPE = "subscriptions.read"
READS = with_scope(SCOPE, "events")


class EventQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Filters of the list of events."""

    subscription_id: Annotated[UUID | None, Query(description="Those queued for this subscription.")] = None
    after: Annotated[Since, Query(description="Those with a later `timestamp`.")] = None
    kinds: Annotated[list[str] | None, Query(name="event_type[]", description="Only these types.")] = None
    object_id: Annotated[UUID | None, Query(description="Those about this object, as their `object_id`.")] = None


@get("/api/v1/events/types/", SIGNED, READS, tag="events")
async def list_event_types(caller: AnyCaller, offset: Offset = 0, limit: Limit = LIMIT_MAX) -> OffsetList[EventType]:
    """List event types.

    Each comes with the JSON Schema of its payload.
    """
    kinds = subscriber_of(caller).kinds
    items = [render_type(KINDS[name]) for name in kinds[offset : offset + limit]]
    return OffsetList(offset=offset, count=len(kinds), items=items)


@get("/api/v1/events/", SIGNED, READS, tag="events", refuses=("not-found",))
async def list_events(caller: AnyCaller, bank: Bank, wanted: OrderedQuery, filters: EventQuery) -> CursorList[Event]:
    """List events.

    Each comes with its delivery attempts, newest first. With `subscription_id` they are
    the events queued for that subscription. A simulated event has no sequence and is listed only there.
    """
    subscriber, of = subscriber_of(caller), filters.subscription_id
    require_kinds(subscriber, filters.kinds, "query", "event_type[]")
    chosen = EventFilter(filters.after, sorted(set(filters.kinds or ())) or None, filters.object_id)
    if of is not None:
        await webhook_store.get_subscription(bank.pool, subscriber, of)
    await sequence_events(bank.pool, now=caller.wall)

    async def read(part: Part) -> tuple[list[LoggedEvent], None]:
        span: dict[str, Any] = {"place": part.place, "descending": part.descending, "limit": part.limit}
        if of is None:
            return await store.list_events(bank.pool, subscriber, chosen, **span), None
        return await store.list_subscription_events(bank.pool, of, chosen, **span), None

    page = await wanted.page(
        bank.pager,
        f"events:{subscriber.name}",
        {"of": str(of), **chosen._asdict(), "descending": wanted.descending},
        read=read,
        sort_key_of=lambda row: row.place,
    )
    return page_of(page, await _render(bank, subscriber, page.items, of=of))


@get("/api/v1/events/stream/", SIGNED, READS, **STREAM_OPTIONS)
async def stream_events(
    caller: AnyCaller,
    bank: Bank,
    broadcaster: EventBroadcaster,
    request: RawRequest,
    stream_query: StreamQuery,
) -> StreamedResponse:
    """Stream events.

    Events arrive as server-sent events. A stream begins now, or after the sequence in `Last-Event-ID`
    or `after_sequence`. It ends when the access token does: connect again with a new token and the last id.
    """
    token = (request.header(b"authorization") or "").partition(" ")[2].strip()

    async def find_expiry() -> datetime | None:
        if isinstance(caller, Caller):
            credential = await partner_store.find_credential(bank.pool, bank.vault, hash_token(token), now=wall_now())
            return None if credential is None else credential.expires_at
        access = await grants.find_access_token(bank.pool, token, wall_now())
        if access is None or SCOPE not in access.scopes & PERMISSIONS.get(access.role, frozenset()):
            return None
        return access.expires_at

    return await event_stream(
        broadcaster, subscriber_of(caller), stream_query.resumed(request), find_expiry=find_expiry
    )


@get("/api/v1/events/{event_id}/", SIGNED, READS, tag="events")
async def get_event(caller: AnyCaller, bank: Bank, event_id: UUID) -> Event:
    """Get an event.

    It comes with its delivery attempts.
    """
    await sequence_events(bank.pool, now=caller.wall)
    subscriber = subscriber_of(caller)
    found = await store.get_event(bank.pool, subscriber, event_id)
    return (await _render(bank, subscriber, [found], of=None))[0]


async def _render(bank: Bank, subscriber: Subscriber, found: list[LoggedEvent], of: UUID | None) -> list[Event]:
    noted = await store.with_notes(
        bank.pool, bank.ports[DataKeys], found, by_customer=subscriber.customer_id is not None
    )
    ids = [each.event_id for each in found]
    attempts = await webhook_store.list_attempts_of_events(bank.pool, subscriber, ids, subscription_id=of)
    return [
        Event(event=envelope_of(each, subscriber.customer_id), delivery_attempts=attempts[each.event_id])
        for each in noted
    ]
