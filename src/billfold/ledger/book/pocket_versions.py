"""A Pocket after a commit that changed it, kept for reads as of an instant."""

from collections import Counter
from datetime import date, datetime
from uuid import UUID

import msgspec

from billfold.ledger.book.book import Book
from billfold.ledger.book.draft import PocketBook, to_json
from billfold.platform.database.rows import Row


class PocketVersion(Row, frozen=True):
    """The Pocket from the business time of a commit on; `state` is a `PocketImage` as JSON text."""

    table = "pocket_version"

    customer_id: UUID
    pocket_id: UUID
    known_at: datetime
    version: int
    entry_no: int
    status: str
    state: str


class PocketImage(msgspec.Struct, frozen=True, array_like=True):
    """The part of a Pocket that changes; `lots` are (CUSIP, units, acquired on), `holds` (cents, until), one per
    end.

    Fields are only added, at the end and with defaults: images are not rewritten.
    """

    name: str
    deposit_weeks: int
    reinvestment_weeks: int | None
    real_time_yield: bool
    inflow: int
    outflow: int
    fees: int
    realised: int
    fee_accrued: int
    accrued_through: date
    cash: int
    earnings_basis: int
    lots: list[tuple[str, int, date]]
    owed: int
    reserved: int
    unsettled_discount: int
    unsettled_on: date | None
    holds: list[tuple[int, datetime]]


read_image = msgspec.json.Decoder(PocketImage).decode


def known_at(book: Book, now: datetime) -> datetime:
    """Return the business time of a commit: due work that was booked ahead of a command is not later than it."""
    return max(now, book.booked_at)


def version_of(book: Book, pocket: PocketBook, now: datetime) -> tuple[object, ...]:
    """Return the row of a Pocket in a commit at this time, whose chain entry has been added to the book."""
    held: Counter[datetime] = Counter()
    for cents, until in pocket.liens:
        held[until] += cents
    image = PocketImage(
        name=pocket.name,
        deposit_weeks=pocket.deposit_weeks,
        reinvestment_weeks=pocket.reinvestment_weeks,
        real_time_yield=pocket.real_time_yield,
        inflow=pocket.inflow,
        outflow=pocket.outflow,
        fees=pocket.fees,
        realised=pocket.realised,
        fee_accrued=pocket.fee_accrued,
        accrued_through=pocket.accrued_through,
        cash=pocket.cash.balance,
        earnings_basis=pocket.earnings_basis(),
        lots=[(lot.asset, lot.balance, lot.acquired_on) for lot in pocket.lots],
        owed=-pocket.owed.balance if pocket.owed else 0,
        reserved=pocket.cash.reserved,
        unsettled_discount=pocket.unsettled_discount,
        unsettled_on=pocket.unsettled_on,
        holds=[(cents, until) for until, cents in held.items()],
    )
    number = book.version + 1
    row = (book.customer_id, pocket.pocket_id, known_at(book, now), number)
    return (*row, book.entry_no, pocket.status, to_json(image))
