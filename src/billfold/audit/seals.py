"""Seals: the ends of the chains, signed, so that what is cut off an end is missed.

A seal is one line of JSON with its signature, chained to the line before. It is kept in the
database and copied out of it: whoever owns the database owns its rows, but not the copy.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from billfold.audit.types import ChainHead, Seal
from billfold.platform.errors import InvariantError

if TYPE_CHECKING:
    from billfold.platform.crypto import Vault
    from billfold.platform.database.connection import (Connection, Pool)

HEADS_MAX = 5_000
"""How many ends one seal holds at most; the others wait for the next."""

LINE_BEGINNING = '{"seal_no":'
"""How every line begins: what begins otherwise is no file of seals."""

_LOCK = 0x7365616C  # "seal": they have one order
_FIND_LAST = "SELECT seal_no, sealed_at, line FROM audit_seal ORDER BY seal_no DESC LIMIT 1"
_CLAIM_CHANGED = """
UPDATE audit_chain_head h SET sealed_no = h.entry_no
  FROM (SELECT customer_id FROM audit_chain_head WHERE entry_no > sealed_no
         ORDER BY customer_id LIMIT $1 FOR UPDATE) m
 WHERE h.customer_id = m.customer_id
RETURNING h.customer_id, h.entry_no, encode(h.hash, 'hex') AS hash
"""
_LIST_AFTER = "SELECT line FROM audit_seal WHERE seal_no > $1 ORDER BY seal_no LIMIT $2"
_encode = msgspec.json.Encoder().encode


async def last_sealed_at(conn: Connection | Pool) -> datetime | None:
    """Return when the last seal was made."""
    row = await conn.fetchrow(_FIND_LAST)
    return None if row is None else row["sealed_at"]


async def seal_heads(conn: Connection, vault: Vault, *, now: datetime) -> Seal | None:
    """Seal the ends of all chains that moved; None when none did. Needs a transaction."""
    await conn.execute("SELECT pg_advisory_xact_lock($1)", _LOCK)
    rows = await conn.fetch(_CLAIM_CHANGED, HEADS_MAX)
    if not rows:
        return None
    last = await conn.fetchrow(_FIND_LAST)
    seal = Seal(
        seal_no=1 if last is None else last["seal_no"] + 1,
        sealed_at=now,
        previous="" if last is None else fingerprint(last["line"]),
        heads=tuple(msgspec.convert(dict(row), ChainHead) for row in rows),
    )
    await conn.execute(
        "INSERT INTO audit_seal (seal_no, sealed_at, line) VALUES ($1, $2, $3)",
        seal.seal_no,
        now,
        format_seal(seal, vault),
    )
    return seal


async def list_seal_lines(conn: Connection | Pool, seal_no: int, *, limit: int = 100) -> list[str]:
    """Return the lines of the seals that follow one, oldest first."""
    return [row["line"] for row in await conn.fetch(_LIST_AFTER, seal_no, limit)]


def format_seal(seal: Seal, vault: Vault) -> str:
    """Return a seal as its line: JSON, a space, and the signature in base64."""
    text = _encode(seal)
    return f"{text.decode()} {base64.b64encode(vault.sign(text)).decode()}"


def parse_seal(line: str, vault: Vault | None) -> Seal:
    """Return the seal of a line. Raises Broken when it is not as it was signed.

    Without a vault the signature is not looked at.
    """
    text, _, signature = line.rpartition(" ")
    try:
        if vault is not None and not vault.verify_own_signature(
            base64.b64decode(signature, validate=True), text.encode()
        ):
            raise InvariantError("the signature of a seal does not hold")
        return msgspec.json.decode(text, type=Seal)
    except (binascii.Error, ValueError, msgspec.MsgspecError):
        raise InvariantError("a line is no seal") from None


def fingerprint(line: str) -> str:
    """Return the SHA-256 of a line, in hexadecimal."""
    return hashlib.sha256(line.encode()).hexdigest()
