"""The words of the ledger: kinds of accounts, journal entries, transactions and trades.

Owns no table. Never decides anything.
"""

from billfold.domain.ledger.types import (
    AccountKind,
    Direction,
    JournalKind,
    Rail,
    TradeActivity,
    TransactionType,
)

__all__ = [
    "AccountKind",
    "Direction",
    "JournalKind",
    "Rail",
    "TradeActivity",
    "TransactionType",
]
