"""Data keys: one for each subject, read once and kept in memory for a few minutes."""

from __future__ import annotations

import hmac
import json
import secrets
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, NamedTuple, Self
from uuid import UUID

import asyncpg
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, AESSIV
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from billfold.data_keys import store
from billfold.data_keys.kms import MasterKey, WrappedKey
from billfold.ledger.bank import Bank
from billfold.platform.clock import monotonic
from billfold.platform.crypto import KEY_BYTES, associated_data, is_sealed_text, sealed_of_text, text_of_sealed
from billfold.platform.database.connection import Db, Pool
from billfold.platform.errors import InvariantError, Refused

_RANDOM, _STABLE = b"\x02", b"\x03"
_KEY_ID_BYTES = 4
_HEADER_BYTES = 1 + _KEY_ID_BYTES
_NONCE_BYTES = 12
_SIV_KEY_BYTES = 64
_TAG_BYTES = 16
SEALED_BYTES: Final = _HEADER_BYTES + _NONCE_BYTES + _TAG_BYTES
"""Number of bytes that sealing adds to a value."""


class DataShredded(Refused):
    """The customer's data key was destroyed: nothing that is sealed with it can be read, and nothing more is sealed."""

    def __init__(self, subject_id: UUID) -> None:
        detail = "The customer was closed, and its personal data was destroyed after the end of its retention."
        super().__init__("customer-not-open", detail, subject_id=str(subject_id))


class DataKey:
    """Seals and opens the values of one subject."""

    __slots__ = ("_digest_key", "_gcm", "_key_id", "_siv", "subject_id")

    def __init__(self, subject_id: UUID, key: bytes) -> None:
        if len(key) != KEY_BYTES:
            raise InvariantError("A data key has the wrong length.", subject_id=str(subject_id))
        self.subject_id = subject_id
        self._key_id = _derive(key, b"key-id", _KEY_ID_BYTES)
        self._gcm = AESGCM(_derive(key, b"random", KEY_BYTES))
        self._siv = AESSIV(_derive(key, b"stable", _SIV_KEY_BYTES))
        self._digest_key = _derive(key, b"digest", KEY_BYTES)

    def seal(self, plain: bytes, aad: bytes) -> bytes:
        """Return the value sealed, bound to `aad` and the subject."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        return _RANDOM + self._key_id + nonce + self._gcm.encrypt(nonce, plain, self._bind(aad))

    def seal_stable(self, plain: bytes, aad: bytes) -> bytes:
        """Return the value sealed: the same bytes for the same value, `aad` and subject."""
        return _STABLE + self._key_id + self._siv.encrypt(plain, [self._bind(aad)])

    def open(self, sealed: bytes, aad: bytes) -> bytes:
        """Return what was sealed. Raises InvariantError when it was altered or moved, or is another subject's."""
        version, key_id, rest = sealed[:1], sealed[1:_HEADER_BYTES], sealed[_HEADER_BYTES:]
        if version not in {_RANDOM, _STABLE} or key_id != self._key_id:
            raise InvariantError("A sealed value is damaged, or not this customer's.", subject_id=str(self.subject_id))
        try:
            if version == _STABLE:
                return self._siv.decrypt(rest, [self._bind(aad)])
            return self._gcm.decrypt(rest[:_NONCE_BYTES], rest[_NONCE_BYTES:], self._bind(aad))
        except (InvalidTag, ValueError):
            raise InvariantError(
                "A sealed value was altered, or moved from where it belongs.", subject_id=str(self.subject_id)
            ) from None

    def seal_text(self, plain: str, aad: bytes) -> str:
        """Return a text sealed with `seal_stable`, as a text."""
        return text_of_sealed(self.seal_stable(plain.encode(), aad))

    def open_text(self, sealed: str, aad: bytes) -> str:
        """Return the text that was sealed. Raises InvariantError."""
        return self.open(sealed_of_text(sealed), aad).decode()

    def has_sealed(self, text: str) -> bool:
        """Tell whether a text names this key as the one that it was sealed with."""
        return sealed_of_text(text).startswith(_STABLE + self._key_id)

    def digest(self, plain: bytes) -> bytes:
        """Return a 32-byte blind index of a value, which reveals nothing to anyone without the key."""
        return hmac.digest(self._digest_key, plain, "sha256")

    def _bind(self, aad: bytes) -> bytes:
        return self.subject_id.bytes + aad


class SealedValue(NamedTuple):
    """A sealed value to open: its owner, and the place it was sealed for."""

    subject_id: UUID
    sealed: bytes
    aad: bytes


