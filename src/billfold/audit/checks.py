"""Checks the audit log against its chain, its heads, and the seals, of which a copy may be elsewhere.

Without the bank's key only the numbers and the heads are compared; contents are not checked.
"""

from collections.abc import Iterable
from typing import NamedTuple
from uuid import UUID

from asyncpg import Record

from billfold.audit import rules, seals, store
from billfold.audit.rules import CHAIN_START, AuditEntry, ChainHead
from billfold.platform.crypto import Vault
from billfold.platform.database.checks import STATEMENT_TIMEOUT_SECONDS, Certainty, Findings
from billfold.platform.database.connection import Connection
from billfold.platform.errors import InvariantError

_HEADS = "SELECT customer_id, entry_no, hash, sealed_no FROM audit_chain_head"
_SEALS = "SELECT seal_no, sealed_at, line FROM audit_seal ORDER BY seal_no"


class SealedHead(NamedTuple):
    """The end of a chain when it was last sealed, and the number of that seal."""

    head: ChainHead
    seal_no: int


async def check_audit(conn: Connection, findings: Findings, vault: Vault | None, copy: Iterable[str] = ()) -> None:
    """Compare every entry with the one before, the ends with the heads and with what was sealed.

    `copy` contains the lines of the seals that were exported from the database.
    """
    rows = await conn.fetch(_HEADS, timeout=STATEMENT_TIMEOUT_SECONDS)
    walk = _AuditLogWalk(findings, vault, {row["customer_id"]: row for row in rows})
    walk.sealed = await _read_seals(conn, findings, vault, copy=copy)
    async for row in store.iterate_all_entries(conn, timeout_seconds=STATEMENT_TIMEOUT_SECONDS):
        walk.take(row)
    walk.end()


class _AuditLogWalk:
    """All entries, customer by customer, in their order."""

    def __init__(self, findings: Findings, vault: Vault | None, heads: dict[UUID, Record]) -> None:
        self._findings = findings
        self._vault = vault
        self._heads = heads
        self.sealed: dict[UUID, SealedHead] = {}
        self._last: AuditEntry | None = None

    def take(self, row: AuditEntry) -> None:
        """Check the next entry."""
        last = self._last
        if last is None or last.customer_id != row.customer_id:
            self._close()
            last = None
        self._findings.checked["audit_entry"] += 1
        number = 1 if last is None else last.entry_no + 1
        if row.entry_no != number:
            missing = {"customer_id": row.customer_id, "entry_no": number}
            self._findings.add("audit_entry", missing, "the row is missing", certainty=Certainty.MISSING)
        elif self._vault is not None:
            previous = CHAIN_START if last is None else last.hash
            if not rules.is_chained_to(previous, row, self._vault):
                self._report(row, "it differs from its hash")
        sealed = self.sealed.get(row.customer_id)
        if sealed and sealed.head.entry_no == row.entry_no and sealed.head.hash != row.hash.hex():
            self._report(row, f"it differs from seal {sealed.seal_no}")
        self._last = row

    def end(self) -> None:
        """Check the heads and seals of customers without any entry."""
        self._close()
        for customer_id, head in self._heads.items():
            if head["entry_no"]:
                self._report_missing(customer_id, 1, "the row is missing")
        for customer_id, sealed in self.sealed.items():
            self._report_missing(customer_id, 1, f"seal {sealed.seal_no} covers it, and it is missing")

    def _close(self) -> None:
        """Check the end of the customer whose last entry has been read."""
        last = self._last
        if last is None:
            return
        head = self._heads.pop(last.customer_id, None)
        sealed = self.sealed.pop(last.customer_id, None)
        if sealed is not None and sealed.head.entry_no > last.entry_no:
            missing_message = f"seal {sealed.seal_no} covers it or a later one, and it is missing"
            self._report_missing(last.customer_id, last.entry_no + 1, missing_message)
        key = {"customer_id": last.customer_id}
        if head is None:
            self._findings.add("audit_chain_head", key, "the row is missing", certainty=Certainty.MISSING)
        elif head["entry_no"] > last.entry_no:
            self._report_missing(last.customer_id, last.entry_no + 1, "the row is missing")
        elif head["entry_no"] < last.entry_no:
            self._report(last, "it is beyond the head", Certainty.UNEXPECTED)
        elif head["hash"] != last.hash:
            self._findings.add("audit_chain_head", key, "hash differs from the last entry's")
        elif head["sealed_no"] > (sealed.head.entry_no if sealed else 0):
            self._findings.add("audit_chain_head", key, "it counts as sealed, but no seal covers it")

    def _report_missing(self, customer_id: UUID, entry_no: int, message: str) -> None:
        key = {"customer_id": customer_id, "entry_no": entry_no}
        self._findings.add("audit_entry", key, message, certainty=Certainty.MISSING)

    def _report(self, row: AuditEntry, message: str, certainty: Certainty = Certainty.CHANGED) -> None:
        key = {"customer_id": row.customer_id, "entry_no": row.entry_no}
        self._findings.add("audit_entry", key, message, certainty=certainty)


async def _read_seals(
    conn: Connection, findings: Findings, vault: Vault | None, copy: Iterable[str]
) -> dict[UUID, SealedHead]:
    """Check the seals here against each other and against the copy; return the ends that they cover."""
    exported_lines = [line for each in copy if (line := each.strip())]
    rows = await conn.fetch(_SEALS, timeout=STATEMENT_TIMEOUT_SECONDS)
    stored_lines = [row["line"] for row in rows]
    for n, row in enumerate(rows, 1):
        if row["seal_no"] != n:
            findings.add("audit_seal", {"seal_no": n}, "the row is missing", certainty=Certainty.MISSING)
            break
    findings.checked["audit_seal"] = len(stored_lines)
    for n, (kept, exported) in enumerate(zip(stored_lines, exported_lines, strict=False), 1):
        if kept != exported:
            key = {"seal_no": n}
            findings.add("audit_seal", key, "it differs from the archived seal", certainty=Certainty.CHANGED)
            break
    if len(exported_lines) > len(stored_lines):
        findings.add(
            "audit_seal", {"seal_no": len(stored_lines) + 1}, "the row is missing", certainty=Certainty.MISSING
        )
    # Only the exported copy counts: the owner of the database can change everything in it.
    lines = exported_lines + stored_lines[len(exported_lines) :]
    return _heads_in_seals(lines, findings, vault)


def _heads_in_seals(lines: list[str], findings: Findings, vault: Vault | None) -> dict[UUID, SealedHead]:
    sealed_heads: dict[UUID, SealedHead] = {}
    previous = ""
    for number, line in enumerate(lines, 1):
        try:
            seal = seals.parse_seal(line, vault)
        except InvariantError as broken:
            findings.add("audit_seal", {"seal_no": number}, broken.detail, certainty=Certainty.CHANGED)
            break
        if (seal.seal_no, seal.previous) != (number, previous):
            key = {"seal_no": number}
            findings.add("audit_seal", key, "it does not chain to the previous seal", certainty=Certainty.CHANGED)
            break
        sealed_heads |= {head.customer_id: SealedHead(head, number) for head in seal.heads}
        previous = seals.fingerprint(line)
    return sealed_heads
