"""E-mail addresses and telephone numbers of persons as they are stored: sealed for their row, found by a blind index.

A person may belong to several customers, so they are sealed with the key of the bank. A table of persons has the
columns `email`, `email_index` and `phone_number`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

from billfold.identity.users.rules import normalize_email
from billfold.platform.crypto import Vault, associated_data, is_sealed_text
from billfold.platform.errors import InvariantError

if TYPE_CHECKING:
    from asyncpg import Record


class ContactDetails(NamedTuple):
    """What a row holds of a person, in the order of `COLUMNS`."""

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
        """Return a row with what is sealed of it opened. Raises InvariantError."""
        fields = dict(row)
        for column in _SEALED & fields.keys():
            stored = fields[column]
            if stored is not None and is_sealed_text(stored):
                fields[column] = vault.open_text(stored, self._place(column, row_id))
        return fields

    def indexes(self, vault: Vault, email: str) -> list[bytes]:
        """Return the values of `email_index` that a row with this address may have, however it is spelled."""
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
        raise InvariantError("The blind index of a row is that of another e-mail address.")
