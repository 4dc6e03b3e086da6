"""One customer after the other: numbers, chain, replay, and the rows that the log made."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from asyncpg import Record

from billfold.bills.rules.market import Market
from billfold.ledger.book.draft import Account, Lot
from billfold.ledger.engine.load_books import SerializedBook, deserialize_book, is_intact
from billfold.platform.database.checks import Certainty, Findings
from billfold.platform.database.connection import Connection
from billfold.verify import streams
from billfold.verify.accounts import ReplayedAccounts
from billfold.verify.chain import COVERED_TABLES, Chain, Commit, covered_bounds, report_unexpected
from billfold.verify.heads import LogEnd, check_head
from billfold.verify.pockets import CalendarVariants, PocketReplay
from billfold.verify.replay import Journal, Replay
from billfold.verify.streams import LEDGER_HEADS, Table

_CUSTOMER_COLUMNS = ("partner_id", "name", "account_status", "role", "agreement_version")
_ACCOUNT_COLUMNS = ("kind", "asset", "reserved", "tax_basis", "earnings_basis", "balance")
_Difference = tuple[str, Mapping[str, object], str]


def check_serialized_book(
    findings: Findings,
    head: Record,
    customers: Sequence[Record],
    *,
    accounts: Sequence[Record],
    pockets: Sequence[Record],
    liens: Sequence[Record],
) -> None:
    """Compare the image of a head, if it has one, with the customer's rows."""
    raw, key = head["serialized_book"], LEDGER_HEADS.key_of(head)
    if raw is None:
        return
    if not is_intact(raw):
        findings.add("ledger_head", key, "its serialized book is damaged", certainty=Certainty.CHANGED)
        return
    image = deserialize_book(raw)
    if image is None:
        return
    balances = ({**row, "balance": row["credits"] - row["debits"]} for row in accounts if row["live"])
    for table, bad_key, message in (
        *_compare_rows(streams.CUSTOMERS, customers, {head["customer_id"]: _values(image, _CUSTOMER_COLUMNS)}),
        *_compare_rows(
            streams.POCKETS,
            pockets,
            {each.pocket_id: _values(each, streams.POCKETS.columns[1:]) for each in image.pockets},
        ),
        *_compare_rows(streams.ACCOUNTS, balances, dict(_accounts_of(image))),
        *_holds(image, head, liens),
    ):
        text = f"{message}, but the head's image differs"
        findings.add(table, {**key, **bad_key}, text, certainty=Certainty.SUSPECT)


def _values(each: object, names: Iterable[str]) -> dict[str, object]:
    return {name: getattr(each, name) for name in names}


def _compare_rows(table: Table, rows: Iterable[Any], image: dict[Any, dict[str, object]]) -> Iterator[_Difference]:
    """Compare rows with their copies in the image, by the last column of their key."""
    column = table.key[-1]
    for row in rows:
        expected = image.pop(row[column], None)
        if expected is None:
            yield table.name, {column: row[column]}, "it is there"
            continue
        for name, value in expected.items():
            if row[name] != value:
                yield table.name, {column: row[column]}, f"its {name} is {row[name]}"
    for missing in image:
        yield table.name, {column: missing}, "the row is missing"


def _accounts_of(image: SerializedBook) -> Iterator[tuple[int, dict[str, object]]]:
    owned: list[tuple[Account, UUID | None]] = [(account, None) for account in image.house]
    for pocket in image.pockets:
        owed = [pocket.owed] if pocket.owed else []
        accounts = (pocket.bank, pocket.cash, *owed, *pocket.lots, *pocket.emptied)
        owned += ((account, pocket.pocket_id) for account in accounts)
    for account, pocket_id in owned:
        acquired_on = account.acquired_on if isinstance(account, Lot) else None
        own = {"pocket_id": pocket_id, "acquired_on": acquired_on}
        yield account.no, _values(account, _ACCOUNT_COLUMNS) | own


def _holds(image: SerializedBook, head: Record, rows: Sequence[Record]) -> Iterator[_Difference]:
    """Holds that had not expired at the last commit, or not long before; the image has no ids of theirs."""
    unmatched = Counter((pocket.pocket_id, *lien) for pocket in image.pockets for lien in pocket.liens)
    for row in rows:
        if row["status"] not in {None, "ACTIVE"}:
            continue
        lien = row["pocket_id"], row["amount"], row["until"]
        if unmatched[lien]:
            unmatched[lien] -= 1
        elif row["until"] > head["booked_at"]:
            yield "hold", streams.HOLDS.key_of(row), f"it withholds {row['amount']}"
    for pocket_id, amount, until in +unmatched:
        yield "pocket", {"pocket_id": pocket_id}, f"a lien of {amount} until {until} is missing"


