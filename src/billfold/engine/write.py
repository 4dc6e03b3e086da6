"""What a batch wrote, into the database: one call for the ledger, one COPY per table.

The chain is forged here: per customer and commit one link, whose hash covers the link
before it and every row of this commit, and a checksum per row so that a damaged row can be
named. `encode_rows` is also what `verify` uses to recompute it.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec

from billfold.domain import agenda, wires
from billfold.domain.ach.types import AchEntry
from billfold.engine.image import image_of
from billfold.flows.book import Book
from billfold.flows.draft import CHAINED
from billfold.flows.due import refresh_due
from billfold.flows.holdings import Account, Lot, PocketBook

if TYPE_CHECKING:
    from billfold.kit.calendars import Calendars
    from billfold.kit.db import Connection

COLUMNS: dict[str, tuple[str, tuple[str, ...]]] = {
    "customers": ("customer", (
        "customer_id", "partner_id", "role", "type", "name", "account_status", "profile",
        "opened_at")),
    "directory": ("directory", ("kind", "value", "customer_id", "object_id")),
    "trades": ("trade", (
        "customer_id", "pocket_id", "journal_no", "trade_no", "trade_id", "partner_id",
        "activity", "incoming", "cusip", "units", "price_micros", "notional", "tax_basis",
        "earnings_basis", "traded_at", "book_date", "settles_on", "counter_pocket_id",
        "transfer_id")),
    "activities": ("activity", (
        "customer_id", "pocket_id", "journal_no", "leg_no", "activity_id", "transaction_id",
        "partner_id", "type", "direction", "amount", "swept", "title", "description",
        "booked_at", "business_date", "settles_at", "details", "remittance")),
    "events": ("event", (
        "customer_id", "event_no", "event_id", "kind", "payload", "raised_at")),
    "commands": ("command", (
        "customer_id", "command_id", "caller", "key", "kind", "request_hash", "accepted",
        "outcome", "version", "booked_at")),
    "snapshots": ("snapshot", (
        "customer_id", "pocket_id", "business_date", "journal_no", "cash", "positions",
        "earnings_basis",
        "inflow", "outflow", "fees", "realised")),
    "liens": ("lien", ("customer_id", "lien_id", "pocket_id", "amount", "until", "cause")),
    "portals": ("portal", (
        "customer_id", "portal_id", "pocket_id", "type", "name", "status", "routing_number",
        "account_number", "network_address", "payment_rails", "created_at", "updated_at")),
    "counterparties": ("counterparty", (
        "customer_id", "counterparty_id", "type", "status", "counterparty_name",
        "display_name", "account_number", "target_customer_id", "target_pocket_id",
        "verification", "details", "created_at", "updated_at")),
    "transfers": ("transfer", (
        "customer_id", "transfer_id", "partner_id", "type", "status", "reason",
        "from_pocket_id", "to_pocket_id", "amount", "request", "created_at")),
    "ach_entries": ("ach_entry", AchEntry.__struct_fields__),
    "ach_answers": ("ach_answer", (
        "answer_id", "customer_id", "due_at", "told", "created_at")),
    "settlements": ("settlement", (
        "settles_on", "cusip", "price_micros", "side", "closed_on", "units",
        "customers_cents", "block_cents")),
    "clearings": ("clearing", (
        "customer_id", "journal_no", "rail", "settles_on", "closed_on", "came_in", "went_out")),
    "suspense_items": ("suspense_item", (
        "customer_id", "item_id", "rail", "direction", "amount", "status", "reason", "details",
        "journal_no", "held_at")),
    "security_transfers": ("security_transfer", (
        "customer_id", "transfer_id", "pocket_id", "direction", "cusip", "units", "market_value",
        "status", "counterparty_name", "counterparty_account", "lots", "created_at")),
    "wires": ("wire", wires.COLUMNS),
    "wire_messages": ("wire_message", wires.QUEUED_COLUMNS),
}  # fmt: skip
_ACCOUNT = ("customer_id", "account_no", "kind", "pocket_id", "asset", "acquired_on")
JOURNAL_COLUMNS = (
    "customer_id", "journal_no", "kind", "command_id", "booked_at", "business_date",
    "effective_date", "settles_on", "reverses",
)  # fmt: skip
LEG_COLUMNS = ("customer_id", "journal_no", "leg_no", "debit", "credit", "asset", "amount", "phase")
LINK_COLUMNS = ("customer_id", "version", "journal_no", "event_no", "marks", "hash")

TOGETHER: dict[str, tuple[str, tuple[str, ...]]] = {
    "accounts": ("account", _ACCOUNT), "journals": ("journal", JOURNAL_COLUMNS),
    "legs": ("leg", LEG_COLUMNS), "links": ("link", LINK_COLUMNS),
    "trades": COLUMNS["trades"], "activities": COLUMNS["activities"], "events": COLUMNS["events"],
    "commands": COLUMNS["commands"], "directory": COLUMNS["directory"],
    "transfers": COLUMNS["transfers"],
}  # fmt: skip
"""What nearly every batch leaves, in the order in which `ledger_book` takes it."""
_APART = {kind: columns for kind, columns in COLUMNS.items() if kind not in TOGETHER}
FEW_BOOKS = 60
"""Up to so many books go over in one call; COPY takes half the time per row of more."""

_APPLY = "SELECT ledger_apply($1, $2, $3, $4, $5)"
_BOOK = "SELECT ledger_book($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)"

_POCKET_COLUMNS = (
    "pocket_id", "partner_id", "name", "type", "status", "deposit_weeks", "reinvestment_weeks",
    "real_time_yield", "opened_at", "closed_at", "closure_reason", "inflow", "outflow", "fees",
    "realised", "fee_accrued", "idle", "accrued_through", "charge_on", "moved_on",
    "unsettled_until", "invest_at",
)  # fmt: skip
_POCKET_TYPES = (
    "uuid", "uuid", "text", "text", "text", "smallint", "smallint", "boolean", "timestamptz",
    "timestamptz", "text", "bigint", "bigint", "bigint", "bigint", "bigint", "bigint", "date",
    "date", "date", "date", "timestamptz",
)  # fmt: skip
_UPSERT_POCKETS = (
    f"INSERT INTO pocket (customer_id, {', '.join(_POCKET_COLUMNS)}) SELECT * FROM unnest("
    + ", ".join(["$1::uuid[]", *(f"${i}::{t}[]" for i, t in enumerate(_POCKET_TYPES, start=2))])
    + ") ON CONFLICT (customer_id, pocket_id) DO UPDATE SET "
    + ", ".join(f"{c} = excluded.{c}" for c in _POCKET_COLUMNS[1:])
)
# What money moves, on the way every transfer goes, in the order of `pocket_counters`.
_COUNTERS = (
    "inflow", "outflow", "fees", "realised", "fee_accrued", "idle", "accrued_through",
    "charge_on", "moved_on", "unsettled_until", "invest_at",
)  # fmt: skip
_pocket_row: Callable[[PocketBook], tuple[Any, ...]] = attrgetter(*_POCKET_COLUMNS)
_counters: Callable[[PocketBook], tuple[Any, ...]] = attrgetter(*_COUNTERS)
_KEYS = {
    "customer": None, "portal": "portal_id", "counterparty": "counterparty_id",
    "document": "document_id", "transfer": "transfer_id", "wire": "wire_id",
    "suspense_item": "item_id", "ach_entry": "ach_id", "lien": "lien_id",
    "security_transfer": "transfer_id",
}  # fmt: skip
_TABLE_AND_CHANGE = itemgetter(0, 2)

_pack = msgspec.msgpack.Encoder().encode


def encode_rows(rows: Iterable[Sequence[Any]]) -> list[bytes]:
    """The bytes of each row that the chain covers."""
    return list(map(_pack, rows))


def forge(previous: bytes, encoded: list[bytes]) -> tuple[bytes, bytes]:
    """The next hash after `previous`, and one CRC-32 (4 bytes) per row."""
    marks = struct.pack(f">{len(encoded)}I", *map(zlib.crc32, encoded))
    return hashlib.sha256(previous + b"".join(encoded)).digest(), marks


async def write_books(conn: Connection, books: Sequence[Book], calendars: Calendars) -> None:
    """Write the drafts of these books. After COMMIT call `settle_books`."""
    heads: list[tuple[Any, ...]] = []
    links: list[tuple[Any, ...]] = []
    for book in books:
        head, link = _forge_head(book, calendars)
        heads.append(head)
        links.append(link)
    made = _rows_by_kind(books)
    made["links"] = links
    whole, moved = _pocket_rows(books)
    told = (heads, _bases(books), moved)
    if len(books) <= FEW_BOOKS:
        await conn.execute(_BOOK, *told, *(made.get(kind, ()) for kind in TOGETHER))
    else:
        await _copy(conn, TOGETHER, made)
        journals, legs = made.get("journals", ()), made.get("legs", ())
        await conn.execute(_APPLY, len(journals), len(legs), *told)
    retired = [(b.customer_id, a.no) for b in books for a in b.draft.rows_of("retired")]
    if retired:
        await conn.execute("SELECT ledger_retire($1, $2)", *_arrays(retired, 2))
    if whole:
        await conn.execute(_UPSERT_POCKETS, *_arrays(whole, 1 + len(_POCKET_COLUMNS)))
    await _copy(conn, _APART, made)
    if "agenda" in made:
        await agenda.make(conn, made["agenda"])
    for book in books:
        for (table, changed), equal in groupby(book.draft.rows_of("updates"), _TABLE_AND_CHANGE):
            keys = [key for _, key, _ in equal]
            await _update(conn, table, book.customer_id, keys, changed)


async def _copy(
    conn: Connection,
    tables: Mapping[str, tuple[str, tuple[str, ...]]],
    made: Mapping[str, list[Any]],
) -> None:
    for kind, (table, columns) in tables.items():
        if made.get(kind):
            await conn.copy_records_to_table(table, records=made[kind], columns=columns)


def _rows_by_kind(books: Sequence[Book]) -> dict[str, list[Any]]:
    """What the drafts of all books hold; kinds of which there is nothing are left out."""
    made: dict[str, list[Any]] = {}
    for book in books:
        for kind in book.draft.kinds:
            rows = getattr(book.draft, kind)
            if rows:
                made.setdefault(kind, []).extend(rows)
    made["accounts"] = [_account_row(b, *new) for b in books for new in b.draft.rows_of("accounts")]
    return made


def _forge_head(book: Book, calendars: Calendars) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    draft = book.draft
    # Nothing in their rows tells how commands of one commit followed each other.
    if len(draft.commands) > 1:
        draft.commands.sort(key=itemgetter(1))
    encoded: list[bytes] = []
    for name in CHAINED:
        encoded += encode_rows(getattr(draft, name))
    previous = book.chain
    book.chain, marks = forge(previous, encoded)
    due = refresh_due(book, calendars)
    journals, events = len(draft.journals), len(draft.events)
    head = (
        book.customer_id, book.version, book.journal_no - journals, book.journal_no,
        book.event_no - events, book.event_no, book.account_no, book.booked_at,
        book.business_date, due, book.chain, image_of(book),
    )  # fmt: skip
    link = (book.customer_id, book.version + 1, book.journal_no, book.event_no, marks, book.chain)
    book.due_at = due
    return head, link


def _account_row(book: Book, account: Account, pocket_id: UUID | None) -> tuple[Any, ...]:
    acquired_on = account.acquired_on if isinstance(account, Lot) else None
    return (book.customer_id, account.no, account.kind, pocket_id, account.asset, acquired_on)


def _bases(books: Sequence[Book]) -> list[tuple[Any, ...]]:
    """The bases of every lot that moved, as they are after the batch."""
    bases: list[tuple[Any, ...]] = []
    for book in books:
        if book.touched_lots:
            gone = {lot.no for lot in book.draft.rows_of("retired")}
            bases += [
                (
                    book.customer_id, lot.no, lot.asset, lot.tax_basis, lot.earnings_basis,
                    lot.no not in gone,
                )
                for lot in book.touched_lots.values()
            ]  # fmt: skip
    return bases


def _arrays(rows: list[tuple[Any, ...]], width: int) -> list[list[Any]]:
    if not rows:
        return [[] for _ in range(width)]
    return [list(column) for column in zip(*rows, strict=True)]


def _pocket_rows(
    books: Sequence[Book],
) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """Whole rows of pockets that are new or changed by command, counters of those that moved."""
    whole: list[tuple[Any, ...]] = []
    moved: list[tuple[Any, ...]] = []
    for book in books:
        for pocket in _touched(book):
            if pocket.pocket_id in book.changed_pockets:
                whole.append((book.customer_id, *_pocket_row(pocket)))
            else:
                moved.append((book.customer_id, pocket.pocket_id, *_counters(pocket)))
    return whole, moved


def _touched(book: Book) -> list[PocketBook]:
    return [book.pockets[key] for key in book.touched_pockets if key in book.pockets]


async def _update(
    conn: Connection, table: str, customer_id: UUID, keys: list[UUID], changed: dict[str, Any]
) -> None:
    """Make one change of one or more rows of a customer."""
    key_column = _KEYS[table]
    sets = ", ".join(f"{name} = ${n}" for n, name in enumerate(changed, start=3))
    where = f" AND {key_column} = ANY($2::uuid[])" if key_column else " AND $2::uuid[] IS NOT NULL"
    await conn.execute(
        f"UPDATE {table} SET {sets} WHERE customer_id = $1{where}",
        customer_id,
        keys,
        *changed.values(),
    )


def settle_books(books: Iterable[Book]) -> None:
    """The commit succeeded: these books are now what the database holds."""
    for book in books:
        book.version += 1
        book.settle()
