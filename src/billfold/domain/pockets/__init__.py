"""Pockets as they are read: one row with what it holds, its day-end states, lists of them.

Owns every read of a Pocket's own state. Never writes (the engine does), never prices anything
and never decides.
"""

from billfold.domain.pockets.reads import (
    get_pocket,
    list_by_id,
    list_ids,
    list_of_partner,
    list_open,
)
from billfold.domain.pockets.states import state_before, state_now
from billfold.domain.pockets.types import PocketRow

__all__ = [
    "PocketRow",
    "get_pocket",
    "list_by_id",
    "list_ids",
    "list_of_partner",
    "list_open",
    "state_before",
    "state_now",
]
