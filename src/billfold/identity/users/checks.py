"""What `verify` checks of contact details: each opens in its own row, and is found by its own index."""

from __future__ import annotations

from typing import TYPE_CHECKING

from billfold.identity.users.contact_details import CONTACT_TABLES, ContactTable
from billfold.platform.checks import STATEMENT_TIMEOUT_SECONDS, Certainty, Findings
from billfold.platform.errors import InvariantError

if TYPE_CHECKING:
    from asyncpg import Record

    from billfold.platform.crypto import Vault
    from billfold.platform.database.connection import (Connection)

_BATCH_SIZE = 2_000
_ROWS = """
SELECT {key} AS row_id, email, email_index, phone_number FROM {table} WHERE email_index IS NOT NULL ORDER BY {key}
"""
_CHANGED = "its contact details do not open: they were altered, or moved from another row"
_WRONG_INDEX = "its index is that of another e-mail address"


async def check_contact_details(conn: Connection, findings: Findings, vault: Vault | None) -> None:
    """Open the contact details of every person and name the rows that do not open; without the vault none is opened."""
    for table in CONTACT_TABLES if vault else ():
        assert vault is not None
        cursor = await conn.cursor(_ROWS.format(**table._asdict()), timeout=STATEMENT_TIMEOUT_SECONDS)
        while rows := await cursor.fetch(_BATCH_SIZE, timeout=STATEMENT_TIMEOUT_SECONDS):
            findings.checked[table.table] += len(rows)
            for row in rows:
                if wrong := _mistake_in(table, vault, row):
                    findings.add(table.table, {table.key: row["row_id"]}, wrong, certainty=Certainty.CHANGED)
    findings.next_section()


def _mistake_in(table: ContactTable, vault: Vault, row: Record) -> str | None:
    try:
        email = table.open(vault, row["row_id"], row)["email"]
    except InvariantError:
        return _CHANGED
    return None if row["email_index"] in table.indexes(vault, email) else _WRONG_INDEX
