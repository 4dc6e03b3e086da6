"""Subscriptions over both APIs: their fields, their owners, and recovery of events."""

import asyncio
from uuid import UUID

from tests.events.webhooks.test_attempts import FAILED, attempt_of
from tests.support.world import new_key

from billfold.events.webhooks import attempts
from billfold.platform import ids
from billfold.platform.clock import wall_now

PATH = "/api/v1/subscriptions/"
POLICY = {
    "retry_on_status_codes": [502, 503],
    "backoff_coefficient": 1.5,
    "maximum_attempts": 5,
    "initial_interval_seconds": 30,
    "maximum_interval_seconds": 300,
}
NEW = {
    "url": "https://93.184.215.14/hooks",
    "events": ["transfers.wire.in.success"],
    "shared_secret": "a secret of sufficient length",
    "description": "Books",
    "retry_policy": POLICY,
}


def without_field(body, name):
    return {key: value for key, value in body.items() if key != name}


async def test_a_subscription_is_created_read_listed_changed_and_deleted(customer_world, customer_desk):
    for who, changed_with in ((customer_desk, 202), (customer_world, 200)):
        made = await who.post(PATH, NEW, status=201)
        assert made == {
            **without_field(NEW, "shared_secret"),
            "id": made["id"],
            "status": "enabled",
            "disabled_because": None,
            "time_created": made["time_created"],
            "updated_at": made["updated_at"],
            "object_type": "Subscription",
        }
        one = f"{PATH}{made['id']}/"
        assert await who.get(one) == made
        changes = {"status": "disabled", "retry_policy": None, "events": ["reports.failed"]}
        changed = await who.patch(one, changes, status=changed_with)
        assert changed == {**made, **changes, "updated_at": changed["updated_at"]}
        await who.ask("POST", f"{one}send-example/", {}, status=409)
        for n in range(2):
            await who.post(PATH, {**NEW, "description": str(n)})
        listed = await who.pages(PATH, limit=2)
        assert [each["description"] for each in listed] == ["1", "0", "Books"]
        gone = await who.ask("DELETE", one, status=202)
        assert gone.content == b""
        await who.refused("GET", one, status=404, code="not-found")
        await who.refused("DELETE", one, status=404, code="not-found")


async def forget_keys(bank):
    """Let a day pass so that stored responses expire."""
    waiting = "SELECT EXISTS (SELECT 1 FROM idempotency_key WHERE status IS NULL)"
    while await bank.pool.fetchval(waiting):
        await asyncio.sleep(0)
    await bank.pool.execute("DELETE FROM idempotency_key")


async def test_a_subscription_with_a_repeated_idempotency_key_is_created_once(bank, customer_desk):
    key = new_key()
    first = await customer_desk.post(PATH, NEW, key=key)
    assert await customer_desk.post(PATH, NEW, key=key) == first
    assert len((await customer_desk.get(PATH))["items"]) == 1
    await forget_keys(bank)
    assert await customer_desk.post(PATH, NEW, key=key) == first
    await customer_desk.ask("DELETE", f"{PATH}{first['id']}/", status=202)
    await forget_keys(bank)
    await customer_desk.refused("POST", PATH, NEW, key=key, status=422, code="idempotency-key-reused")


async def test_subscription_changes_are_audited_without_their_secret(bank, customer_world, customer_desk):
    for who, changed_with in ((customer_desk, 202), (customer_world, 200)):
        made = await who.post(PATH, NEW)
        one, secret = f"{PATH}{made['id']}/", "another secret of good length"
        await who.patch(one, {"shared_secret": secret, "events": ["reports.failed"]}, status=changed_with)
        await who.ask("DELETE", one, status=202)
        await who.ask("DELETE", one, status=404)
        rows = await bank.pool.fetch(
            "SELECT action, outcome, details::text FROM audit_entry WHERE resource_id = $1 ORDER BY entry_no",
            made["id"],
        )
        assert [(row["action"], row["outcome"]) for row in rows] == [
            ("subscription.created", "SUCCESS"),
            ("subscription.updated", "SUCCESS"),
            ("subscription.deleted", "SUCCESS"),
        ]
        told = "".join(row["details"] for row in rows)
        assert "reports.failed" in told
        assert secret not in told
        assert str(NEW["shared_secret"]) not in told


async def test_an_invalid_subscription_field_is_reported_at_its_location(customer_desk):
    one = f"{PATH}{(await customer_desk.post(PATH, NEW))['id']}/"
    for changes, place in (
        ({"events": ["transfers.wire.in.success", "nothing"]}, "body.events.1"),
        ({"events": ["proofs.daily-root.published"]}, "body.events.0"),
        ({"shared_secret": "whsec_not base64 at all here"}, "body.shared_secret"),
        ({"url": "http://93.184.215.14/"}, "body.url"),
        ({"url": "https://127.0.0.1/"}, "body.url"),
        ({"url": "https://169.254.169.254/latest"}, "body.url"),
        ({"url": "https://[::ffff:10.0.0.1]/"}, "body.url"),
        ({"url": "https://[fe80::1%25eth0]/"}, "body.url"),
        ({"url": "https://[64:ff9b::7f00:1]/"}, "body.url"),
        ({"url": "https://127.0.0.1./"}, "body.url"),
        ({"url": "https://me:secret@93.184.215.14/"}, "body.url"),
        ({"url": "https://93.184.215.14:22/"}, "body.url"),
        ({"url": "hooks"}, "body.url"),
    ):
        await customer_desk.invalid("POST", PATH, {**NEW, **changes}, loc=place)
        await customer_desk.invalid("PATCH", one, changes, loc=place)


