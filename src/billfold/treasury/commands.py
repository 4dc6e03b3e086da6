"""Commands about due work: cash that waited for market data, and work that the calendars put off or bring forward."""

from billfold.ledger.commands import Command


class InvestWaitingCash(Command, frozen=True, kw_only=True):
    """Invest what waits for an opening of the market, before it comes. Leaves no command row."""

    is_recorded = False
    needs_identifiers = False


class RescheduleDueWork(Command, frozen=True, kw_only=True):
    """Let the heads of these customers say when work is due by the calendars of now. Leaves no command row."""

    is_recorded = False
    needs_identifiers = False
