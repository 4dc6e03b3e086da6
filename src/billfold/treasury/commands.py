"""The command that invests cash which waited for market data."""

from __future__ import annotations

from billfold.ledger.commands import Command
from billfold.treasury.rules.catch_up import invest_waiting_cash


class InvestWaitingCash(Command, frozen=True, kw_only=True):
    """Invest what waits for an opening of the market, before it comes. Leaves no command row."""

    rule = invest_waiting_cash
    is_recorded = False
    needs_identifiers = False
