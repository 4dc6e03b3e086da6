"""Events over both APIs: readers see only their own, in their own order, page by page."""

from billfold.events.kinds import CUSTOMER_KINDS, KINDS, PARTNER_KINDS
from billfold.events.schemas import payload_schema

PATH = "/api/v1/events/"


def numbers_and_types(items):
    """Return (sequence, kind) of events."""
    return [(each["event"]["sequence"], each["event"]["event_type"]) for each in items]


async def test_the_event_list_of_each_reader_has_no_gaps_or_foreign_events(
    customer_world, customer_desks, customer_desk
):
    stranger = await customer_desks()
    pocket, other = await customer_desk.pocket(), await customer_desk.pocket()
    await customer_world.wire(pocket, 9_000_00)
    await customer_world.wire(await stranger.pocket(), 100_00)
    await customer_world.ach(pocket, 100_00)
    await customer_world.transfer(pocket, other, 50_00)
    await customer_world.transfer(pocket, other, 90_000_00, status="REJECTED")
    mine = await customer_desk.pages(PATH, limit=2)
    assert numbers_and_types(mine) == [
        (8, "transfers.on-us.rejected"),
        (7, "transfers.on-us.success"),
        (6, "transfers.ach.in.success"),
        (5, "transfers.wire.in.success"),
        (4, "portal.created"),
        (3, "pocket.created"),
        (2, "portal.created"),
        (1, "pocket.created"),
    ]
    assert {each["event"]["customer_id"] for each in mine} == {customer_desk.team.customer}
    partners = await customer_world.pages(PATH, {"order": "asc"}, limit=2)
    assert [number for number, _ in numbers_and_types(partners)] == [*range(1, 12)]
    assert not any("customer_id" in each["event"] for each in partners)
    for each in (*mine, *partners):
        event = each["event"]
        assert event["previous_sequence"] == event["sequence"] - 1
        assert set(payload_schema(KINDS[event["event_type"]])["required"]) <= set(event["payload"])
    assert len((await stranger.get(PATH))["items"]) == 3


async def test_an_event_is_found_by_its_id(customer_world, customer_desk):
    await customer_world.wire(await customer_desk.pocket(), 100_00)
    listed = (await customer_desk.get(PATH))["items"][0]
    one = f"{PATH}{listed['event']['event_id']}/"
    assert await customer_desk.get(one) == listed
    assert (await customer_world.get(one))["event"]["event_id"] == listed["event"]["event_id"]


async def test_events_are_filtered_by_a_start_time(customer_world, customer_desk):
    pocket = await customer_desk.pocket()
    for _ in range(3):
        await customer_world.wire(pocket, 100_00)
        await customer_world.later(hours=1)
    middle = (await customer_desk.get(PATH))["items"][1]["event"]["timestamp"]
    assert [n for n, _ in numbers_and_types(await customer_desk.pages(PATH, {"after": middle}, limit=1))] == [5]
    early = await customer_world.pages(PATH, {"after": "2025-06-01", "order": "asc"}, limit=2)
    assert [n for n, _ in numbers_and_types(early)] == [1, 2, 3, 4, 5]
    await customer_desk.invalid("GET", PATH, loc="query.after", filters={"after": "yesterday"})
    cursor = (await customer_desk.get(PATH, {"limit": 1}))["next_page"]
    await customer_world.invalid("GET", PATH, loc="query.cursor", filters={"cursor": cursor})
    await customer_desk.invalid("GET", PATH, loc="query.cursor", filters={"cursor": cursor, "after": middle})


async def test_event_kinds_are_listed_with_schema_and_example(customer_world, customer_desk):
    for who, kinds in ((customer_desk, CUSTOMER_KINDS), (customer_world, PARTNER_KINDS)):
        listed = await who.get(f"{PATH}types/")
        assert (listed["count"], listed["offset"]) == (len(kinds), 0)
        assert [each["event"] for each in listed["items"]] == list(kinds)
        for each in listed["items"]:
            assert each["schema"] == payload_schema(KINDS[each["event"]])
            assert set(each["schema"]["required"]) <= set(each["example"])
            assert each["object_type"] == "EventType"
        part = await who.get(f"{PATH}types/", {"offset": 2, "limit": 3})
        assert (part["offset"], part["count"]) == (2, len(kinds))
        assert part["items"] == listed["items"][2:5]
        await who.invalid("GET", f"{PATH}types/", loc="query.limit", filters={"limit": 101})
