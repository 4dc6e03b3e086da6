"""The kinds of events, as they are subscribed to."""

CUSTOMER_KINDS = (
    "reports.completed",
    "reports.failed",
    "trades.maturity",
    "transfers.on-us.processing",
    "transfers.on-us.received",
    "transfers.on-us.rejected",
    "transfers.on-us.success",
    "transfers.wire.in.rejected",
    "transfers.wire.in.success",
    "transfers.wire.out.processing",
    "transfers.wire.out.rejected",
    "transfers.wire.out.success",
)
"""What a customer can be told of through the Customer API."""
