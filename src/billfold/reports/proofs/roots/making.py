"""A root is made of one snapshot in one transaction: hashed and kept a stretch at a time, so memory stays small."""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING

from billfold.reports.proofs.roots import store
from billfold.reports.proofs.roots.build import (
    CUSTOMERS_PER_BLOCK,
    NO_OWNERS,
    CustomersTree,
    check_covered,
    grow_bill,
)
from billfold.reports.proofs.roots.trees import root_of_page
from billfold.reports.proofs.roots.types import BillLine, CustomersLine, DailyRoot, StoredRoot
from billfold.reports.proofs.signatures import ROOT, sign

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date, datetime
    from uuid import UUID

    from billfold.ledger.bank import Bank
    from billfold.platform.database.pool import Connection
    from billfold.reports.proofs.roots.places import Layout
    from billfold.reports.proofs.roots.store import Close
    from billfold.reports.proofs.roots.types import Balances, MakingKeys, Page

_WORK_MEMORY = "SET LOCAL work_mem = '128MB'"
"""What the database sorts balances in: those of a million customers."""


async def make_root(conn: Connection, bank: Bank, day: date, *, now: datetime, keys: MakingKeys) -> StoredRoot:
    """Return the root of a day, of all that was booked by its close. Raises Unbalanced, and keeps nothing then."""
    async with conn.transaction(isolation="repeatable_read"):
        await conn.execute(_WORK_MEMORY)
        last = await store.find_root(conn)
        number = 1 if last is None else last.number + 1
        close = await store.read_close(conn, day, bank.calendars.closes_at(day))
        balances, available = await store.read_balances(conn, close), await store.read_bills(conn, close)
        check_covered(balances, available)
        bills, layouts = dict[str, BillLine](), {}
        for cusip in sorted({*balances.cusips, *available}):
            line, layouts[cusip] = await _keep_bill(
                conn, cusip, balances, number=number, units=available.get(cusip, (0, 0)), secret=keys.secret
            )
            bills[cusip] = line
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


async def _keep_bill(
    conn: Connection, cusip: str, balances: Balances, *, number: int, units: tuple[int, int], secret: bytes
) -> tuple[BillLine, Layout]:
    """Keep the pages of a bill; return what is signed of it, and where its units are."""
    owners = balances.owners[balances.cusips.index(cusip)] if cusip in balances.cusips else NO_OWNERS
    tree = await asyncio.to_thread(grow_bill, cusip, owners, sum(units), customers=balances.customers, secret=secret)
    pages = tree.pages()
    made: list[Page] = []
    following = await asyncio.to_thread(next, pages, made)
    while following:
        made = following
        # While the database keeps some, the next are hashed.
        _, following = await asyncio.gather(
            store.insert_pages(conn, number, cusip, made), asyncio.to_thread(next, pages, [])
        )
    root = root_of_page(made[-1].tiles).hex()
    return BillLine(*units, sum(owners.units), root), tree.layout._replace(levels=(), split_at={})


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
