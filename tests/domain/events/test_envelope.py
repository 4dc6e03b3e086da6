"""An event as it is told."""

import json
from typing import Any
from uuid import UUID

from tests.domain.raised import RAISED

from billfold.domain.events import encode_envelope

ID = UUID(int=1)


def told(**fields):
    usual: dict[str, Any] = {
        "payload_json": '{"a": 1}', "sequence": 3, "previous_sequence": 1, "customer_id": None
    }  # fmt: skip
    return encode_envelope(event_id=ID, kind="trades.maturity", raised_at=RAISED, **usual | fields)


def test_an_event_says_what_happened_and_where_it_stands():
    assert json.loads(told()) == {
        "event_id": str(ID),
        "event_type": "trades.maturity",
        "timestamp": "2025-06-02T13:00:00.000000Z",
        "sequence": 3,
        "previous_sequence": 1,
        "payload": {"a": 1},
    }


def test_a_customer_is_told_who_it_is():
    assert json.loads(told(customer_id=ID))["customer_id"] == str(ID)


def test_the_same_event_is_always_the_same_bytes():
    assert told() == told(payload_json=b'{"a": 1}')
