"""Queries of withdrawals as customers made them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from billfold.accounts.counterparties.store import is_stopped
from billfold.payments.crypto.withdrawals.types import WithdrawalRow
from billfold.platform.database.keyset import reads
from billfold.platform.errors import NotFound

if TYPE_CHECKING:
    from billfold.platform.database.connection import (Connection, Pool)

_row = reads(WithdrawalRow)
_COLUMNS = ", ".join(f"w.{name}" for name in WithdrawalRow.__struct_fields__)
_REFERENCED = f"""
SELECT {_COLUMNS} FROM crypto_withdrawal w
 WHERE w.customer_id = ANY($1::uuid[]) AND w.withdrawal_id = ANY($2::uuid[])
"""
_OPEN = f"""
SELECT DISTINCT ON (w.customer_id, w.pocket_id) {_COLUMNS} FROM crypto_withdrawal w
 WHERE w.customer_id = ANY($1::uuid[]) AND w.status IN ('PENDING', 'PROCESSING')
 ORDER BY w.customer_id, w.pocket_id
"""
_FIND = f"""
SELECT {_COLUMNS} FROM directory d
  JOIN crypto_withdrawal w ON w.customer_id = d.customer_id AND w.withdrawal_id = d.object_id
 WHERE d.kind = 'crypto_withdrawal' AND d.value = $1
"""
_WAITING = f"""
SELECT {_COLUMNS}, {is_stopped("w")} AS is_stopped, k.account_status = 'FROZEN' AS is_frozen
  FROM crypto_withdrawal w JOIN customer k USING (customer_id)
 WHERE w.chain = $1 AND w.status = 'PENDING' AND NOT EXISTS (
   SELECT FROM crypto_transaction t WHERE t.customer_id = w.customer_id AND t.withdrawal_id = w.withdrawal_id)
 ORDER BY w.written_no LIMIT $2
"""
_LIST = f"""
SELECT {_COLUMNS} FROM crypto_withdrawal w
 WHERE $1::text IS NULL OR w.status = $1 ORDER BY w.written_no DESC LIMIT $2
"""


class WaitingWithdrawal(NamedTuple):
    """A withdrawal for which nothing was done yet.

    `is_stopped`: its customer is frozen (`is_frozen`), or its counterparty is stopped by screening.
    """

    row: WithdrawalRow
    is_stopped: bool
    is_frozen: bool


async def load_references(
    conn: Connection, customer_ids: Sequence[UUID], ids: Sequence[UUID]
) -> list[tuple[UUID, UUID, WithdrawalRow]]:
    """Return the withdrawals of these customers among the ids."""
    rows = [_row(each) for each in await conn.fetch(_REFERENCED, customer_ids, ids)]
    return [(row.customer_id, row.withdrawal_id, row) for row in rows]


async def load_open_withdrawals(
    conn: Connection, customer_ids: Sequence[UUID], ids: Sequence[UUID]
) -> list[tuple[UUID, UUID, WithdrawalRow]]:
    """Return one withdrawal in process of each Pocket that has any."""
    del ids
    rows = [_row(each) for each in await conn.fetch(_OPEN, customer_ids)]
    return [(row.customer_id, row.withdrawal_id, row) for row in rows]


async def get_withdrawal(conn: Connection | Pool, withdrawal_id: UUID) -> WithdrawalRow:
    """Return the withdrawal of any customer. Raises NotFound."""
    row = await conn.fetchrow(_FIND, str(withdrawal_id))
    if row is None:
        raise NotFound("There is no such withdrawal.")
    return _row(row)


async def list_waiting(conn: Connection | Pool, chain: str, limit: int) -> list[WaitingWithdrawal]:
    """Return withdrawals of a chain for which nothing was done yet, the oldest first."""
    rows = await conn.fetch(_WAITING, chain, limit)
    return [WaitingWithdrawal(_row(each), each["is_stopped"], each["is_frozen"]) for each in rows]


async def list_withdrawals(conn: Connection | Pool, status: str | None, limit: int) -> list[WithdrawalRow]:
    """Return the newest withdrawals, of one status or of any."""
    return [_row(each) for each in await conn.fetch(_LIST, status, limit)]
