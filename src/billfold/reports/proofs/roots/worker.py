"""The root of a day is made once the bank has closed it, or later; a job that is run twice makes it once.

A root is made of one snapshot in one transaction: hashed and kept a stretch at a time, so memory stays small.
"""

import asyncio
import hashlib
import os
import secrets
import threading
from asyncio import Future
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from functools import partial
from itertools import zip_longest
from multiprocessing import get_context, parent_process
from typing import Final, NamedTuple
from uuid import UUID

import msgspec
import structlog

from billfold.data_keys.keys import DataKeys
from billfold.ledger.bank import Bank
from billfold.ledger.types import ScheduledJob
from billfold.platform.database.background_work import claimed
from billfold.platform.database.connection import Connection
from billfold.platform.database.distribution import one_snapshot
from billfold.platform.ids import command_id
from billfold.reports.proofs import signatures
from billfold.reports.proofs.roots import store, types
from billfold.reports.proofs.roots.store import Close
from billfold.reports.proofs.roots.trees import Layout, lay_out, leaf_hash, one_each, pages_of, root_of_page, salt_of
from billfold.reports.proofs.roots.types import MakingKeys, StoredRoot, Unbalanced
from billfold.reports.rules import AnnounceRoot

CUSTOMERS_PER_BLOCK = 1 << 16
_sha256 = hashlib.sha256
_encode = msgspec.json.encode
_CUSTOMER_PAGE, _BILL_PAGE = 8, 16
_BILL_NODES = 64
"""Number of pages of bills below which nodes are made at a time."""


class GrownBill(NamedTuple):
    """The tree of a bill: the positions of its units, and its pages, the top one last."""

    layout: Layout
    pages: Sequence[types.Page]


def check_covered(balances: types.Balances, available: Mapping[str, tuple[int, int]]) -> None:
    """Raise Unbalanced if more of a bill is owed than is available: units at the custodian, and to be received."""
    for cusip, owners in zip(balances.cusips, balances.owners, strict=True):
        owed, (held, coming) = sum(owners.units), available.get(cusip, (0, 0))
        if owed > held + coming:
            raise types.Unbalanced(
                f"{owed} of {cusip} are owed to customers; the custodian holds {held}, {coming} are to be received."
            )


def grow_bill(cusip: str, customers: Sequence[bytes], units: Sequence[int], *, length: int, secret: bytes) -> GrownBill:
    """Return the tree over `length` units of a bill, of which customers own `units`, in the order of their ids."""
    layout = lay_out(units, length, secret + cusip.encode())
    hashes: list[bytes] = []
    for id_bytes, owned in zip(customers, units, strict=True):
        customer_id, left = UUID(bytes=id_bytes), owned
        prefix = b"\x00" + salt_of(secret, customer_id) + _bill_prefix(cusip, customer_id)
        while left:
            size = 1 << left.bit_length() - 1
            hashes.append(_sha256(prefix + b"%d}" % size).digest())
            left -= size
    free_salt = hashlib.sha256(secret + cusip.encode()).digest()
    for begins, power in layout.free:
        hashes.append(leaf_hash(free_salt, b"%d %d" % (begins, power)))
    pages = pages_of(layout, hashes.__getitem__, level=_BILL_PAGE, count=_BILL_NODES)
    return GrownBill(layout._replace(levels=(), split_at={}, free=()), [page for each in pages for page in each])


class CustomersTree:
    """The tree of all customers, whose heads come in blocks of `CUSTOMERS_PER_BLOCK`, the last one shorter."""

    def __init__(self, balances: types.Balances, layouts: Sequence[Layout], secret: bytes) -> None:
        self._balances, self._layouts, self._secret = balances, layouts, secret
        self._next = [0] * len(layouts)
        self._index = 0
        self._hashes: list[bytes] = []
        self._first = 0
        layout = one_each(len(balances.customers))
        blocks = CUSTOMERS_PER_BLOCK >> _CUSTOMER_PAGE
        self._pages = pages_of(layout, self._hash_of, level=_CUSTOMER_PAGE, count=blocks)

    def add(self, heads: Sequence[types.Head]) -> tuple[list[tuple[UUID, bytes]], list[types.Page]]:
        """Return the leaves of the next customers and their pages; no pages if the tree has only one."""
        leaves = [(head.customer_id, _encode(self._leaf(head))) for head in heads]
        self._first += len(self._hashes)
        self._hashes = [leaf_hash(salt_of(self._secret, each), leaf) for each, leaf in leaves]
        return leaves, next(self._pages)

    def close(self) -> list[types.Page]:
        """Return the pages above, the top one last."""
        return next(self._pages, [])

    def _hash_of(self, leaf: int) -> bytes:
        return self._hashes[leaf - self._first]

    def _leaf(self, head: types.Head) -> types.CustomerLeaf:
        balances, index = self._balances, self._index
        self._index += 1
        if balances.customers[index] != head.customer_id:
            raise types.Unbalanced(f"The customer {head.customer_id} has no balance.")
        bills = {}
        for number in balances.held[balances.first_held[index] : balances.first_held[index + 1]]:
            layout, owner = self._layouts[number], self._next[number]
            self._next[number] += 1
            at = layout.places[layout.firsts[owner] : layout.firsts[owner + 1]]
            bills[balances.cusips[number]] = types.Holding(balances.owners[number].units[owner], tuple(at))
        return types.CustomerLeaf(
            customer=head.customer_id,
            version=head.version,
            entry_no=head.entry_no,
            chain=head.chain.hex(),
            cash=balances.cash[index],
            bills=bills,
        )


