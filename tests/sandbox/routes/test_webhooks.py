"""A simulated event is delivered to the subscriptions of its kind."""

from billfold.platform import ids

PATH = "/api/v1/sandbox/webhook/"
WIRE = {"wire_id": str(ids.new()), "service_account_id": str(ids.new())}
NEW = {"url": "https://93.184.215.14/", "shared_secret": "a secret of sufficient length"}


def event(kind="transfers.wire.in.success", payload=None, **fields):
    return {
        "event_id": str(ids.new()),
        "event_type": kind,
        "payload": payload or WIRE,
        "timestamp": "2025-06-02T09:00:00-04:00",
        **fields,
    }


async def pending_events(who, subscription):
    """Return what waits to be delivered to a subscription."""
    told = await who.get("/api/v1/events/", {"subscription_id": subscription["id"]})
    return [each["event"] for each in told["items"]]


async def test_a_sandbox_event_is_delivered_to_the_partner_and_the_named_customer(
    customer_world, customer_desks, customer_desk
):
    kinds = ["transfers.wire.in.success"]
    path = "/api/v1/subscriptions/"
    partners = await customer_world.post(path, {**NEW, "events": kinds})
    others = await customer_world.post(path, {**NEW, "events": ["card.status.open"]})
    mine = await customer_desk.post(path, {**NEW, "events": kinds})
    sent = event(customer_id=customer_desk.team.customer)
    for _ in range(2):
        answer = await customer_world.ask("POST", PATH, sent, status=202)
        assert answer.content == b""
    for who, subscription in ((customer_world, partners), (customer_desk, mine)):
        (told,) = await pending_events(who, subscription)
        assert (told["event_id"], told["sequence"]) == (sent["event_id"], None)
        assert told["payload"] == WIRE
    assert (await pending_events(customer_desk, mine))[0]["customer_id"] == customer_desk.team.customer
    assert await pending_events(customer_world, others) == []
    shown = await customer_world.get(f"/api/v1/events/{sent['event_id']}/")
    assert shown["event"]["event_type"] == sent["event_type"]
    other = {**sent, "payload": {**WIRE, "wire_id": str(ids.new())}}
    await customer_world.refused("POST", PATH, other, status=409, code="duplicate-id")
    foreign = event(customer_id=str(ids.new()))
    await customer_world.refused("POST", PATH, foreign, status=404, code="not-found")


async def test_a_received_event_envelope_can_be_replayed_unchanged(customer_world, customer_desk):
    await customer_world.wire(await customer_desk.pocket(), 100_00)
    received = (await customer_desk.get("/api/v1/events/"))["items"][0]["event"]
    await customer_world.ask("POST", PATH, received, status=202)


async def test_an_invalid_sandbox_event_is_refused_at_its_field(customer_world):
    series = {"series_id": WIRE["wire_id"], "state": "PAUSED"}
    for body, place in (
        (event("nothing"), "body.event_type"),
        (event("transfers.series.updated", series), "body.customer_id"),
        (event(timestamp="2025-06-02T09:00:00"), "body.timestamp"),
        (event(timestamp="now"), "body.timestamp"),
        (event(payload={"wire_id": WIRE["wire_id"]}), "body.payload.service_account_id"),
        (event(payload={**WIRE, "wire_id": 1}), "body.payload.wire_id"),
        (event(payload={**WIRE, "amount": 1}), "body.payload.amount"),
        (event(event_id="x"), "body.event_id"),
        (event(payload=[]) | {"payload": []}, "body.payload"),
        (event(more=1), "body.more"),
    ):
        await customer_world.invalid("POST", PATH, body, loc=place)
