"""Wires: money over Fedwire, both ways, at home and abroad.

Owns when a wire leaves, what its messages say, and the table `wire` with all that hangs on it.
Never books one: that is a flow. This facade is pure; what asks the database is in `reads`.
"""

from billfold.domain.wires.arriving import (
    arrived_by,
    came_back_by,
    details_of,
    remittance_of,
)
from billfold.domain.wires.messages import (
    Terms,
    credit_transfer,
    expect_sendable,
    fitted,
    message_of,
    original_of,
    paid_by,
    payment_return,
    return_answer,
    return_request,
)
from billfold.domain.wires.rules import CODE_OF, leaves_at, reason_of, reference_of, uetr_of
from billfold.domain.wires.types import (
    Arrived,
    Hours,
    QueuedMessage,
    SeenWire,
    WireDirection,
    WireRow,
    WireStatus,
    WireType,
)

__all__ = [
    "CODE_OF",
    "Arrived",
    "Hours",
    "QueuedMessage",
    "SeenWire",
    "Terms",
    "WireDirection",
    "WireRow",
    "WireStatus",
    "WireType",
    "arrived_by",
    "came_back_by",
    "credit_transfer",
    "details_of",
    "expect_sendable",
    "fitted",
    "leaves_at",
    "message_of",
    "original_of",
    "paid_by",
    "payment_return",
    "reason_of",
    "reference_of",
    "remittance_of",
    "return_answer",
    "return_request",
    "uetr_of",
]
