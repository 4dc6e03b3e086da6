"""On-us transfers as they are read.

Owns every read of a transfer, waiting ones included. Never carries one out: that is a flow.
"""

from billfold.domain.transfers.reads import find_transfer, get_transfer, list_pending
from billfold.domain.transfers.types import TransferOrder, TransferRow

__all__ = ["TransferOrder", "TransferRow", "find_transfer", "get_transfer", "list_pending"]
