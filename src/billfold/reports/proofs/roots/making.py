"""A root is made of one snapshot in one transaction: hashed and kept a stretch at a time, so memory stays small."""

from __future__ import annotations

import asyncio
import hashlib
import os
import threading
from collections import deque
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import zip_longest
from multiprocessing import get_context, parent_process
from typing import TYPE_CHECKING, Final

from billfold.reports.proofs.roots import store
from billfold.reports.proofs.roots.build import (
    CUSTOMERS_PER_BLOCK,
    CustomersTree,
    check_covered,
    grow_bill,
)
from billfold.reports.proofs.roots.trees import root_of_page
from billfold.reports.proofs.roots.types import BillLine, CustomersLine, DailyRoot, Owners, StoredRoot
from billfold.reports.proofs.signatures import ROOT, sign

if TYPE_CHECKING:
    from asyncio import Future
    from collections.abc import Iterator, Mapping, Sequence
    from concurrent.futures import Executor
    from datetime import date, datetime
    from uuid import UUID

    from billfold.ledger.bank import Bank
    from billfold.platform.database.connection import (Connection)
    from billfold.reports.proofs.roots.build import GrownBill
    from billfold.reports.proofs.roots.places import Layout
    from billfold.reports.proofs.roots.store import Close
    from billfold.reports.proofs.roots.types import Balances, MakingKeys, Page

_WORK_MEMORY = "SET LOCAL work_mem = '128MB'"
"""What the database sorts balances in: those of a million customers."""
IN_THREAD_MAX = 50_000
"""How many holdings of bills are hashed in this process, which does other work too."""
_PROCESSES: Final = 2
_AHEAD: Final = _PROCESSES + 1
_NO_OWNERS: Final = Owners([], [])


async def make_root(conn: Connection, bank: Bank, day: date, *, now: datetime, keys: MakingKeys) -> StoredRoot:
    """Return the root of a day, of all that was booked by its close. Raises Unbalanced, and keeps nothing then."""
    async with conn.transaction(isolation="repeatable_read"):
        await conn.execute(_WORK_MEMORY)
        last = await store.find_root(conn)
        number = 1 if last is None else last.number + 1
        close = await store.read_close(conn, day, bank.calendars.closes_at(day))
        balances, available = await store.read_balances(conn, close), await store.read_bills(conn, close)
        check_covered(balances, available)
        bills, layouts = await _keep_bills(conn, balances, available, number=number, secret=keys.secret)
        tree = CustomersTree(balances, [layouts[cusip] for cusip in balances.cusips], keys.secret)
        payload = DailyRoot(
            bank=bank.settings.bank_name,
            number=number,
            day=day,
            taken_at=now,
            previous="" if last is None else hashlib.sha256(last.jws.encode()).hexdigest(),
            customers=CustomersLine(len(balances.customers), await _keep_customers(conn, tree, close, number)),
            bills=bills,
        )
        sealed = keys.bank.seal(keys.secret, store.secret_place(day))
        root = StoredRoot(number, day, sign(payload, keys.document, ROOT), sealed)
        await store.insert_root(conn, root, now)
    return root


async def _keep_bills(
    conn: Connection, balances: Balances, available: Mapping[str, tuple[int, int]], *, number: int, secret: bytes
) -> tuple[dict[str, BillLine], dict[str, Layout]]:
    """Keep the pages of bills; return what is signed of each, and where its units are."""
    owners = dict(zip(balances.cusips, balances.owners, strict=True))
    with _growers(len(balances.held)) as executor:

        def begin(cusip: str) -> Future[GrownBill]:
            mine = owners.get(cusip, _NO_OWNERS)
            ids = [balances.customers[each].bytes for each in mine.customers]
            length = sum(available.get(cusip, (0, 0)))
            grow = partial(grow_bill, cusip, ids, mine.units, length=length, secret=secret)
            return asyncio.get_running_loop().run_in_executor(executor, grow)

        lines: dict[str, BillLine] = {}
        layouts: dict[str, Layout] = {}
        cusips = sorted({*balances.cusips, *available})
        growing = deque(map(begin, cusips[:_AHEAD]))
        # While the database keeps one, the next are hashed.
        for cusip, after in zip_longest(cusips, cusips[_AHEAD:]):
            grown = await growing.popleft()
            if after is not None:
                growing.append(begin(after))
            await store.insert_pages(conn, number, cusip, grown.pages)
            layouts[cusip], root = grown.layout, root_of_page(grown.pages[-1].tiles).hex()
            held, coming = available.get(cusip, (0, 0))
            lines[cusip] = BillLine(held, coming, sum(owners.get(cusip, _NO_OWNERS).units), root)
    return lines, layouts


@contextmanager
def _growers(holdings: int) -> Iterator[Executor | None]:
    """Yield what trees of bills grow in: processes beside this one, or a thread if there is little to do."""
    if holdings <= IN_THREAD_MAX:
        yield None
        return
    pool = ProcessPoolExecutor(_PROCESSES, get_context("spawn"), initializer=_end_with_parent)
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _end_with_parent() -> None:
    """Let this process end when the one that began it is killed."""

    def end() -> None:
        if (parent := parent_process()) is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=end, daemon=True).start()


async def _keep_customers(conn: Connection, tree: CustomersTree, close: Close, number: int) -> str:
    """Keep the leaves of customers and their pages; return the root."""
    made: Sequence[Page] = ()
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
