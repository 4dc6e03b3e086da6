"""The details of a held payment for its owner: what is sealed with the bank's key is sealed with the owner's."""

from typing import Any
from uuid import UUID

import msgspec

from billfold.data_keys.payment_keys import PaymentKeys
from billfold.data_keys.types import PartyField
from billfold.ledger.bank import Bank
from billfold.payments.suspense.types import SuspenseItem
from billfold.payments.wires.iso20022.types import CreditTransfer, PaymentReturn
from billfold.payments.wires.sealed_messages import open_message, payment_details, seal_message

_IDENTIFICATION = "individual_identification_number"


async def details_for_owner(bank: Bank, item: SuspenseItem, owner: UUID) -> dict[str, Any]:
    """Return the details of an item, sealed for the customer whom it is assigned to."""
    keys = await PaymentKeys.prepare(bank, (owner,))
    details: dict[str, Any] = msgspec.json.decode(item.details)
    own = keys.of(owner)

    def plain(name: str) -> str | None:
        text = details.get(name)
        return None if text is None else keys.open(PartyField.TEXT, item.customer_id, text)

    if "message" not in details:
        identification = plain(_IDENTIFICATION)
        return details | {_IDENTIFICATION: identification and PartyField.TEXT.seal(own, identification)}
    opened = open_message(keys, item.customer_id, details["message"])
    message = msgspec.convert(opened, CreditTransfer | PaymentReturn)
    if isinstance(message, PaymentReturn):
        return details | {"message": seal_message(own, message)}
    return details | payment_details(own, message, plain("description"), details.get("omad"))
