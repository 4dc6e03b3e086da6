"""Wires: money over Fedwire, both ways, at home and abroad.

Owns when a wire leaves, what its messages say, and the table `wire` with all that hangs on it.
Never books one: that is a flow. This facade is pure; what asks the database is in `reads`.
"""

from billfold.domain.wires.messages import Terms, credit_transfer, fitted
from billfold.domain.wires.rules import CODE_OF, leaves_at, reason_of, reference_of, uetr_of
from billfold.domain.wires.types import (
    COLUMNS,
    INCOMING,
    OUTGOING,
    PAYMENT,
    QUEUED_COLUMNS,
    RETURN,
    REVERSAL,
    Hours,
    QueuedMessage,
    SeenWire,
    WireRow,
)

__all__ = [
    "CODE_OF",
    "COLUMNS",
    "INCOMING",
    "OUTGOING",
    "PAYMENT",
    "QUEUED_COLUMNS",
    "RETURN",
    "REVERSAL",
    "Hours",
    "QueuedMessage",
    "SeenWire",
    "Terms",
    "WireRow",
    "credit_transfer",
    "fitted",
    "leaves_at",
    "reason_of",
    "reference_of",
    "uetr_of",
]
