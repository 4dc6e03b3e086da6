"""How far a page of transactions is searched for, where it is not along the Pockets of one customer."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from typing_extensions import override

from billfold.accounts import entry_numbers
from billfold.accounts.entry_numbers import Entries, MergedList
from billfold.platform.database.keyset import Found, KeysetList, Place
from billfold.platform.paging import Stop

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection, Pool

RowType = TypeVar("RowType")
_FAR_OF_BANK = {
    descending: f"""
SELECT entry_no FROM transaction
 WHERE customer_id = $1 AND type IN ('FEE', 'CREDIT', 'GENERIC') AND entry_no >= $2 AND entry_no < $3
 ORDER BY entry_no {way} OFFSET $4 LIMIT 1"""
    for descending, way in ((True, "DESC"), (False, "ASC"))
}
_FAR_OF_PARTNER = KeysetList(
    """
SELECT booked_at, written_no FROM transaction
 WHERE partner_id = $1 AND ($2::timestamptz IS NULL OR booked_at >= $2) AND ($3::timestamptz IS NULL OR booked_at < $3)
   AND {page} OFFSET $4
""",
    lambda row: row,
    booked_at="timestamptz",
    written_no="bigint",
)
_NUMBER_MAX = 2**63 - 1
_INSTANT = timedelta(microseconds=1)


class PaymentList(MergedList[RowType]):
    """Payments of Pockets of a customer."""

    __slots__ = ()
    table = "transaction"


class BankBookingList(PaymentList[RowType]):
    """What the bank booked by itself, which is little beside payments and has an index of its own."""

    __slots__ = ()

    @override
    async def _within_reach(
        self, conn: Connection | Pool, values: tuple[Any, ...], span: Entries, *, descending: bool
    ) -> Entries:
        entry_no = await conn.fetchval(_FAR_OF_BANK[descending], values[0], *span, entry_numbers.SEARCHED_MAX)
        return span.cut(entry_no, descending=descending)


class PartnerPaymentList(KeysetList[RowType]):
    """Payments of all customers of a partner: a page of a filtered list looks through so many at most.

    The first values are the partner and its Pockets, if some are named; `booked` are the places of the first instant
    and of the end among the values.
    """

    __slots__ = ()
    booked: ClassVar[tuple[int, int]]

    @override
    async def search(
        self,
        conn: Connection | Pool,
        *values: Any,
        after: Place | None = None,
        descending: bool = True,
        limit: int,
        is_filtered: bool = False,
    ) -> Found[RowType]:
        first, end = (values[place] for place in self.booked)
        far = []
        if is_filtered or values[1] is not None:
            of = (values[0], first, end, entry_numbers.SEARCHED_MAX)
            far = await _FAR_OF_PARTNER.rows(conn, *of, after=after, descending=descending, limit=1)
        if not far:
            return Found(await self.placed_rows(conn, *values, after=after, descending=descending, limit=limit))
        # What was booked in one instant is looked at as a whole.
        seen = far[0]["booked_at"]
        bounded = list(values)
        bounded[self.booked[not descending]] = seen if descending else seen + _INSTANT
        rows = await self.placed_rows(conn, *bounded, after=after, descending=descending, limit=limit)
        place = (seen.isoformat(), -1 if descending else _NUMBER_MAX)
        return Found(rows, None if len(rows) >= limit else Stop(place, seen))
