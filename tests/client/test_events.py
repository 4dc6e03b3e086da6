"""A program reads events and keeps its subscriptions through the typed calls."""

from datetime import UTC, datetime

import pytest
from tests.client.bridge import in_thread

from billfold.client.responses import ApiError
from billfold.platform import ids

SINCE = datetime(2025, 6, 1, tzinfo=UTC)


@in_thread
def test_a_partner_client_subscribes_reads_events_and_repairs_deliveries(partner_calls, customer_id):
    api = partner_calls
    made = api.subscribe("https://93.184.215.14/", ["transfers.wire.in.success"], shared_secret="x" * 24)
    pocket = api.open_pocket(customer_id, "Reserve", "UST-4W")
    (portal,) = api.portals(pocket.id)
    api.simulate("wire", portal_id=portal.id, amount_usdc=100_00, sender_name="Contoso")
    (told,) = api.events(subscription_id=made.id)
    assert told.event.payload["service_account_id"] == str(pocket.id)
    assert [each.event for each in api.events(after=SINCE, order="asc")] == [told.event]
    assert api.event(told.event.event_id) == told
    assert {each.event for each in api.event_types()} >= {told.event.event_type}
    api.resend(made.id, told.event.event_id)
    api.send_example(made.id, "transfers.wire.in.rejected")
    assert (api.recover(made.id, SINCE), api.replay_missing(made.id, SINCE)) == (0, 0)
    assert list(api.attempts(made.id)) == list(api.attempts(made.id, event_id=ids.new())) == []
    changed = api.change_subscription(made.id, status="disabled", description="Books")
    assert api.subscription(made.id) == changed == next(api.subscriptions())
    api.unsubscribe(made.id)
    assert list(api.subscriptions()) == []
    with pytest.raises(ApiError, match="not-found"):
        api.subscription(made.id)
    assert api.bank_time().date().isoformat() == "2025-06-02"
