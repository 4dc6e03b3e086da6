"""Approval rules and MFA policy of a customer. Each write leaves the row's fingerprint in the audit log."""

from collections.abc import Iterable, Sequence
from datetime import date, datetime
from uuid import UUID

import msgspec
from asyncpg import Record

from billfold.approvals.rules import matching_rules, requirement_of, stricter_requirements
from billfold.approvals.types import DEFAULT_REQUIREMENT, ApprovalRequirement, Rule
from billfold.audit.record import AuditedAction
from billfold.identity.users.rules import Action
from billfold.platform.database.connection import Connection, Db
from billfold.platform.database.rows import proof_of, stored_name
from billfold.platform.errors import NotFound, Refused
from billfold.platform.money import format_usd

KEYS = {
    "transfer_request": ("request_id",),
    "authorization_request": ("request_id",),
    "review": ("request_id", "review_no"),
    "approval_rule": ("rule_id",),
    "dual_control": ("customer_id",),
    "batch": ("request_id",),
    "policy": ("version",),
}
"""Table -> the columns that identify a row among the customer's."""


async def insert(audited_action: AuditedAction, table: str, *, replace: bool = False, **columns: object) -> bool:
    """Insert a row, replacing the one with its key if `replace`; return whether it was written."""
    conflict = "DO NOTHING"
    if replace:
        key = dict.fromkeys(("customer_id", *KEYS[table]))
        changes = ", ".join(f"{name} = excluded.{name}" for name in columns if name not in key)
        conflict = f"({', '.join(key)}) DO UPDATE SET {changes}"
    parameters = ", ".join(f"${number}" for number in range(1, len(columns) + 1))
    sql = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({parameters}) ON CONFLICT {conflict} RETURNING *"
    return await write(audited_action, table, sql, *columns.values())


async def update(
    audited_action: AuditedAction, table: str, customer_id: UUID, request_id: UUID, *, where: str, **columns: object
) -> bool:
    """Change columns of a request if a condition holds; return whether it did.

    The values of the columns are $3, $4 and so on, also in the condition.
    """
    changes = ", ".join(f"{name} = ${number}" for number, name in enumerate(columns, 3))
    sql = f"UPDATE {table} SET {changes} WHERE customer_id = $1 AND request_id = $2 AND {where} RETURNING *"
    return await write(audited_action, table, sql, customer_id, request_id, *columns.values())


async def write(audited_action: AuditedAction, table: str, sql: str, *values: object) -> bool:
    """Run a statement that returns the rows it writes; return whether there are any."""
    rows = await audited_action.conn.fetch(sql, *values)
    record_checksums(audited_action, table, rows)
    return bool(rows)


def record_checksums(audited_action: AuditedAction, table: str, rows: Iterable[Record]) -> None:
    """Record the fingerprints of these rows, with all columns, in an audited action."""
    for row in rows:
        key = "/".join(str(row[name]) for name in KEYS[table])
        audited_action.proves(stored_name(table), key, proof_of(row, row.keys()))


