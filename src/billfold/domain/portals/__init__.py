"""Portals as they are read.

Owns every read of a portal. Never opens or closes one: that is a flow's decision.
"""

from billfold.domain.portals.reads import PortalRow, get_portal, list_portals, network_addresses

__all__ = ["PortalRow", "get_portal", "list_portals", "network_addresses"]
