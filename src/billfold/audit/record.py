"""Entries on their way into the log, in the transaction of their cause, and tables whose changes are audited."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from typing import Any, Protocol, TypeVar
from uuid import UUID

import asyncpg
import msgspec
from asyncpg import Record

from billfold.audit.rules import CHAIN_START, AuditEntry, NewEntry, build_entry, prove_rights
from billfold.http.caller import Call
from billfold.ledger.bank import Bank
from billfold.ledger.commands import Command, Outcome
from billfold.ledger.engine.pending_command import PendingCommand
from billfold.ledger.types import Origin
from billfold.platform.clock import wall_now
from billfold.platform.crypto import Vault
from billfold.platform.database.connection import Connection, Pool
from billfold.platform.database.rows import Table, proof_of, stored_name
from billfold.platform.errors import NotFound, Refused

_LOCK = """
SELECT customer_id, entry_no, hash, recorded_at FROM audit_chain_head
 WHERE customer_id = ANY($1) ORDER BY customer_id FOR UPDATE
"""
_BEGIN = """
INSERT INTO audit_chain_head (customer_id, entry_no, hash, recorded_at)
SELECT id, 0, $2, $3 FROM unnest($1::uuid[]) AS id ORDER BY id ON CONFLICT DO NOTHING
"""
_NAMES = """
SELECT m.member_id, p.first_name || ' ' || p.last_name AS name
  FROM membership m JOIN user_account p USING (user_id) WHERE m.member_id = ANY($1)
