"""Events over both APIs: readers see only their own, in their own order, page by page."""

import json
from datetime import timedelta
from uuid import UUID

from tests.explanations.test_stories import linked_pocket
from tests.support import payees
from tests.support.cards import Cardholder

from billfold.data_keys.keys import DataKeys
from billfold.events.changes import LIMITS_CHANGED, job_of, report_limits
from billfold.events.kinds import CUSTOMER_KINDS, KINDS, PARTNER_KINDS
from billfold.events.schemas import payload_schema
from billfold.events.webhooks.attempts import list_due_deliveries
from billfold.events.webhooks.store import SubscriptionQueue
from billfold.platform.clock import wall_now

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


HOOK = {"url": "https://93.184.215.14/hooks", "shared_secret": "a secret of sufficient length"}
NOTE = {"external_id": "own-1", "metadata": {"k": "<b>=1+1</b>"}}


def noted_in(events):
    """Return the types of the events that have the note."""
    return {each["event_type"] for each in events if each.get("external_id") == NOTE["external_id"]}


async def listed(reader, **filters):
    """Return the events of a filtered list, one page after the other."""
    return [each["event"] for each in await reader.pages(PATH, filters, limit=2)]


async def sent(reader, bank):
    """Return the bodies that a new subscription of a reader to all its types would be sent now, by event id."""
    kinds = CUSTOMER_KINDS if hasattr(reader, "team") else PARTNER_KINDS
    made = await reader.post("/api/v1/subscriptions/", {**HOOK, "events": list(kinds)})
    one, since = f"/api/v1/subscriptions/{made['id']}/", {"since": "2025-01-01T00:00:00Z"}
    await reader.post(f"{one}replay-missing/", since, status=202)
    owner = UUID(reader.team.customer) if hasattr(reader, "team") else None
    queue = SubscriptionQueue(
        subscription_id=UUID(made["id"]), customer_id=owner, url="", retry_policy=None, failures=0, secrets=()
    )
    due = await list_due_deliveries(bank.pool, bank.ports[DataKeys], queue, wall_now() + timedelta(days=1), limit=100)
    of_subscription = await listed(reader, subscription_id=made["id"], **{"event_type[]": "pocket.created"})
    assert {each["event_type"] for each in of_subscription} == {"pocket.created"}
    return {body["event_id"]: body for body in (json.loads(each.body) for each in due)}


def without_places(event):
    """Return an event without its place in a list or a subscription."""
    return {name: each for name, each in event.items() if name not in {"sequence", "previous_sequence"}}


async def test_events_have_the_notes_of_their_objects_as_far_as_their_reader_sees_them(
    customer_world, customer_desks, customer_desk, bank
):
    pocket = await customer_desk.pocket(**NOTE)
    portal = await customer_world.post(f"{pocket.path}portals/", {"name": "Payroll", **NOTE})
    payee = await customer_desk.post("/api/v2/counterparties/", payees.ach(**NOTE))
    await customer_world.wire(pocket, 9_000_00)
    card = (await Cardholder(customer_world, pocket).funded()).card
    await customer_world.patch(f"/api/v1/service-accounts/{pocket.id}/cards/{card}/", NOTE)
    other = await customer_desks()
    pay = {
        "type": "PEER_TO_PEER",
        "from_account": {"id": pocket.id, "type": "SERVICE_ACCOUNT"},
        "counterparty_id": await linked_pocket(customer_world, pocket, await other.pocket()),
        "amount": {"type": "REQUESTED_AMOUNT", "amount_usdc": 50_00},
    }
    moved = await customer_world.post("/api/v1/transfers/on-us/", {**pay, **NOTE})
    own = f"/api/v1/customers/{customer_desk.team.customer}/"
    await customer_world.patch(own, NOTE)
    key = UUID(customer_desk.team.customer)
    await report_limits(bank, job_of(LIMITS_CHANGED, key, key, await bank.now()))

    mine, partners = await listed(customer_desk), await listed(customer_world)
    noted = {"pocket.created", "portal.created", "counterparty.created", "transfers.on-us.success", "card.status.open"}
    assert noted_in(mine) == noted
    assert noted_in(partners) == noted | {"customer.limits.updated"}  # a note of the partner about its customer
    theirs = await listed(other)
    assert not any("external_id" in each or "metadata" in each for each in theirs)
    assert moved["id"] in {each["object_id"] for each in theirs}
    assert {str(each.get("metadata")) for each in mine} == {"None", str(NOTE["metadata"])}
    for reader, events in ((customer_desk, mine), (customer_world, partners)):
        bodies = await sent(reader, bank)
        assert {each["event_id"]: without_places(each) for each in events} == {
            key: without_places(body) for key, body in bodies.items()
        }
    # They are those of now: a change and a removal show in what is read later.
    await customer_desk.patch(f"/api/v2/counterparties/{payee['id']}/", {"external_id": None, "metadata": {}})
    await check_filters(customer_world, customer_desk, other, {"portal": portal, "payee": payee, "moved": moved})


async def check_filters(partner, customer, other, made):
    """Check lists of some types, of one object, and of both."""
    *_, added = await listed(customer, object_id=made["payee"]["id"])
    assert (added["event_type"], "external_id" in added, "metadata" in added) == ("counterparty.created", False, False)
    kinds = ["pocket.created", "portal.created"]
    for reader in (partner, customer):
        whole = await listed(reader)
        for order, events in (("desc", whole), ("asc", whole[::-1])):
            expected = [each for each in events if each["event_type"] in kinds]
            assert len(expected) > 2
            assert await listed(reader, order=order, **{"event_type[]": [*kinds, kinds[0]]}) == expected
            late = {"after": whole[len(whole) // 2]["timestamp"], "order": order}
            after = [each for each in events if each["timestamp"] > late["after"]]
            assert await listed(reader, **late) == after
            assert await listed(reader, **late, **{"event_type[]": kinds}) == [
                each for each in after if each["event_type"] in kinds
            ]
        (one,) = await listed(reader, object_id=made["portal"]["id"])
        assert (one["event_type"], one["object_id"]) == ("portal.created", made["portal"]["id"])
        mixed = {"object_id": made["portal"]["id"], "event_type[]": "portal.updated"}
        assert await listed(reader, **mixed) == []
        for wrong in (
            "nothing",
            "transfers.",
            "proofs.daily-root.published" if reader is customer else "team.member.updated",
        ):
            await reader.invalid("GET", PATH, loc="query.event_type[]", filters={"event_type[]": [kinds[0], wrong]})
        await reader.invalid("GET", PATH, loc="query.object_id", filters={"object_id": "x"})
        cursor = (await reader.get(PATH, {"limit": 1, "event_type[]": kinds}))["next_page"]
        await reader.invalid("GET", PATH, loc="query.cursor", filters={"cursor": cursor})
    assert len(await listed(partner, object_id=made["moved"]["id"])) == 2
    assert [each["event_type"] for each in await listed(other, object_id=made["moved"]["id"])] == [
        "transfers.on-us.received"
    ]
    assert await listed(other, object_id=made["payee"]["id"]) == []
