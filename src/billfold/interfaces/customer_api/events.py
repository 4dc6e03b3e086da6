"""The kinds of events that can be subscribed to."""

from __future__ import annotations

from typing import Literal

import msgspec
from litestar import get

from billfold.domain import events
from billfold.interfaces.customer_api.groups import EVENTS
from billfold.interfaces.customer_api.member import Member
from billfold.interfaces.http.marks import granted
from billfold.interfaces.http.shapes.pages import OffsetList


class EventType(msgspec.Struct, kw_only=True):
    """A kind of event."""

    event: str
    object_type: Literal["EventType"] = "EventType"


@get(
    "/api/v1/events/types/",
    operation_id="list_event_types",
    opt=granted("subscriptions.read", EVENTS),
    tags=["events"],
)
async def list_event_types(member: Member) -> OffsetList[EventType]:
    """List the kinds of events."""
    del member
    kinds = [EventType(event=each) for each in events.CUSTOMER_KINDS]
    return OffsetList(offset=0, count=len(kinds), items=kinds)


ROUTES = [list_event_types]
