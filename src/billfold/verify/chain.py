"""The chain of one customer: every commit recomputed from its rows.

A chain entry holds a checksum per row, so a row that was changed or added is named; its hash covers
the chain entry before it, so a matching checksum next to a changed row is still detected.
"""

import sys
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from struct import unpack
from typing import NamedTuple

from asyncpg import Record

from billfold.ledger.engine.write_batch import chain_hash, encode_chained_rows
from billfold.platform.database.checks import STATEMENT_TIMEOUT_SECONDS, Certainty, Findings
from billfold.platform.database.connection import Connection
from billfold.verify.streams import (
    CHAIN_ENTRIES,
    COMMANDS,
    EVENTS,
    JOURNAL_ENTRIES,
    POSTINGS,
    TRADES,
    TRANSACTIONS,
    Table,
)

COVERED_TABLES = (JOURNAL_ENTRIES, POSTINGS, TRADES, TRANSACTIONS, EVENTS, COMMANDS)
"""The tables that a chain entry covers, in the order in which they are hashed."""

_CHECKSUM_BYTES = 4
_SEARCH_DISTANCE = 40
"""Distance within which the true end of a chain entry is searched for."""


def covered_bounds(entry_no: int, event_no: int, version: int) -> Iterator[tuple[Table, int]]:
    """Return each covered table with the number up to which its rows go."""
    return zip(COVERED_TABLES, (entry_no, entry_no, entry_no, entry_no, event_no, version), strict=True)


class Commit(NamedTuple):
    """A chain entry and the rows that belong to it, one list per covered table."""

    link: Record
    rows: tuple[list[Record], ...]

    def encoded(self) -> list[bytes]:
        """The rows in the form of the chain."""
        return [each for rows in self.rows for each in encode_chained_rows(map(tuple, rows))]

    def row(self, index: int) -> tuple[Table, Record]:
        """Return the row at a position in the chain's order."""
        for table, rows in zip(COVERED_TABLES, self.rows, strict=True):
            if index < len(rows):
                return table, rows[index]
            index -= len(rows)
        raise IndexError(index)


