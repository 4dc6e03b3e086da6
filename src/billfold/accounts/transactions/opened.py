"""What transactions say of their other parties, opened for those who may read them."""

from collections.abc import Sequence
from typing import Any

import msgspec

from billfold.accounts.transactions.remittance import SettledDocument, remittance_shown
from billfold.accounts.transactions.types import TransactionRow
from billfold.data_keys.data_key import PartyField
from billfold.data_keys.keys import PaymentKeys
from billfold.ledger.bank import Bank
from billfold.platform.crypto import is_sealed_text

_IDENTIFICATION = "individual_identification_number"
_SEALED = '"sealed:'
_decode_documents = msgspec.json.Decoder(tuple[SettledDocument, ...]).decode


async def open_transactions(bank: Bank, rows: Sequence[TransactionRow]) -> list[TransactionRow]:
    """Return transactions as they are shown. What was destroyed with its key is null, or empty where a text must be."""
    if not any(map(_has_sealed, rows)):
        return list(rows)
    keys = await PaymentKeys.load(bank, {row.customer_id for row in rows})
    return [_opened(row, keys) if _has_sealed(row) else row for row in rows]


def _has_sealed(row: TransactionRow) -> bool:
    return is_sealed_text(row.description) or _SEALED in row.details or _SEALED in (row.remittance or "")


def _opened(row: TransactionRow, keys: PaymentKeys) -> TransactionRow:
    def plain(stored: str) -> str | None:
        return keys.open(PartyField.TEXT, row.customer_id, stored)

    details: dict[str, Any] = msgspec.json.decode(row.details)
    if isinstance(identification := details.get(_IDENTIFICATION), str):
        details[_IDENTIFICATION] = plain(identification)
    remittance: dict[str, Any] | None = msgspec.json.decode(row.remittance or "null")
    if remittance:
        texts = filter(None, map(plain, remittance.get("unstructured") or ()))
        references = remittance.get("structured") or {}
        documents = plain(references.get("documents") or "")
        remittance = remittance_shown(
            [line for text in texts for line in text.splitlines()],
            references.get("end_to_end_identification"),
            _decode_documents(documents) if documents else None,
        )
    return msgspec.structs.replace(
        row,
        description=plain(row.description) or "",
        details=msgspec.json.encode(details).decode(),
        remittance=None if remittance is None else msgspec.json.encode(remittance).decode(),
    )
