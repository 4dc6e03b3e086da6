"""Pockets as they are read: one row with what it holds, its day-end states, lists of them.

Owns every read of a Pocket's own state. Never writes (the engine does), never prices anything
and never decides.
"""

from billfold.domain.pockets.reads import (
    get_pocket,
    list_by_id,
    list_ids,
    list_of_customers,
    list_of_partner,
    list_open,
    list_part,
)
from billfold.domain.pockets.states import Boundary, state_now, states_before
from billfold.domain.pockets.types import PocketRow, PocketStatus

__all__ = [
    "Boundary",
    "PocketRow",
    "PocketStatus",
    "get_pocket",
    "list_by_id",
    "list_ids",
    "list_of_customers",
    "list_of_partner",
    "list_open",
    "list_part",
    "state_now",
    "states_before",
]
