"""Checks what only the holder of a card knows: its expiry, the CVV, the PIN."""

import hmac
from typing import Final

from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
from cryptography.hazmat.primitives.ciphers import Cipher, modes

from billfold.sandbox.card_processor.host import journal
from billfold.sandbox.card_processor.host.requests import Kind, Request
from billfold.sandbox.card_processor.host.response_codes import Outcome
from billfold.sandbox.card_processor.vault import CardVault

PIN_TRIES: Final = 3
CVV_TRIES: Final = 5
"""How many wrong ones a card has in a day (UTC) before even the right one is refused."""
_HALF: Final = 8
_BLOCK_DIGITS: Final = 16
_ACCOUNT_DIGITS: Final = 12
_PIN_DIGITS: Final = range(4, 13)


class SecretChecks:
    """The checks, with the key of 16 bytes under which the network enciphers PINs."""

    def __init__(self, pin_key: bytes) -> None:
        self._cipher = Cipher(TripleDES(pin_key + pin_key[:_HALF]), modes.ECB())  # noqa: S305 - of one block

    def find_wrong(self, vault: CardVault, request: Request, card_id: str) -> Outcome | None:
        """Return what is wrong, or None. What cannot be declined any more is not checked."""
        card = vault.find(card_id)
        if card is None or request.kind in {Kind.REVERSAL, Kind.ADVICE}:
            return None
        if request.expires is not None and request.expires != card.expires_on.strftime("%y%m"):
            return Outcome.EXPIRED_CARD
        if request.cvv is not None:
            is_right = hmac.compare_digest(request.cvv.encode(), vault.cvv(card).encode())
            if journal.is_exhausted(vault, card_id, "cvv", CVV_TRIES) or not is_right:
                journal.count_wrong(vault, card_id, "cvv")
                return Outcome.SECURITY_VIOLATION
        return self._wrong_pin(vault, request, card_id) if request.pin_block is not None else None

    def _wrong_pin(self, vault: CardVault, request: Request, card_id: str) -> Outcome | None:
        if journal.is_exhausted(vault, card_id, "pin", PIN_TRIES):
            return Outcome.PIN_TRIES_EXCEEDED
        if vault.is_pin(card_id, self._pin(request)):
            return None
        journal.count_wrong(vault, card_id, "pin")
        return Outcome.INCORRECT_PIN

    def _pin(self, request: Request) -> str:
        """Return the PIN of a block in ISO 9564 format 0; empty if there is none in it."""
        block = bytes.fromhex(request.pin_block or "")
        clear = self._cipher.decryptor().update(block)
        account = bytes.fromhex(request.pan[-_ACCOUNT_DIGITS - 1 : -1].zfill(_BLOCK_DIGITS))
        digits = bytes(one ^ other for one, other in zip(clear, account, strict=True)).hex().upper()
        length = int(digits[1], 16)
        pin, fill = digits[2 : 2 + length], digits[2 + length :]
        is_block = digits[0] == "0" and length in _PIN_DIGITS and pin.isdecimal() and not fill.strip("F")
        return pin if is_block else ""
