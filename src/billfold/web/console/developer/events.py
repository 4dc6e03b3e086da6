"""The log of events, and one of them with what was attempted to deliver it."""

from __future__ import annotations

import msgspec
from litestar import get

from billfold.web.console.team import InTeam, paths_of
from billfold.events.routes import get_event, list_events
from billfold.events.webhooks.routes import list_subscriptions
from billfold.web.page_context import PageResponse, path_id

_PATH = "/developer/events"
_PAGE = 30
_SUBSCRIPTIONS = 50


@get(paths_of(_PATH))
async def show_events(team: InTeam) -> PageResponse:
    """Show events, the newest first: all, or those that were queued for one subscription."""
    query = team.page.query
    chosen = query.get("subscription", "")
    found = await team.api.get(
        list_events, subscription_id=chosen and path_id(chosen), cursor=query.get("cursor"), limit=_PAGE
    )
    subscriptions = await team.api.get(list_subscriptions, limit=_SUBSCRIPTIONS)
    return team.render(
        "developer_events",
        rows=found,
        filters={"subscription": chosen},
        subscriptions={str(each.id): each.url for each in subscriptions.items},
    )


@get(paths_of(f"{_PATH}/{{event_id:str}}"))
async def show_event(team: InTeam, event_id: str) -> PageResponse:
    """Show an event as programs receive it."""
    found = await team.api.get(get_event, event_id=path_id(event_id, "There is no such event."))
    subscriptions = await team.api.get(list_subscriptions, limit=_SUBSCRIPTIONS)
    return team.render(
        "developer_event",
        event=found.event,
        content=msgspec.json.format(msgspec.json.encode(found.event)).decode(),
        attempts=found.delivery_attempts,
        subscriptions={str(each.id): each.url for each in subscriptions.items},
        receivers=[each for each in subscriptions.items if found.event.event_type in each.events],
    )
