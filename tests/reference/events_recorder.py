"""What both recorders play of events and subscriptions."""

from datetime import UTC, datetime
from uuid import UUID

import msgspec

from billfold.events.webhooks.types import DeliveryAttempt
from billfold.http.schemas import CursorList

EVENTS, TOLD = "/api/v1/events/", "/api/v1/subscriptions/"
SECRET = "whsec_bm90IGEgc2VjcmV0IGJ1dCBhbiBleGFtcGxlIG9mIG9uZQ=="
NEW = {
    "url": "https://hooks.northwind.example/billfold",
    "events": ["transfers.on-us.success", "transfers.wire.in.success"],
    "shared_secret": SECRET,
    "retry_policy": {
        "retry_on_status_codes": [],
        "backoff_coefficient": 2,
        "maximum_attempts": 10,
        "initial_interval_seconds": 30,
        "maximum_interval_seconds": 3600,
    },
}
SINCE = {"since": "2025-06-02T00:00:00-04:00"}


async def play_events(r):
    """Read events, subscribe to them, and ask for them again."""
    await r.play("list_event_types", "GET", f"{EVENTS}types/")
    made = (await r.play("create_subscription", "POST", TOLD, body=NEW))["id"]
    one = f"{TOLD}{made}/"
    await r.play("list_subscriptions", "GET", TOLD)
    await r.play("get_subscription", "GET", one)
    await r.play("list_events", "GET", EVENTS, query="limit=2")
    await r.play("replay_missing_events", "POST", f"{one}replay-missing/", body=SINCE)
    waiting = await r.play("-", "GET", EVENTS, query=f"subscription_id={made}")
    event_id = waiting["items"][0]["event"]["event_id"]
    await r.play("get_event", "GET", f"{EVENTS}{event_id}/")
    await r.play("resend_event", "POST", f"{one}resend/", body={"event_id": event_id})
    await r.play("recover_events", "POST", f"{one}recover/", body=SINCE)
    kind = {"event_type": "transfers.wire.in.success"}
    await r.play("send_example_event", "POST", f"{one}send-example/", body=kind)
    await r.play("-", "GET", f"{one}attempts/")
    r.notes["list_delivery_attempts"] = {"response": attempts(made, event_id)}
    r.notes["stream_events"] = {}
    await r.play("update_subscription", "PATCH", one, body={"description": "Books"})
    await r.play("delete_subscription", "DELETE", one)
    r.notes.pop("-", None)


def attempts(subscription_id, event_id):
    """Return a list of attempts: nobody delivers while examples are recorded."""
    attempt = DeliveryAttempt(
        delivery_attempt_id=UUID("6f0c7c0e-1b7e-4d2c-9a51-0c3f7d1e2b4a"),
        subscription_id=UUID(subscription_id),
        event_id=UUID(event_id),
        success=False,
        response_code=503,
        response_message="Service Unavailable",
        called_at=datetime(2025, 6, 2, 13, 0, 2, tzinfo=UTC),
        duration_ms=41,
    )
    page = CursorList(prev_page=None, next_page=None, items=[attempt])
    return msgspec.json.decode(msgspec.json.encode(page))
