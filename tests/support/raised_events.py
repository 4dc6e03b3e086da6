"""Events straight into the log, without a bank: what readers of the log are tried on."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from tests.support.oauth_users import company

from billfold.platform import ids

PARTNER = UUID("8f3b6f60-0000-4000-8000-00000000aaaa")
OTHER_PARTNER = UUID("8f3b6f60-0000-4000-8000-00000000bbbb")
NOW = datetime(2026, 3, 2, 15, tzinfo=UTC)
RAISED = datetime(2025, 6, 2, 13, tzinfo=UTC)
BOTH, PARTNERS, CUSTOMERS = ("transfers.wire.in.success", "transfers.ach.in.success", "trades.maturity")
"""Kinds that both are told of, only the partner, only the customer."""


async def add_customer(conn, partner_id=PARTNER):
    return await company(conn, "Anna", partner_id=partner_id, opened_at=RAISED)


async def raise_event(conn, customer_id, kind=BOTH, *, seconds=0):
    """Write the customer's next event, in the transaction of the connection; return its id."""
    event_id = ids.new()
    await conn.execute(
        "INSERT INTO event (customer_id, event_no, event_id, kind, payload, raised_at)"
        " SELECT $1, coalesce(max(event_no), 0) + 1, $2, $3, '{\"a\": 1}', $4"
        " FROM event WHERE customer_id = $1",
        customer_id,
        event_id,
        kind,
        RAISED + timedelta(seconds=seconds),
    )
    return event_id
