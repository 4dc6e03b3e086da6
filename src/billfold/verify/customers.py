"""One customer after the other: numbers, chain, replay, and the rows that the log made."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING
from uuid import UUID

from billfold.accounts.pockets.checks import PocketRows
from billfold.ledger.checks.accounts import Accounts
from billfold.ledger.checks.chain import COVERED, Chain, Commit, left_over
from billfold.ledger.checks.heads import LogEnd, check_head
from billfold.ledger.checks.replay import Journal, Replay
from billfold.ledger.checks.serialized_books import check_image
from billfold.treasury.settlement.checks import SETTLES, Settling
from billfold.verify.decision_dates import Decided
from billfold.verify.report import CHANGED, MISSING, SUSPECT, Findings
from billfold.verify.streams import (
    ACCOUNTS,
    ACTIVITIES,
    COMMANDS,
    CUSTOMERS,
    EVENTS,
    HEADS,
    JOURNALS,
    LEGS,
    LIENS,
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

    from billfold.bills.rules.market import Market
    from billfold.platform.database.pool import Connection

Progress = Callable[[int, int], None]
"""Told now and then: commits checked, commits there are."""

HOUSE = "house"
# A date beyond the calendars, a number where none is: more surely named by the chain, if it is
# in a row that the chain covers.
_CANNOT_BE = (ArithmeticError, LookupError, TypeError, ValueError)
_TELL_EVERY = 500


class Walk:
    """Walks through all customers; what is summed over them is there at the end."""

    def __init__(
        self,
        conn: Connection,
        found: Findings,
        market: Market,
        progress: Progress | None,
    ) -> None:
        self._conn = conn
        self.found = found
        self._market = market
        self._decided = Decided(market.calendars)
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
            try:
                await self._customer(head)
            except _CANNOT_BE as error:
                wrong = f"its rows say what cannot be: {error!r}"
                self.found.add("readable", "head", HEADS.key_of(head), wrong, SUSPECT)
                for table in OF_A_CUSTOMER:
                    await self._streams[table.name].drop(previous)
            self.found.turn_page()
        await self._pass(None)
        await self.settling.close()
        for stream in (heads, *self._streams.values()):
            self.found.checked[stream.table.name] = stream.read

    async def _pass(self, customer_id: UUID | None) -> None:
        """Rows before this customer belong to nobody who has a head."""
        met: list[tuple[Table, Record]] = []
        for table in OF_A_CUSTOMER:
            row = await self._streams[table.name].skip_to(customer_id)
            if row is not None:
                met.append((table, row))
        named = {table.name: row["customer_id"] for table, row in met}
        headless = named.get("customer") if named.get("customer") == named.get("link") else None
        if headless is not None:
            key = {"customer_id": headless}
            self.found.add("heads", "head", key, "the customer has no head", CHANGED)
        for table, row in met:
            if row["customer_id"] != headless:
                left_over(self.found, table, row)

    async def take(self, table: Table, customer_id: UUID, through: object = None) -> list[Record]:
        """The customer's next rows of a table, up to a number."""
        return await self._streams[table.name].take(customer_id, through)

    # -- one customer ---------------------------------------------------------------

    async def _customer(self, head: Record) -> None:
        customer_id = head["customer_id"]
        customers = await self.take(CUSTOMERS, customer_id)
        numbered = await self.take(ACCOUNTS, customer_id)
        accounts = Accounts(self.found, customer_id, numbered)
        rows = await self.take(POCKETS, customer_id)
        liens = await self.take(LIENS, customer_id)
        pockets = PocketRows(self.found, accounts, rows, self._decided)
        replay = Replay(self.found, accounts)
        chain = Chain(self.found, head["version"])
        reader = _Reader(self, customer_id, chain)
        if not customers and not await reader.has_more():
            wrong = "it is the head of nobody"
            self.found.add("heads", "head", HEADS.key_of(head), wrong, CHANGED)
            return
        is_house = bool(customers) and customers[0]["role"] == HOUSE
        while (commit := await reader.next()) is not None:
            intact = await chain.prove(self._conn, commit)
            pockets.belong(commit.rows[2], commit.rows[3])
            for journal in reader.journals(commit, intact=intact):
                await self._play(journal, replay, pockets)
                if is_house and journal.row["kind"] == SETTLES:
                    await self.settling.compare(journal, accounts)
            self._tell()
        await self._left_over(customer_id)
        chain.end(head)
        accounts.end(head)
        pockets.end(head, replay.counters)
        end = LogEnd(replay.last, reader.event_no)
        check_head(self.found, head, customers, pockets, end, self._market)
        check_image(self.found, head, customers, numbered, rows, liens)
        self._sum(accounts)

    async def _play(self, journal: Journal, replay: Replay, pockets: PocketRows) -> None:
        replay.play(journal)
        pockets.follow(journal.row, replay.touched)
        number = journal.row["journal_no"]
        kept = await self.take(SNAPSHOTS, journal.row["customer_id"], number)
        if kept:
            pockets.compare_snapshots(kept, number, replay.counters)

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
                self._gap(table, expected, twice=row[column] < expected)
            self._expected[table.name] = row[column] + 1
        if self._expected[table.name] == through:
            self._gap(table, through, twice=False)
            self._expected[table.name] = through + 1

    def _gap(self, table: Table, number: int, *, twice: bool) -> None:
        key: Mapping[str, object] = {
            "customer_id": self._customer_id,
            table.columns[table.number]: number - 1 if twice else number,
        }
        wrong = "the number is taken twice" if twice else "the row is missing"
        self._walk.found.add("numbers", table.name, key, wrong, MISSING)

    @staticmethod
    def journals(commit: Commit, *, intact: bool) -> list[Journal]:
        """The journals of a commit, each with its own rows."""
        journals, legs, trades, activities, _, _ = commit.rows
        if len(journals) == 1:
            return [Journal(journals[0], legs, trades, activities, intact)]
        of_legs, of_trades, of_activities = map(_by_journal, (legs, trades, activities))
        return [
            Journal(row, of_legs[number], of_trades[number], of_activities[number], intact)
            for row in journals
            for number in (row["journal_no"],)
        ]


def _by_journal(rows: list[Record]) -> defaultdict[int, list[Record]]:
    parted: defaultdict[int, list[Record]] = defaultdict(list)
    for row in rows:
        parted[row["journal_no"]].append(row)
    return parted
