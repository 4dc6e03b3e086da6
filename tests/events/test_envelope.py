"""What surrounds every event."""

import json
from datetime import UTC, datetime
from uuid import UUID

from billfold.events.envelope import encode_envelope

AT = datetime(2025, 6, 2, 13, 0, 1, tzinfo=UTC)
EVENT, CUSTOMER = UUID(int=7), UUID(int=8)


def told(**fields):
    given = {
        "event_id": EVENT,
        "kind": "trades.maturity",
        "raised_at": AT,
        "payload_json": '{"a":1}',
        "sequence": 5,
        "previous_sequence": 3,
        "customer_id": None,
        "resource_version": 9,
    }
    return json.loads(encode_envelope(**{**given, **fields}))


def test_a_partner_gets_events_in_order():
    assert told() == {
        "event_id": str(EVENT),
        "event_type": "trades.maturity",
        "timestamp": "2025-06-02T13:00:01Z",
        "sequence": 5,
        "previous_sequence": 3,
        "api_version": "v1",
        "resource_version": 9,
        "payload": {"a": 1},
    }


def test_a_customer_is_told_who_he_is():
    assert told(customer_id=CUSTOMER)["customer_id"] == str(CUSTOMER)


def test_what_never_happened_has_no_place_in_the_order():
    simulated = told(sequence=None, previous_sequence=None, resource_version=None)
    assert [simulated[name] for name in ("sequence", "previous_sequence", "resource_version")] == [None, None, None]
