"""Wires: money over Fedwire, both ways, at home and abroad.

Owns when a wire leaves, what its messages say, and every read of wires and of messages that wait.
Never books one: that is a flow.
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
