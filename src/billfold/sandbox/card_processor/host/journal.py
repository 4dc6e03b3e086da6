"""The host's tables in the processor's store: replies given, messages owed to the bank, wrong PINs and CVVs.

One thread owns the connection, so that the event loop never waits for a disk.
"""

import asyncio
import hmac
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
from cryptography.hazmat.primitives.ciphers import Cipher, modes

from billfold.payments.cards.authorizations.messages import MessageType
from billfold.platform.clock import wall_now
from billfold.sandbox.card_processor.host.requests import Outcome, Request
from billfold.sandbox.card_processor.vault import CardVault

T = TypeVar("T")
BankMessage = dict[str, Any]
_HARMLESS: Final = frozenset(
    {"APPROVED", "APPROVED_IN_PART", "APPROVED_WITHOUT_CASH", "REVERSAL_ACCEPTED", "INSUFFICIENT_FUNDS"}
)
_KEPT: Final = timedelta(days=60)
_TABLES: Final = """
CREATE TABLE IF NOT EXISTS exchange (
  message_id        TEXT PRIMARY KEY,
  content           BLOB NOT NULL,
  network_reference TEXT NOT NULL,
  acquirer          TEXT NOT NULL,
  stan              TEXT NOT NULL,
  traced            TEXT NOT NULL,
  kind              TEXT NOT NULL,
  card_id           TEXT,
  outcome           TEXT NOT NULL,
  amount            INTEGER NOT NULL,
  approval_code     TEXT,
  stood_in          INTEGER NOT NULL,
  by_bank           INTEGER NOT NULL,
  received_at       TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS exchange_reference ON exchange (network_reference, card_id);
CREATE INDEX IF NOT EXISTS exchange_trace ON exchange (stan, traced);
CREATE INDEX IF NOT EXISTS exchange_card ON exchange (card_id, received_at);
CREATE INDEX IF NOT EXISTS exchange_age ON exchange (received_at);
CREATE TABLE IF NOT EXISTS owed_message (
  n                 INTEGER PRIMARY KEY AUTOINCREMENT,
  network_reference TEXT NOT NULL,
  body              BLOB NOT NULL,
  attempts          INTEGER NOT NULL DEFAULT 0,
  due_at            REAL NOT NULL DEFAULT 0,
  refusal           TEXT
);
CREATE INDEX IF NOT EXISTS owed_reference ON owed_message (network_reference);
CREATE TABLE IF NOT EXISTS wrong_secret (
  card_id TEXT NOT NULL,
  kind    TEXT NOT NULL,
  day     TEXT NOT NULL,
  count   INTEGER NOT NULL,
  PRIMARY KEY (card_id, kind, day)
);
"""


class Reply(NamedTuple):
    """The reply to a message: `amount` in cents is what was approved, or the balance."""

    outcome: Outcome
    amount: int = 0
    approval_code: str | None = None


class EarlierMessage(NamedTuple):
    """A message of the same purchase that was answered."""

    kind: MessageType
    network_reference: str
    amount: int


class DecidedRequest(NamedTuple):
    """A decision, and the messages that it owes the bank, in order."""

    card_id: str
    kind: MessageType
    network_reference: str
    reply: Reply
    owed: tuple[BankMessage, ...] = ()
    stood_in: bool = False
    by_bank: bool = False


class OwedMessage(NamedTuple):
    """A message that is owed to the bank."""

    n: int
    body: bytes
    attempts: int


class KnownFacts(NamedTuple):
    """The known facts about a message before the bank is asked."""

    reply: Reply | None = None
    """The reply it had before, or the one decided without the bank."""
    is_known: bool = False
    """True if that reply was given before."""
    card_id: str = ""
    earlier: EarlierMessage | None = None
    is_owed: bool = False
    """True if the bank must get earlier messages of this purchase first."""


