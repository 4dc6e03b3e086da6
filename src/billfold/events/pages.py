"""Events and their kinds, read in the words of both APIs."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

import msgspec

from billfold.events import store as log
from billfold.events.kinds import KINDS
from billfold.events.schemas import Event, EventType, render_event, render_type
from billfold.events.store import EventReader, LoggedEvent
from billfold.events.webhooks import sequencer
from billfold.events.webhooks import store as webhook_store
from billfold.events.webhooks.types import SubscriptionOwner
from billfold.http.caller import Call
from billfold.http.list_params import ListQuery, Since, page_of
from billfold.http.parameters import Query
from billfold.http.schemas.pages import CursorList, OffsetList
from billfold.ledger.bank import Bank


class Subscriber(msgspec.Struct, frozen=True):
    """Who is told, and of which kinds: a partner, or one of his customers.

    What is done for him stands in the audit log of `audited_id`, a customer: the partner's own.
    """

    owner: SubscriptionOwner
    kinds: tuple[str, ...]
    audited_id: UUID

    @property
    def reader(self) -> EventReader:
        """Return him as the log knows him."""
        return EventReader(self.owner.partner_id, self.owner.customer_id)

    @property
    def name(self) -> str:
        """Return what cursors of his lists are bound to."""
        return f"{self.owner.partner_id}:{self.owner.customer_id}"


class EventQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which events a caller asks for."""

    subscription_id: Annotated[UUID | None, Query(description="Those this subscription was to be told of.")] = None
    after: Annotated[Since, Query(description="Those with a later `timestamp`.")] = None


def event_types(subscriber: Subscriber, offset: int, limit: int) -> OffsetList[EventType]:
    """Return the kinds that can be subscribed to; `count` is of all of them."""
    kinds = subscriber.kinds[offset : offset + limit]
    items = [render_type(KINDS[name]) for name in kinds]
    return OffsetList(offset=offset, count=len(subscriber.kinds), items=items)


async def event_page(
    call: Call, bank: Bank, subscriber: Subscriber, wanted: ListQuery, asked: EventQuery
) -> CursorList[Event]:
    """Return one page of events: in the order of their sequence, or of a subscription's queue.

    Raises NotFound for a subscription that is somebody else's.
    """
    subscription_uuid = asked.subscription_id
    if subscription_uuid is not None:
        await webhook_store.get_subscription(bank.pool, subscriber.owner, subscription_uuid)
    await sequencer.sequence_events(bank.pool, now=call.wall)
    filters = {"of": str(subscription_uuid), "after": asked.after, "descending": wanted.descending}
    scope = f"events:{subscriber.name}"
    position = wanted.position(bank.pager, scope, filters)
    backwards = position is not None and position.direction == "prev"
    window: dict[str, Any] = {
        "after": asked.after,
        "place": position.place if position else None,
        "descending": wanted.descending != backwards,
        "limit": wanted.limit + 1,
    }
    rows = (
        await log.list_events(bank.pool, subscriber.reader, **window)
        if subscription_uuid is None
        else await log.list_subscription_events(bank.pool, subscription_uuid, **window)
    )
    page = bank.pager.page(scope, filters, rows, limit=wanted.limit, start=position, sort_key_of=lambda row: row.place)
    return page_of(page, await _render(bank, subscriber, page.items, subscription_uuid))


async def read_event(call: Call, bank: Bank, subscriber: Subscriber, event_id: UUID) -> Event:
    """Return one event. Raises NotFound for one that he cannot see."""
    await sequencer.sequence_events(bank.pool, now=call.wall)
    found = await log.get_event(bank.pool, subscriber.reader, event_id)
    return (await _render(bank, subscriber, [found], None))[0]


async def _render(bank: Bank, subscriber: Subscriber, found: list[LoggedEvent], of: UUID | None) -> list[Event]:
    ids = [each.event_id for each in found]
    attempts = await webhook_store.list_attempts_of_events(bank.pool, subscriber.owner, ids, of)
    return [render_event(each, subscriber.reader, attempts[each.event_id]) for each in found]