def _bill_prefix(cusip: str, customer_id: UUID) -> bytes:
    """Return the part of a bill's leaf before its units."""
    return _encode(types.BillLeaf(cusip, customer_id, 0)).removesuffix(b"0}")


_WORK_MEMORY = "SET LOCAL work_mem = '128MB'"
"""The database's memory for sorting balances: enough for a million customers."""
IN_THREAD_MAX = 50_000
"""Maximum number of bill holdings to hash in this process, which has other work too."""
_PROCESSES: Final = 2
_AHEAD: Final = _PROCESSES + 1
_NO_OWNERS: Final = types.Owners([], [])


async def make_root(
    conn: Connection, bank: Bank, day: date, *, now: datetime, keys: types.MakingKeys
) -> types.StoredRoot:
    """Return the root of a day, with all entries booked by its close. Raises Unbalanced, and then stores nothing."""
    async with one_snapshot(conn, distributed=bank.engine.is_distributed, readonly=False):
        await conn.execute(_WORK_MEMORY)
        last = await store.find_root(conn)
        number = 1 if last is None else last.number + 1
        close = await store.read_close(conn, day, bank.calendars.closes_at(day))
        balances, available = await store.read_balances(conn, close), await store.read_bills(conn, close)
        check_covered(balances, available)
        bills, layouts = await _keep_bills(conn, balances, available, number=number, secret=keys.secret)
        tree = CustomersTree(balances, [layouts[cusip] for cusip in balances.cusips], keys.secret)
        payload = types.DailyRoot(
            bank=bank.settings.bank_name,
            number=number,
            day=day,
            taken_at=now,
            previous="" if last is None else hashlib.sha256(last.jws.encode()).hexdigest(),
            customers=types.CustomersLine(len(balances.customers), await _keep_customers(conn, tree, close, number)),
            bills=bills,
        )
        sealed = keys.bank.seal(keys.secret, store.secret_place(day))
        root = types.StoredRoot(number, day, signatures.sign(payload, keys.document, signatures.ROOT), sealed)
        await store.insert_root(conn, root, now)
    return root


async def _keep_bills(
    conn: Connection, balances: types.Balances, available: Mapping[str, tuple[int, int]], *, number: int, secret: bytes
) -> tuple[dict[str, types.BillLine], dict[str, Layout]]:
    """Store the pages of bills; return the signed line of each, and the positions of its units."""
    owners = dict(zip(balances.cusips, balances.owners, strict=True))
    with _tree_executors(len(balances.held)) as executor:

        def begin(cusip: str) -> Future[GrownBill]:
            mine = owners.get(cusip, _NO_OWNERS)
            ids = [balances.customers[each].bytes for each in mine.customers]
            length = sum(available.get(cusip, (0, 0)))
            grow = partial(grow_bill, cusip, ids, mine.units, length=length, secret=secret)
            return asyncio.get_running_loop().run_in_executor(executor, grow)

        lines: dict[str, types.BillLine] = {}
        layouts: dict[str, Layout] = {}
        cusips = sorted({*balances.cusips, *available})
        growing = deque(map(begin, cusips[:_AHEAD]))
        # While the database stores one, the next are hashed.
        for cusip, after in zip_longest(cusips, cusips[_AHEAD:]):
            grown = await growing.popleft()
            if after is not None:
                growing.append(begin(after))
            await store.insert_pages(conn, number, cusip, grown.pages)
            layouts[cusip], root = grown.layout, root_of_page(grown.pages[-1].tiles).hex()
            held, coming = available.get(cusip, (0, 0))
            lines[cusip] = types.BillLine(held, coming, sum(owners.get(cusip, _NO_OWNERS).units), root)
    return lines, layouts


