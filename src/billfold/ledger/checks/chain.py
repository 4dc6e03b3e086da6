"""The chain of one customer: every commit recomputed from its rows.

A link holds a checksum per row, so a row that was changed or added is named; its hash covers
the link before it, so nobody can put a matching checksum beside a changed row unnoticed.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Sequence
from struct import unpack
from typing import TYPE_CHECKING, Any, NamedTuple

from billfold.ledger.engine.write_batch import encode_rows, forge
from billfold.verify.report import CHANGED, LEFT_OVER, MISSING, Findings
from billfold.verify.streams import (
    ACTIVITIES,
    COMMANDS,
    EVENTS,
    JOURNALS,
    LEGS,
    LINKS,
    PATIENCE_SECONDS,
    TRADES,
    Table,
)

if TYPE_CHECKING:
    from asyncpg import Record

    from billfold.platform.database.pool import Connection

CHECK = "chain"
COVERED = (JOURNALS, LEGS, TRADES, ACTIVITIES, EVENTS, COMMANDS)
"""What a link covers, in the order in which it is hashed."""

_BYTES_PER_MARK = 4
_SEARCHED_MAX = 40
"""How far from where a link ends it is searched for where it should."""


class Commit(NamedTuple):
    """A link and the rows that belong to it, one list per covered table."""

    link: Record
    rows: tuple[list[Record], ...]

    def encoded(self) -> list[bytes]:
        """The rows as the chain sees them."""
        return [each for rows in self.rows for each in encode_rows(map(tuple, rows))]

    def row(self, index: int) -> tuple[Table, Record]:
        """The row at a place of the chain's order."""
        for table, rows in zip(COVERED, self.rows, strict=True):
            if index < len(rows):
                return table, rows[index]
            index -= len(rows)
        raise IndexError(index)


