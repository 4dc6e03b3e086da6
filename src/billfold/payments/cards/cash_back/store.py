"""Queries of cash back rules, of cards' payments in a month, and of the cash back given."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import msgspec
from asyncpg import Record

from billfold.ledger.types import ScheduledJob
from billfold.payments.cards.cash_back.rules import NEVER_PURCHASES, CardMonth, CashBackRow, CashBackRule
from billfold.platform.database.connection import Connection, Db
from billfold.platform.database.rows import Table

_rules, _given = Table(CashBackRule, "cash_back_rule"), Table(CashBackRow)
_INSERT_RULE = f"{_rules.insertion} RETURNING *"
_LIST_RULES = f"{_rules.select} WHERE partner_id = $1 ORDER BY version"
_IN_FORCE = f"""
{_rules.select} WHERE partner_id = $1 AND from_month <= $2
 ORDER BY from_month DESC, version DESC LIMIT 1
"""
_HAS_JOB = "SELECT EXISTS (SELECT 1 FROM scheduled_job WHERE kind = $1 AND object_id = $2)"
_GIVEN = f"{_given.select} WHERE period = $1 ORDER BY customer_id, card_id LIMIT $2"
# The amount of a payment `p` that counts for a month: nothing for an excluded category.
COUNTED_MONTH = """
SELECT p.customer_id, p.card_id,
       coalesce(sum(p.amount) FILTER (WHERE p.kind IN ('PURCHASE', 'REPRESENTMENT')), 0)::bigint AS purchases,
       coalesce(sum(p.amount) FILTER (WHERE p.kind IN ('REFUND', 'CHARGEBACK')), 0)::bigint AS refunds
  FROM card_payment p JOIN customer c USING (customer_id)
 WHERE c.partner_id = $1 AND p.created_at >= $2 AND p.created_at < $3
   AND p.merchant->>'category_code' <> ALL($4::text[])
 GROUP BY p.customer_id, p.card_id
"""
# The excess of refunds over purchases of a customer's cards, from earlier months (`owed`) and this one, is deducted
# from the cards that paid more than they got back, lowest remainder first: a card above the cap would absorb it
# without effect.
_MONTHS = f"""
SELECT customer_id, card_id, purchases, refunds, greatest(least(still, 0), least(-net, 0))::bigint AS carried_in
  FROM (SELECT n.*, owed + sum(least(net, 0)) OVER (PARTITION BY customer_id) - greatest(net, 0)
                    + sum(greatest(net, 0)) OVER (PARTITION BY customer_id ORDER BY net, card_id) AS still
          FROM (SELECT m.*, purchases - refunds AS net FROM ({COUNTED_MONTH}) m) n
         CROSS JOIN LATERAL (
           SELECT coalesce(sum(net - greatest(net + carried_in, 0)), 0) AS owed
             FROM (SELECT customer_id, period, carried_in, purchases - refunds AS net FROM cash_back) b
            WHERE b.customer_id = n.customer_id AND b.period < $5) o) m
 WHERE NOT EXISTS (SELECT 1 FROM cash_back g
                    WHERE (g.customer_id, g.card_id, g.period) = (m.customer_id, m.card_id, $5))
 ORDER BY customer_id, card_id
"""


async def add_rule(conn: Connection, rule: CashBackRule) -> Record:
    """Store a rule; return its row."""
    (row,) = await conn.fetch(_INSERT_RULE, *msgspec.structs.astuple(rule))
    return row


async def list_rules(conn: Db, partner_id: UUID) -> list[CashBackRule]:
    """Return the rules of a partner, in the order in which they were set."""
    return await _rules.all(conn, _LIST_RULES, partner_id)


async def find_rule(conn: Db, partner_id: UUID, period: str) -> CashBackRule | None:
    """Return a partner's cash back rule for a month."""
    return await _rules.first(conn, _IN_FORCE, partner_id, period)


async def list_months(conn: Db, rule: CashBackRule, period: str, span: tuple[datetime, datetime]) -> list[CardMonth]:
    """Return the cards of a partner with payments or refunds in a month that have no cash back for it yet."""
    excluded: Sequence[str] = [*NEVER_PURCHASES, *rule.excluded_categories]
    return [CardMonth(**row) for row in await conn.fetch(_MONTHS, rule.partner_id, *span, excluded, period)]


async def list_given(conn: Db, period: str, *, limit: int = 1_000) -> list[CashBackRow]:
    """Return the cash back given for a month."""
    return await _given.all(conn, _GIVEN, period, limit)


async def has_job(conn: Db, job: ScheduledJob) -> bool:
    """Return whether a job of this kind is scheduled for this object, at any time."""
    is_scheduled: bool = await conn.fetchval(_HAS_JOB, job.kind, job.object_id)
    return is_scheduled
