"""How far a page of transactions of a customer is searched for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from typing_extensions import override

from billfold.accounts.entry_numbers import Entries, MergedList
from billfold.platform.database import keyset

if TYPE_CHECKING:
    from billfold.platform.database.connection import (Connection, Pool)

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

    __slots__ = ()
    table = "transaction"


class BankBookingList(PaymentList[RowType]):
    """What the bank booked by itself, which is little beside payments and has an index of its own."""

    __slots__ = ()

    @override
    async def _within_reach(
        self, conn: Connection | Pool, values: tuple[Any, ...], span: Entries, *, descending: bool
    ) -> Entries:
        entry_no = await conn.fetchval(_FAR_OF_BANK[descending], values[0], *span, keyset.SEARCHED_MAX)
        return span.cut(entry_no, descending=descending)