class Chain:
    """The links of one customer, each proved against the one before it."""

    def __init__(self, found: Findings, last: int) -> None:
        self._found = found
        self._last = last
        self.version = 0
        self.journal_no = 0
        self.event_no = 0
        self.hash = b""
        self._misses_links = False

    async def prove(self, conn: Connection, commit: Commit) -> bool:
        """Check the customer's next link. True when its rows are exactly what was committed."""
        link = commit.link
        intact = self._follows(link)
        if intact:
            encoded = commit.encoded()
            hashed, marks = forge(self.hash, encoded)
            if hashed != link["hash"]:
                intact = False
                if not await self._ends_elsewhere(conn, link):
                    self._name(commit, encoded)
            else:
                self._ends(commit)
                if marks != link["marks"]:
                    self._blame(link, "its checksums are not those of its rows")
        self.version, self.hash = link["version"], link["hash"]
        if not intact:
            self.journal_no = max(self.journal_no, link["journal_no"])
            self.event_no = max(self.event_no, link["event_no"])
        return intact

    def _ends(self, commit: Commit) -> None:
        """The hash covers the rows; the numbers up to which they go are the link's own."""
        link, journals, events = commit.link, commit.rows[0], commit.rows[4]
        if journals:
            self.journal_no = journals[-1]["journal_no"]
        if events:
            self.event_no = events[-1]["event_no"]
        if (link["journal_no"], link["event_no"]) != (self.journal_no, self.event_no):
            wrong = f"it ends at journal {self.journal_no} and event {self.event_no}"
            self._blame(link, wrong, CHANGED - 1)

    def end(self, head: Record) -> None:
        """Every link has been seen: the head names the last one."""
        if self.version < head["version"] and self.hash != head["chain"]:
            self._missing(head["customer_id"], self.version + 1)
        elif self.version < head["version"]:
            wrong = f"its chain is that of version {self.version}"
            self._found.add(CHECK, "head", {"customer_id": head["customer_id"]}, wrong)
        elif self.version > head["version"]:
            wrong = f"there are links up to version {self.version}"
            self._found.add(CHECK, "head", {"customer_id": head["customer_id"]}, wrong)
        elif self.hash != head["chain"]:
            wrong = "its chain is not the hash of the last link"
            self._found.add(CHECK, "head", {"customer_id": head["customer_id"]}, wrong)

    def _follows(self, link: Record) -> bool:
        """Is it the next one? After a gap nobody can tell which rows are whose."""
        expected = self.version + 1
        if link["version"] == expected:
            was_whole, self._misses_links = not self._misses_links, False
            return was_whole
        self._misses_links = True
        if link["version"] < expected:
            wrong = f"there is another link of version {link['version']}"
            self._blame(link, wrong, CHANGED - 1)
        elif link["version"] > self._last:
            self._blame(link, f"the head knows versions up to {self._last}", CHANGED - 1)
        else:
            self._missing(link["customer_id"], expected)
        return False

    def _missing(self, customer_id: object, version: int) -> None:
        key = {"customer_id": customer_id, "version": version}
        self._found.add(CHECK, "link", key, "the link is missing", CHANGED - 1)

    def _blame(self, link: Record, wrong: str, sureness: int = LEFT_OVER) -> None:
        self._found.add(CHECK, "link", LINKS.key_of(link), wrong, sureness)

    def _name(self, commit: Commit, encoded: Sequence[bytes]) -> None:
        """Say which row is not what was committed."""
        text = commit.link["marks"]
        marks = unpack(f">{len(text) // _BYTES_PER_MARK}I", text[: len(text) & ~3])
        left = Counter(marks)
        for index, crc in enumerate(map(zlib.crc32, encoded)):
            if left[crc]:
                left[crc] -= 1
                continue
            table, row = commit.row(index)
            wrong = "it was not committed so"
            self._found.add(CHECK, table.name, table.key_of(row), wrong, CHANGED)
            return
        lost = left.total()
        if not lost:
            self._blame(commit.link, "its hash is not that of its rows")
        elif [zlib.crc32(each) for each in encoded] == list(marks[: len(encoded)]):
            # Commands stand last, and nothing but the chain counts those that were refused.
            key = {"customer_id": commit.link["customer_id"], "version": commit.link["version"]}
            self._found.add(CHECK, "command", key, "a command of this commit is missing", LEFT_OVER)
        elif (leg := _leg_after(commit, encoded, marks)) is not None:
            self._found.add(CHECK, "leg", leg, "the leg is missing", LEFT_OVER)
        else:
            self._blame(commit.link, f"{lost} rows of this commit are missing")

    async def _ends_elsewhere(self, conn: Connection, link: Record) -> bool:
        """Is it the link's own numbers that are wrong? Then its hash fits other numbers."""
        rows = await self._rows_around(conn, link)
        journals = {row["journal_no"] for row in rows[0]} | {self.journal_no}
        events = {row["event_no"] for row in rows[4]} | {self.event_no}
        for journal_no in journals:
            for event_no in events:
                if (journal_no, event_no) == (link["journal_no"], link["event_no"]):
                    continue
                commit = Commit(link, _cut(rows, journal_no, event_no))
                if forge(self.hash, commit.encoded())[0] == link["hash"]:
                    wrong = f"it ends at journal {journal_no} and event {event_no}"
                    self._blame(link, wrong, CHANGED - 1)
                    return True
        return False

    async def _rows_around(self, conn: Connection, link: Record) -> tuple[list[Record], ...]:
        bounds = (
            (self.journal_no, JOURNALS), (self.journal_no, LEGS), (self.journal_no, TRADES),
            (self.journal_no, ACTIVITIES), (self.event_no, EVENTS),
            (link["version"] - 1, COMMANDS),
        )  # fmt: skip
        return tuple(
            [
                await conn.fetch(
                    table.query.replace(
                        "ORDER BY",
                        f"WHERE customer_id = $1 AND {table.columns[table.number]} > $2"
                        f" AND {table.columns[table.number]} <= $3 ORDER BY",
                    ),
                    link["customer_id"],
                    after,
                    link["version"] if table is COMMANDS else after + _SEARCHED_MAX,
                    timeout=PATIENCE_SECONDS,
                )
                for after, table in bounds
            ]
        )


def _leg_after(
    commit: Commit, encoded: Sequence[bytes], marks: Sequence[int]
) -> dict[str, object] | None:
    """The leg that is missing where rows and checksums part, if legs stand before that place.

    Another kind of row may have stood there, but what is missing of those is met surely: their
    numbers have a gap, or a leg has no trade or no activity.
    """
    crcs = map(zlib.crc32, encoded)
    at = next((n for n, (crc, mark) in enumerate(zip(crcs, marks, strict=False)) if crc != mark), 0)
    table, row = commit.row(at - 1) if at else (None, None)
    if table is not LEGS or row is None:
        return None
    return {**LEGS.key_of(row), "leg_no": row["leg_no"] + 1}


def _cut(
    rows: tuple[list[Record], ...], journal_no: int, event_no: int
) -> tuple[list[Record], ...]:
    """The rows up to these numbers."""
    through: tuple[Any, ...] = (journal_no, journal_no, journal_no, journal_no, event_no, None)
    return tuple(
        each if last is None else [row for row in each if row[table.number] <= last]
        for table, each, last in zip(COVERED, rows, through, strict=True)
    )


def left_over(found: Findings, table: Table, row: Record, sureness: int = MISSING) -> None:
    """A row that no link covers."""
    found.add(CHECK, table.name, table.key_of(row), "no commit wrote it", sureness)
