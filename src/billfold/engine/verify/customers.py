"""One customer after the other: numbers, chain, replay, and the rows that the log made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING
from uuid import UUID

from billfold.engine.verify.accounts import Accounts
from billfold.engine.verify.chain import COVERED, Chain, Commit, left_over
from billfold.engine.verify.heads import LogEnd, check_head
from billfold.engine.verify.pockets import PocketRows
from billfold.engine.verify.replay import Journal, Replay
from billfold.engine.verify.report import CHANGED, Findings, MISSING
from billfold.engine.verify.settling import Settling
from billfold.engine.verify.streams import (
    ACCOUNTS,
    ACTIVITIES,
    COMMANDS,
    CUSTOMERS,
    EVENTS,
    HEADS,
    JOURNALS,
    LEGS,
    LINKS,
    OF_A_CUSTOMER,
    POCKETS,
    SNAPSHOTS,
    TRADES,
    Stream,
    Table,
)

if TYPE_CHECKING:
    from asyncpg import Record

    from billfold.domain.tbills import Market
    from billfold.kit.calendars import Calendars
    from billfold.kit.db import Connection

Progress = Callable[[int, int], None]
"""Told now and then: commits checked, commits there are."""

HOUSE = "house"
_TELL_EVERY = 500


class Walk:
    """Walks through all customers; what is summed over them is there at the end."""

    def __init__(
        self,
        conn: Connection,
        found: Findings,
        market: Market,
        calendars: Calendars,
        progress: Progress | None,
    ) -> None:
        self._conn = conn
        self.found = found
        self._market = market
        self._calendars = calendars
        self._progress = progress
        self._streams: dict[str, Stream] = {}
        self._done = 0
        self._all = 0
        # Balance of every kind of account by asset, over all customers.
        self.totals: Counter[tuple[str, str]] = Counter()
        self.settling = Settling(found)

    async def go(self) -> None:
        """Check every customer."""
        self._all = int(await self._conn.fetchval("SELECT coalesce(sum(version), 0) FROM head"))
        heads = await Stream.of(self._conn, HEADS)
        for table in OF_A_CUSTOMER:
            self._streams[table.name] = await Stream.of(self._conn, table)
        await self.settling.open(self._conn)
        previous: UUID | None = None
        while (head := await heads.next()) is not None:
            if head["customer_id"] == previous:
                self.found.add("heads", "head", HEADS.key_of(head), "the head is there twice")
                continue
            previous = head["customer_id"]
            await self._pass(previous)
            await self._customer(head)
            self.found.turn_page()
        await self._pass(None)
        await self.settling.close()
        for stream in (heads, *self._streams.values()):
            self.found.checked[stream.table.name] = stream.read

    async def _pass(self, customer_id: UUID | None) -> None:
        """Rows before this customer belong to nobody who has a head."""
        headless: set[UUID] = set()
        for table in OF_A_CUSTOMER:
            passed = await self._streams[table.name].skip_to(customer_id)
            if passed is None or passed["customer_id"] in headless:
                continue
            if table in {CUSTOMERS, LINKS}:
                headless.add(passed["customer_id"])
                key = {"customer_id": passed["customer_id"]}
                self.found.add("heads", "head", key, "the customer has no head", CHANGED)
            else:
                left_over(self.found, table, passed)

    async def take(self, table: Table, customer_id: UUID, through: object = None) -> list[Record]:
        """The customer's next rows of a table, up to a number."""
        return await self._streams[table.name].take(customer_id, through)

    # -- one customer ---------------------------------------------------------------

    async def _customer(self, head: Record) -> None:
        customer_id = head["customer_id"]
        customers = await self.take(CUSTOMERS, customer_id)
        rows = await self.take(ACCOUNTS, customer_id)
        accounts = Accounts(self.found, customer_id, rows)
        pockets = PocketRows(
            self.found, accounts, await self.take(POCKETS, customer_id), self._calendars
        )
        replay = Replay(self.found, accounts)
        chain = Chain(self.found)
        is_house = bool(customers) and customers[0]["role"] == HOUSE
        reader = _Reader(self, customer_id, chain)
        if not customers and not await reader.has_more():
            wrong = "it is the head of nobody"
            self.found.add("heads", "head", HEADS.key_of(head), wrong, CHANGED)
            return
        last: Record | None = None
        while (commit := await reader.next()) is not None:
            intact = await chain.prove(self._conn, commit)
            pockets.belong(commit.rows[2], commit.rows[3])
            for journal in reader.journals(commit, intact):
                replay.play(journal)
                if is_house:
                    await self.settling.compare(journal, accounts)
                pockets.follow(journal.row, replay.touched)
                number = journal.row["journal_no"]
                kept = await self.take(SNAPSHOTS, customer_id, number)
                pockets.compare_snapshots(kept, number, replay.counters)
                last = journal.row
            self._tell()
        await self._left_over(customer_id)
        chain.end(head)
        accounts.end(head)
        pockets.end(head, replay.counters)
        end = LogEnd(last, reader.event_no)
        check_head(self.found, head, customers, pockets, end, self._calendars, self._market)
        self._sum(accounts)

    async def _left_over(self, customer_id: UUID) -> None:
        for table in (*COVERED, SNAPSHOTS):
            for row in (await self.take(table, customer_id))[:1]:
                left_over(self.found, table, row)

    def _sum(self, accounts: Accounts) -> None:
        for account in accounts.by_no.values():
            if account.balance:
                self.totals[account.kind, account.asset] += account.balance

    def _tell(self) -> None:
        self._done += 1
        if self._progress is not None and (
            self._done % _TELL_EVERY == 0 or self._done == self._all
        ):
            self._progress(self._done, self._all)