UNION ALL
SELECT member_id, name FROM oauth_client WHERE member_id = ANY($1)
"""
_SQL_TYPES = {"customer_id": "uuid", "entry_no": "bigint", "entry_id": "uuid", "recorded_at": "timestamptz"}
_SQL_TYPES |= {"member_id": "uuid", "hash": "bytea"}
_COLUMNS = AuditEntry.__struct_fields__
_COLUMN_NAMES = ", ".join(_COLUMNS)
_PARAMETERS = ", ".join(f"${n}::{_SQL_TYPES.get(name, 'text')}[]" for n, name in enumerate(_COLUMNS, 1))
_SELECTED = ", ".join(f"{name}::json" if name == "details" else name for name in _COLUMNS)
_WRITE = f"""
WITH entry AS (
  SELECT * FROM unnest({_PARAMETERS}) AS e({_COLUMN_NAMES})
), moved AS (
  UPDATE audit_chain_head h SET entry_no = l.entry_no, hash = l.hash, recorded_at = l.recorded_at
    FROM (SELECT DISTINCT ON (customer_id) customer_id, entry_no, hash, recorded_at
            FROM entry ORDER BY customer_id, entry_no DESC) l
   WHERE h.customer_id = l.customer_id
)
INSERT INTO audit_entry ({_COLUMN_NAMES}) SELECT {_SELECTED} FROM entry
"""


async def record(conn: Connection, vault: Vault, entry: NewEntry, *, now: datetime) -> None:
    """Add an entry to the log of its customer, in the caller's transaction.

    Until that ends the customer's log is locked: do it last.
    """
    await record_all(conn, vault, [entry], now=now)


async def record_all(conn: Connection, vault: Vault, entries: Sequence[NewEntry], *, now: datetime) -> None:
    """Add entries, of one customer or of several, in the order in which they are given."""
    if not entries:
        return
    heads = await _lock_heads(conn, sorted({each.customer_id for each in entries}), now)
    entries = await prove_rights(conn, entries)
    names = await _names_of(conn, entries)
    rows = []
    for entry in entries:
        entry_no, previous, last_at = heads[entry.customer_id]
        name = entry.origin.name or names.get(entry.origin.member_id) or entry.origin.client_id
        row = build_entry(entry, entry_no + 1, previous, at=max(now, last_at), name=name or "", vault=vault)
        heads[entry.customer_id] = row.entry_no, row.hash, row.recorded_at
        rows.append(row)
    await conn.execute(_WRITE, *_columns_of(rows))


class AuditedAction:
    """An action in progress in a transaction, and what will be recorded of it."""

    __slots__ = ("conn", "details", "is_recorded", "resource_id")

    def __init__(self, conn: Connection, resource_id: UUID | str | None, details: Mapping[str, Any]) -> None:
        self.conn = conn
        self.resource_id = resource_id
        self.details: dict[str, Any] = dict(details)
        self.is_recorded = True

    def proves(self, table: str, key: object, fingerprint: str | None) -> None:
        """Record the state in which this transaction leaves a row; None: it is removed."""
        self.details.setdefault("proves", {}).setdefault(table, {})[str(key)] = fingerprint

    def skip(self) -> None:
        """Leave no entry: nothing was changed."""
        self.is_recorded = False


class LogAccess(Protocol):
    """The bank, or a member of a customer."""

    @property
    def pool(self) -> Pool: ...  # noqa: D102

    @property
    def vault(self) -> Vault: ...  # noqa: D102


@asynccontextmanager
async def audited(
    bank: LogAccess,
    customer_id: UUID,
    origin: Origin,
    action: str,
    *,
    resource_id: UUID | str | None = None,
    resource_type: str = "",
    now: datetime | None = None,
    details: Mapping[str, Any] | None = None,
) -> AsyncIterator[AuditedAction]:
    """Open a transaction that writes its audit entry: SUCCESS with it, or FAILURE after a refusal.

    What raises Refused or NotFound is rolled back and recorded in a transaction of its own; the
    error continues. The id may be set on the action when it is known; the type is by default the action's first word,
    and `now` the wall time.
    Never submit a command inside: the engine records audit entries itself, and would wait for this transaction.
    """
    now, resource_type = now or wall_now(), resource_type or action.partition(".")[0]
    entry = NewEntry(customer_id=customer_id, origin=origin, action=action, resource_type=resource_type)
    audited_action = None
    try:
        async with bank.pool.acquire() as conn, conn.transaction():
            audited_action = AuditedAction(conn, resource_id, details or {})
            yield audited_action
            if audited_action.is_recorded:
                await record(conn, bank.vault, _with_result(entry, audited_action), now=now)
    except (Refused, NotFound) as refusal:
        assert audited_action is not None
        audited_action.details.pop("proves", None)
        audited_action.details["refused"] = refusal.code
        async with bank.pool.acquire() as conn, conn.transaction():
            failed = msgspec.structs.replace(_with_result(entry, audited_action), outcome="FAILURE")
            await record(conn, bank.vault, failed, now=now)
        raise


def audited_by(
    call: Call,
    bank: Bank,
    customer_id: UUID,
    action: str,
    *,
    resource_id: UUID | str | None,
    details: Mapping[str, Any] | None = None,
) -> AbstractAsyncContextManager[AuditedAction]:
    """Open the transaction of a change, and its entry `<resource>.<verb>` in the audit log of a customer."""
    return audited(bank, customer_id, call.origin, action, resource_id=resource_id, details=details, now=call.wall)


def _with_result(entry: NewEntry, audited_action: AuditedAction) -> NewEntry:
    return msgspec.structs.replace(entry, resource_id=audited_action.resource_id, details=audited_action.details)


_Head = tuple[int, bytes, datetime]


async def _lock_heads(conn: Connection, customers: list[UUID], now: datetime) -> dict[UUID, _Head]:
    """Lock the ends of the customers' chains, in the order of their ids; begin missing ones."""
    rows: list[asyncpg.Record] = await conn.fetch(_LOCK, customers)
    if len(rows) < len(customers):
        await conn.execute(_BEGIN, customers, CHAIN_START, now)
        rows = await conn.fetch(_LOCK, customers)
    return {row["customer_id"]: (row["entry_no"], row["hash"], row["recorded_at"]) for row in rows}


