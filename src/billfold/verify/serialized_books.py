"""The image that a head carries, against the rows it is made of.

An image has a checksum of its own. So when both differ it is known which was damaged: the image
whose checksum fails, or else the row that no longer says what it said at the last commit.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from asyncpg import Record

from billfold.ledger.book.holdings import Account, Lot
from billfold.ledger.engine.serialized_book import SerializedBook, deserialize_book, is_intact
from billfold.platform.checks import Certainty, Findings
from billfold.verify.streams import ACCOUNTS, CUSTOMERS, HOLDS, LEDGER_HEADS, POCKETS, Table

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
        *_compare(CUSTOMERS, customers, {head["customer_id"]: _values(image, _CUSTOMER_COLUMNS)}),
        *_compare(POCKETS, pockets, {each.pocket_id: _values(each, POCKETS.columns[1:]) for each in image.pockets}),
        *_compare(ACCOUNTS, balances, dict(_accounts_of(image))),
        *_holds(image, head, liens),
    ):
        text = f"{message}, the head's image says otherwise"
        findings.add(table, {**key, **bad_key}, text, certainty=Certainty.SUSPECT)


def _values(each: object, names: Iterable[str]) -> dict[str, object]:
    return {name: getattr(each, name) for name in names}


def _compare(table: Table, rows: Iterable[Any], image: dict[Any, dict[str, object]]) -> Iterator[_Difference]:
    """Compare rows with what the image has of them, by the last column of their key."""
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
    """Liens that had not run out at the last commit, or not long before; the image knows no ids of theirs."""
    unmatched = Counter((pocket.pocket_id, *lien) for pocket in image.pockets for lien in pocket.liens)
    for row in rows:
        lien = row["pocket_id"], row["amount"], row["until"]
        if unmatched[lien]:
            unmatched[lien] -= 1
        elif row["until"] > head["booked_at"]:
            yield "hold", HOLDS.key_of(row), f"it withholds {row['amount']}"
    for pocket_id, amount, until in +unmatched:
        yield "pocket", {"pocket_id": pocket_id}, f"a lien of {amount} until {until} is missing"
