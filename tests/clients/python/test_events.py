"""A program reads events and keeps its subscriptions through the typed calls."""

from datetime import UTC, datetime

import pytest
from tests.clients.python.bridge import in_thread

from billfold.platform import ids
from billfold_client.errors import ApiError
from billfold_client.shapes import UNSET

SINCE = datetime(2025, 6, 1, tzinfo=UTC)


@in_thread
def test_a_partner_client_subscribes_reads_events_and_repairs_deliveries(partner_calls, customer_id):
    api = partner_calls
    made = api.create_subscription(
        url="https://93.184.215.14/", events=["transfers.wire.in.success"], shared_secret="x" * 24
    )
    pocket = api.create_pocket(customer_id, pocket_name="Reserve", deposit_strategy_id="UST-4W")
    (portal,) = api.list_portals(pocket.id)
    api.sandbox_wire(portal_id=portal.id, amount_usdc=100_00, sender_name="Contoso")
    (told,) = api.list_events(subscription_id=made.id)
    assert told.event.payload["service_account_id"] == str(pocket.id)
    *created, last = [each.event for each in api.list_events(after=SINCE, order="asc")]
    assert [each.event_type for each in created] == ["pocket.created", "portal.created"]
    assert last.event_id == told.event.event_id
    assert api.get_event(told.event.event_id).event == last
    assert {each.event for each in api.list_event_types()} >= {told.event.event_type}
    api.resend_event(made.id, event_id=told.event.event_id)
    api.send_example_event(made.id, event_type="transfers.wire.in.rejected")
    assert api.recover_events(made.id, since=SINCE).count == api.replay_missing_events(made.id, since=SINCE).count == 0
    attempts = [list(api.list_delivery_attempts(made.id, event_id=each)) for each in (UNSET, ids.new())]
    assert attempts == [[], []]
    changed = api.update_subscription(made.id, status="disabled", description="Books")
    assert api.get_subscription(made.id) == changed == next(iter(api.list_subscriptions()))
    api.delete_subscription(made.id)
    assert list(api.list_subscriptions()) == []
    with pytest.raises(ApiError, match="not-found"):
        api.get_subscription(made.id)
    assert api.sandbox_clock().now.startswith("2025-06-02")
