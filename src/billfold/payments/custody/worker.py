"""Security transfers: queries of them, and the port of the custodian that carries the messages about them."""

from typing import Protocol, runtime_checkable
from uuid import UUID

from billfold.payments.custody.rules import SecurityTransfer
from billfold.payments.files.exchange import FileExchange
from billfold.platform.database.connection import Db
from billfold.platform.database.rows import Table

_transfers = Table(SecurityTransfer)
_LIST = f"{_transfers.select} ORDER BY created_at DESC, written_no DESC LIMIT $1"
_OF_ID = f"{_transfers.select} WHERE transfer_id = $1"
_IN_CUSTODY = """
SELECT coalesce(sum(debits - credits), 0)::bigint FROM account
 WHERE kind = 'custodian' AND asset = $2
   AND customer_id IN (SELECT $1::uuid UNION SELECT customer_id FROM security_transfer WHERE cusip = $2)
"""
get_transfer = _transfers.get
load_references = _transfers.load_references


async def list_transfers(conn: Db, *, limit: int = 200) -> list[SecurityTransfer]:
    """Return the newest security transfers."""
    return await _transfers.all(conn, _LIST, limit)


async def find_transfer(conn: Db, transfer_id: UUID) -> SecurityTransfer | None:
    """Return a transfer of any customer, as the custodian names it."""
    return await _transfers.first(conn, _OF_ID, transfer_id)


async def count_in_custody(conn: Db, bank_id: UUID, cusip: str) -> int:
    """Return the units of a bill that the custodian has according to all books."""
    units: int = await conn.fetchval(_IN_CUSTODY, bank_id, cusip)
    return units


@runtime_checkable
class Custodian(FileExchange, Protocol):
    """The custodian: carries files of messages (`messages`) both ways. Their names and contents are not changed."""
