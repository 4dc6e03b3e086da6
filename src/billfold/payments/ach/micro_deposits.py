"""Micro-deposits: sent for counterparties whose verification uses them."""

from billfold.accounts.counterparties import store
from billfold.accounts.counterparties.rules.manage import DEPOSITS_CALLER
from billfold.accounts.counterparties.store import open_details
from billfold.accounts.counterparties.types import SanctionsStatus
from billfold.data_keys.keys import DataKeys, PartyField
from billfold.ledger.bank import Bank
from billfold.ledger.types import ScheduledJob
from billfold.payments.ach.commands import SendMicroDeposits


async def send_micro_deposits(bank: Bank, at: ScheduledJob) -> None:
    """Originate the two micro-deposits of a counterparty's verification, from the bank."""
    assert at.customer_id is not None
    async with bank.pool.acquire() as conn:
        referenced = await store.find_payees(conn, [at.customer_id], [at.object_id])
    house_id = bank.own_id
    house_key = await bank.ports[DataKeys].of(bank.pool, house_id)
    for customer_id, counterparty_id, payee in referenced:
        if payee.status != "PENDING" or payee.sanctions != SanctionsStatus.CLEAR:
            continue
        ring = await bank.ports[DataKeys].load(bank.pool, (customer_id,))
        account_number = open_details(ring.get(customer_id), payee.details)["account_number"]
        await bank.engine.submit(
            SendMicroDeposits(
                caller=DEPOSITS_CALLER,
                key=counterparty_id,
                customers=(house_id,),
                counterparty_id=counterparty_id,
                amounts=tuple(payee.verification["deposits"]),
                routing_number=payee.details["routing_number"],
                account_number=PartyField.ACCOUNT.seal(house_key, account_number),
                account_type=payee.details["account_type"],
                party_name=payee.name,
                company_name=bank.settings.bank_name,
            )
        )
