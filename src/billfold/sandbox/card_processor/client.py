"""Calls the process of the simulated card processor, which it starts when it is first needed."""

import base64
from datetime import date
from pathlib import Path
from typing import Any, NoReturn
from uuid import UUID

import msgspec
import structlog

from billfold.payments.cards.ports import EncryptedDetail, IssuedCard, PinError, PublicKeyError
from billfold.payments.cards.types import CardOrderRow, CardStatus, Padding
from billfold.platform.errors import InvariantError
from billfold.sandbox.processes.line_process import LineProcess

log = structlog.get_logger(__name__)


class SimulatedCardProcessor:
    """One process per bank process; they share the folder of their numbers."""

    def __init__(self, folder: Path) -> None:
        module = "billfold.sandbox.card_processor"
        self._process = LineProcess(module, folder, "card processor")
        self._pin_key: str | None = None

    async def issue(self, card_id: UUID, *, on: date) -> IssuedCard:
        """Issue a card, or return it as it was issued."""
        return msgspec.convert(await self._call("issue", card_id=str(card_id), on=on.isoformat()), IssuedCard)

    async def encrypt_detail(self, card_id: UUID, public_key: str, padding: Padding) -> EncryptedDetail:
        """Encrypt what is secret of a card to an RSA key in PEM. Raises PublicKeyError."""
        detail = await self._call("encrypt_detail", card_id=str(card_id), value=public_key, padding=padding)
        return msgspec.convert(detail, EncryptedDetail)

    async def order(self, order: CardOrderRow, shipping_address: str) -> None:
        """Take an order; `POST /api/v1/sandbox/generate-card/` produces the card."""
        log.info("card_ordered", card_order_id=str(order.card_order_id), ships=bool(shipping_address))

    async def set_status(self, card_id: UUID, status: CardStatus) -> None:
        """Take over the status of a card."""
        await self._call("set_status", card_id=str(card_id), value=status)

    async def pin_key(self) -> str:
        """Return the key to which clients encrypt PINs, in PEM."""
        if self._pin_key is None:  # anybody may read it, without a token
            self._pin_key = str(await self._call("pin_key"))
        return self._pin_key

    async def set_pin(self, card_id: UUID, encrypted_pin: bytes) -> None:
        """Take the PIN of a card. Raises PinError."""
        await self._call("set_pin", card_id=str(card_id), value=base64.b64encode(encrypted_pin).decode())

    async def close(self) -> None:
        """End the process."""
        await self._process.close()

    async def _call(self, method: str, **values: str) -> Any:  # noqa: ANN401 - what the method returns
        response = await self._process.request({"method": method, **values})
        return response["result"] if "result" in response else _fail(response)


def _fail(response: dict[str, str]) -> NoReturn:
    if response["error"] == "public_key":
        raise PublicKeyError(response["reason"])
    if response["error"] == "pin":
        raise PinError
    raise InvariantError(f"The card processor does not know the {response['error']}.")
