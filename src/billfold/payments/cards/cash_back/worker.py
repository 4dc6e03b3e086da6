"""Cash back of a month is given once the month is over: a scheduled job per partner, safe to repeat."""

from datetime import date, datetime, time, timedelta
from typing import Final
from uuid import UUID

from billfold.ledger import scheduler as jobs_store
from billfold.ledger.bank import Bank
from billfold.ledger.dry_run import submit_in_lots
from billfold.ledger.types import ScheduledJob
from billfold.payments.cards.cash_back import store
from billfold.payments.cards.cash_back.commands import GiveCashBack
from billfold.payments.cards.cash_back.types import CASH_BACK_JOB, CardMonth, CashBackRule
from billfold.platform.dates import et_date, et_instant
from billfold.platform.ids import command_id

CALLER: Final = "cash-back"
GIVEN_AT: Final = time(6)
"""When it is given (ET), on the first day of the next month: what was booked before midnight is committed by then."""


async def give_month(bank: Bank, job: ScheduledJob) -> None:
    """Give the cash back of the month before the job's, and schedule the next."""
    begins, ends = month_before(et_date(job.at))
    period, partner_id = f"{begins:%Y-%m}", job.object_id
    rule = await store.find_rule(bank.pool, partner_id, period)
    if rule is not None:
        months = await store.list_months(bank.pool, rule, period, (et_instant(begins, 0), et_instant(ends, 0)))
        async for _ in submit_in_lots(bank, [_command(rule, period, each) for each in months]):
            pass
    await jobs_store.schedule(bank.pool, [next_job(partner_id, job.at)])


def _command(rule: CashBackRule, period: str, month: CardMonth) -> GiveCashBack:
    cash_back_id = command_id(f"cash-back:{period}", month.card_id)
    return GiveCashBack(
        caller=CALLER,
        key=cash_back_id,
        customers=(month.customer_id,),
        references=(month.card_id,),
        cash_back_id=cash_back_id,
        card_id=month.card_id,
        period=period,
        rule_version=rule.version,
        basis_points=rule.basis_points,
        cap=rule.cap,
        purchases=month.purchases,
        refunds=month.refunds,
        carried_in=month.carried_in,
    )


def month_before(day: date) -> tuple[date, date]:
    """Return the first days of the month before a day's, and of the day's own."""
    ends = day.replace(day=1)
    return (ends - timedelta(days=1)).replace(day=1), ends


def next_job(partner_id: UUID, now: datetime) -> ScheduledJob:
    """Return the job that gives the cash back of the month which `now` is in."""
    first = (et_date(now).replace(day=1) + timedelta(days=31)).replace(day=1)
    return ScheduledJob(CASH_BACK_JOB, partner_id, None, at=et_instant(first, GIVEN_AT))
