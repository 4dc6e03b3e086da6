"""Simulated transfers of bills from and to other custodians."""

from datetime import date
from typing import Annotated, Literal
from uuid import UUID

import msgspec

from billfold.data_keys.payment_keys import PaymentKeys
from billfold.data_keys.types import PartyField
from billfold.identity.partners.caller import Caller
from billfold.ledger.bank import Bank
from billfold.ledger.jobs.scheduler import run_job
from billfold.ledger.types import ScheduledJob
from billfold.payments.custody.commands import DeliverBills, ReceiveBills
from billfold.payments.custody.rules import APPOINTMENT as DELIVERY
from billfold.platform.errors import InvalidInput
from billfold.sandbox.operations import derived_id, sandbox_post

UNITS_MAX = 10_000_000
"""A billion dollars of face value."""
COST_MAX_CENTS = 100_000_000_000


class SecurityTransferRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A number of bills of $100 face. Cost and acquisition date come from the delivering custodian."""

    account_id: UUID
    direction: Literal["IN", "OUT"]
    cusip: Annotated[str, msgspec.Meta(pattern=r"^[0-9A-Z]{9}\Z")]
    quantity: Annotated[int, msgspec.Meta(ge=1, le=UNITS_MAX)]
    counterparty_name: Annotated[str, msgspec.Meta(min_length=1, max_length=140)] = "Another Custodian"
    counterparty_account: Annotated[str, msgspec.Meta(pattern=r"^[0-9A-Z]{1,34}\Z")] = "0000"
    acquired_on: date | None = None
    cost_usdc: Annotated[int, msgspec.Meta(ge=0, le=COST_MAX_CENTS)] | None = None


@sandbox_post(
    "security-transfer/",
    name="sandbox_security_transfer",
    moves_money=True,
    refuses=(
        "not-found",
        "customer-not-open",
        "agreement-not-accepted",
        "pocket-not-open",
        "pocket-frozen",
        "bill-not-deliverable",
        "insufficient-funds",
    ),
)
async def security_transfer(caller: Caller, bank: Bank, data: SecurityTransferRequest) -> None:
    """Let bills arrive from another custodian, or leave for one.

    A `counterparty_name` with REFUSE in it takes none: they come back. Either has happened when this answers.
    """
    customer_id, pocket_id = await caller.pocket(bank, data.account_id)
    data_key = (await PaymentKeys.prepare(bank, (customer_id,))).of(customer_id)
    common = {
        **caller.command_fields(customer_id),
        "transfer_id": derived_id(bank, caller),
        "pocket_id": pocket_id,
        "cusip": data.cusip,
        "units": data.quantity,
        "counterparty_name": data.counterparty_name,
        "counterparty_account": PartyField.ACCOUNT.seal(data_key, data.counterparty_account),
    }
    if data.direction == "IN":
        await bank.engine.submit(ReceiveBills(**common, acquired_on=data.acquired_on, cost_cents=data.cost_usdc))
        return
    for name in ("acquired_on", "cost_usdc"):
        if getattr(data, name) is not None:
            raise InvalidInput.at("body", name, msg="is only taken with IN")
    await bank.engine.submit(DeliverBills(**common))
    await run_job(bank, ScheduledJob(DELIVERY, common["transfer_id"], customer_id, at=caller.now))
