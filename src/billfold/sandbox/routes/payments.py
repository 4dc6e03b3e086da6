"""Simulated incoming payments: ACH credits and wires, and bills from or to another custodian."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal
from uuid import UUID

import msgspec

from billfold.data_keys.keys import PartyField, PaymentKeys
from billfold.identity.partners.caller import Caller
from billfold.ledger.bank import Bank
from billfold.ledger.scheduler import run_job
from billfold.ledger.types import ScheduledJob
from billfold.payments.custody.rules import APPOINTMENT as DELIVERY
from billfold.payments.custody.rules import DeliverBills, ReceiveBills
from billfold.payments.deposits.inbound import receive_payment
from billfold.payments.deposits.rules import ACH_SETTLES_AFTER
from billfold.platform.database.connection import Pool
from billfold.platform.errors import InvalidInput, Refused
from billfold.sandbox.custodian import SimulatedCustodian
from billfold.sandbox.rails.ach_network import ach_credit
from billfold.sandbox.rails.correspondent import BookLine, Correspondent
from billfold.sandbox.rails.fedwire import DestinationAccount, Sender, SimulatedFedwire
from billfold.sandbox.routes.operations import derived_id, sandbox_post

FUND_MAX_CENTS = 4_999_999
FUND_MAX_COUNT = 9
WIRE_MAX_CENTS = 999_999_999_999
"""The maximum of a Fedwire message: $9,999,999,999.99."""

_OPEN_PORTAL = """
SELECT routing_number, account_number FROM portal
 WHERE customer_id = $1 AND pocket_id = $2 AND status = 'OPEN' AND 'ACH' = ANY(payment_rails)
 ORDER BY created_at, written_no LIMIT 1
"""
_PORTAL = """
SELECT routing_number, account_number FROM portal
 WHERE customer_id = $1 AND portal_id = $2 AND status = 'OPEN' AND 'WIRE' = ANY(payment_rails)
"""

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=140)]


class FundRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Up to nine ACH credits of one amount from one company."""

    account_id: UUID
    amount_usdc: Annotated[int, msgspec.Meta(ge=1, le=FUND_MAX_CENTS)]
    company_name: Annotated[str, msgspec.Meta(min_length=1, max_length=16)] = "FakeCompany"
    count: Annotated[int, msgspec.Meta(ge=1, le=FUND_MAX_COUNT)] = 1


class WireRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """One wire from anybody, to a portal or to any account number, even a closed or unknown one."""

    portal_id: UUID | None = None
    account_number: Annotated[str, msgspec.Meta(pattern=r"^[0-9]{4,17}\Z")] | None = None
    amount_usdc: Annotated[int, msgspec.Meta(ge=1, le=WIRE_MAX_CENTS)]
    sender_name: Text
    sender_account_number: Annotated[str, msgspec.Meta(pattern=r"^[0-9A-Z]{4,34}\Z")] | None = None
    sender_routing_number: Annotated[str, msgspec.Meta(pattern=r"^[0-9]{9}\Z")] | None = None


@sandbox_post("fund/", name="sandbox_fund", moves_money=True, refuses=("not-found", "no-open-portal"))
async def fund(caller: Caller, bank: Bank, data: FundRequest) -> None:
    """Receive up to nine ACH credits at the first open portal of a Pocket."""
    customer_id, pocket_id = await caller.pocket(bank, data.account_id)
    to = await _address(bank.pool, _OPEN_PORTAL, customer_id, of=pocket_id)
    for nth in range(data.count):
        ach_id = derived_id(bank, caller, nth)
        credit = ach_credit(bank.seed, ach_id, to._asdict(), amount=data.amount_usdc, company_name=data.company_name)
        day = bank.calendars.add_fed_days(bank.calendars.business_date(await bank.now()), ACH_SETTLES_AFTER)
        line = BookLine(f"ach-{credit.trace_number}", credit.amount, "ACH", credit.trace_number)
        await Correspondent(bank).record(day, [line])
        await receive_payment(bank, credit)


@sandbox_post("wire/", name="sandbox_wire", moves_money=True, refuses=("not-found", "no-open-portal"))
async def wire(caller: Caller, bank: Bank, fedwire: SimulatedFedwire, data: WireRequest) -> None:
    """Receive a wire. If it cannot be booked it is returned to its sender."""
    to = await _wire_to(bank, caller, data)
    sender = Sender(data.sender_name, data.sender_account_number, data.sender_routing_number)
    await fedwire.pay(bank, derived_id(bank, caller), to, data.amount_usdc, sender)


async def _wire_to(bank: Bank, caller: Caller, data: WireRequest) -> DestinationAccount:
    if data.portal_id is not None and data.account_number is None:
        customer_id, portal_id = await caller.owned(bank, "portal", data.portal_id)
        return await _address(bank.pool, _PORTAL, customer_id, of=portal_id)
    if data.account_number is None or data.portal_id is not None:
        raise InvalidInput.at("body", "portal_id", msg="exactly one of portal_id and account_number")
    return DestinationAccount(bank.settings.bank_routing_number, data.account_number)


async def _address(pool: Pool, query: str, customer_id: UUID, of: UUID) -> DestinationAccount:
    row = await pool.fetchrow(query, customer_id, of)
    if row is None:
        raise Refused("no-open-portal", "There is no open portal for this payment. Open one.")
    return DestinationAccount(*row)


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
async def security_transfer(
    caller: Caller, bank: Bank, custodian: SimulatedCustodian, data: SecurityTransferRequest
) -> None:
    """Receive bills from another custodian, or deliver them to one.

    A `counterparty_name` with REFUSE in it refuses the bills: they come back. The result is final when this returns.
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
        await custodian.receive(bank, common["transfer_id"], data.cusip, data.quantity)
        return
    for name in ("acquired_on", "cost_usdc"):
        if getattr(data, name) is not None:
            raise InvalidInput.at("body", name, msg="is only allowed with IN")
    await bank.engine.submit(DeliverBills(**common))
    await run_job(bank, ScheduledJob(DELIVERY, common["transfer_id"], customer_id, at=caller.now))