@contextmanager
def _tree_executors(holdings: int) -> Iterator[Executor | None]:
    """Yield what trees of bills grow in: other processes, or a thread if there is little to do."""
    if holdings <= IN_THREAD_MAX:
        yield None
        return
    pool = ProcessPoolExecutor(_PROCESSES, get_context("spawn"), initializer=_end_with_parent)
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _end_with_parent() -> None:
    """Let this process end when its parent is killed."""

    def end() -> None:
        if (parent := parent_process()) is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=end, daemon=True).start()


async def _keep_customers(conn: Connection, tree: CustomersTree, close: Close, number: int) -> str:
    """Store the leaves of customers and their pages; return the root."""
    made: Sequence[types.Page] = ()
    leaves: Sequence[tuple[UUID, bytes]] = ()
    async for heads in store.read_heads(conn, close, CUSTOMERS_PER_BLOCK):
        _, (leaves, made) = await asyncio.gather(
            store.insert_lowest_pages(conn, number, made, leaves), asyncio.to_thread(tree.add, heads)
        )
    await store.insert_lowest_pages(conn, number, made, leaves)
    if above := tree.close():
        made = above
        await store.insert_pages(conn, number, store.CUSTOMERS, made)
    return root_of_page(made[-1].tiles).hex()


log = structlog.get_logger(__name__)

_SECRET_BYTES = 32
_WAIT = timedelta(minutes=10)
_CLAIM = "daily roots"
"""The claim of the process that publishes roots. No lock of a session: a pooler may give each statement another one."""
_OPEN_DAY = "SELECT business_date FROM ledger_head WHERE customer_id = $1"
_PARTNERS = "SELECT partner_id, own_customer_id FROM partner"


class DailyRootMaker:
    """Publishes roots in one process: one at a time, so that days closed together do not each hold a connection."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._announced = 0

    async def run(self, bank: Bank, job: ScheduledJob) -> None:
        """Publish the roots of the days that the bank has closed and that have none. An unbalanced day is refused."""
        async with self._lock:
            try:
                await publish_root(bank)
            except Unbalanced as unbalanced:
                log.error("daily_root_refused", reason=str(unbalanced))  # noqa: TRY400 - the sentence says it
            # A root whose worker crashed before it was announced is announced too.
            for root in await store.list_roots_since(bank.pool, job.at):
                if root.number > self._announced:
                    await _announce_root(bank, root)
                    self._announced = root.number


async def publish_root(bank: Bank) -> StoredRoot:
    """Return the root of the last closed day, made now if missing, after those of the days before it.

    Raises Unbalanced, and records it: an unbalanced day has no root once a later day has one.
    """
    open_day: date = await bank.pool.fetchval(_OPEN_DAY, bank.own_id)
    refused: Unbalanced | None = None
    async with claimed(bank.pool, _CLAIM, wait=_WAIT):
        last = await store.find_root(bank.pool)
        for day in _days_without(bank, last, open_day):
            now = await bank.now()
            keys = MakingKeys(
                await signatures.get_document_key(bank.pool, bank.vault, now),
                await bank.ports[DataKeys].of(bank.pool, bank.own_id),
                secrets.token_bytes(_SECRET_BYTES),
            )
            async with bank.pool.acquire() as conn:
                try:
                    last, refused = await make_root(conn, bank, day, now=now, keys=keys), None
                except Unbalanced as unbalanced:
                    refused = unbalanced
                    await store.record_refusal(conn, day, str(unbalanced), now)
    if refused is not None:
        raise refused
    assert last is not None
    return last


def _days_without(bank: Bank, last: StoredRoot | None, open_day: date) -> Iterator[date]:
    """Yield the closed days after the last root, oldest first; without any root the last closed day."""
    calendars = bank.calendars
    closed = calendars.settlement_on_or_before(open_day - open_day.resolution)
    day = closed if last is None else calendars.next_settlement_day(last.day)
    while day <= closed:
        yield day
        day = calendars.next_settlement_day(day)


async def _announce_root(bank: Bank, root: StoredRoot) -> None:
    """Raise the event of every partner."""
    for row in await bank.pool.fetch(_PARTNERS):
        key = command_id(f"daily-root:{root.day}", row["partner_id"])
        await bank.engine.submit(
            AnnounceRoot(caller="daily-root", key=key, customers=(row["own_customer_id"],), day=root.day, root=root.jws)
        )
