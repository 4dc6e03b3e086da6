"""The PIN of a card, which the client encrypts to a key of the card processor's."""

import base64
import binascii
from uuid import UUID

from billfold.http.counts import count_object
from billfold.http.operations import OPEN, get, post
from billfold.identity.partners.caller import Caller
from billfold.ledger.bank import Bank
from billfold.payments.cards import schemas
from billfold.payments.cards.commands import RecordPin
from billfold.payments.cards.processor import PinError, processor_of
from billfold.payments.cards.routes import find_card
from billfold.payments.cards.rules import require_pin_settable
from billfold.platform.errors import InvalidInput

_PINS = 30
"""Maximum number of PINs, valid or not, accepted for one card in ten minutes."""


@post(
    "/api/v1/service-accounts/{account_id}/cards/{card_id}/pin/",
    tag="cards",
    status=200,
    refuses=("already-closed", "card-type-mismatch", "card-already-activated", "rail-not-available"),
)
async def set_card_pin(
    caller: Caller, bank: Bank, account_id: UUID, card_id: UUID, data: schemas.SetPin
) -> schemas.PinResponse:
    """Set card PIN.

    For a physical card, before it is activated.
    """
    card = await find_card(caller, bank, account_id, card_id=card_id)
    require_pin_settable(card)
    await count_object(bank.pool, card_id, "card-pin", limit=_PINS, wall=caller.wall)
    try:
        await processor_of(bank).set_pin(card_id, base64.b64decode(data.encrypted_pin, validate=True))
    except (PinError, binascii.Error):
        raise InvalidInput.at(
            "body", "encrypted_pin", msg="must be four digits, encrypted to the `set_pin` key, in base64"
        ) from None
    await bank.engine.submit(
        RecordPin(**caller.command_fields(card.customer_id), references=(card_id,), card_id=card_id)
    )
    return schemas.PinResponse()


@get("/api/v1/public-keys/", OPEN, tag="cards", refuses=("rail-not-available",))
async def get_public_keys(bank: Bank) -> schemas.PublicKeys:
    """Get public keys.

    Returns the keys for encryption by clients: `set_pin` for the PIN of a card.
    """
    return schemas.PublicKeys(set_pin=await processor_of(bank).pin_key())
