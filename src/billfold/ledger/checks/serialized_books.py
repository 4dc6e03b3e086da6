"""The image that a head carries, against the rows it is made of.

An image has a checksum of its own. So when both differ it is known which was damaged: the image
whose checksum fails, or else the row that no longer says what it said at the last commit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from billfold.ledger.book.holdings import Account, Lot, PocketBook
from billfold.ledger.engine.serialized_book import BookImage, is_whole, read_image
from billfold.verify.report import CHANGED, SUSPECT, Findings
from billfold.verify.streams import ACCOUNTS, CUSTOMERS, HEADS, LIENS, POCKETS

if TYPE_CHECKING:
    from asyncpg import Record

CHECK = "images"
_OF_THE_CUSTOMER = ("partner_id", "name", "account_status", "role")
_OF_AN_ACCOUNT = ("kind", "asset", "reserved", "tax_basis", "earnings_basis")


def check_image(
    found: Findings,
    head: Record,
    customers: Sequence[Record],
    accounts: Sequence[Record],
    pockets: Sequence[Record],
    liens: Sequence[Record],
) -> None:
    """Compare the image of a head, if it has one, with the customer's rows."""
    raw = head["image"]
    if raw is None:
        return
    if not is_whole(raw):
        found.add(CHECK, "head", HEADS.key_of(head), "its image is damaged", CHANGED)
        return
    image = read_image(raw)
    if image is None:
        return
    for table, key, wrong in _differences(image, head, customers, accounts, pockets, liens):
        found.add(CHECK, table, key, f"{wrong}, the head's image says otherwise", SUSPECT)


_Difference = tuple[str, Mapping[str, object], str]


def _differences(
    image: BookImage,
    head: Record,
    customers: Sequence[Record],
    accounts: Sequence[Record],
    pockets: Sequence[Record],
    liens: Sequence[Record],
) -> Iterator[_Difference]:
    for row in customers:
        for name in _OF_THE_CUSTOMER:
            if row[name] != getattr(image, name):
                yield "customer", CUSTOMERS.key_of(row), f"its {name} is {row[name]}"
    seen = {pocket.pocket_id: pocket for pocket in image.pockets}
    yield from _pockets(seen, head, pockets)
    yield from _accounts(image, head, accounts)
    yield from _liens(image, head, liens)


def _pockets(
    seen: dict[UUID, PocketBook], head: Record, rows: Sequence[Record]
) -> Iterator[_Difference]:
    for row in rows:
        pocket = seen.pop(row["pocket_id"], None)
        if pocket is None:
            yield "pocket", POCKETS.key_of(row), "it is there"
            continue
        for name in POCKETS.columns[1:]:
            if row[name] != getattr(pocket, name):
                yield "pocket", POCKETS.key_of(row), f"its {name} is {row[name]}"
    for pocket_id in seen:
        key = {"customer_id": head["customer_id"], "pocket_id": pocket_id}
        yield "pocket", key, "it is missing"


def _accounts(image: BookImage, head: Record, rows: Sequence[Record]) -> Iterator[_Difference]:
    seen = {account.no: (account, pocket_id) for account, pocket_id in _accounts_of(image)}
    for row in rows:
        if not row["live"]:
            continue
        account, pocket_id = seen.pop(row["account_no"], (None, None))
        if account is None:
            yield "account", ACCOUNTS.key_of(row), "it is there"
        elif not _is_same(account, pocket_id, row):
            yield "account", ACCOUNTS.key_of(row), "it holds what it holds"
    for number in seen:
        key = {"customer_id": head["customer_id"], "account_no": number}
        yield "account", key, "it is missing"


def _accounts_of(image: BookImage) -> Iterator[tuple[Account, UUID | None]]:
    for account in image.house:
        yield account, None
    for pocket in image.pockets:
        owed = [pocket.owed] if pocket.owed else []
        for account in (pocket.bank, pocket.cash, *owed, *pocket.lots, *pocket.emptied):
            yield account, pocket.pocket_id


def _is_same(account: Account, pocket_id: UUID | None, row: Record) -> bool:
    acquired_on = account.acquired_on if isinstance(account, Lot) else None
    return (
        all(getattr(account, name) == row[name] for name in _OF_AN_ACCOUNT)
        and account.balance == row["credits"] - row["debits"]
        and pocket_id == row["pocket_id"]
        and acquired_on == row["acquired_on"]
    )


def _liens(image: BookImage, head: Record, rows: Sequence[Record]) -> Iterator[_Difference]:
    """Liens that had not run out at the last commit; the image knows no ids of theirs."""
    seen = Counter((pocket.pocket_id, *lien) for pocket in image.pockets for lien in pocket.liens)
    for row in rows:
        lien = row["pocket_id"], row["amount"], row["until"]
        if row["until"] > head["booked_at"]:
            if not seen[lien]:
                yield "lien", LIENS.key_of(row), f"it withholds {row['amount']}"
            seen[lien] -= 1
    for pocket_id, amount, until in +seen:
        key = {"customer_id": head["customer_id"], "pocket_id": pocket_id}
        yield "pocket", key, f"a lien of {amount} until {until} is missing"
