"""E-mail addresses and phone numbers of persons in storage: sealed for their row, found by a blind index.

A person may belong to several customers, so they are sealed with the key of the bank. A table of persons has the
columns `email`, `email_index` and `phone_number`.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple
from uuid import UUID

import asyncpg
from asyncpg import Record

from billfold.identity.users.rules import normalize_email
from billfold.ledger.bank import Bank
from billfold.platform.crypto import Vault, associated_data, is_sealed_text
from billfold.platform.database.checks import STATEMENT_TIMEOUT_SECONDS, Certainty, Findings
from billfold.platform.database.connection import Connection
from billfold.platform.errors import InvariantError


class ContactDetails(NamedTuple):
    """The personal data of a row, in the order of `COLUMNS`."""

    email: str
    email_index: bytes
    phone_number: str | None


COLUMNS: Final = ", ".join(ContactDetails._fields)
_SEALED: Final = {"email", "phone_number"}


class ContactTable(NamedTuple):
    """A table of persons; `key` finds a row, and its values are bound to it."""

    table: str
    key: str

    def seal(self, vault: Vault, row_id: UUID, email: str, *, phone_number: str | None = None) -> ContactDetails:
        """Return the columns of a row."""
        return ContactDetails(
            email=vault.seal_text(email, self._place("email", row_id)),
            email_index=vault.blind_index(normalize_email(email), self._purpose),
            phone_number=phone_number and vault.seal_text(phone_number, self._place("phone_number", row_id)),
        )

    def open(self, vault: Vault, row_id: UUID, row: Record | Mapping[str, Any]) -> dict[str, Any]:
        """Return a row with its sealed columns opened. Raises InvariantError."""
        fields = dict(row)
        for column in _SEALED & fields.keys():
            stored = fields[column]
            if stored is not None and is_sealed_text(stored):
                fields[column] = vault.open_text(stored, self._place(column, row_id))
        return fields

    def indexes(self, vault: Vault, email: str) -> list[bytes]:
        """Return the possible values of `email_index` for this address, however it is spelled."""
        return vault.blind_indexes(normalize_email(email), self._purpose)

    @property
    def _purpose(self) -> str:
        return f"{self.table}.email"

    def _place(self, column: str, row_id: UUID) -> bytes:
        return associated_data(self.table, column, row_id, tenant_id=row_id)


USERS: Final = ContactTable("user_account", "user_id")
INVITATIONS: Final = ContactTable("invitation", "member_id")
CONTACT_TABLES: Final = (USERS, INVITATIONS)
"""Every table with contact details of persons."""


def has_email(indexes: str, email: str) -> str:
    """Return the condition that a row has an address, given the parameters of its indexes and of its normal form."""
    return f"(email_index = ANY({indexes}::bytea[]) OR (email_index IS NULL AND email = {email}))"


def check_found(email: str, asked: str) -> None:
    """Raise InvariantError if a row that was found by its index has another address."""
    if normalize_email(email) != normalize_email(asked):
        raise InvariantError("The blind index of a row belongs to another e-mail address.")


_RESEALED_AT_ONCE = 500
_NOT_CURRENT = """
SELECT {key} AS row_id, email, phone_number FROM {table}
 WHERE substring(email_index FOR 4) IS DISTINCT FROM $1 AND {key} > $2 ORDER BY {key} LIMIT $3
"""
_REPLACE = """
UPDATE {table} SET email = $3, email_index = $4, phone_number = $5 WHERE {key} = $1 AND email = $2 RETURNING true
"""


async def reseal_contact_details(bank: Bank, progress: Callable[[str], None]) -> int:
    """Reseal every row that is not sealed under the current key; return how many."""
    return sum([await _reseal_table(bank, table, progress) for table in CONTACT_TABLES])


async def _reseal_table(bank: Bank, table: ContactTable, progress: Callable[[str], None]) -> int:
    count, after = 0, UUID(int=0)
    key_id, statement = bytes.fromhex(bank.vault.key_id), _NOT_CURRENT.format(**table._asdict())
    while rows := await bank.pool.fetch(statement, key_id, after, _RESEALED_AT_ONCE):
        for row in rows:
            count += await _reseal_row(bank, table, row, progress=progress)
        after = rows[-1]["row_id"]
        progress(f"{count} of {table.table} are sealed again")
    return count


async def _reseal_row(bank: Bank, table: ContactTable, row: Record, *, progress: Callable[[str], None]) -> bool:
    row_id = row["row_id"]
    found = table.open(bank.vault, row_id, row)
    sealed = table.seal(bank.vault, row_id, found["email"], phone_number=found["phone_number"])
    try:
        done = await bank.pool.fetchval(_REPLACE.format(**table._asdict()), row_id, row["email"], *sealed)
    except asyncpg.UniqueViolationError:
        progress(f"{table.table} {row_id} stays as it is: another has its e-mail address")
        return False
    return done is True


_CHECKED_AT_ONCE = 2_000
_ROWS = """
SELECT {key} AS row_id, email, email_index, phone_number FROM {table} WHERE email_index IS NOT NULL ORDER BY {key}
"""
_CHANGED = "its contact details do not open: they were altered, or moved from another row"
_WRONG_INDEX = "its index belongs to another e-mail address"


async def check_contact_details(conn: Connection, findings: Findings, vault: Vault | None) -> None:
    """Open the contact details of every person and report rows that do not open; without the vault none is opened."""
    for table in CONTACT_TABLES if vault else ():
        assert vault is not None
        cursor = await conn.cursor(_ROWS.format(**table._asdict()), timeout=STATEMENT_TIMEOUT_SECONDS)
        while rows := await cursor.fetch(_CHECKED_AT_ONCE, timeout=STATEMENT_TIMEOUT_SECONDS):
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
