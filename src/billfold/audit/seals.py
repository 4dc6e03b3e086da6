"""Seals: the ends of the chains, signed, so that entries removed from an end are detected.

A seal is one line of JSON with its signature, chained to the line before. It is kept in the
database and exported from it: the owner of the database can change its rows, but not the copy.
"""

import asyncio
import base64
import binascii
import fcntl
import hashlib
import os
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
import structlog

from billfold.audit.rules import ChainHead, Seal
from billfold.ledger.bank import Bank
from billfold.platform.clock import wall_now
from billfold.platform.crypto import Vault
from billfold.platform.database.connection import Connection, Db
from billfold.platform.errors import InvariantError

HEADS_MAX = 5_000
"""Maximum number of chain ends in one seal; the others wait for the next."""

LINE_BEGINNING = '{"seal_no":'
"""The beginning of every line: a file that begins otherwise is not a seal file."""

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


async def last_sealed_at(conn: Db) -> datetime | None:
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


async def list_seal_lines(conn: Db, seal_no: int, *, limit: int = 100) -> list[str]:
    """Return the lines of the seals that follow one, oldest first."""
    return [row["line"] for row in await conn.fetch(_LIST_AFTER, seal_no, limit)]


def format_seal(seal: Seal, vault: Vault) -> str:
    """Return a seal as its line: JSON, a space, and the signature in base64."""
    text = _encode(seal)
    return f"{text.decode()} {base64.b64encode(vault.sign(text)).decode()}"


def parse_seal(line: str, vault: Vault | None) -> Seal:
    """Return the seal of a line. Raises Broken when it is not as it was signed.

    Without a vault the signature is not checked.
    """
    text, _, signature = line.rpartition(" ")
    try:
        if vault is not None and not vault.verify_own_signature(
            base64.b64decode(signature, validate=True), text.encode()
        ):
            raise InvariantError("the signature of a seal does not hold")
        return msgspec.json.decode(text, type=Seal)
    except (binascii.Error, ValueError, msgspec.MsgspecError):
        raise InvariantError("a line is not a seal") from None


def fingerprint(line: str) -> str:
    """Return the SHA-256 of a line, in hexadecimal."""
    return hashlib.sha256(line.encode()).hexdigest()


class FileArchive:
    """Append-only lines, stored where owners of database rows have no access; several processes may add to them."""

    def __init__(self, path: Path, *, beginning: str = LINE_BEGINNING) -> None:
        self._path = path
        self._beginning = beginning.encode()

    def is_own(self) -> bool:
        """Return whether the file is an archive or can become one: missing, empty, or it begins as a line does."""
        if not self._path.exists():
            return True
        with self._path.open("rb") as file:
            return self._beginning.startswith(file.read(len(self._beginning)))

    async def lines(self) -> list[str]:
        """Return every line, oldest first; none if the file does not exist."""
        return await asyncio.to_thread(self._read)

    async def add(self, lines: Sequence[str], *, after: int) -> int:
        """Add lines after the first `after`, unless they are there already; return how many lines there are now.

        Raises InvariantError when the file is something else: nothing of it is changed.
        """
        return await asyncio.to_thread(self._add, lines, after)

    def _read(self) -> list[str]:
        if not self._path.exists():
            return []
        return self._path.read_text(encoding="utf-8").splitlines()

    def _add(self, lines: Sequence[str], after: int) -> int:
        if not self.is_own():
            raise InvariantError(f"{self._path} is not a seal file.")
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            # A line without its end was being written when the machine stopped.
            whole = file.read().rpartition(b"\n")[0]
            there = whole.count(b"\n") + 1 if whole else 0
            missing = lines[max(0, there - after) :]
            file.seek(len(whole) + 1 if whole else 0)
            file.truncate()
            file.write("".join(f"{line}\n" for line in missing).encode())
            file.flush()
            os.fsync(file.fileno())
        return there + len(missing)


log = structlog.get_logger(__name__)

SEAL_INTERVAL = timedelta(hours=1)
_CHECK_INTERVAL = timedelta(minutes=1)


class AuditSealer:
    """A periodic task of the worker. Seals that could not be archived are archived later."""

    def __init__(self, archive: FileArchive, clock: Callable[[], datetime] = wall_now) -> None:
        self._archive = archive
        self._clock = clock
        self._next_check_at = datetime.min.replace(tzinfo=clock().tzinfo)

    async def __call__(self, bank: Bank) -> int:
        """Seal if an hour has passed; return how many seals were made."""
        now = self._clock()
        if now < self._next_check_at:
            return 0
        last = await last_sealed_at(bank.pool)
        sealed = 0
        if last is None or now - last >= SEAL_INTERVAL:
            sealed = await seal_audit_log(bank, now)
        await archive_seals(bank, self._archive)
        self._next_check_at = now + _CHECK_INTERVAL
        return sealed


async def seal_audit_log(bank: Bank, now: datetime) -> int:
    """Seal every end that moved and return how many seals it took."""
    count = 0
    while True:
        async with bank.pool.acquire() as conn, conn.transaction():
            seal = await seal_heads(conn, bank.vault, now=now)
        if seal is None:
            return count
        count += 1
        if len(seal.heads) < HEADS_MAX:
            return count


async def archive_seals(bank: Bank, archive: FileArchive) -> int:
    """Append to the archive the seals it lacks; return how many seals it then has."""
    archived = await archive.add([], after=0)
    while lines := await list_seal_lines(bank.pool, archived):
        archived = await archive.add(lines, after=archived)
    return archived