async def test_all_errors_of_a_subscription_are_reported_together(customer_desk):
    shapes = {"events": ["nothing"], "shared_secret": "short", "url": "", "more": 1}
    answer = (await customer_desk.ask("POST", PATH, {**NEW, **shapes}, status=422)).json()
    assert {each["loc"][1] for each in answer["detail"]} == set(shapes)
    meanings = {
        "url": "https://127.0.0.1:4242/",
        "shared_secret": "whsec_no base64 at all here",
        "retry_policy": {**POLICY, "initial_interval_seconds": 301},
    }
    answer = (await customer_desk.ask("POST", PATH, {**NEW, **meanings}, status=422)).json()
    assert {each["loc"][1] for each in answer["detail"]} == set(meanings)
    told = next(each["msg"] for each in answer["detail"] if each["loc"][1] == "url")
    assert "billfold listen" in told
    assert "BILLFOLD_WEBHOOK_ALLOWED_NETWORKS" in told


async def test_events_are_resent_recovered_and_replayed_on_request(bank, customer_world, customer_desk):
    pocket = await customer_desk.pocket()
    for _ in range(2):
        await customer_world.wire(pocket, 100_00)
    before = {"since": "2025-06-01T00:00:00Z"}
    made = await customer_desk.post(PATH, NEW)
    one, mine = f"{PATH}{made['id']}/", {"subscription_id": made["id"]}
    await customer_world.wire(pocket, 200_00)
    waiting = await customer_desk.pages("/api/v1/events/", mine, limit=1)
    assert [(each["event"]["previous_sequence"], each["event"]["sequence"]) for each in waiting] == [(4, 5)]
    assert await customer_desk.post(f"{one}replay-missing/", before, status=202) == {
        "count": 2,
        "object_type": "Redelivery",
    }
    assert len(await customer_desk.pages("/api/v1/events/", mine, limit=2)) == 3
    event_id = waiting[0]["event"]["event_id"]
    await failed(bank, made["id"], event_id)
    for name, body in (("resend", {"event_id": event_id}), ("recover", before)):
        await failed(bank, made["id"], event_id)
        assert (await customer_desk.post(f"{one}{name}/", body, status=202))["count"] == 1
    unknown = {"event_id": str(ids.new())}
    await customer_desk.refused("POST", f"{one}resend/", unknown, status=404, code="not-found")
    await customer_desk.invalid("POST", f"{one}recover/", {"since": "yesterday"}, loc="body.since")
    naive = {"since": "2025-06-02T00:00:00"}
    await customer_desk.invalid("POST", f"{one}replay-missing/", naive, loc="body.since")
    await check_attempts(customer_desk, one, event_id)


async def failed(bank, subscription_id, event_id):
    """Record a failed delivery as the worker does."""
    now = wall_now()
    attempt = attempt_of(UUID(subscription_id), UUID(event_id), FAILED, at=now)
    async with bank.pool.acquire() as conn, conn.transaction():
        await attempts.record_attempts(conn, [attempt], now=now)


async def check_attempts(customer_desk, one, event_id):
    """Check the attempts listed for an event whose three deliveries failed."""
    listed = await customer_desk.pages(f"{one}attempts/", limit=2)
    assert len(listed) == 3
    assert {each["response_code"] for each in listed} == {500}
    assert not any(each["success"] for each in listed)
    of_one = await customer_desk.get(f"{one}attempts/", {"event_id": event_id})
    assert of_one["items"] == listed
    assert not (await customer_desk.get(f"{one}attempts/", {"event_id": str(ids.new())}))["items"]
    shown = (await customer_desk.get(f"/api/v1/events/{event_id}/"))["delivery_attempts"]
    assert shown == listed[::-1]


async def test_an_example_of_every_subscribable_kind_can_be_sent(customer_desk):
    made = await customer_desk.post(PATH, NEW)
    one, mine = f"{PATH}{made['id']}/send-example/", {"subscription_id": made["id"]}
    for body in ({}, {"event_type": "trades.maturity"}):
        assert (await customer_desk.post(one, body, status=202))["count"] == 1
    sent = (await customer_desk.get("/api/v1/events/", {**mine, "order": "asc"}))["items"]
    assert [each["event"]["event_type"] for each in sent] == [*NEW["events"], "trades.maturity"]
    assert {each["event"]["sequence"] for each in sent} == {None}
    await customer_desk.invalid("POST", one, {"event_type": "nothing"}, loc="body.event_type")
    assert (await customer_desk.get("/api/v1/events/"))["items"] == []
