"""Gives the cash back of a month once the month is over: a scheduled job per partner, safe to repeat."""

import re
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from typing import Final
from uuid import UUID

from billfold.audit.record import audited
from billfold.identity.partners.rules import PartnerRow
from billfold.ledger import scheduler
from billfold.ledger.bank import Bank
from billfold.ledger.dry_run import submit_in_lots
from billfold.ledger.types import Origin, ScheduledJob
from billfold.payments.cards.cash_back import rules, store
from billfold.platform.crypto import fingerprint
from billfold.platform.dates import et_date, et_instant
from billfold.platform.errors import InvalidInput
from billfold.platform.ids import command_id

CALLER: Final = "cash-back"
GIVEN_AT: Final = time(6)
"""Time of giving (ET), on the first day of the next month: entries booked before midnight are committed by then."""


async def give_month(bank: Bank, job: ScheduledJob) -> None:
    """Give the cash back of the month before the job's, and schedule the next job."""
    begins, ends = month_before(et_date(job.at))
    period, partner_id = f"{begins:%Y-%m}", job.object_id
    rule = await store.find_rule(bank.pool, partner_id, period)
    if rule is not None:
        months = await store.list_months(bank.pool, rule, period, (et_instant(begins, 0), et_instant(ends, 0)))
        async for _ in submit_in_lots(bank, [_command(rule, period, each) for each in months]):
            pass
    await scheduler.schedule(bank.pool, [next_job(partner_id, job.at)])


def _command(rule: rules.CashBackRule, period: str, month: rules.CardMonth) -> rules.GiveCashBack:
    cash_back_id = command_id(f"cash-back:{period}", month.card_id)
    return rules.GiveCashBack(
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
    """Return the first day of the previous month, and of the day's own month."""
    ends = day.replace(day=1)
    return (ends - timedelta(days=1)).replace(day=1), ends


def next_job(partner_id: UUID, now: datetime) -> ScheduledJob:
    """Return the job that gives the cash back of the current month."""
    first = (et_date(now).replace(day=1) + timedelta(days=31)).replace(day=1)
    return ScheduledJob(rules.CASH_BACK_JOB, partner_id, None, at=et_instant(first, GIVEN_AT))


_MONTH: Final = re.compile(r"\d{4}-(0[1-9]|1[0-2])", re.ASCII)
_CATEGORY: Final = re.compile(r"\d{4}", re.ASCII)
_LOCK_PARTNER = "SELECT 1 FROM partner WHERE partner_id = $1 FOR UPDATE"


async def set_rule(
    bank: Bank,
    partner: PartnerRow,
    *,
    basis_points: int,
    excluded_categories: Sequence[str] = (),
    cap: int | None = None,
    from_month: str | None = None,
) -> rules.CashBackRule:
    """Set the rule of a partner from a month on, by default the current one; return it. Raises InvalidInput."""
    async with audited(bank, partner.own_customer_id, Origin.operator(), "cash_back_rule.set") as action:
        await action.conn.execute(_LOCK_PARTNER, partner.partner_id)
        now = await bank.now(action.conn)
        rule = rules.CashBackRule(
            customer_id=partner.own_customer_id,
            version=len(await store.list_rules(action.conn, partner.partner_id)) + 1,
            partner_id=partner.partner_id,
            from_month=from_month or f"{et_date(now):%Y-%m}",
            basis_points=basis_points,
            excluded_categories=sorted({*excluded_categories}),
            cap=cap,
            created_at=now,
        )
        _require_valid(rule)
        row = await store.add_rule(action.conn, rule)
        columns = [(name, row[name]) for name in sorted(row.keys()) if row[name] is not None]
        action.resource_id = str(rule.version)
        action.proves("cash_back_rule", rule.version, fingerprint(columns))
        job = next_job(partner.partner_id, now)
        if not await store.has_job(action.conn, job):  # a late job keeps its month
            await scheduler.schedule(action.conn, [job])
    return rule


def _require_valid(rule: rules.CashBackRule) -> None:
    if not 0 <= rule.basis_points <= rules.BASIS_POINTS_MAX:
        raise InvalidInput.at("basis_points", msg=f"must be 0 to {rules.BASIS_POINTS_MAX}")
    if rule.cap is not None and rule.cap <= 0:
        raise InvalidInput.at("cap", msg="must be a positive number of cents")
    for each in rule.excluded_categories:
        if not _CATEGORY.fullmatch(each):
            raise InvalidInput.at("excluded_categories", msg=f"{each} is not a category code of four digits")
    if not _MONTH.fullmatch(rule.from_month):
        raise InvalidInput.at("from_month", msg="must be a month as YYYY-MM")
    if rule.from_month < f"{et_date(rule.created_at):%Y-%m}":
        raise InvalidInput.at("from_month", msg="is over: a rule holds from this month on, or a later one")
