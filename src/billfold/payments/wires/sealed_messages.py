"""Messages as they are stored: accounts, addresses and free text of the parties are sealed, the rest stays legible.

What is sealed of a message stands beside its fields as one text, `sealed`: rules that read a message do not see it.
"""

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

import msgspec

from billfold.data_keys.data_key import DataKey, PartyField
from billfold.data_keys.keys import PaymentKeys
from billfold.payments.wires.iso20022.types import CreditTransfer, Message
from billfold.payments.wires.rules import incoming
from billfold.payments.wires.types import IncomingWireFields

_SEALED: Final = "sealed"
_FIELDS: Final = ("debtor_account", "creditor_account", "instructions", "remittance", "documents")
_PARTIES: Final = ("debtor", "creditor", "creator")


def seal_message(data_key: DataKey, message: Message) -> dict[str, Any]:
    """Return a message as it is stored, in JSON-ready values."""
    fields: dict[str, Any] = msgspec.to_builtins(message)
    sealed = {name: fields.pop(name) for name in _FIELDS if fields.get(name) is not None}
    for name in _PARTIES:
        address = fields.get(name, {}).pop("address", None)
        if address is not None:
            sealed[name] = {"address": address}
    if sealed:
        fields[_SEALED] = PartyField.TEXT.seal(data_key, msgspec.json.encode(sealed).decode())
    return fields


def open_message(keys: PaymentKeys, customer_id: UUID, stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stored message in JSON-ready values; what was destroyed with its key is left out."""
    fields = {name: value for name, value in stored.items() if name != _SEALED}
    sealed = stored.get(_SEALED)
    plain = None if sealed is None else keys.open(PartyField.TEXT, customer_id, sealed)
    opened: dict[str, Any] = {} if plain is None else msgspec.json.decode(plain)
    for name, value in opened.items():
        fields[name] = {**fields[name], **value} if name in _PARTIES else value
    return fields


def seal_payment(data_key: DataKey, message: CreditTransfer, omad: str | None) -> IncomingWireFields:
    """Return the wire fields of a payment message, sealed."""
    fields = msgspec.json.encode(seal_message(data_key, message)).decode()
    instructions = seal_text(data_key, message.instructions)
    plain = incoming.incoming_wire_of(message, omad)
    return msgspec.structs.replace(plain, message=fields, instructions=instructions)


def payment_details(
    data_key: DataKey, message: CreditTransfer, description: str | None, omad: str | None
) -> dict[str, Any]:
    """Return the details of a payment that is held: what returns it, and what books it later."""
    remittance, documents = seal_remittance(data_key, message)
    return {
        "description": seal_text(data_key, description),
        "message": seal_message(data_key, message),
        "omad": omad,
        "instructions": seal_text(data_key, message.instructions),
        "remittance": remittance,
        "documents": documents,
    }


def seal_remittance(data_key: DataKey, message: CreditTransfer) -> tuple[str | None, str | None]:
    """Return lines and documents of a payment, each sealed as one text; None for none."""
    documents = msgspec.json.encode(message.documents).decode() if message.documents else None
    return seal_text(data_key, message.remittance), seal_text(data_key, documents)


def seal_text(data_key: DataKey, text: str | None) -> str | None:
    """Return a text sealed, None for none."""
    return PartyField.TEXT.seal(data_key, text) if text else None
