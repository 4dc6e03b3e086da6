"""A partner's rule is set for a month that is not over: what was given stays explained by the rules before."""

import re
from collections.abc import Sequence
from typing import Final

from billfold.audit.record import audited
from billfold.identity.partners.rules import PartnerRow
from billfold.ledger import scheduler as jobs_store
from billfold.ledger.bank import Bank
from billfold.ledger.types import Origin
from billfold.payments.cards.cash_back import store
from billfold.payments.cards.cash_back.types import BASIS_POINTS_MAX, CashBackRule
from billfold.payments.cards.cash_back.worker import next_job
from billfold.platform.clock import wall_now
from billfold.platform.crypto import fingerprint
from billfold.platform.dates import et_date
from billfold.platform.errors import InvalidInput

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
) -> CashBackRule:
    """Set the rule of a partner from a month on, by default this one; return it. Raises InvalidInput."""
    async with audited(
        bank.pool,
        bank.vault,
        partner.own_customer_id,
        Origin.operator(),
        "cash_back_rule.set",
        resource=("cash_back_rule", None),
        now=wall_now(),
    ) as action:
        await action.conn.execute(_LOCK_PARTNER, partner.partner_id)
        now = await bank.now(action.conn)
        rule = CashBackRule(
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
        if not await store.has_job(action.conn, job):  # one that is late keeps its month
            await jobs_store.schedule(action.conn, [job])
    return rule


def _require_valid(rule: CashBackRule) -> None:
    if not 0 <= rule.basis_points <= BASIS_POINTS_MAX:
        raise InvalidInput.at("basis_points", msg=f"must be 0 to {BASIS_POINTS_MAX}")
    if rule.cap is not None and rule.cap <= 0:
        raise InvalidInput.at("cap", msg="must be a positive number of cents")
    for each in rule.excluded_categories:
        if not _CATEGORY.fullmatch(each):
            raise InvalidInput.at("excluded_categories", msg=f"{each} is not a category code of four digits")
    if not _MONTH.fullmatch(rule.from_month):
        raise InvalidInput.at("from_month", msg="must be a month as YYYY-MM")
    if rule.from_month < f"{et_date(rule.created_at):%Y-%m}":
        raise InvalidInput.at("from_month", msg="is over: a rule holds from this month on, or a later one")
