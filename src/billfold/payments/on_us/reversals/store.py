"""Queries of reversal requests, and of the transfers that pay others back."""

from collections.abc import Sequence
from uuid import UUID

from billfold.payments.on_us.commands import OnUsTransferRow
from billfold.payments.on_us.reversals.commands import ReversalRequestRow
from billfold.platform.database.connection import Connection, Db
from billfold.platform.database.paging import BY_CREATION, KeysetList
from billfold.platform.database.rows import References, Table

_transfers, _requests = Table(OnUsTransferRow), Table(ReversalRequestRow)
_TRANSFERS = f"""
{_transfers.select} WHERE customer_id = ANY($1::uuid[]) AND transfer_id = ANY($2::uuid[])
UNION ALL
{_transfers.select} WHERE customer_id = ANY($1::uuid[]) AND reverses_id = ANY($2::uuid[])
"""
_REQUESTS = f"""{_requests.select} WHERE customer_id = ANY($1::uuid[])
   AND (reversal_id = ANY($2::uuid[]) OR transfer_id = ANY($2::uuid[])
     OR (requester_id = ANY($1::uuid[]) AND status = 'REQUESTED'))"""
_OPEN = f"{_requests.select} WHERE customer_id = $1 AND transfer_id = $2 AND status = 'REQUESTED'"
_TO_ANSWER = f"{_requests.select} WHERE customer_id = $1 AND status = 'REQUESTED' ORDER BY expires_at LIMIT $2"
_PAYEE_POCKET = "SELECT to_pocket_id FROM transfer WHERE customer_id = $1 AND transfer_id = $2"
_RECEIVED = """
SELECT activity_id FROM transaction
 WHERE customer_id = $1 AND pocket_id = $2 AND type = 'ON_US' AND direction = 'CREDIT'
   AND details->>'on_us_transfer_id' = $3::uuid::text LIMIT 1
"""
get_request = _requests.get
REQUESTS, REQUESTS_THEN = (
    KeysetList(
        f"""SELECT * FROM ({selected} (reversal_request.customer_id = $1 OR reversal_request.requester_id = $1)) r
 WHERE ($2::boolean IS NULL OR (requester_id = $1) = $2) AND ($3::text[] IS NULL OR status = ANY($3)) AND {{page}}""",
        _requests.read,
        **BY_CREATION,
    )
    for selected in (
        f"SELECT {_requests.columns()}, written_no FROM reversal_request WHERE",
        f"{_requests.select_as_of('$4', 'written_no')} AND",
    )
)
"""The requests to a customer and of it, by whether it is the requester, and by status; None does not filter."""


async def find_open_request(conn: Db, customer_id: UUID, transfer_id: UUID) -> ReversalRequestRow | None:
    """Return the open request to a payee to pay a transfer back, if there is one."""
    return next(iter(await _requests.all(conn, _OPEN, customer_id, transfer_id)), None)


async def list_to_answer(conn: Db, customer_id: UUID, *, limit: int) -> list[ReversalRequestRow]:
    """Return the open requests to a payee, the first to expire first."""
    return await _requests.all(conn, _TO_ANSWER, customer_id, limit)


async def find_received(conn: Db, request: ReversalRequestRow) -> UUID | None:
    """Return the id of the payee's transaction that a request is about."""
    pocket_id = await conn.fetchval(_PAYEE_POCKET, request.requester_id, request.transfer_id)
    found: UUID | None = await conn.fetchval(_RECEIVED, request.customer_id, pocket_id, request.transfer_id)
    return found


async def load_references(conn: Connection, customer_ids: Sequence[UUID], ids: Sequence[UUID]) -> References:
    """Return the transfers and requests among these ids, with the reversals and the requests of the transfers."""
    transfers = await _transfers.all(conn, _TRANSFERS, customer_ids, ids)
    requests = await _requests.all(conn, _REQUESTS, customer_ids, ids)
    return [
        *((each.customer_id, each.transfer_id, each) for each in transfers),
        *((each.customer_id, each.reversal_id, each) for each in requests),
    ]
