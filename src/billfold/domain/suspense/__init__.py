"""Suspense: payments for which no owner was found, until they are returned or find one.

Owns their shape and every read of them. Never moves one: that is a flow.
"""

from billfold.domain.suspense.reads import find_items, get_item, list_items, look_up
from billfold.domain.suspense.types import FEE, STAYS, SuspenseItem, SuspenseStatus

__all__ = [
    "FEE",
    "STAYS",
    "SuspenseItem",
    "SuspenseStatus",
    "find_items",
    "get_item",
    "list_items",
    "look_up",
]  # fmt: skip
