"""How many requests per minute one client may send for one user: each group is counted apart."""

from billfold.interfaces.http.marks import Group

AGREEMENTS = Group("agreements", 300)
COUNTERPARTIES = Group("counterparties", 300)
APPROVALS = Group("approvals", 300)
CUSTOMER = Group("customer", 300)
DOCUMENTS = Group("documents", 300)
EARNINGS = Group("earnings", 300)
EVENTS = Group("events", 300)
NOTIFICATIONS = Group("notifications", 300)
POCKETS = Group("pockets", 120)
PORTALS = Group("portals", 300)
STRATEGIES = Group("trading-strategies", 300)
SUBSCRIPTIONS = Group("subscriptions", 300)
TEAM = Group("team", 300)
TRADES = Group("trades", 120)
TRANSACTIONS = Group("transactions", 120)
TRANSFERS = Group("transfer-requests", 120)
TRANSFER_CREATIONS = Group("transfer-request-creations", 60)
USER = Group("user", 300)
WIRES = Group("wires", 300)

CREATIONS_PER_SECOND = 1
"""How many transfer requests one client may make per second for one user."""