class PartyField(StrEnum):
    """A personal text of the other party of a payment, sealed separately in each place: a column, a field in JSON.

    It is bound to its customer and its kind, not to a row: rules compare accounts by it, and copy it into payments.
    Incoming texts are always sealed, even if they look sealed, so that nothing a client sends is ever opened.
    """

    ACCOUNT = "account"
    ADDRESS = "address"
    TEXT = "text"

    def seal(self, data_key: DataKey, plain: str) -> str:
        """Return the text sealed; equal texts of a customer are equal."""
        return data_key.seal_text(plain, self.place(data_key.subject_id))

    def open(self, data_key: DataKey | None, stored: str) -> str | None:
        """Return the text; plain text of an earlier release unchanged. None if the key is destroyed."""
        if not is_sealed_text(stored):
            return stored
        return None if data_key is None else data_key.open_text(stored, self.place(data_key.subject_id))

    def place(self, customer_id: UUID) -> bytes:
        """Return the `aad` of a customer's fields of this kind."""
        return associated_data("party", self, "", tenant_id=customer_id)


def _derive(key: bytes, use: bytes, length: int) -> bytes:
    """Return the key for one use (HKDF, RFC 5869)."""
    return HKDF(SHA256(), length, salt=None, info=b"billfold.data-key." + use).derive(key)


KEYS_MAX = 10_000
"""Maximum number of keys that a process keeps in memory."""
KEY_LIFE = timedelta(minutes=5)
"""Time after which a process reads a key again, so that a key destroyed by another process is gone here too."""

KeyRing = Mapping[UUID, DataKey | None]
"""Data keys by their subjects; None for one that was destroyed."""


