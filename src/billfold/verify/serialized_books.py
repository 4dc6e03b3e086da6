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
from billfold.ledger.engine.serialized_book import SerializedBook, deserialize_book, is_intact
from billfold.platform.checks import Certainty, Findings
from billfold.verify.streams import ACCOUNTS, CUSTOMERS, HOLDS, LEDGER_HEADS, POCKETS

if TYPE_CHECKING:
    from asyncpg import Record

_CUSTOMER_COLUMNS = ("partner_id", "name", "account_status", "role")
_ACCOUNT_COLUMNS = ("kind", "asset", "reserved", "tax_basis", "earnings_basis")


def check_serialized_book(
    findings: Findings,
    head: Record,
    customers: Sequence[Record],
    accounts: Sequence[Record],
    pockets: Sequence[Record],
    liens: Sequence[Record],
) -> None:
    """Compare the image of a head, if it has one, with the customer's rows."""
    raw = head["serialized_book"]
    if raw is None:
        return
    if not is_intact(raw):
        findings.add(
            "ledger_head", LEDGER_HEADS.key_of(head), "its serialized book is damaged", certainty=Certainty.CHANGED
        )
        return
    image = deserialize_book(raw)
    if image is None:
        return
    for table, key, message in _differences(image, head, customers, accounts=accounts, pockets=pockets, liens=liens):
        findings.add(table, key, f"{message}, the head's image says otherwise", certainty=Certainty.SUSPECT)


_Difference = tuple[str, Mapping[str, object], str]


def _differences(
    image: SerializedBook,
    head: Record,
    customers: Sequence[Record],
    accounts: Sequence[Record],
    pockets: Sequence[Record],
    liens: Sequence[Record],
) -> Iterator[_Difference]:
    for row in customers:
        for name in _CUSTOMER_COLUMNS:
            if row[name] != getattr(image, name):
                yield "customer", CUSTOMERS.key_of(row), f"its {name} is {row[name]}"
    unmatched = {pocket.pocket_id: pocket for pocket in image.pockets}
    yield from _pockets(unmatched, head, pockets)
    yield from _accounts(image, head, accounts)
    yield from _holds(image, head, liens)


def _pockets(unmatched: dict[UUID, PocketBook], head: Record, rows: Sequence[Record]) -> Iterator[_Difference]:
    for row in rows:
        pocket = unmatched.pop(row["pocket_id"], None)
        if pocket is None:
            yield "pocket", POCKETS.key_of(row), "it is there"
            continue
        for name in POCKETS.columns[1:]:
            if row[name] != getattr(pocket, name):
                yield "pocket", POCKETS.key_of(row), f"its {name} is {row[name]}"
    for pocket_id in unmatched:
        key = {"customer_id": head["customer_id"], "pocket_id": pocket_id}
        yield "pocket", key, "the row is missing"


def _accounts(image: SerializedBook, head: Record, rows: Sequence[Record]) -> Iterator[_Difference]:
    unmatched = {account.no: (account, pocket_id) for account, pocket_id in _accounts_of(image)}
    for row in rows:
        if not row["live"]:
            continue
        account, pocket_id = unmatched.pop(row["account_no"], (None, None))
        if account is None:
            yield "account", ACCOUNTS.key_of(row), "it is there"
        elif not _is_same(account, pocket_id, row):
            yield "account", ACCOUNTS.key_of(row), "it holds what it holds"
    for number in unmatched:
        key = {"customer_id": head["customer_id"], "account_no": number}
        yield "account", key, "the row is missing"


def _accounts_of(image: SerializedBook) -> Iterator[tuple[Account, UUID | None]]:
    for account in image.house:
        yield account, None
    for pocket in image.pockets:
        owed = [pocket.owed] if pocket.owed else []
        for account in (pocket.bank, pocket.cash, *owed, *pocket.lots, *pocket.emptied):
            yield account, pocket.pocket_id


def _is_same(account: Account, pocket_id: UUID | None, row: Record) -> bool:
    acquired_on = account.acquired_on if isinstance(account, Lot) else None
    return (
        all(getattr(account, name) == row[name] for name in _ACCOUNT_COLUMNS)
        and account.balance == row["credits"] - row["debits"]
        and pocket_id == row["pocket_id"]
        and acquired_on == row["acquired_on"]
    )


def _holds(image: SerializedBook, head: Record, rows: Sequence[Record]) -> Iterator[_Difference]:
    """Liens that had not run out at the last commit; the image knows no ids of theirs."""
    unmatched = Counter((pocket.pocket_id, *lien) for pocket in image.pockets for lien in pocket.liens)
    for row in rows:
        lien = row["pocket_id"], row["amount"], row["until"]
        if row["until"] > head["booked_at"]:
            if not unmatched[lien]:
                yield "hold", HOLDS.key_of(row), f"it withholds {row['amount']}"
            unmatched[lien] -= 1
    for pocket_id, amount, until in +unmatched:
        key = {"customer_id": head["customer_id"], "pocket_id": pocket_id}
        yield "pocket", key, f"a lien of {amount} until {until} is missing"