ProgressCallback = Callable[[int, int], None]
"""Called from time to time with the number of commits checked and their total."""

# A date beyond the calendars, a number where none is expected: the chain names it more surely, if it is
# in a row that the chain covers.
_INVALID_VALUE_ERRORS = (ArithmeticError, LookupError, TypeError, ValueError)
_PROGRESS_INTERVAL = 500
EVERYBODY = streams.Part()
"""All customers."""


class LedgerWalk:
    """Iterates over all customers; the sums over them are available at the end."""

    def __init__(self, conn: Connection, found: Findings, market: Market, progress: ProgressCallback | None) -> None:
        self._conn = conn
        self.found = found
        self._market = market
        self._calendar_variants = CalendarVariants(market.calendars)
        self._progress = progress
        self.totals: Counter[tuple[str, str]] = Counter()
        """Totals of all accounts according to the log, by kind and asset."""
        self._readers: dict[str, streams.TableReader] = {}
        self.done = 0
        """The number of commits checked."""
        self._all = 0

    async def check_customers(self, part: streams.Part = EVERYBODY) -> None:
        """Check every customer of a part, by default of the bank."""
        if self._progress is not None:
            self._all = int(await self._conn.fetchval("SELECT coalesce(sum(version), 0) FROM ledger_head"))
        heads = await streams.TableReader.of(self._conn, LEDGER_HEADS, part)
        for table in streams.CUSTOMER_TABLES:
            self._readers[table.name] = await streams.TableReader.of(self._conn, table, part)
        while (head := await heads.next()) is not None:
            await self._skip_to(head["customer_id"])
            try:
                await self._customer(head)
            except _INVALID_VALUE_ERRORS as error:
                message = f"its rows are invalid: {error!r}"
                self.found.add("ledger_head", LEDGER_HEADS.key_of(head), message, certainty=Certainty.SUSPECT)
                for table in streams.CUSTOMER_TABLES:
                    await self._readers[table.name].drop(head["customer_id"])
            self.found.next_section()
        await self._skip_to(None)
        for stream in (heads, *self._readers.values()):
            self.found.checked[stream.table.name] = stream.read

    async def _skip_to(self, customer_id: UUID | None) -> None:
        """Report rows before this customer, which belong to customers without a head."""
        skipped: list[tuple[Table, Record]] = []
        for table in streams.CUSTOMER_TABLES:
            row = await self._readers[table.name].skip_to(customer_id)
            if row is not None:
                skipped.append((table, row))
        named = {table.name: row["customer_id"] for table, row in skipped}
        without_head = named.get("customer") if named.get("customer") == named.get("chain_entry") else None
        if without_head is not None:
            key = {"customer_id": without_head}
            self.found.add("ledger_head", key, "the customer has no head", certainty=Certainty.CHANGED)
        for table, row in skipped:
            if row["customer_id"] != without_head:
                report_unexpected(self.found, table, row)

    async def take(self, table: Table, customer_id: UUID, through: object = None) -> list[Record]:
        """Yield the customer's next rows of a table, up to a number."""
        return await self._readers[table.name].take(customer_id, through)

    # -- one customer ---------------------------------------------------------------

    async def _customer(self, head: Record) -> None:
        customer_id = head["customer_id"]
        customers = await self.take(streams.CUSTOMERS, customer_id)
        numbered = await self.take(streams.ACCOUNTS, customer_id)
        accounts = ReplayedAccounts(self.found, customer_id, numbered)
        rows = await self.take(streams.POCKETS, customer_id)
        liens = await self.take(streams.HOLDS, customer_id)
        pockets = PocketReplay(self.found, accounts, rows, calendar_variants=self._calendar_variants)
        replay = Replay(self.found, accounts)
        chain = Chain(self.found, head["version"])
        reader = _CommitReader(self, customer_id, chain)
        if not customers and not await reader.has_next():
            message = "its customer is missing"
            self.found.add("ledger_head", LEDGER_HEADS.key_of(head), message, certainty=Certainty.CHANGED)
            return
        while (commit := await reader.next()) is not None:
            intact = await chain.prove(self._conn, commit)
            pockets.check_partner(commit.rows[2], commit.rows[3])
            for journal in reader.journals(commit, intact=intact):
                await self._replay_entry(journal, replay, pockets)
            versions = await self.take(streams.POCKET_VERSIONS, customer_id, commit.link["version"])
            pockets.compare_versions(versions, commit.link["entry_no"], replay.counters)
            self._report_progress()
        await self._report_unexpected(customer_id)
        chain.end(head)
        accounts.end(head)
        self.totals.update(accounts.balances())
        pockets.end(head, replay.counters)
        end = LogEnd(replay.last, reader.event_no)
        check_head(self.found, head, customers, pockets=pockets, end=end, market=self._market)
        check_serialized_book(self.found, head, customers, accounts=numbered, pockets=rows, liens=liens)

    async def _replay_entry(self, journal: Journal, replay: Replay, pockets: PocketReplay) -> None:
        replay.play(journal)
        pockets.follow(journal.row, replay.touched)
        number = journal.row["entry_no"]
        snapshots = await self.take(streams.SNAPSHOTS, journal.row["customer_id"], number)
        if snapshots:
            pockets.compare_snapshots(snapshots, journal.row, replay.counters)

    async def _report_unexpected(self, customer_id: UUID) -> None:
        for table in (*COVERED_TABLES, streams.SNAPSHOTS, streams.POCKET_VERSIONS):
            for row in (await self.take(table, customer_id))[:1]:
                report_unexpected(self.found, table, row)

    def _report_progress(self) -> None:
        self.done += 1
        if self._progress is not None and (self.done % _PROGRESS_INTERVAL == 0 or self.done == self._all):
            self._progress(self.done, self._all)


