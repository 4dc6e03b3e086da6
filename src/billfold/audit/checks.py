"""The audit log against its chain, its heads, and the seals, of which a copy may be elsewhere.

Without the bank's key the numbers and the heads are compared, and nothing is said about contents.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from billfold.audit import rules as audit_rules
from billfold.audit import seals
from billfold.audit import store as audit_store
from billfold.audit.rules import START
from billfold.audit.types import Head, Recorded
from billfold.platform.errors import Broken
from billfold.verify.report import CHANGED, LEFT_OVER, MISSING, Findings
from billfold.verify.streams import PATIENCE_SECONDS

if TYPE_CHECKING:
    from asyncpg import Record

    from billfold.platform.crypto import Vault
    from billfold.platform.database.pool import Connection

CHECK, SEALS = "audit chain", "audit seals"
_HEADS = "SELECT customer_id, entry_no, hash FROM audit_head"
_SEALS = "SELECT seal_no, sealed_at, line FROM audit_seal ORDER BY seal_no"


class Sealed(NamedTuple):
    """Where a chain ended when it was last sealed, and in which seal."""

    head: Head
    seal_no: int


async def check_audit(
    conn: Connection, found: Findings, vault: Vault | None, copy: Iterable[str] = ()
) -> None:
    """Compare every entry with the one before, the ends with the heads and with what was sealed.

    `copy` are the lines of the seals as they were carried out of the database.
    """
    rows = await conn.fetch(_HEADS, timeout=PATIENCE_SECONDS)
    walk = _Walk(found, vault, {row["customer_id"]: row for row in rows})
    walk.sealed = await _read_seals(conn, found, vault, copy)
    async for row in audit_store.all_chains(conn, timeout_seconds=PATIENCE_SECONDS):
        walk.take(row)
    walk.end()


class _Walk:
    """All entries, customer by customer, in their order."""

    def __init__(self, found: Findings, vault: Vault | None, heads: dict[UUID, Record]) -> None:
        self._found = found
        self._vault = vault
        self._heads = heads
        self.sealed: dict[UUID, Sealed] = {}
        self._last: Recorded | None = None

    def take(self, row: Recorded) -> None:
        """Look at the next entry."""
        last = self._last
        if last is None or last.customer_id != row.customer_id:
            self._close()
            last = None
        self._found.checked["audit_entry"] += 1
        number = 1 if last is None else last.entry_no + 1
        if row.entry_no != number:
            missing = {"customer_id": row.customer_id, "entry_no": number}
            self._found.add(CHECK, "audit_entry", missing, "it is missing", MISSING)
        elif self._vault is not None:
            previous = START if last is None else last.hash
            if not audit_rules.follows(previous, row, self._vault):
                self._say(row, "it is not what was written here")
        sealed = self.sealed.get(row.customer_id)
        if sealed and sealed.head.entry_no == row.entry_no and sealed.head.hash != row.hash.hex():
            self._say(row, f"it is not what seal {sealed.seal_no} vouches for")
        self._last = row

    def end(self) -> None:
        """Look at the heads and seals of customers who have no entry at all."""
        self._close()
        for customer_id, head in self._heads.items():
            if head["entry_no"]:
                self._miss(customer_id, 1, "it is missing")
        for customer_id, sealed in self.sealed.items():
            self._miss(customer_id, 1, f"seal {sealed.seal_no} vouches for it, and it is missing")

    def _close(self) -> None:
        """Look at the end of the customer whose last entry has been read."""
        last = self._last
        if last is None:
            return
        head = self._heads.pop(last.customer_id, None)
        sealed = self.sealed.pop(last.customer_id, None)
        if sealed is not None and sealed.head.entry_no > last.entry_no:
            said = f"seal {sealed.seal_no} vouches for it or a later one, and it is missing"
            self._miss(last.customer_id, last.entry_no + 1, said)
        key = {"customer_id": last.customer_id}
        if head is None:
            self._found.add(CHECK, "audit_head", key, "it is missing", MISSING)
        elif head["entry_no"] > last.entry_no:
            self._miss(last.customer_id, last.entry_no + 1, "it is missing")
        elif head["entry_no"] < last.entry_no:
            self._say(last, "the head knows nothing of it", LEFT_OVER)
        elif head["hash"] != last.hash:
            self._found.add(CHECK, "audit_head", key, "it is not the hash of the last entry")

    def _miss(self, customer_id: UUID, entry_no: int, wrong: str) -> None:
        key = {"customer_id": customer_id, "entry_no": entry_no}
        self._found.add(CHECK, "audit_entry", key, wrong, MISSING)

    def _say(self, row: Recorded, wrong: str, sureness: int = CHANGED) -> None:
        key = {"customer_id": row.customer_id, "entry_no": row.entry_no}
        self._found.add(CHECK, "audit_entry", key, wrong, sureness)


async def _read_seals(
    conn: Connection, found: Findings, vault: Vault | None, copy: Iterable[str]
) -> dict[UUID, Sealed]:
    """Check the seals here against each other and against the copy; return what they vouch for."""
    copied = [line for each in copy if (line := each.strip())]
    here = [row["line"] for row in await conn.fetch(_SEALS, timeout=PATIENCE_SECONDS)]
    found.checked["audit_seal"] = len(here)
    for n, (kept, outside) in enumerate(zip(here, copied, strict=False), 1):
        if kept != outside:
            key = {"seal_no": n}
            found.add(SEALS, "audit_seal", key, "it is not as it was carried out", CHANGED)
            break
    if len(copied) > len(here):
        found.add(SEALS, "audit_seal", {"seal_no": len(here) + 1}, "it is missing", MISSING)
    # What was carried out counts: whoever owns the database owns what is in it.
    lines = copied + here[len(copied) :]
    return _vouched_for(lines, found, vault)


def _vouched_for(lines: list[str], found: Findings, vault: Vault | None) -> dict[UUID, Sealed]:
    vouched: dict[UUID, Sealed] = {}
    previous = ""
    for number, line in enumerate(lines, 1):
        try:
            seal = seals.seal_in(line, vault)
        except Broken as broken:
            found.add(SEALS, "audit_seal", {"seal_no": number}, broken.detail, CHANGED)
            break
        if (seal.seal_no, seal.previous) != (number, previous):
            key = {"seal_no": number}
            found.add(SEALS, "audit_seal", key, "it does not follow the one before", CHANGED)
            break
        vouched |= {head.customer_id: Sealed(head, number) for head in seal.heads}
        previous = seals.fingerprint(line)
    return vouched
