"""The approval rules of a customer: read, chosen for a request, and changed when confirmed."""

from __future__ import annotations

from datetime import date
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

import msgspec

from billfold.approvals.rules import matching, requirement_of, stricter
from billfold.approvals.store.fingerprints import record_checksums
from billfold.approvals.types import DEFAULT_REQUIREMENT, Action, ApprovalRequirement, Rule
from billfold.platform.errors import NotFound, Refused
from billfold.platform.money import format_usd

if TYPE_CHECKING:
    from asyncpg import Record

    from billfold.audit.record import AuditedAction
    from billfold.platform.database.pool import Connection, Pool

_COLUMNS = """rule_id, name, actions, transfer_types, min_amount, daily_cap, required_approvals,
       approver_roles, approver_ids, ordered, enabled, version, created_at, updated_at"""
_ALL = f"SELECT {_COLUMNS} FROM approval_rule WHERE customer_id = $1"
_ONE = f"{_ALL} AND rule_id = $2"
_LIST = f"{_ALL} ORDER BY created_at, rule_id"
_PUT = f"""
INSERT INTO approval_rule (customer_id, {_COLUMNS})
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
ON CONFLICT (customer_id, rule_id) DO UPDATE
   SET name = excluded.name, actions = excluded.actions, transfer_types = excluded.transfer_types,
       min_amount = excluded.min_amount, daily_cap = excluded.daily_cap,
       required_approvals = excluded.required_approvals, approver_roles = excluded.approver_roles,
       approver_ids = excluded.approver_ids, ordered = excluded.ordered, enabled = excluded.enabled,
       version = excluded.version, updated_at = excluded.updated_at
RETURNING *
"""
_REMOVE = "DELETE FROM approval_rule WHERE customer_id = $1 AND rule_id = $2"
_LOCK_CAP = "SELECT 1 FROM approval_rule WHERE customer_id = $1 AND rule_id = $2 FOR UPDATE"
_USED = """
SELECT coalesce(sum(q.amount), 0)::bigint
  FROM transfer_request q
  LEFT JOIN transfer t ON t.customer_id = q.customer_id AND t.transfer_id = q.request_id
  LEFT JOIN wire w ON w.customer_id = q.customer_id AND w.wire_id = q.request_id
 WHERE q.rule_id = $1 AND q.business_date = $2 AND q.request_id <> $3
   AND q.status IN ('PENDING', 'APPROVED') AND q.reason IS NULL
   AND t.status IS DISTINCT FROM 'REJECTED' AND w.status IS DISTINCT FROM 'REJECTED'
"""


async def list_rules(conn: Connection | Pool, customer_id: UUID) -> list[Rule]:
    """Return all rules of a customer, the oldest first."""
    return [_read(row) for row in await conn.fetch(_LIST, customer_id)]


async def find_rule(conn: Connection | Pool, customer_id: UUID, rule_id: UUID) -> Rule | None:
    """Return one rule, or None."""
    row = await conn.fetchrow(_ONE, customer_id, rule_id)
    return None if row is None else _read(row)


async def get_rule(conn: Connection | Pool, customer_id: UUID, rule_id: UUID) -> Rule:
    """Return one rule. Raises NotFound."""
    found = await find_rule(conn, customer_id, rule_id)
    if found is None:
        raise NotFound("There is no such approval rule.")
    return found


async def requirement_for_transfer(
    conn: Connection, customer_id: UUID, *, type_: str, amount: int, day: date, request_id: UUID
) -> ApprovalRequirement:
    """Return the approvals that a transfer requires.

    The daily cap of a rule stays locked until the transaction ends. When it is used up,
    the next rule that requires more approvals decides. Raises Refused `amount-not-allowed`
    when there is no such rule either.
    """
    rules = await list_rules(conn, customer_id)
    ranked = matching(rules, "TRANSFER", type_=type_, amount=amount)
    if not ranked:
        return DEFAULT_REQUIREMENT
    first = ranked[0]
    has_room = partial(_has_room, conn, customer_id, amount=amount, day=day, request_id=request_id)
    if await has_room(first):
        return requirement_of(first)
    by_id = {each.rule_id: each for each in ranked}
    for terms in stricter(ranked, first):
        rule = None if terms.rule_id is None else by_id[terms.rule_id]
        if rule is None or await has_room(rule):
            return terms
    assert first.daily_cap is not None
    raise Refused(
        "amount-not-allowed",
        f"The rule {first.name!r} lets {format_usd(first.daily_cap)} through per business day, and "
        "with this transfer it would be more.",
        daily_cap_usdc=first.daily_cap,
    )


async def requirement_for_change(conn: Connection | Pool, customer_id: UUID, action: Action) -> ApprovalRequirement:
    """Return the approvals that a sensitive change requires; none without a rule."""
    ranked = matching(await list_rules(conn, customer_id), action)
    return requirement_of(ranked[0]) if ranked else ApprovalRequirement(required=0)


async def put_rule(audited_action: AuditedAction, customer_id: UUID, rule: Rule) -> None:
    """Write a rule, new or changed."""
    rows = await audited_action.conn.fetch(
        _PUT,
        customer_id,
        rule.rule_id,
        rule.name,
        rule.actions,
        rule.transfer_types,
        rule.min_amount,
        rule.daily_cap,
        rule.required_approvals,
        rule.approver_roles,
        rule.approver_ids,
        rule.ordered,
        rule.enabled,
        rule.version,
        rule.created_at,
        rule.updated_at,
    )
    record_checksums(audited_action, "approval_rule", rows)


async def remove_rule(audited_action: AuditedAction, customer_id: UUID, rule_id: UUID) -> None:
    """Remove a rule. Requests made under it keep its requirement."""
    await audited_action.conn.execute(_REMOVE, customer_id, rule_id)
    audited_action.proves("approval_rule", rule_id, None)


async def _has_room(
    conn: Connection, customer_id: UUID, rule: Rule, *, amount: int, day: date, request_id: UUID
) -> bool:
    if rule.daily_cap is None:
        return True
    await conn.execute(_LOCK_CAP, customer_id, rule.rule_id)
    used = await conn.fetchval(_USED, rule.rule_id, day, request_id)
    return int(used) + amount <= rule.daily_cap


def _read(row: Record) -> Rule:
    return msgspec.convert(dict(row), Rule)
