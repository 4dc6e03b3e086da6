"""The columns that hold sealed texts, and how a value of one is sealed and opened.

A value stands for a whole column of a row, bound to it; a `field` is bound to the row's customer only. It is a text; in
a JSON column it is a JSON string.
"""

import json
from collections.abc import Sequence
from typing import Final, NamedTuple
from uuid import UUID

from billfold.data_keys.data_key import DataKey, PartyField
from billfold.data_keys.keys import DataKeys, find_key
from billfold.platform.crypto import associated_data, is_sealed_text
from billfold.platform.database.connection import Connection, Pool


class SealedColumn(NamedTuple):
    """A column whose values are sealed with the key of the row's customer; `key` finds the row among theirs.

    `subject` is the expression of whose key it is, where it is not always the customer's.
    """

    table: str
    key: str
    column: str
    is_json: bool = False
    subject: str = "customer_id"
    field: PartyField | None = None

    def seal(self, data_key: DataKey, row_id: object, plain: str) -> str:
        """Return the value as a sealed text; equal values of a row are equal."""
        return data_key.seal_text(plain, self._place(data_key.subject_id, row_id))

    def open(self, data_key: DataKey, row_id: object, stored: str) -> str:
        """Return the value of a stored one. Raises InvariantError."""
        sealed = self.sealed_in(stored)
        return data_key.open_text(stored if sealed is None else sealed, self._place(data_key.subject_id, row_id))

    def sealed_in(self, stored: str) -> str | None:
        """Return the sealed text in what is stored, None where it is in plain text."""
        if self.is_json:
            stored = str(json.loads(stored)) if stored.startswith('"') else ""
        return stored if is_sealed_text(stored) else None

    def stored(self, sealed: str) -> str:
        """Return a sealed text as the column holds it."""
        return json.dumps(sealed) if self.is_json else sealed

    def _place(self, subject_id: UUID, row_id: object) -> bytes:
        if self.field is not None:
            return self.field.place(subject_id)
        return associated_data(self.table, self.column, row_id, tenant_id=subject_id)


CUSTOMER_PROFILE: Final = SealedColumn("customer", "customer_id", "profile", is_json=True)
LINKING_ACCESS: Final = SealedColumn("linking_exchange", "exchange_id", "access")
DOCUMENT_NAME: Final = SealedColumn("document", "document_id", "name", subject="coalesce(subject_id, customer_id)")
CARD_SHIPPING_ADDRESS: Final = SealedColumn("card_order", "card_order_id", "shipping_address")
SEALED_COLUMNS: Final = (CUSTOMER_PROFILE, LINKING_ACCESS, DOCUMENT_NAME, CARD_SHIPPING_ADDRESS)
"""Every column of the database that is sealed as a whole, and that no chain and no fingerprint covers."""
COUNTERPARTY_ACCOUNT: Final = SealedColumn(
    "counterparty", "counterparty_id", "account_number", field=PartyField.ACCOUNT
)


async def open_column(
    keys: DataKeys, conn: Connection | Pool, column: SealedColumn, rows: Sequence[tuple[UUID, object, str]]
) -> list[str | None]:
    """Return the values of rows given as (whose key it is, row id, stored value), in their order.

    What is in plain text is returned as it is; None stands for what was destroyed with its key.
    """
    ring = await keys.load(conn, {subject for subject, _, stored in rows if column.sealed_in(stored) is not None})

    def plain(subject_id: UUID, row_id: object, stored: str) -> str | None:
        if column.sealed_in(stored) is None:
            return stored
        data_key = find_key(ring, subject_id)
        return None if data_key is None else column.open(data_key, row_id, stored)

    return [plain(*row) for row in rows]
