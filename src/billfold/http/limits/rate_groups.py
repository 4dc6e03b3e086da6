"""How many requests per minute one client may send for one user: each group is counted apart."""

from billfold.http.operations import RateGroup

AGREEMENTS = RateGroup("agreements", 300)
COUNTERPARTIES = RateGroup("counterparties", 300)
APPROVALS = RateGroup("approvals", 300)
CUSTOMER = RateGroup("customer", 300)
DOCUMENTS = RateGroup("documents", 300)
EARNINGS = RateGroup("earnings", 300)
EVENTS = RateGroup("events", 300)
NOTIFICATIONS = RateGroup("notifications", 300)
POCKETS = RateGroup("pockets", 120)
PORTALS = RateGroup("portals", 300)
STRATEGIES = RateGroup("trading-strategies", 300)
SUBSCRIPTIONS = RateGroup("subscriptions", 300)
TEAM = RateGroup("team", 300)
TRADES = RateGroup("trades", 120)
TRANSACTIONS = RateGroup("transactions", 120)
TRANSFERS = RateGroup("transfer-requests", 120)
TRANSFER_CREATIONS = RateGroup("transfer-request-creations", 60)
USER = RateGroup("user", 300)
WIRES = RateGroup("wires", 300)

TRANSFER_REQUESTS_PER_SECOND = 1
"""How many transfer requests one client may make per second for one user."""
