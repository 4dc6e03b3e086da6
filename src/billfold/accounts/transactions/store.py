"""Reads of activity: one indexed statement each, in booking order, independent of the history.

A sweep is not stored: it is the other half of each activity, so it is derived with it. Fees of earlier
releases, which did not pass the bank account, are shown with one too.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import product
from typing import Any, Self, TypeVar
from uuid import UUID

import msgspec
from typing_extensions import override

from billfold.accounts.entry_numbers import BookedIn, Entries, MergedList
from billfold.accounts.pockets.as_of_store import JOURNAL_NO_MAX, entries_end
from billfold.accounts.transactions import settlement as transaction_settlement
from billfold.accounts.transactions.payment_store import with_payments
from billfold.accounts.transactions.settlement import TransactionRow
from billfold.platform.calendars import Calendars
from billfold.platform.database import paging
from billfold.platform.database.connection import Connection, Db
from billfold.platform.database.paging import Along, BoundedList, Place, SortKey, Stop
from billfold.platform.database.rows import References, Table
from billfold.platform.errors import NotFound
from billfold.platform.ids import group_of, member_of

RowType = TypeVar("RowType")
_FAR_OF_BANK = {
    descending: f"""
SELECT entry_no FROM transaction
 WHERE customer_id = $1 AND type IN ('FEE', 'CREDIT', 'GENERIC') AND entry_no >= $2 AND entry_no < $3
 ORDER BY entry_no {way} OFFSET $4 LIMIT 1"""
    for descending, way in ((True, "DESC"), (False, "ASC"))
}


class PaymentList(MergedList[RowType]):
    """Payments of Pockets of a customer."""

    table = "transaction"


class BankBookingList(PaymentList[RowType]):
    """Bookings of the bank, which are few compared with payments and have their own index."""

    @override
    async def _within_reach(self, conn: Db, values: tuple[Any, ...], span: Entries, *, descending: bool) -> Entries:
        entry_no = await conn.fetchval(_FAR_OF_BANK[descending], values[0], *span, paging.SEARCHED_MAX)
        return span.cut(entry_no, descending=descending)


SWEEP_MEMBER = 1000
"""The sweep of member n of a transaction is its member 1000 + n."""
_MEMBER_MAX = 65_535

# Cash reserved for a card payment is shown while it is held, from the entry that holds it.
# One index lookup per row, independent of the customer's size: not EXISTS, which might hash all of them.
_IS_HELD = """coalesce((SELECT true FROM card_authorization h
    WHERE h.customer_id = {customer} AND h.hold_entry_no = a.entry_no LIMIT 1), false)"""
_WAS_HELD = """coalesce((SELECT true FROM former_row f
    WHERE f.customer_id = {customer} AND f.kind = 'card_authorization'
      AND (f.row ->> 'hold_entry_no')::bigint = a.entry_no AND f.until > {at} LIMIT 1), false)"""
_IS_SHOWN = {False: f"(a.swept OR a.type <> 'CARD' OR {_IS_HELD})"}
_IS_SHOWN[True] = f"(a.swept OR a.type <> 'CARD' OR {_IS_HELD} OR {_WAS_HELD})"
_SETTLED_END = "least({settled_to}, {now}::timestamptz + interval '1 microsecond')"
_FILTER = """
   AND {is_shown}
   AND ((({types}::text[] IS NULL OR a.type = ANY({types}) OR a.type IN ('FEE', 'CREDIT') AND a.type || ':'
        || coalesce(a.details ->> 'fee_type', a.details ->> 'credit_type', '') = ANY({types}))
        AND ({direction}::text IS NULL OR a.direction = {direction}))
     OR ({sweeps}::boolean AND (a.swept OR a.type <> 'CARD') AND ({types} IS NULL OR 'SWEEP' = ANY({types}))
        AND ({direction} IS NULL OR a.direction <> {direction})))
   AND ({amount_from}::bigint IS NULL OR a.amount >= {amount_from})
   AND ({amount_to}::bigint IS NULL OR a.amount <= {amount_to})
   AND ({booked_from}::timestamptz IS NULL OR a.booked_at >= {booked_from})
   AND ({booked_to}::timestamptz IS NULL OR a.booked_at < {booked_to})
   AND ({settled_from}::timestamptz IS NULL AND {settled_to}::timestamptz IS NULL
        OR {settles_at} <@ tstzrange(least(coalesce({settled_from}, '-infinity'), {settled_end}), {settled_end}))
   AND ({transfers}::uuid[] IS NULL OR a.details ->> 'on_us_transfer_id' = ANY({transfers}::text[]))
   AND ({wires}::uuid[] IS NULL OR a.details ->> 'wire_id' = ANY({wires}::text[]))
   AND ({portals}::uuid[] IS NULL OR a.details ->> 'portal_id' = ANY({portals}::text[]))
   AND ({cards}::uuid[] IS NULL OR a.details ->> 'card_id' = ANY({cards}::text[]))
