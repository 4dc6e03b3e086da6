"""Deliveries: a booked delivery is ordered from the custodian, and the result is recorded."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable
from uuid import UUID

import msgspec
import structlog

from billfold.data_keys.payment_keys import PaymentKeys
from billfold.data_keys.types import PartyField
from billfold.ledger.bank import Bank
from billfold.ledger.types import ScheduledJob
from billfold.payments.custody.commands import EndDelivery, SecurityTransfer, SecurityTransferStatus
from billfold.platform.database.connection import Connection, Pool
from billfold.platform.errors import NotFound

_COLUMNS = ", ".join(SecurityTransfer.__struct_fields__)
_SOME = f"""
SELECT {_COLUMNS} FROM security_transfer
 WHERE customer_id = ANY($1::uuid[]) AND transfer_id = ANY($2::uuid[])
"""
_LIST = f"""
SELECT {_COLUMNS} FROM security_transfer ORDER BY created_at DESC, written_no DESC LIMIT $1
"""


async def get_transfer(conn: Connection | Pool, customer_id: UUID, transfer_id: UUID) -> SecurityTransfer:
    """Return the customer's security transfer. Raises NotFound."""
    rows = await conn.fetch(_SOME, [customer_id], [transfer_id])
    if not rows:
        raise NotFound("There is no such security transfer.")
    return SecurityTransfer(**rows[0])


async def list_transfers(conn: Connection | Pool, *, limit: int = 200) -> list[SecurityTransfer]:
    """Return the newest security transfers."""
    return [SecurityTransfer(**row) for row in await conn.fetch(_LIST, limit)]


async def load_references(
    conn: Connection, customer_ids: Sequence[UUID], ids: Sequence[UUID]
) -> list[tuple[UUID, UUID, Any]]:
    """Return the security transfers of these customers among the ids, as rules see them."""
    found = [SecurityTransfer(**row) for row in await conn.fetch(_SOME, customer_ids, ids)]
    return [(each.customer_id, each.transfer_id, each) for each in found]


@runtime_checkable
class Custodian(Protocol):
    """The custodian."""

    async def deliver(self, transfer: SecurityTransfer) -> str | None:
        """Deliver bills, free of payment; return the reason if the other side rejects them.

        Idempotent by the transfer's id. Raises Unavailable if the custodian does not answer.
        """


log = structlog.get_logger(__name__)


async def deliver(custodian: Custodian, bank: Bank, job: ScheduledJob) -> None:
    """Order a delivery, and record its result: a scheduled job. Safe to repeat."""
    assert job.customer_id is not None
    transfer = await get_transfer(bank.pool, job.customer_id, job.object_id)
    if transfer.status != SecurityTransferStatus.PENDING:
        return
    keys = await PaymentKeys.load(bank, (transfer.customer_id,))
    account = keys.open(PartyField.ACCOUNT, transfer.customer_id, transfer.counterparty_account)
    reason = await custodian.deliver(msgspec.structs.replace(transfer, counterparty_account=account or ""))
    await bank.engine.submit(
        EndDelivery(
            caller="custodian",
            key=transfer.transfer_id,
            customers=(transfer.customer_id,),
            transfer_id=transfer.transfer_id,
            reason=reason,
            references=(transfer.transfer_id,),
        )
    )
    if reason is not None:
        log.warning("delivery_refused", transfer_id=str(transfer.transfer_id))
