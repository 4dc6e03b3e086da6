"""Portals as they are read.

Owns every read of a portal. Never opens or closes one: that is a flow's decision.
"""

from billfold.domain.portals.reads import (
    FIRST_ADDRESS,
    get_portal,
    list_portals,
)
from billfold.domain.portals.types import PortalRow

__all__ = ["FIRST_ADDRESS", "PortalRow", "get_portal", "list_portals"]
