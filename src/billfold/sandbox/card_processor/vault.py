"""The simulated card processor's own store: card numbers, sealed, and PIN verifiers."""

import base64
import hmac
import secrets
import sqlite3
import sys
from calendar import monthrange
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from stdnum import luhn

from billfold.payments.cards.commands import Padding
from billfold.payments.cards.processor import PinError, PublicKeyError, load_detail_key
from billfold.sandbox.line_process import kept_file, serve_lines

ISSUER_NUMBER: Final = "40000012"
"""The first digits of every number, from a range that networks reserve for tests."""
_RANDOM_DIGITS: Final = 7
_PIN_DIGITS: Final = 4
_YEARS_VALID: Final = 4
_KEY_BYTES: Final = 32
_NONCE_BYTES: Final = 12
_PIN_KEY_BITS: Final = 2048
_OAEP: Final = padding.OAEP(padding.MGF1(hashes.SHA256()), hashes.SHA256(), label=None)
_TABLE = """
CREATE TABLE IF NOT EXISTS card (
  card_id    TEXT PRIMARY KEY,
  pan_digest BLOB NOT NULL UNIQUE,
  pan_sealed BLOB NOT NULL,
  expires_on TEXT NOT NULL,
  pin_digest BLOB,
  status     TEXT
)
"""


class StoredCard(NamedTuple):
    """A card with its number, which never leaves this process in plain text."""

    pan: str
    expires_on: date

    @property
    def expiration(self) -> str:
        """The expiration as printed: MM/YY."""
        return self.expires_on.strftime("%m/%y")


class CardVault:
    """Card numbers in a folder: a database and its keys. Processes may share it, threads may take turns."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        key = kept_file(folder / "card.key", lambda: secrets.token_bytes(_KEY_BYTES))
        self._cipher = AESGCM(_derived(key, b"seal"))
        self._digest_key, self._cvv_key = _derived(key, b"digest"), _derived(key, b"cvv")
        pin_key = load_pem_private_key(kept_file(folder / "set_pin.pem", _new_pin_key), None)
        assert isinstance(pin_key, rsa.RSAPrivateKey)
        self._pin_key = pin_key
        self.database = sqlite3.connect(
            folder / "cards.sqlite", isolation_level=None, timeout=10, check_same_thread=False
        )
        self.database.execute("PRAGMA journal_mode=WAL")
        self.database.execute(_TABLE)

    def issue(self, card_id: str, on: date) -> StoredCard:
        """Return the card of this id, created now if there is none."""
        while (found := self.find(card_id)) is None:
            pan = _new_pan()
            last = date(on.year + _YEARS_VALID, on.month, monthrange(on.year + _YEARS_VALID, on.month)[1])
            nonce = secrets.token_bytes(_NONCE_BYTES)
            sealed = nonce + self._cipher.encrypt(nonce, pan.encode(), card_id.encode())
            row = (card_id, self.digest(pan), sealed, last.isoformat())
            # A number that another card has is drawn again.
            self.database.execute("INSERT OR IGNORE INTO card VALUES (?, ?, ?, ?, NULL, NULL)", row)
        return found

    def find(self, card_id: str) -> StoredCard | None:
        """Return a card."""
        query = "SELECT pan_sealed, expires_on FROM card WHERE card_id = ?"
        row = self.database.execute(query, (card_id,)).fetchone()
        if row is None:
            return None
        pan = self._cipher.decrypt(row[0][:_NONCE_BYTES], row[0][_NONCE_BYTES:], card_id.encode())
        return StoredCard(pan.decode(), date.fromisoformat(row[1]))

    def encrypt_detail(self, card_id: str, public_key: str, chosen: Padding = Padding.PKCS1_V1_5) -> dict[str, str]:
        """Return number, CVV and expiration, encrypted to a client's key. Raises PublicKeyError, LookupError."""
        key, card = load_detail_key(public_key), self.find(card_id)
        how = _OAEP if chosen == Padding.OAEP_SHA256 else padding.PKCS1v15()
        if card is None:
            raise LookupError(card_id)
        values = {"pan": card.pan, "cvv": self.cvv(card), "expiration": card.expiration}
        return {name: base64.b64encode(key.encrypt(value.encode(), how)).decode() for name, value in values.items()}

    def pin_key(self) -> str:
        """Return the public key for PINs, in PEM."""
        return self._pin_key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()

    def set_pin(self, card_id: str, encrypted_pin: str) -> None:
        """Store the verifier of a PIN. Raises PinError, LookupError."""
        try:
            pin = self._pin_key.decrypt(base64.b64decode(encrypted_pin), padding.PKCS1v15()).decode()
        except ValueError:
            raise PinError from None
        if len(pin) != _PIN_DIGITS or not (pin.isascii() and pin.isdecimal()):
            raise PinError
        card = self.find(card_id)
        if card is None:
            raise LookupError(card_id)
        digest = self.digest(f"{card.pan}:{pin}")
        self.database.execute("UPDATE card SET pin_digest = ? WHERE card_id = ?", (digest, card_id))

    def set_status(self, card_id: str, status: str) -> None:
        """Store the status of a card."""
        self.database.execute("UPDATE card SET status = ? WHERE card_id = ?", (status, card_id))

    def is_stopped(self, card_id: str) -> bool:
        """Tell whether the bank has stopped payments of a card."""
        query = "SELECT 1 FROM card WHERE card_id = ? AND status <> 'ONLINE'"
        return self.database.execute(query, (card_id,)).fetchone() is not None

    def find_id(self, pan: str) -> str | None:
        """Return the card of a number."""
        query = "SELECT card_id FROM card WHERE pan_digest = ?"
        row = self.database.execute(query, (self.digest(pan),)).fetchone()
        return None if row is None else str(row[0])

    def is_pin(self, card_id: str, pin: str) -> bool:
        """Tell whether a PIN is that of a card."""
        card = self.find(card_id)
        row = self.database.execute("SELECT pin_digest FROM card WHERE card_id = ?", (card_id,)).fetchone()
        if card is None or row is None or row[0] is None:
            return False
        return hmac.compare_digest(row[0], self.digest(f"{card.pan}:{pin}"))

    def cvv(self, card: StoredCard) -> str:
        """Return the three digits on the back: computed each time, never stored (PCI DSS 3.3.1)."""
        digest = hmac.digest(self._cvv_key, f"{card.pan}{card.expiration}".encode(), "sha256")
        return f"{int.from_bytes(digest[:8]) % 1000:03}"

    def digest(self, text: str) -> bytes:
        """Return a digest by which a text can be recognized but not read."""
        return hmac.digest(self._digest_key, text.encode(), "sha256")


