"""Kinds of events, through the Customer API."""


async def test_the_kinds_of_events_are_listed(desk):
    told = await desk.get("/api/v1/events/types/")
    kinds = [each["event"] for each in told["items"]]
    assert told["count"] == len(kinds) == len(set(kinds)) == 12
    assert {"transfers.wire.in.success", "transfers.on-us.received", "trades.maturity"} < set(kinds)
    assert {each["object_type"] for each in told["items"]} == {"EventType"}
