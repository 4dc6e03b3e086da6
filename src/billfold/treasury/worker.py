"""Invests cash that waited for market data as soon as the data is current, not at the next opening."""

from collections import Counter
from uuid import UUID

import structlog

from billfold.ledger.bank import Bank
from billfold.ledger.scheduler import WorkResults
from billfold.platform.ids import new
from billfold.treasury.rules.catch_up import InvestWaitingCash

log = structlog.get_logger(__name__)

_WAITING = "SELECT DISTINCT customer_id FROM pocket WHERE invest_at > $1"
_BATCH_SIZE = 100


class WaitingCash:
    """A task of the worker. It runs once after each change of the market data, and once at the start."""

    def __init__(self) -> None:
        self._done_for: tuple[object, ...] | None = None

    async def invest(self, bank: Bank) -> int:
        """Invest waiting cash if the market data is current and the market open; return the number of customers."""
        market, version = bank.market, bank.market.version
        is_ever_stale = market.age_max_days is not None or market.quotes_age_max is not None
        if not is_ever_stale or version == self._done_for:
            return 0
        now = await bank.now()
        if not market.calendars.may_invest(now) or not market.is_current(now):
            return 0
        waiting = [row["customer_id"] for row in await bank.pool.fetch(_WAITING, now)]
        results = WorkResults[UUID](Counter(), {})
        for first in range(0, len(waiting), _BATCH_SIZE):
            await results.gather({each: _invest_customer(bank, each) for each in waiting[first : first + _BATCH_SIZE]})
        for customer_id, error in results.failed.items():
            log.error("waiting_cash_not_invested", customer_id=str(customer_id), error=repr(error))
        self._done_for = version
        return len(waiting) - len(results.failed)


async def _invest_customer(bank: Bank, customer_id: UUID) -> None:
    await bank.engine.submit(InvestWaitingCash(caller="market-data", key=new(), customers=(customer_id,)))