"""
_BANK_BOOKINGS = """
SELECT a.customer_id, a.activity_id, a.pocket_id, a.entry_no, j.kind AS journal_kind, a.type,
       a.direction, a.amount, a.details->>'cause' AS cause,
       EXISTS (SELECT 1 FROM journal_entry r
                WHERE r.customer_id = a.customer_id AND r.reverses = a.entry_no)
       OR EXISTS (SELECT 1 FROM transaction c
                WHERE c.customer_id = a.customer_id AND c.pocket_id = a.pocket_id
                  AND c.type = 'GENERIC' AND c.entry_no > a.entry_no
                  AND c.details->>'corrects' = a.activity_id::text) AS is_corrected
  FROM transaction a JOIN journal_entry j USING (customer_id, entry_no)
 WHERE a.customer_id = ANY($1::uuid[]) AND a.activity_id = ANY($2::uuid[])
   AND a.type IN ('FEE', 'CREDIT', 'GENERIC')
"""


class TransactionFilters(msgspec.Struct, frozen=True, kw_only=True):
    """Filter of activity; None does not filter.

    `types` are types, or a type and what kind of it: "FEE:WIRE_FEE". With `sweeps` an activity
    is also wanted for the sake of its sweep.
    `booked_from` and `settled_from` are included, `_to` excluded.
    """

    types: list[str] | None = None
    direction: str | None = None
    booked_from: datetime | None = None
    booked_to: datetime | None = None
    settled_from: datetime | None = None
    settled_to: datetime | None = None
    amount_from: int | None = None
    amount_to: int | None = None
    transfers: list[UUID] | None = None
    wires: list[UUID] | None = None
    portals: list[UUID] | None = None
    cards: list[UUID] | None = None
    sweeps: bool = False

    @property
    def is_selective(self) -> bool:
        """True if there is a filter besides the times of booking."""
        chosen = set(TransactionFilters.__struct_fields__) - {"booked_from", "booked_to", "sweeps"}
        return any(getattr(self, name) is not None for name in chosen)


_BANK_TYPES = frozenset({"FEE", "CREDIT", "GENERIC"})


_Searched = PaymentList[TransactionRow] | BoundedList[TransactionRow]


_Lists = Mapping[tuple[bool, bool], _Searched]
"""Lists, by whether they filter by the time of settlement, which costs more, and whether they read as of an instant."""


def _lists(kind: Callable[..., _Searched], sql: str, *, first: int, customer: str = "$1", **key: str) -> _Lists:
    """Return the lists of a statement.

    The filters are its parameters from number `first` on, the last of them only with the time of settlement; `key` is
    the other input of the `kind` of list.
    """
    names = (*TransactionFilters.__struct_fields__, "now", "closures")
    values = {name: f"${place}" for place, name in enumerate(names, first)}
    lists = {}
    for filters_settlement, as_of in product((False, True), repeat=2):
        at, settles_at = values["now"] if as_of else None, "a.settles_at"
        if filters_settlement:
            settles_at = transaction_settlement.settlement_of("a", customer, closures=values["closures"], at=at)
        is_shown = _IS_SHOWN[as_of].format(customer=customer, at=at)
        settled_end = _SETTLED_END.format(**values)
        filtered = _FILTER.format(**values, settled_end=settled_end, settles_at=settles_at, is_shown=is_shown)
        lists[filters_settlement, as_of] = kind(sql.replace("{filter}", filtered), _transactions.read, **key)
    return lists


_transactions = Table(TransactionRow, "transaction")
_PREFIXED = _transactions.columns("a")
_OF_CUSTOMER = _lists(
    PaymentList,
    f"""
