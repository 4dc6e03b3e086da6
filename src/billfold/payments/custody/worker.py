"""Deliveries: a booked delivery is ordered from the custodian, and the result is recorded."""

import msgspec
import structlog

from billfold.data_keys.data_key import PartyField
from billfold.data_keys.keys import PaymentKeys
from billfold.ledger.bank import Bank
from billfold.ledger.types import ScheduledJob
from billfold.payments.custody.commands import EndDelivery
from billfold.payments.custody.ports import Custodian
from billfold.payments.custody.store import get_transfer
from billfold.payments.custody.types import SecurityTransferStatus

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