class _Reader:
    """The commits of one customer with their rows, and the gaps in their numbers."""

    def __init__(self, walk: Walk, customer_id: UUID, chain: Chain) -> None:
        self._walk = walk
        self._customer_id = customer_id
        self._chain = chain
        self._links: list[Record] = []
        self._expected = {"journal": 1, "event": 1}

    @property
    def event_no(self) -> int:
        """The number of the last event met."""
        return self._expected["event"] - 1

    async def has_more(self) -> bool:
        """Is there another link? Reads a few hundred ahead."""
        if not self._links:
            take, customer_id = self._walk.take, self._customer_id
            self._links = await take(LINKS, customer_id, self._chain.version + _TELL_EVERY)
            if not self._links:
                self._links = await take(LINKS, customer_id)
            self._links.reverse()
        return bool(self._links)

    async def next(self) -> Commit | None:
        """The next link with what it covers."""
        if not await self.has_more():
            return None
        take, customer_id = self._walk.take, self._customer_id
        link = self._links.pop()
        journal_no = link["journal_no"]
        commit = Commit(
            link,
            (
                await take(JOURNALS, customer_id, journal_no),
                await take(LEGS, customer_id, journal_no),
                await take(TRADES, customer_id, journal_no),
                await take(ACTIVITIES, customer_id, journal_no),
                await take(EVENTS, customer_id, link["event_no"]),
                await take(COMMANDS, customer_id, link["version"]),
            ),
        )
        self._number(JOURNALS, commit.rows[0], journal_no)
        self._number(EVENTS, commit.rows[4], link["event_no"])
        return commit

    def _number(self, table: Table, rows: list[Record], through: int) -> None:
        """Numbers follow each other without a gap, up to the link's."""
        column = table.columns[table.number]
        for row in rows:
            expected = self._expected[table.name]
            if row[column] != expected:
                self._gap(table, expected, row[column] < expected)
            self._expected[table.name] = row[column] + 1
        if self._expected[table.name] == through:
            self._gap(table, through, twice=False)
            self._expected[table.name] = through + 1

    def _gap(self, table: Table, number: int, twice: bool) -> None:  # noqa: FBT001 - its own
        key: Mapping[str, object] = {
            "customer_id": self._customer_id,
            table.columns[table.number]: number - 1 if twice else number,
        }
        wrong = "the number is taken twice" if twice else "the row is missing"
        self._walk.found.add("numbers", table.name, key, wrong, MISSING)

    @staticmethod
    def journals(commit: Commit, intact: bool) -> list[Journal]:  # noqa: FBT001 - of the commit
        """The journals of a commit, each with its own rows."""
        journals, legs, trades, activities, _, _ = commit.rows
        if len(journals) == 1:
            return [Journal(journals[0], legs, trades, activities, intact)]
        parted = [_by_journal(rows) for rows in (legs, trades, activities)]
        return [
            Journal(row, *(part.get(row["journal_no"], []) for part in parted), intact=intact)
            for row in journals
        ]


def _by_journal(rows: list[Record]) -> dict[int, list[Record]]:
    parted: dict[int, list[Record]] = {}
    for row in rows:
        parted.setdefault(row["journal_no"], []).append(row)
    return parted