SELECT {_PREFIXED} FROM unnest($2::uuid[]) AS p(pocket_id) CROSS JOIN LATERAL (
  SELECT * FROM transaction a
   WHERE a.customer_id = $1 AND a.pocket_id = p.pocket_id AND a.entry_no >= $3 AND a.entry_no < $4
     {{filter}} AND {{page}}) a
 {{order}}
""",
    first=5,
    entry_no="bigint",
    posting_no="smallint",
)
_OF_BANK = _lists(
    BankBookingList,
    f"""
SELECT {_PREFIXED} FROM transaction a
 WHERE a.customer_id = $1 AND a.pocket_id = ANY($2::uuid[]) AND a.entry_no >= $3 AND a.entry_no < $4
   AND a.type IN ('FEE', 'CREDIT', 'GENERIC') {{filter}} AND {{page}}
""",
    first=5,
    entry_no="bigint",
    posting_no="smallint",
)
_BOOKED = (
    2 + TransactionFilters.__struct_fields__.index("booked_from"),
    2 + TransactionFilters.__struct_fields__.index("booked_to"),
)
_OF_PARTNER = _lists(
    partial(
        BoundedList[TransactionRow],
        along=Along(
            "transaction WHERE partner_id = $1"
            " AND ($2::timestamptz IS NULL OR booked_at >= $2) AND ($3::timestamptz IS NULL OR booked_at < $3)",
            (0, *_BOOKED),
        ),
    ),
    f"""
SELECT {_PREFIXED} FROM transaction a
 WHERE a.partner_id = $1 AND ($2::uuid[] IS NULL OR a.pocket_id = ANY($2)) {{filter}} AND {{page}}
""",
    first=3,
    customer="a.customer_id",
    booked_at="timestamptz",
    written_no="bigint",
)
_ONE = {
    as_of: f"""
SELECT {_PREFIXED} FROM transaction a
 WHERE a.customer_id = $1 AND a.activity_id BETWEEN $3 AND $4 AND a.booked_at <= coalesce($5::timestamptz, 'infinity')
   AND ($2::uuid IS NULL OR a.pocket_id = $2) AND {is_shown.format(customer="$1", at="$5")}
 ORDER BY a.activity_id LIMIT 1