class Chain:
    """The chain entries of one customer, each proved against the one before it."""

    def __init__(self, findings: Findings, last: int) -> None:
        self._findings = findings
        self._last = last
        self.version = 0
        self.entry_no = 0
        self.event_no = 0
        self.hash = b""
        self._after_gap = False

    async def prove(self, conn: Connection, commit: Commit) -> bool:
        """Check the customer's next chain entry. True if its rows are exactly those committed."""
        link = commit.link
        intact = self._is_next(link)
        if intact:
            encoded = commit.encoded()
            expected_hash, marks = chain_hash(self.hash, encoded)
            if expected_hash != link["hash"]:
                intact = False
                if not await self._has_wrong_end_numbers(conn, link):
                    self._report_changed_row(commit, encoded)
            else:
                self._check_end_numbers(commit)
                if marks != link["row_checksums"]:
                    self._report(link, "checksums differ from its rows")
        self.version, self.hash = link["version"], link["hash"]
        if not intact:
            self.entry_no = max(self.entry_no, link["entry_no"])
            self.event_no = max(self.event_no, link["event_no"])
        return intact

    def _check_end_numbers(self, commit: Commit) -> None:
        """Check that the hash covers the rows; the numbers up to which they go are the chain entry's own."""
        link, journals, events = commit.link, commit.rows[0], commit.rows[4]
        if journals:
            self.entry_no = journals[-1]["entry_no"]
        if events:
            self.event_no = events[-1]["event_no"]
        if (link["entry_no"], link["event_no"]) != (self.entry_no, self.event_no):
            message = f"it ends at journal {self.entry_no} and event {self.event_no}"
            self._report(link, message, Certainty.EXACT)

    def end(self, head: Record) -> None:
        """Check the head against the last chain entry."""
        if self.version < head["version"] and self.hash != head["chain"]:
            self._report_missing(head["customer_id"], self.version + 1)
        elif self.version < head["version"]:
            message = f"its chain is that of version {self.version}"
            self._findings.add("ledger_head", {"customer_id": head["customer_id"]}, message)
        elif self.version > head["version"]:
            message = f"there are links up to version {self.version}"
            self._findings.add("ledger_head", {"customer_id": head["customer_id"]}, message)
        elif self.hash != head["chain"]:
            message = "chain differs from the last link's hash"
            self._findings.add("ledger_head", {"customer_id": head["customer_id"]}, message)

    def _is_next(self, link: Record) -> bool:
        """Return whether it is the next one. After a gap rows cannot be assigned to commits."""
        expected = self.version + 1
        if link["version"] == expected:
            was_contiguous, self._after_gap = not self._after_gap, False
            return was_contiguous
        self._after_gap = True
        if link["version"] > self._last:
            self._report(link, f"the head knows versions up to {self._last}", Certainty.EXACT)
        else:
            self._report_missing(link["customer_id"], expected)
        return False

    def _report_missing(self, customer_id: object, version: int) -> None:
        key = {"customer_id": customer_id, "version": version}
        self._findings.add("chain_entry", key, "the link is missing", certainty=Certainty.EXACT)

    def _report(self, link: Record, message: str, certainty: Certainty = Certainty.UNEXPECTED) -> None:
        self._findings.add("chain_entry", CHAIN_ENTRIES.key_of(link), message, certainty=certainty)

    def _report_changed_row(self, commit: Commit, encoded: Sequence[bytes]) -> None:
        """Report which row was not committed in this form."""
        text = commit.link["row_checksums"]
        marks = unpack(f">{len(text) // _CHECKSUM_BYTES}I", text[: len(text) & ~3])
        left = Counter(marks)
        for index, crc in enumerate(map(zlib.crc32, encoded)):
            if left[crc]:
                left[crc] -= 1
                continue
            table, row = commit.row(index)
            message = "it differs from its checksum"
            self._findings.add(table.name, table.key_of(row), message, certainty=Certainty.CHANGED)
            return
        missing_count = left.total()
        if not missing_count:
            self._report(commit.link, "hash differs from its rows")
        elif [zlib.crc32(each) for each in encoded] == list(marks[: len(encoded)]):
            # Commands come last, and only the chain counts refused ones.
            key = {"customer_id": commit.link["customer_id"], "version": commit.link["version"]}
            self._findings.add("command", key, "a command of this commit is missing", certainty=Certainty.UNEXPECTED)
        elif (leg := _missing_posting(commit, encoded, marks)) is not None:
            self._findings.add("posting", leg, "the posting is missing", certainty=Certainty.UNEXPECTED)
        else:
            self._report(commit.link, f"{missing_count} rows of this commit are missing")

    async def _has_wrong_end_numbers(self, conn: Connection, link: Record) -> bool:
        """Return whether only the chain entry's own numbers are wrong: then its hash fits other numbers."""
        rows = await self._rows_nearby(conn, link)
        journals = {row["entry_no"] for row in rows[0]} | {self.entry_no}
        events = {row["event_no"] for row in rows[4]} | {self.event_no}
        for entry_no in journals:
            for event_no in events:
                if (entry_no, event_no) == (link["entry_no"], link["event_no"]):
                    continue
                commit = Commit(link, _rows_through(rows, entry_no, event_no))
                if chain_hash(self.hash, commit.encoded())[0] == link["hash"]:
                    message = f"it ends at journal {entry_no} and event {event_no}"
                    self._report(link, message, Certainty.EXACT)
                    return True
        return False

    async def _rows_nearby(self, conn: Connection, link: Record) -> tuple[list[Record], ...]:
        bounds = covered_bounds(self.entry_no, self.event_no, link["version"] - 1)
        return tuple(
            [
                await conn.fetch(
                    table.query.replace(
                        "ORDER BY",
                        f"AND {table.columns[table.number]} > $3 AND {table.columns[table.number]} <= $4 ORDER BY",
                    ),
                    *(link["customer_id"], link["customer_id"]),
                    after,
                    link["version"] if table is COMMANDS else after + _SEARCH_DISTANCE,
                    timeout=STATEMENT_TIMEOUT_SECONDS,
                )
                for table, after in bounds
            ]
        )


def _missing_posting(commit: Commit, encoded: Sequence[bytes], marks: Sequence[int]) -> dict[str, object] | None:
    """Return the missing posting at the position where rows and checksums diverge, if postings come before that.

    Another kind of row may have stood there, but what is missing of those is met surely: their
    numbers have a gap, or a leg has no trade or no activity.
    """
    crcs = map(zlib.crc32, encoded)
    at = next((n for n, (crc, mark) in enumerate(zip(crcs, marks, strict=False)) if crc != mark), 0)
    table, row = commit.row(at - 1) if at else (None, None)
    if table is not POSTINGS or row is None:
        return None
    return {**POSTINGS.key_of(row), "posting_no": row["posting_no"] + 1}


def _rows_through(rows: tuple[list[Record], ...], entry_no: int, event_no: int) -> tuple[list[Record], ...]:
    """The rows up to these numbers."""
    bounds = covered_bounds(entry_no, event_no, sys.maxsize)
    return tuple(
        [row for row in each if row[table.number] <= last] for (table, last), each in zip(bounds, rows, strict=True)
    )


def report_unexpected(findings: Findings, table: Table, row: Record, certainty: Certainty = Certainty.MISSING) -> None:
    """A row that no chain entry covers."""
    findings.add(table.name, table.key_of(row), "no commit covers it", certainty=certainty)
