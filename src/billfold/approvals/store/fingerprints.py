"""Rows of dual control: each write leaves the row's fingerprint in the audit log, so an edited row is found."""

from collections.abc import Iterable
from uuid import UUID

from asyncpg import Record

from billfold.audit.record import AuditedAction
from billfold.platform.database.rows import proof_of, stored_name

KEYS = {
    "transfer_request": ("request_id",),
    "authorization_request": ("request_id",),
    "review": ("request_id", "review_no"),
    "approval_rule": ("rule_id",),
    "dual_control": ("customer_id",),
}
"""Table -> what tells a row of it from the customer's others."""


async def insert(audited_action: AuditedAction, table: str, *, replace: bool = False, **columns: object) -> bool:
    """Insert a row, in the place of the one with its key if `replace`; tell whether it was written."""
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
    """Change columns of a request where a condition holds; tell whether it did.

    The values of the columns are $3, $4 and so on, in the condition too.
    """
    changes = ", ".join(f"{name} = ${number}" for number, name in enumerate(columns, 3))
    sql = f"UPDATE {table} SET {changes} WHERE customer_id = $1 AND request_id = $2 AND {where} RETURNING *"
    return await write(audited_action, table, sql, customer_id, request_id, *columns.values())


async def write(audited_action: AuditedAction, table: str, sql: str, *values: object) -> bool:
    """Run a statement that returns the rows it writes; tell whether there are any."""
    rows = await audited_action.conn.fetch(sql, *values)
    record_checksums(audited_action, table, rows)
    return bool(rows)


def record_checksums(audited_action: AuditedAction, table: str, rows: Iterable[Record]) -> None:
    """Record the fingerprints of these rows, with all columns, in an audited action."""
    for row in rows:
        key = "/".join(str(row[name]) for name in KEYS[table])
        audited_action.proves(stored_name(table), key, proof_of(row, row.keys()))