"""
    for as_of, is_shown in _IS_SHOWN.items()
}


class Activity:
    """The activity of a partner or a customer, of all pockets or of some, in booking order."""

    def __init__(self, lists: _Lists, *owner: object, end: int = JOURNAL_NO_MAX, as_of: datetime | None = None) -> None:
        self._lists = lists
        self._owner = owner
        self._end = end
        self.as_of = as_of
        self.order = lists[False, False].order
        self.place_of = lists[False, False].place_of

    @classmethod
    def of_customer(
        cls, customer_id: UUID, pocket_ids: list[UUID], *, end: int = JOURNAL_NO_MAX, as_of: datetime | None = None
    ) -> Self:
        """Return the activity of these distinct pockets, merged by (entry_no, posting_no).

        As of an instant, `end` is that of the entries then.
        """
        return cls(_OF_CUSTOMER, customer_id, pocket_ids, end=end, as_of=as_of)

    @classmethod
    def of_partner(cls, partner_id: UUID, pocket_ids: list[UUID] | None, as_of: datetime | None = None) -> Self:
        """Return the activity of all customers of a partner by (booked_at, written_no)."""
        return cls(_OF_PARTNER, partner_id, pocket_ids, as_of=as_of)

    @property
    def is_by_entry(self) -> bool:
        """True if the order is that of the entries of one customer."""
        return self._lists is not _OF_PARTNER

    def sort_key_of(self, row: TransactionRow) -> SortKey:
        """Return the position of a row as stored in cursors."""
        key: SortKey = msgspec.to_builtins(tuple(getattr(row, name) for name in self.order))
        return key

    async def rows(
        self,
        conn: Db,
        filters: TransactionFilters,
        *,
        now: datetime,
        calendars: Calendars,
        after: Place | None = None,
        descending: bool = True,
        limit: int,
    ) -> list[TransactionRow]:
        """Return up to `limit` rows after a position: ACH payments have the settlement and number of their entries."""
        listed, values = self._list_of(filters, now, calendars)
        rows = await listed.rows(conn, *values, after=after, descending=descending, limit=limit)
        return await with_payments(conn, rows, self.as_of)

    async def search(
        self,
        conn: Db,
        filters: TransactionFilters,
        *,
        now: datetime,
        calendars: Calendars,
        after: Place | None = None,
        descending: bool = True,
        limit: int,
    ) -> tuple[list[TransactionRow], Stop | None]:
        """Return the same rows as far as one page searches, and the position where the search stopped."""
        listed, values = self._list_of(filters, now, calendars)
        # For a customer, Pockets lead to the rows; for a partner, they filter all rows.
        is_filtered = filters.is_selective or (self._lists is _OF_PARTNER and self._owner[1] is not None)
        rows, stop = await listed.search(
            conn, *values, after=after, descending=descending, limit=limit, is_filtered=is_filtered
        )
        return await with_payments(conn, [row for row, _ in rows], self.as_of), stop

    def _list_of(self, filters: TransactionFilters, now: datetime, calendars: Calendars) -> tuple[_Searched, list[Any]]:
        """Return the list for these filters, and its parameters."""
        filters_settlement = filters.settled_from is not None or filters.settled_to is not None
        if self.as_of is not None and not self.is_by_entry:
            end = self.as_of + datetime.resolution
            filters = msgspec.structs.replace(filters, booked_to=min(filters.booked_to or end, end))
        values = [getattr(filters, name) for name in TransactionFilters.__struct_fields__]
        lists = self._lists
        if lists is _OF_CUSTOMER:
            values.insert(0, BookedIn(filters.booked_from, filters.booked_to, end=self._end))
            kinds = {each.partition(":")[0] for each in filters.types or ()}
            if kinds and kinds <= _BANK_TYPES and not filters.sweeps:
                lists = _OF_BANK
        closures = [transaction_settlement.closures_of(calendars)] if filters_settlement else []
        return lists[filters_settlement, self.as_of is not None], [*self._owner, *values, now, *closures]


async def get_transaction_row(
    conn: Db, customer_id: UUID, pocket_id: UUID | None, requested_id: UUID, as_of: datetime | None = None
) -> TransactionRow:
    """Return the activity with this id, or the pocket's activity of the transaction with it. Raises NotFound.

    Without a pocket, all pockets of the customer are searched; if two match, the first is returned.
    """
    group = group_of(requested_id)
    member = int.from_bytes(requested_id.bytes[-2:])
    sweep = member >= SWEEP_MEMBER
    first = member_of(group, member - SWEEP_MEMBER) if sweep else requested_id
    last = first if member else member_of(group, _MEMBER_MAX)
    row = await _transactions.one(conn, _ONE[as_of is not None], customer_id, pocket_id, first, last, as_of)
    if row.entry_no >= await entries_end(conn, customer_id, [row.pocket_id], as_of):
        raise NotFound("There is no such transaction.")
    (found,) = await with_payments(conn, [row], as_of)
    if sweep and found.is_hold:
        raise NotFound("There is no such transaction.")
    return sweep_of(found) if sweep else found


async def find_bank_bookings(conn: Connection, customer_ids: Sequence[UUID], ids: Sequence[UUID]) -> References:
    """Return the given ids that are bookings initiated by the bank in pockets of these customers."""
    rows = await conn.fetch(_BANK_BOOKINGS, customer_ids, ids)
    return [(customer_id, rest[0], transaction_settlement.BankBooking(*rest)) for customer_id, *rest in rows]


_TO_BROKERAGE = '{"sweep_direction":"TO_BROKERAGE"}'
_TO_BANK = '{"sweep_direction":"TO_BANK"}'


def sweep_of(row: TransactionRow) -> TransactionRow:
    """The sweep of an activity: to the brokerage what came in, from it what goes out."""
    member = int.from_bytes(row.activity_id.bytes[-2:])
    is_credit = row.direction == "CREDIT"
    return msgspec.structs.replace(
        row,
        activity_id=member_of(row.transaction_id, SWEEP_MEMBER + member),
        type="SWEEP",
        direction="DEBIT" if is_credit else "CREDIT",
        title="Sweep",
        description="To brokerage" if is_credit else "From brokerage",
        settles_at=row.booked_at,
        details=_TO_BROKERAGE if is_credit else _TO_BANK,
        remittance=None,
    )
