"""The end of the bank's day."""

from __future__ import annotations

from datetime import date

from billfold.ledger.commands import Command
from billfold.payments.settlement.rules import (close_bank_day, report_moves)
from billfold.payments.settlement.types import (MovedPocket, RailTotals, SettlementBlock)


class CloseBankDay(Command, frozen=True, kw_only=True):
    """Settle these blocks and rails; they are everything due by `day` and not yet settled.

    Customers due by the end of `day` have been brought up to date before.
    """

    rule = close_bank_day
    needs_identifiers = False
    former_names = ("CloseHouseDay",)

    day: date
    blocks: tuple[SettlementBlock, ...]
    clearings: tuple[RailTotals, ...] = ()


class ReportMoves(Command, frozen=True, kw_only=True):
    """Tell a customer where what was to settle on `day` settles, now that the calendars have changed."""

    rule = report_moves
    needs_identifiers = False

    day: date
    pockets: tuple[MovedPocket, ...]