_LIST = """
SELECT r.*, (SELECT max(p.version) FROM policy p WHERE p.customer_id = $1) AS policy_version
  FROM customer c LEFT JOIN approval_rule r ON r.customer_id = c.customer_id
 WHERE c.customer_id = $1 ORDER BY r.created_at, r.written_no
"""
_ONE = "SELECT * FROM approval_rule WHERE customer_id = $1 AND rule_id = $2"
_KEEP = """
INSERT INTO former_row (customer_id, kind, object_id, until, row)
SELECT $1, 'approval_rule', $2, $3, coalesce(
         (SELECT to_json(r) FROM approval_rule r WHERE customer_id = $1 AND rule_id = $2), 'null')
    ON CONFLICT DO NOTHING
"""
_FORMER = """
SELECT DISTINCT ON (object_id) object_id, row::text FROM former_row
 WHERE customer_id = $1 AND kind = 'approval_rule' AND until > $2 ORDER BY object_id, until
"""
_REMOVE = "DELETE FROM approval_rule WHERE customer_id = $1 AND rule_id = $2"
_STEP_UP = "SELECT step_up FROM dual_control WHERE customer_id = $1"
LOCK = "SELECT 1 FROM customer WHERE customer_id = $1 FOR NO KEY UPDATE"
"""So that of two decisions at once the second sees what the first uses or adds. A row of the node that has it: it is
locked until that node has committed, while a row of the coordinator is free before."""
_USED = """
SELECT (SELECT coalesce(sum(q.amount), 0) FROM transfer_request q
          LEFT JOIN transfer t ON t.customer_id = q.customer_id AND t.transfer_id = q.request_id
          LEFT JOIN wire w ON w.customer_id = q.customer_id AND w.wire_id = q.request_id
         WHERE q.customer_id = $1 AND q.rule_id = $2 AND q.business_date = $3 AND q.request_id <> ALL($4)
           AND q.status IN ('PENDING', 'APPROVED') AND q.reason IS NULL AND q.series_state IS NULL
           AND t.status IS DISTINCT FROM 'REJECTED' AND w.status IS DISTINCT FROM 'REJECTED')::bigint
       + (SELECT coalesce(sum(r.amount), 0) FROM batch b
            JOIN batch_row r ON r.customer_id = b.customer_id AND r.batch_id = b.request_id
           WHERE b.customer_id = $1 AND b.business_date = $3 AND b.status IN ('PENDING', 'APPROVED')
             AND b.finished_at IS NULL AND r.rule_id = $2 AND r.state = 'WAITING')::bigint
"""


async def list_rules(conn: Db, customer_id: UUID, *, as_of: datetime | None = None) -> list[Rule]:
    """Return all rules of a customer, now or as they were, oldest first."""
    if as_of is None:
        return (await load_rules(conn, customer_id))[0]
    # Two statements: on a cluster the former rows are on another node than the rules.
    former = {
        row["object_id"]: msgspec.json.decode(row["row"]) for row in await conn.fetch(_FORMER, customer_id, as_of)
    }
    present = {row["rule_id"]: dict(row) for row in await conn.fetch(_LIST, customer_id) if row["rule_id"] is not None}
    found = [(msgspec.convert(row, Rule), row["written_no"]) for row in (present | former).values() if row is not None]
    there = [each for each in found if each[0].created_at <= as_of]
    return [rule for rule, _ in sorted(there, key=lambda each: (each[0].created_at, each[1]))]


async def load_rules(conn: Db, customer_id: UUID) -> tuple[list[Rule], int | None]:
    """Return the same, and the version of the policy in force, None without one."""
    rows = await conn.fetch(_LIST, customer_id)
    return [_rule_of(row) for row in rows if row["rule_id"] is not None], rows[0]["policy_version"] if rows else None


async def find_rule(conn: Db, customer_id: UUID, rule_id: UUID) -> Rule | None:
    """Return one rule, or None."""
    row = await conn.fetchrow(_ONE, customer_id, rule_id)
    return None if row is None else _rule_of(row)


async def get_rule(conn: Db, customer_id: UUID, rule_id: UUID, *, as_of: datetime | None = None) -> Rule:
    """Return one rule, now or as it was. Raises NotFound."""
    if as_of is None:
        found = await find_rule(conn, customer_id, rule_id)
    else:
        rules = await list_rules(conn, customer_id, as_of=as_of)
        found = next((each for each in rules if each.rule_id == rule_id), None)
    if found is None:
        raise NotFound("There is no such approval rule.")
    return found