async def _names_of(conn: Connection, entries: Iterable[NewEntry]) -> dict[UUID | None, str]:
    unnamed_ids = {e.origin.member_id for e in entries if e.origin.name is None} - {None}
    if not unnamed_ids:
        return {}
    return {row["member_id"]: row["name"] for row in await conn.fetch(_NAMES, list(unnamed_ids))}


def _columns_of(rows: Sequence[AuditEntry]) -> list[list[Any]]:
    return [[getattr(row, name) for row in rows] for name in _COLUMNS]


async def record_commands(conn: Connection, batch: Sequence[PendingCommand], *, vault: Vault) -> None:
    """Record the audited commands of this batch, in its transaction."""
    entries = [
        entry
        for job in batch
        if job.outcome is not None
        for command, outcome in job.command.decided(job.outcome)
        if (entry := audit_entry_of(command, outcome)) is not None
    ]
    if entries:
        await record_all(conn, vault, entries, now=wall_now())


def audit_entry_of(command: Command, outcome: Outcome) -> NewEntry | None:
    """Return what to record of a command that was decided just now; None for most."""
    audit, origin = command.audit, command.origin
    if audit is None or origin is None:
        return None
    details = command.audited_fields()
    refused = outcome.get("refused")
    if refused is not None:
        details["refused"] = refused
    verb = audit.verb if isinstance(audit.verb, str) else audit.verb(command)
    named = audit.key or f"{audit.resource}_id"
    itself = command.customers[0] if audit.resource == "customer" else None
    return NewEntry(
        customer_id=command.customers[0],
        origin=origin,
        action=f"{audit.resource}.{verb}",
        resource_type=audit.resource,
        resource_id=outcome.get(named) or getattr(command, named, itself),
        outcome="SUCCESS" if refused is None else "FAILURE",
        details=details,
    )


StructType = TypeVar("StructType", bound=msgspec.Struct)


class AuditedTable(Table[StructType]):
    """A `Table` that is written in audited actions; its rows are read as the types of their fields.

    `proved_by` are the columns that name a row in the audit log, by default the last one of the key.
    """

    def __init__(
        self,
        row: type[StructType],
        table: str,
        *,
        key: Sequence[str],
        noun: str | None = None,
        proved_by: Sequence[str] = (),
    ) -> None:
        super().__init__(row, table, key=key, noun=noun)
        self.table = table
        self._key = key
        self._proved_by = proved_by or key[-1:]
        names = row.__struct_fields__
        self.read = lambda record: msgspec.convert({name: record[name] for name in names}, row)

    async def lock(self, conn: Connection, *key: object) -> StructType:
        """Return the row with this key, which nobody else changes until the transaction ends. Raises NotFound."""
        return await self.one(conn, f"{self._get} FOR UPDATE", *key)

    async def add(self, action: AuditedAction, row: StructType, then: str = "ON CONFLICT DO NOTHING") -> bool:
        """Insert a row, `then` ON CONFLICT and the like; tell whether it was written."""
        return bool(await self.write(action, f"{self.insertion} {then} RETURNING *", *msgspec.structs.astuple(row)))

    async def change(self, action: AuditedAction, *key: object, **columns: object) -> StructType:
        """Change columns of the row with this key, which is there; return it as it is then."""
        where = " AND ".join(f"{name} = ${n}" for n, name in enumerate(self._key, 1))
        sets = ", ".join(f"{name} = ${n}" for n, name in enumerate(columns, len(key) + 1))
        sql = f"UPDATE {self.table} SET {sets} WHERE {where} RETURNING *"
        [written] = await self.write(action, sql, *key, *columns.values())
        return self.read(written)

    async def write(self, action: AuditedAction, sql: str, *values: object) -> list[Record]:
        """Run a statement that returns the rows it writes."""
        rows = await action.conn.fetch(sql, *values)
        for row in rows:
            key = "/".join(str(row[name]) for name in self._proved_by)
            action.proves(stored_name(self.table), key, proof_of(row, row.keys()))
        return rows
