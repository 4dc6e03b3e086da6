"""Security transfers: queries of them, and a booked delivery is ordered from the custodian."""

from typing import Protocol, runtime_checkable

import msgspec
import structlog

from billfold.data_keys.keys import PartyField, PaymentKeys
from billfold.ledger.bank import Bank
from billfold.ledger.types import ScheduledJob
from billfold.payments.custody.rules import EndDelivery, SecurityTransfer, SecurityTransferStatus
from billfold.platform.database.connection import Db
from billfold.platform.database.rows import Table

_transfers = Table(SecurityTransfer)
_LIST = f"{_transfers.select} ORDER BY created_at DESC, written_no DESC LIMIT $1"
get_transfer = _transfers.get
load_references = _transfers.load_references


async def list_transfers(conn: Db, *, limit: int = 200) -> list[SecurityTransfer]:
    """Return the newest security transfers."""
    return await _transfers.all(conn, _LIST, limit)


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