class DailyCaps:
    """The caps of the rules on one day, and how much of each is used; locked until the transaction ends.

    What the requests in `except_for` use does not count: their amounts are taken here.
    """

    def __init__(self, conn: Connection, customer_id: UUID, day: date, *, except_for: Sequence[UUID]) -> None:
        self._conn = conn
        self._key = customer_id
        self._rest = (day, list(except_for))
        self._used: dict[UUID, int] = {}

    async def take(self, rule: Rule, amount: int) -> bool:
        """Use an amount of the cap of a rule; False if it does not have so much left."""
        if rule.daily_cap is None:
            return True
        if not self._used:
            await self._conn.execute(LOCK, self._key)
        if rule.rule_id not in self._used:
            self._used[rule.rule_id] = await read_used(self._conn, self._key, rule, *self._rest)
        if self._used[rule.rule_id] + amount > rule.daily_cap:
            return False
        self._used[rule.rule_id] += amount
        return True


async def requirement_under(rules: Sequence[Rule], caps: DailyCaps, *, type_: str, amount: int) -> ApprovalRequirement:
    """Return the approvals that a transfer requires under the rules of its customer.

    When the daily cap of a rule is used up, the next rule that requires more approvals decides. Raises Refused
    `amount-not-allowed` if no such rule exists.
    """
    ranked = matching_rules(rules, "TRANSFER", type_=type_, amount=amount)
    if not ranked:
        return DEFAULT_REQUIREMENT
    first = ranked[0]
    if await caps.take(first, amount):
        return requirement_of(first)
    by_id = {each.rule_id: each for each in ranked}
    for terms in stricter_requirements(ranked, first):
        rule = None if terms.rule_id is None else by_id[terms.rule_id]
        if rule is None or await caps.take(rule, amount):
            return terms
    raise Refused(
        "amount-not-allowed",
        f"{cap_text(first)}, which this transfer would exceed.",
        daily_cap_usdc=first.daily_cap,
    )


def cap_text(rule: Rule) -> str:
    """Return the daily cap of a rule in words."""
    assert rule.daily_cap is not None
    return f"The rule {rule.name!r} allows {format_usd(rule.daily_cap)} per business day"


async def requirement_for_change(conn: Db, customer_id: UUID, action: Action) -> ApprovalRequirement:
    """Return the approvals that a sensitive change requires; none if no rule applies."""
    ranked = matching_rules(await list_rules(conn, customer_id), action)
    return requirement_of(ranked[0]) if ranked else ApprovalRequirement(required=0)


async def put_rule(audited_action: AuditedAction, customer_id: UUID, rule: Rule) -> None:
    """Insert or update a rule at its `updated_at`."""
    await audited_action.conn.execute(_KEEP, customer_id, rule.rule_id, rule.updated_at)
    columns = msgspec.structs.asdict(rule)
    await insert(audited_action, "approval_rule", replace=True, customer_id=customer_id, **columns)


async def remove_rule(audited_action: AuditedAction, customer_id: UUID, rule_id: UUID, *, now: datetime) -> None:
    """Remove a rule. Requests made under it keep its requirement."""
    await audited_action.conn.execute(_KEEP, customer_id, rule_id, now)
    await audited_action.conn.execute(_REMOVE, customer_id, rule_id)
    audited_action.proves("approval_rule", rule_id, None)


async def requires_step_up(conn: Db, customer_id: UUID, *, default: bool) -> bool:
    """Return whether approvals through any application require a recent sign-in; `default` if not set."""
    setting = await conn.fetchval(_STEP_UP, customer_id)
    return default if setting is None else setting is True


async def set_step_up(audited_action: AuditedAction, customer_id: UUID, *, required: bool) -> None:
    """Require a recent sign-in for every approval of a customer, or leave it to applications."""
    await insert(audited_action, "dual_control", replace=True, customer_id=customer_id, step_up=required)


async def read_used(conn: Db, customer_id: UUID, rule: Rule, day: date, except_for: Sequence[UUID] = ()) -> int:
    """Return the cents of a business day that count towards the cap of a rule, except those of these requests."""
    return int(await conn.fetchval(_USED, customer_id, rule.rule_id, day, list(except_for)))


def _rule_of(row: Record) -> Rule:
    return msgspec.convert(dict(row), Rule)
