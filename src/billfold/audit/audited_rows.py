"""Tables whose writes leave the fingerprints of their rows in the audit log, so that an edited row is found."""

from collections.abc import Sequence
from typing import TypeVar

import msgspec
from asyncpg import Record

from billfold.audit.record import AuditedAction
from billfold.platform.database.connection import Connection
from billfold.platform.database.rows import Table, proof_of, stored_name

StructType = TypeVar("StructType", bound=msgspec.Struct)


class AuditedTable(Table[StructType]):
    """A `Table` that is written in audited actions; its rows are read as the types of their fields.

    `proved_by` are the columns that name a row in the audit log, by default the last one of the key.
    """

    __slots__ = ("_change", "_key", "_proved_by", "table")

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
