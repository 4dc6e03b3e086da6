"""The envelope of every event."""

from datetime import UTC, datetime
from uuid import UUID

import msgspec
import pytest

from billfold.events.store import LoggedEvent, envelope_of

EVENT, CUSTOMER = UUID(int=7), UUID(int=8)
LOGGED = LoggedEvent(
    event_id=EVENT,
    customer_id=CUSTOMER,
    kind="trades.maturity",
    raised_at=datetime(2025, 6, 2, 13, 0, 1, tzinfo=UTC),
    sequence=5,
    previous_sequence=3,
    event_no=9,
    payload='{"a":1}',
)
SIMULATED = {"sequence": None, "previous_sequence": None, "resource_version": None}


@pytest.mark.parametrize(
    ("event", "customer_id", "changed"),
    [
        (LOGGED, None, {}),
        (LOGGED, CUSTOMER, {"customer_id": str(CUSTOMER)}),
        (msgspec.structs.replace(LOGGED, sequence=None, previous_sequence=None, event_no=None), None, SIMULATED),
    ],
    ids=["partner", "customer", "simulated"],
)
def test_an_event_row_has_its_sequence_and_the_customer_id(event, customer_id, changed):
    sent = msgspec.json.decode(msgspec.json.encode(envelope_of(event, customer_id)))
    assert (
        sent
        == {
            "event_id": str(EVENT),
            "event_type": "trades.maturity",
            "timestamp": "2025-06-02T13:00:01Z",
            "sequence": 5,
            "previous_sequence": 3,
            "api_version": "v1",
            "resource_version": 9,
            "payload": {"a": 1},
        }
        | changed
    )
