"""The balances before and after a proposal, if it was confirmed now."""

from collections import Counter
from typing import NamedTuple
from uuid import UUID

from billfold.dual_control.decisions import Movements
from billfold.dual_control.store import FreezeProposal
from billfold.ledger.bank import Bank
from billfold.ledger.book.book import Book
from billfold.ledger.dry_run import dry_run
from billfold.ledger.types import AccountKind

_BALANCES = """
SELECT a.customer_id, a.pocket_id, a.kind, a.asset, sum(a.credits - a.debits)::bigint
  FROM account a WHERE a.customer_id = ANY($1::uuid[]) AND a.live GROUP BY 1, 2, 3, 4
"""
_NAMES = """
SELECT c.customer_id, p.pocket_id, c.name, p.name
  FROM customer c LEFT JOIN pocket p ON p.customer_id = c.customer_id AND p.pocket_id = ANY($2::uuid[])
 WHERE c.customer_id = ANY($1::uuid[])
"""
_DERIVED = frozenset({AccountKind.BANK, AccountKind.ON_US, AccountKind.STREET, AccountKind.TREASURY})
"""Accounts without a balance of their own."""
_Key = tuple[UUID, UUID | None, str, str]


class Effect(NamedTuple):
    """A balance before and after, credits less debits: cents of USD, or bills of $100. No Pocket: the bank's side."""

    customer: str
    pocket: str | None
    kind: str
    asset: str
    before: int
    after: int


async def list_effects(bank: Bank, proposal: FreezeProposal) -> list[Effect]:
    """Return what the movement of an open proposal changes now. Raises NotFound and Refused, as its rule does."""
    command = bank.ports[Movements].read_command(proposal)
    async with bank.pool.acquire() as conn, conn.transaction(isolation="repeatable_read", readonly=True):
        rows = await conn.fetch(_BALANCES, list(command.customers))
        found = await dry_run(conn, bank, command)
        before = {(owner, pocket, kind, asset): cents for owner, pocket, kind, asset, cents in rows}
        after = Counter[_Key]()
        for book in found.books.values():
            after.update(_balances(book))
        changed = [
            each for each in {**before, **after} if before.get(each, 0) != after[each] and each[2] not in _DERIVED
        ]
        names = await conn.fetch(_NAMES, list(command.customers), [each[1] for each in changed if each[1]])
    customers, pockets = {row[0]: row[2] for row in names}, {row[1]: row[3] for row in names}
    return [
        Effect(customers[owner], pocket and pockets[pocket], kind, asset, before.get(each, 0), after[each])
        for each in sorted(changed, key=lambda each: (each[1] is None, str(each)))
        for owner, pocket, kind, asset in [each]
    ]


def _balances(book: Book) -> Counter[_Key]:
    found = Counter[_Key]()
    for account in book.house.values():
        found[book.customer_id, None, account.kind, account.asset] += account.balance
    for key, pocket in book.pockets.items():
        own = [pocket.cash, *pocket.lots] if pocket.owed is None else [pocket.cash, pocket.owed, *pocket.lots]
        for account in own:
            found[book.customer_id, key, account.kind, account.asset] += account.balance
    return found
