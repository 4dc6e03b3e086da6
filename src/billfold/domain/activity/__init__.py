"""What customers see of the money that moved through their bank accounts.

Owns every read of activity, sweeps included. Never writes any: the engine does, in the commit
of the journal the activity tells about.
"""

from billfold.domain.activity.by_house import look_up
from billfold.domain.activity.reads import (
    ActivityRow,
    Wanted,
    find_activity,
    list_of_customer,
    list_of_partner,
    list_of_pocket,
    swept,
)
from billfold.domain.activity.types import HouseBooking

__all__ = [
    "ActivityRow",
    "HouseBooking",
    "Wanted",
    "find_activity",
    "list_of_customer",
    "list_of_partner",
    "list_of_pocket",
    "look_up",
    "swept",
]
