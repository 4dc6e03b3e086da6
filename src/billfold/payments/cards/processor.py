"""The card processor of the bank."""

from __future__ import annotations

from typing import TYPE_CHECKING

from billfold.platform.errors import Refused

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.payments.cards.ports import CardProcessor


def processor_of(bank: Bank) -> CardProcessor:
    """Return it. Refuses: rail-not-available where the bank has none."""
    if bank.cards is None:
        raise Refused("rail-not-available", "The bank has no card processor.")
    return bank.cards