class Journal:
    """The store, used from the event loop: each call is one transaction on the thread of the store."""

    def __init__(self, vault: CardVault) -> None:
        vault.database.executescript(_TABLES)
        vault.database.execute("DELETE FROM exchange WHERE received_at < ?", ((wall_now() - _KEPT).isoformat(),))
        self._vault = vault
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="journal")

    async def call(self, work: Callable[[CardVault], T]) -> T:
        """Run work on the store, and return once it is on disk."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._commit, work)

    def close(self) -> None:
        """End the thread once all work is done, and close the store."""
        self._thread.shutdown()
        self._vault.database.close()

    def _commit(self, work: Callable[[CardVault], T]) -> T:
        self._vault.database.execute("BEGIN IMMEDIATE")
        try:
            result = work(self._vault)
            self._vault.database.execute("COMMIT")
        except BaseException:
            if self._vault.database.in_transaction:
                self._vault.database.execute("ROLLBACK")
            raise
        return result


def look_up(
    vault: CardVault, request: Request, find_wrong: Callable[[CardVault, Request, str], Outcome | None]
) -> KnownFacts:
    """Look up the card and the known facts of a message. `find_wrong` checks its secrets."""
    known = vault.database.execute(
        "SELECT content, outcome, amount, approval_code FROM exchange WHERE message_id = ?", (str(request.message_id),)
    ).fetchone()
    if known is not None:
        if known[0] != _content(vault, request):
            return KnownFacts(Reply(Outcome.DUPLICATE_TRANSMISSION), is_known=True)
        return KnownFacts(Reply(Outcome[known[1]], known[2], known[3]), is_known=True)
    card_id = vault.find_id(request.pan)
    if card_id is None:
        return KnownFacts(Reply(Outcome.INVALID_CARD_NUMBER))
    wrong = find_wrong(vault, request, card_id)
    if wrong is not None:
        return KnownFacts(Reply(wrong), card_id=card_id)
    earlier = _earlier(vault, request, card_id)
    reference = earlier.network_reference if earlier else request.network_reference
    owed = vault.database.execute(
        "SELECT 1 FROM owed_message WHERE network_reference = ? AND refusal IS NULL", (reference,)
    ).fetchone()
    return KnownFacts(card_id=card_id, earlier=earlier, is_owed=owed is not None)


def _earlier(vault: CardVault, request: Request, card_id: str) -> EarlierMessage | None:
    """Return the approved message that this one reverses or adds to."""
    columns = "kind, network_reference, amount"
    approved = "card_id = ? AND amount > 0 AND outcome IN ('APPROVED', 'APPROVED_IN_PART', 'APPROVED_WITHOUT_CASH')"
    row = None
    if request.original is not None:
        row = vault.database.execute(
            f"SELECT {columns} FROM exchange WHERE stan = ? AND traced = ? AND acquirer = ? AND {approved}"
            " ORDER BY received_at DESC LIMIT 1",
            (*request.original, card_id),
        ).fetchone()
    if row is None:
        row = vault.database.execute(
            f"SELECT {columns} FROM exchange WHERE network_reference = ? AND {approved}"
            " AND kind IN ('AUTHORIZATION', 'ADVICE') ORDER BY received_at DESC LIMIT 1",
            (request.network_reference, card_id),
        ).fetchone()
    return EarlierMessage(MessageType(row[0]), *row[1:]) if row else None


def store_reply(vault: CardVault, request: Request, kept: DecidedRequest) -> DecidedRequest:
    """Store the reply to a message, and the messages it owes the bank."""
    vault.database.execute(
        "INSERT OR IGNORE INTO exchange VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            str(request.message_id),
            _content(vault, request),
            kept.network_reference,
            request.acquirer.lstrip("0"),
            request.stan,
            request.traced,
            kept.kind,
            kept.card_id or None,
            kept.reply.outcome.name,
            kept.reply.amount,
            kept.reply.approval_code,
            kept.stood_in,
            kept.by_bank,
            wall_now().isoformat(),
        ),
    )
    vault.database.executemany(
        "INSERT INTO owed_message (network_reference, body) VALUES (?, ?)",
        [(kept.network_reference, msgspec.json.encode(each)) for each in kept.owed],
    )
    return kept


def stand_in(
    vault: CardVault, request: Request, approved: DecidedRequest, declined: DecidedRequest, most: int
) -> DecidedRequest:
    """Approve up to `most` cents a day (UTC) for a card in place of the bank, and store that.

    Not for a card that the bank has stopped, nor if it declined the card's last message, because the reason
    may still apply.
    """
    last = vault.database.execute(
        "SELECT outcome FROM exchange WHERE card_id = ? AND by_bank ORDER BY received_at DESC LIMIT 1",
        (approved.card_id,),
    ).fetchone()
    (spent,) = vault.database.execute(
        "SELECT coalesce(sum(amount), 0) FROM exchange WHERE card_id = ? AND stood_in AND received_at >= ?",
        (approved.card_id, _today()),
    ).fetchone()
    is_stopped = vault.is_stopped(approved.card_id) or (last is not None and last[0] not in _HARMLESS)
    may = not is_stopped and spent + request.amount <= most
    return store_reply(vault, request, approved if may else declined)


def due_messages(vault: CardVault, now: float, limit: int) -> list[OwedMessage]:
    """Return the messages that are due to be sent to the bank: the oldest of each purchase."""
    rows = vault.database.execute(
        "SELECT n, body, attempts FROM owed_message AS o WHERE refusal IS NULL AND due_at <= ? AND NOT EXISTS"
        " (SELECT 1 FROM owed_message AS e WHERE e.network_reference = o.network_reference AND e.n < o.n"
        " AND e.refusal IS NULL) ORDER BY n LIMIT ?",
        (now, limit),
    )
    return [OwedMessage(*row) for row in rows]


def settle_owed(vault: CardVault, n: int, *, refusal: str | None = None) -> None:
    """Remove a message that the bank has; a refused one is kept with the reason for an operator."""
    if refusal is None:
        vault.database.execute("DELETE FROM owed_message WHERE n = ?", (n,))
    else:
        vault.database.execute("UPDATE owed_message SET refusal = ? WHERE n = ?", (refusal, n))


def postpone_owed(vault: CardVault, n: int, due_at: float) -> None:
    """Send a message again later."""
    vault.database.execute("UPDATE owed_message SET attempts = attempts + 1, due_at = ? WHERE n = ?", (due_at, n))


def is_exhausted(vault: CardVault, card_id: str, kind: str, most: int) -> bool:
    """Tell whether a card had too many wrong PINs or CVVs today."""
    query = "SELECT count FROM wrong_secret WHERE card_id = ? AND kind = ? AND day = ?"
    row = vault.database.execute(query, (card_id, kind, _today())).fetchone()
    return row is not None and row[0] >= most


def count_wrong_pin(vault: CardVault, card_id: str, kind: str) -> None:
    """Count a wrong PIN or CVV."""
    vault.database.execute(
        "INSERT INTO wrong_secret VALUES (?, ?, ?, 1) ON CONFLICT (card_id, kind, day) DO UPDATE SET count = count + 1",
        (card_id, kind, _today()),
    )


def _today() -> str:
    return wall_now().date().isoformat()


def _content(vault: CardVault, request: Request) -> bytes:
    """Return the digest of the parts that two transmissions of a message share: it holds a card number."""
    return vault.digest(f"{request.pan} {request.kind} {request.amount} {request.released}")


PIN_TRIES: Final = 3
CVV_TRIES: Final = 5
"""Wrong CVVs of a card per day (UTC) after which even the right one is refused."""
_HALF: Final = 8
_BLOCK_DIGITS: Final = 16
_ACCOUNT_DIGITS: Final = 12
_PIN_DIGITS: Final = range(4, 13)


class SecretChecks:
    """The checks, with the key of 16 bytes under which the network enciphers PINs."""

    def __init__(self, pin_key: bytes) -> None:
        self._cipher = Cipher(TripleDES(pin_key + pin_key[:_HALF]), modes.ECB())  # noqa: S305 - of one block

    def find_wrong(self, vault: CardVault, request: Request, card_id: str) -> Outcome | None:
        """Return the error, or None. Messages that can no longer be declined are not checked."""
        card = vault.find(card_id)
        if card is None or request.kind in {MessageType.REVERSAL, MessageType.ADVICE}:
            return None
        if request.expires is not None and request.expires != card.expires_on.strftime("%y%m"):
            return Outcome.EXPIRED_CARD
        if request.cvv is not None:
            is_right = hmac.compare_digest(request.cvv.encode(), vault.cvv(card).encode())
            if is_exhausted(vault, card_id, "cvv", CVV_TRIES) or not is_right:
                count_wrong_pin(vault, card_id, "cvv")
                return Outcome.SECURITY_VIOLATION
        return self._wrong_pin(vault, request, card_id) if request.pin_block is not None else None

    def _wrong_pin(self, vault: CardVault, request: Request, card_id: str) -> Outcome | None:
        if is_exhausted(vault, card_id, "pin", PIN_TRIES):
            return Outcome.PIN_TRIES_EXCEEDED
        if vault.is_pin(card_id, self._pin(request)):
            return None
        count_wrong_pin(vault, card_id, "pin")
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
