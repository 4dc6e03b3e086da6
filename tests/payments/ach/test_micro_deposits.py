"""Micro-deposits are sent in files of the network, and a returned one fails the verification."""

from datetime import timedelta
from uuid import UUID

import pytest

from billfold.accounts.counterparties.commands import AddCounterparty
from billfold.payments.ach.nacha.reader import read_file
from billfold.platform import ids
from billfold.sandbox.control.clock_stepper import ClockStepper
from billfold.verify.runner import verify_bank


@pytest.mark.parametrize(("routing_number", "status"), [("021000021", "PENDING"), ("091000019", "UNLINKED")])
async def test_micro_deposits_are_sent_and_a_return_fails_the_verification(bank, new_holder, routing_number, status):
    holder = await new_holder()
    made = await bank.engine.submit(
        AddCounterparty(
            caller="test",
            key=ids.new(),
            customers=(holder.customer_id,),
            type="ach",
            counterparty_name={"type": "business", "business_name": "Contoso"},
            details={"routing_number": routing_number, "account_number": "5647772655", "account_type": "SAVINGS"},
            verification="micro_deposits",
        )
    )
    await ClockStepper(bank).advance(timedelta(days=4))
    files = sorted((bank.settings.rails_dir / "ach" / "sent").glob("*.ach"))
    batch = read_file(files[0].read_bytes()).batches[0]
    assert (batch.company_entry_description, batch.standard_entry_class_code) == ("ACCTVERIFY", "PPD")
    assert sorted(entry.amount for entry in batch.entries) == [11, 22]
    assert {entry.transaction_code for entry in batch.entries} == {"32"}
    now = await bank.pool.fetchval(
        "SELECT status FROM counterparty WHERE counterparty_id = $1", UUID(made.outcome["counterparty_id"])
    )
    assert now == status
    async with bank.pool.acquire() as conn:
        report = await verify_bank(conn, market=bank.market, vault=bank.vault)
    assert not report.findings, report.findings[:3]