class _CommitReader:
    """The commits of one customer with their rows, and the gaps in their numbers."""

    def __init__(self, walk: LedgerWalk, customer_id: UUID, chain: Chain) -> None:
        self._walk = walk
        self._customer_id = customer_id
        self._chain = chain
        self._links: list[Record] = []
        self._next_number = {"journal_entry": 1, "event": 1}

    @property
    def event_no(self) -> int:
        """Return the number of the last event seen."""
        return self._next_number["event"] - 1

    async def has_next(self) -> bool:
        """Return whether there is another chain entry. Reads a few hundred ahead."""
        if not self._links:
            take, customer_id = self._walk.take, self._customer_id
            self._links = await take(streams.CHAIN_ENTRIES, customer_id, self._chain.version + _PROGRESS_INTERVAL)
            if not self._links:
                self._links = await take(streams.CHAIN_ENTRIES, customer_id)
            self._links.reverse()
        return bool(self._links)

    async def next(self) -> Commit | None:
        """Return the next chain entry with the rows it covers."""
        if not await self.has_next():
            return None
        take, customer_id = self._walk.take, self._customer_id
        link = self._links.pop()
        bounds = covered_bounds(link["entry_no"], link["event_no"], link["version"])
        commit = Commit(link, tuple([await take(table, customer_id, last) for table, last in bounds]))
        self._check_numbers(streams.JOURNAL_ENTRIES, commit.rows[0], link["entry_no"])
        self._check_numbers(streams.EVENTS, commit.rows[4], link["event_no"])
        return commit

    def _check_numbers(self, table: Table, rows: list[Record], through: int) -> None:
        """Check that numbers follow each other without a gap, up to the chain entry's."""
        column = table.columns[table.number]
        for row in rows:
            expected = self._next_number[table.name]
            if row[column] != expected:
                self._report_gap(table, expected)
            self._next_number[table.name] = row[column] + 1
        if self._next_number[table.name] == through:
            self._report_gap(table, through)
            self._next_number[table.name] = through + 1

    def _report_gap(self, table: Table, number: int) -> None:
        key = {"customer_id": self._customer_id, table.columns[table.number]: number}
        self._walk.found.add(table.name, key, "the row is missing", certainty=Certainty.MISSING)

    @staticmethod
    def journals(commit: Commit, *, intact: bool) -> list[Journal]:
        """Yield the journal entries of a commit, each with its own rows."""
        journals, legs, trades, activities, _, _ = commit.rows
        if len(journals) == 1:
            return [Journal(journals[0], legs, trades, activities=activities, intact=intact)]
        of_legs, of_trades, of_activities = map(_by_journal, (legs, trades, activities))
        return [
            Journal(row, of_legs[number], of_trades[number], activities=of_activities[number], intact=intact)
            for row in journals
            for number in (row["entry_no"],)
        ]


def _by_journal(rows: list[Record]) -> defaultdict[int, list[Record]]:
    by_number: defaultdict[int, list[Record]] = defaultdict(list)
    for row in rows:
        by_number[row["entry_no"]].append(row)
    return by_number
