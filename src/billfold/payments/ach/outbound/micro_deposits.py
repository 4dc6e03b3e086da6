"""Micro-deposits: sent for counterparties whose verification uses them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from billfold.accounts.counterparties import store as counterparty_store
from billfold.accounts.counterparties.types import SanctionsStatus
from billfold.ledger.jobs.due_work import bank_customer_id
from billfold.payments.ach.commands import SendMicroDeposits

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.ledger.jobs.types import ScheduledJob


async def send_micro_deposits(bank: Bank, at: ScheduledJob) -> None:
    """Originate the two micro-deposits of a counterparty's verification, from the bank."""
    assert at.customer_id is not None
    async with bank.pool.acquire() as conn:
        referenced = await counterparty_store.find_payees(conn, [at.customer_id], [at.object_id])
    for _, counterparty_id, payee in referenced:
        if payee.status != "PENDING" or payee.sanctions != SanctionsStatus.CLEAR:
            continue
        await bank.engine.submit(
            SendMicroDeposits(
                caller="micro-deposits",
                key=counterparty_id,
                customers=(bank_customer_id(bank.seed),),
                counterparty_id=counterparty_id,
                amounts=tuple(payee.verification["deposits"]),
                routing_number=payee.details["routing_number"],
                account_number=payee.details["account_number"],
                account_type=payee.details["account_type"],
                party_name=payee.name,
                company_name=bank.settings.bank_name,
            )
        )
