"""Clearing: what each rail has brought and taken, and what of it is settled with the house.

Owns every read that explains the clearing accounts. Never settles anything: the house's day does.
"""

from billfold.domain.clearing.reads import DAWN, DUSK, Span, balances, list_cleared, list_open
from billfold.domain.clearing.types import RAILS, Cleared, OpenPayment

__all__ = [
    "DAWN", "DUSK", "RAILS", "Cleared", "OpenPayment", "Span", "balances", "list_cleared",
    "list_open",
]  # fmt: skip
