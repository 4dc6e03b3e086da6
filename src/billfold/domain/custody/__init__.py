"""Custody: bills that come from a custodian elsewhere, and go to one.

Owns their shape and every read of them. Never moves a bill: that is a flow.
"""

from billfold.domain.custody.reads import get_transfer, list_transfers, look_up
from billfold.domain.custody.types import (
    Moved,
    SecurityTransfer,
    SecurityTransferDirection,
    SecurityTransferStatus,
)

__all__ = [
    "Moved",
    "SecurityTransfer",
    "SecurityTransferDirection",
    "SecurityTransferStatus",
    "get_transfer",
    "list_transfers",
    "look_up",
]  # fmt: skip
