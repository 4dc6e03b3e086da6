"""Counterparties as they are read.

Owns every read of a counterparty. Never links, verifies or unlinks one: that is a flow's work.
"""

from billfold.domain.counterparties.reads import (
    CounterpartyRow,
    get_counterparty,
    list_counterparties,
    look_up,
)
from billfold.domain.counterparties.types import Payee

__all__ = ["CounterpartyRow", "Payee", "get_counterparty", "list_counterparties", "look_up"]
