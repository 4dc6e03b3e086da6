"""The log of events, and one of them with what was attempted to deliver it."""

from __future__ import annotations

import msgspec
from litestar import get

from billfold.console.company import InCompany
from billfold.events.routes import get_event, list_events
from billfold.events.webhooks.routes import list_subscriptions
from billfold.pages.page_context import PageResponse, path_id

_PATH = "/companies/{customer_id:str}/developer/events"
_PAGE = 30
_SUBSCRIPTIONS = 50


@get(_PATH)
async def show_events(company: InCompany) -> PageResponse:
    """Show events, the newest first: all, or those that were queued for one subscription."""
    query = company.page.query
    chosen = query.get("subscription", "")
    found = await company.api.get(
        list_events, subscription_id=chosen and path_id(chosen), cursor=query.get("cursor"), limit=_PAGE
    )
    subscriptions = await company.api.get(list_subscriptions, limit=_SUBSCRIPTIONS)
    return company.render(
        "developer_events",
        rows=found,
        filters={"subscription": chosen},
        subscriptions={str(each.id): each.url for each in subscriptions.items},
    )


@get(f"{_PATH}/{{event_id:str}}")
async def show_event(company: InCompany, event_id: str) -> PageResponse:
    """Show an event as programs receive it."""
    found = await company.api.get(get_event, event_id=path_id(event_id, "There is no such event."))
    subscriptions = await company.api.get(list_subscriptions, limit=_SUBSCRIPTIONS)
    return company.render(
        "developer_event",
        event=found.event,
        content=msgspec.json.format(msgspec.json.encode(found.event)).decode(),
        attempts=found.delivery_attempts,
        subscriptions={str(each.id): each.url for each in subscriptions.items},
        receivers=[each for each in subscriptions.items if found.event.event_type in each.events],
    )