class DataKeys:
    """The data keys by their subjects. A subject is a customer, or the id of a future customer.

    To seal values for a command, pass the pool: the key is committed before what is sealed with it, and no transaction
    waits for a master key on another machine. Raises DataShredded for a destroyed key.
    """

    def __init__(
        self,
        master: MasterKey,
        *,
        size: int = KEYS_MAX,
        life: timedelta = KEY_LIFE,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.master = master
        self._size = size
        self._life_seconds = life.total_seconds()
        self._clock = clock
        self._kept: OrderedDict[UUID, tuple[float, DataKey]] = OrderedDict()
        self.pool: Pool | None = None
        """The pool that reads the keys in any case; None to use the connection that each caller has."""

    def read_by(self, pool: Pool) -> DataKeys:
        """Return the same keys, read by this pool: a replica may still have one that was destroyed."""
        other = copy(self)
        other.pool = pool
        return other

    async def of(self, conn: Db, subject_id: UUID) -> DataKey:
        """Return the key of a subject, created now if there is none. If two callers create one, one is written."""
        found = await self.load(conn, (subject_id,))
        if subject_id not in found:
            key = secrets.token_bytes(KEY_BYTES)
            await store.add_key(conn, subject_id, await self.master.wrap(subject_id, key))
            found = await self.load(conn, (subject_id,))
        return key_in(found, subject_id)

    async def load(self, conn: Db, subject_ids: Collection[UUID]) -> KeyRing:
        """Return the keys of those subjects that have one, None for a destroyed one; one statement for a list."""
        conn = self.pool or conn
        kept = {each: self._find_kept(each) for each in set(subject_ids)}
        ring: dict[UUID, DataKey | None] = {each: key for each, key in kept.items() if key is not None}
        missing = kept.keys() - ring.keys()
        for row in await store.list_keys(conn, missing) if missing else ():
            if row.wrapped is None:
                ring[row.subject_id] = None
                continue
            wrapped = WrappedKey(row.wrapped, row.master_key)
            key = DataKey(row.subject_id, await self.master.unwrap(row.subject_id, wrapped))
            ring[row.subject_id] = key
            if row.is_committed or isinstance(conn, asyncpg.Pool):
                self._cache_key(key)
        return ring

    async def seal(self, conn: Db, subject_id: UUID, plain: bytes, aad: bytes) -> bytes:
        """Return a value sealed with the subject's key, bound to `aad` (see `associated_data`)."""
        return (await self.of(conn, subject_id)).seal(plain, aad)

    async def open(self, conn: Db, subject_id: UUID, sealed: bytes, aad: bytes) -> bytes:
        """Return what was sealed. Raises InvariantError when it was altered or moved, or is another subject's."""
        return (await self.open_many(conn, [SealedValue(subject_id, sealed, aad)]))[0]

    async def open_many(self, conn: Db, values: Sequence[SealedValue]) -> list[bytes]:
        """Return what was sealed, in its order. Raises InvariantError for the first that does not open."""
        ring = await self.load(conn, [each.subject_id for each in values])
        return [key_in(ring, each.subject_id).open(each.sealed, each.aad) for each in values]

    async def shred(self, conn: Db, subject_id: UUID, at: datetime) -> bool:
        """Destroy a key for good (`at`: business time); tell whether it was still there.

        Other processes may still read what it sealed for `KEY_LIFE`.
        """
        self._kept.pop(subject_id, None)
        return await store.shred_key(conn, subject_id, at)

    def _find_kept(self, subject_id: UUID) -> DataKey | None:
        until, key = self._kept.get(subject_id, (0.0, None))
        if key is None or until < self._clock():
            self._kept.pop(subject_id, None)
            return None
        self._kept.move_to_end(subject_id)
        return key

    def _cache_key(self, key: DataKey) -> None:
        self._kept[key.subject_id] = (self._clock() + self._life_seconds, key)
        while len(self._kept) > self._size:
            self._kept.popitem(last=False)


def key_in(ring: KeyRing, subject_id: UUID) -> DataKey:
    """Return a subject's key. Raises DataShredded, and InvariantError where there never was one."""
    key = find_key(ring, subject_id)
    if key is None:
        raise DataShredded(subject_id)
    return key


def find_key(ring: KeyRing, subject_id: UUID) -> DataKey | None:
    """Return a subject's key, None for a destroyed one. Raises InvariantError where there never was one."""
    if subject_id not in ring:
        raise InvariantError("There is no data key of this subject.", subject_id=str(subject_id))
    return ring[subject_id]


async def bank_key(bank: Bank) -> DataKey:
    """Return the data key of the bank itself. It is never destroyed."""
    return await bank.ports[DataKeys].of(bank.pool, bank.own_id)


class PaymentKeys:
    """Seals and opens fields of payments of some customers."""

    __slots__ = ("_ring", "bank_key")

    def __init__(self, own: DataKey, ring: KeyRing) -> None:
        self.bank_key = own
        self._ring = ring

    @classmethod
    async def load(cls, bank: Bank, customer_ids: Collection[UUID]) -> Self:
        """Return an opener of payments of these customers; call it before a transaction begins."""
        return cls(await bank_key(bank), await bank.ports[DataKeys].load(bank.pool, customer_ids))

    @classmethod
    async def prepare(cls, bank: Bank, customer_ids: Collection[UUID]) -> Self:
        """Return a sealer of payments of these customers; a customer without a key gets one."""
        ring = dict(await bank.ports[DataKeys].load(bank.pool, customer_ids))
        for customer_id in set(customer_ids) - ring.keys():
            try:
                ring[customer_id] = await bank.ports[DataKeys].of(bank.pool, customer_id)
            except DataShredded:
                ring[customer_id] = None
        return cls(await bank_key(bank), ring)

    def of(self, customer_id: UUID | None) -> DataKey:
        """Return the key to seal with: the customer's, or the bank's for nobody and for one that was destroyed."""
        return self.bank_key if customer_id is None else find_key(self._ring, customer_id) or self.bank_key

    def open(self, field: PartyField, customer_id: UUID, stored: str) -> str | None:
        """Return the text (plain text unchanged), or None if it was destroyed with its key.

        A text that only looks sealed is plain text. Raises InvariantError for a damaged one.
        """
        if not is_sealed_text(stored):
            return stored
        own = self._ring.get(customer_id)
        for data_key in (own, self.bank_key):
            if data_key is not None and data_key.has_sealed(stored):
                return field.open(data_key, stored)
        return None if own is None and customer_id in self._ring else stored


class SealedColumn(NamedTuple):
    """A column whose values are sealed with the key of the row's customer; `key` finds the row among theirs.

    `subject` is the SQL expression of the key's owner, if that is not always the customer.
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
NOTE_COLUMNS: Final = tuple(
    SealedColumn("object_note", "object_id", column, field=PartyField.TEXT) for column in ("external_id", "metadata")
)


async def open_column(
    keys: DataKeys, conn: Db, column: SealedColumn, rows: Sequence[tuple[UUID, object, str]]
) -> list[str | None]:
    """Return the values of rows given as (owner of the key, row id, stored value), in their order.

    Plain text is returned as it is; None stands for what was destroyed with its key.
    """
    ring = await keys.load(conn, {subject for subject, _, stored in rows if column.sealed_in(stored) is not None})

    def plain(subject_id: UUID, row_id: object, stored: str) -> str | None:
        if column.sealed_in(stored) is None:
            return stored
        data_key = find_key(ring, subject_id)
        return None if data_key is None else column.open(data_key, row_id, stored)

    return [plain(*row) for row in rows]