def _new_pan() -> str:
    drawn = ISSUER_NUMBER + "".join(secrets.choice("0123456789") for _ in range(_RANDOM_DIGITS))
    return drawn + luhn.calc_check_digit(drawn)


def _new_pin_key() -> bytes:
    key = rsa.generate_private_key(public_exponent=65_537, key_size=_PIN_KEY_BITS)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _derived(key: bytes, use: bytes) -> bytes:
    return hmac.digest(key, b"billfold.card." + use, "sha256")


class VaultRequest(msgspec.Struct, forbid_unknown_fields=True):
    """One call."""

    method: str
    card_id: str = ""
    on: date | None = None
    value: str = ""
    padding: Padding = Padding.PKCS1_V1_5


def answer(vault: CardVault, request: VaultRequest) -> dict[str, Any]:
    """Return the response to a call: `result`, or `error` with a message for the caller."""
    try:
        return {"result": _METHODS[request.method](vault, request)}
    except PublicKeyError as error:
        return {"error": "public_key", "reason": str(error)}
    except PinError:
        return {"error": "pin", "reason": ""}
    except LookupError:
        return {"error": "card or method", "reason": ""}


def _issue_card(vault: CardVault, request: VaultRequest) -> dict[str, Any]:
    assert request.on is not None
    card = vault.issue(request.card_id, request.on)
    return {"last_four": card.pan[-4:], "expires_on": card.expires_on}


_METHODS: Final[Mapping[str, Callable[[CardVault, VaultRequest], Any]]] = {
    "issue": _issue_card,
    "encrypt_detail": lambda vault, request: vault.encrypt_detail(request.card_id, request.value, request.padding),
    "pin_key": lambda vault, _: vault.pin_key(),
    "set_status": lambda vault, request: vault.set_status(request.card_id, request.value),
    "set_pin": lambda vault, request: vault.set_pin(request.card_id, request.value),
}


if __name__ == "__main__":
    card_vault = CardVault(Path(sys.argv[1]))
    serve_lines(VaultRequest, lambda request: answer(card_vault, request))
