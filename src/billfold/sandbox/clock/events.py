"""What a walk of the clock may aim at: the next event of one kind."""

from datetime import date, datetime
from enum import StrEnum

from billfold.ledger.bank import Bank
from billfold.ledger.jobs.due_work import bank_customer_id
from billfold.platform.dates import et_date, et_instant

_HELD_BILLS = "SELECT DISTINCT asset FROM account WHERE live AND kind = 'lot' AND credits > debits"
_NEXT_TRADE = "SELECT min(settles_on) FROM trade WHERE settles_on > $1"
_NEXT_PAYMENT = "SELECT min(settles_at) FROM transaction WHERE settles_at > $1 AND swept"
# A Pocket that holds nothing is charged nothing; its date moves on when money comes.
_NEXT_FEE = """
SELECT min(p.next_fee_date) FROM pocket p
 WHERE EXISTS (SELECT 1 FROM account a WHERE a.customer_id = p.customer_id AND a.pocket_id = p.pocket_id
                  AND a.live AND a.kind IN ('cash', 'lot') AND a.credits > a.debits)
"""
_DAY_ENDS = "SELECT due_at FROM ledger_head WHERE customer_id = $1"
_NEXT_JOB = "SELECT min(due_at) FROM scheduled_job WHERE kind = ANY($1::text[])"


class EventKind(StrEnum):
    """A kind of event: bills that mature, trades and payments that settle, the monthly fee, the end
    of the bank's day, and what is next on a rail."""

    MATURITY = "maturity"
    SETTLEMENT = "settlement"
    FEE = "fee"
    DAY_END = "day-end"
    WIRE = "wire"
    ACH = "ach"


async def next_event(bank: Bank, kind: EventKind, now: datetime) -> datetime | None:
    """Return the next instant of this kind, or None if none is ahead."""
    match kind:
        case EventKind.MATURITY:
            bills = [bank.market.bill(row["asset"]) for row in await bank.pool.fetch(_HELD_BILLS)]
            return min((bank.calendars.matures_at(each.maturity) for each in bills), default=None)
        case EventKind.SETTLEMENT:
            return await _next_settlement(bank, now)
        case EventKind.FEE:
            day: date | None = await bank.pool.fetchval(_NEXT_FEE)
            return None if day is None else bank.calendars.opens_at(day)
        case EventKind.DAY_END:
            ends_at: datetime | None = await bank.pool.fetchval(_DAY_ENDS, bank_customer_id(bank.seed))
            return ends_at
        case EventKind.WIRE | EventKind.ACH:
            kinds = [each for each in bank.job_runners if each.removeprefix("sandbox.").startswith(kind)]
            due: datetime | None = await bank.pool.fetchval(_NEXT_JOB, kinds)
            return due


async def _next_settlement(bank: Bank, now: datetime) -> datetime | None:
    day: date | None = await bank.pool.fetchval(_NEXT_TRADE, et_date(now))
    payment: datetime | None = await bank.pool.fetchval(_NEXT_PAYMENT, now)
    candidates = (payment, None if day is None else et_instant(day, 0))
    return min((each for each in candidates if each is not None), default=None)
