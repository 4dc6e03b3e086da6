"""Answers of the simulated custodian reach the bank, also if its process dies before their file is written."""

import shutil
from datetime import date
from uuid import UUID

import pytest
from tests.support.whole_bank import close_bank, expect_clean, open_bank
from tests.trading.desk_by_hand import DeskByHand

from billfold.ledger.scheduler import run_job
from billfold.ledger.types import ScheduledJob
from billfold.payments.custody.rules import ReceiveBills
from billfold.platform.dates import et_instant
from billfold.sandbox.control.clock_stepper import ClockStepper
from billfold.sandbox.custodian import CUSTODIAN_DAY, FOLDER, SimulatedCustodian
from billfold.trading.rules.settlements import SEND_JOB
from billfold.trading.settlement.store import get_instruction
from billfold.trading.settlement.types import instruction_id_of

BILL = "912797PT8"


@pytest.fixture
async def bank(bank_dsn, request):
    opened = await open_bank(bank_dsn, dealers=getattr(request, "param", ("citadel", "jpm")))
    yield opened
    await close_bank(opened)


async def test_an_answer_is_sent_again_when_its_file_was_not_written(bank, new_holder):
    await (await new_holder()).deposit(100_000_00)
    desk = DeskByHand(bank)
    [order] = await desk.send_orders()
    fill = await desk.fill_of(order)
    await desk.book(fill)
    instruction_id = instruction_id_of(fill.execution_id)
    inbox = bank.settings.rails_dir / "custody" / "inbox"

    async def run_in_vain_and_again(kind, status):
        inbox.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(inbox, ignore_errors=True)
        inbox.touch()  # not a folder: no file can be written into it
        job = ScheduledJob(kind, instruction_id, None, at=await bank.now())
        with pytest.raises(FileExistsError):
            await run_job(bank, job)
        inbox.unlink()
        await run_job(bank, job)
        assert (await get_instruction(bank.pool, desk.bank_id, instruction_id)).status == status

    await run_in_vain_and_again(SEND_JOB, "MATCHED")
    await ClockStepper(bank).set_to(et_instant(date(2025, 6, 3), 9))
    await run_in_vain_and_again(CUSTODIAN_DAY, "SETTLED")
    custodian = SimulatedCustodian(bank.settings.state_dir / FOLDER)
    assert custodian.holdings() == {fill.cusip: fill.units}
    assert [cents for _, _, cents in custodian.cash(after=0, until=date(2025, 6, 3))] == [-fill.money]
    await expect_clean(bank)


@pytest.mark.parametrize("bank", [(), ("citadel",)], indirect=True)
async def test_bills_from_another_custodian_are_redeemed_once_with_and_without_dealers(bank, new_holder):
    holder = await new_holder()
    fields = {"pocket_id": holder.pocket_id, "counterparty_name": "Harbor", "counterparty_account": "1"}
    moved = {"transfer_id": UUID(int=1), "cusip": BILL, "units": 50}
    await holder.submit(ReceiveBills, holder.customer_id, **moved, **fields)
    custodian = SimulatedCustodian(bank.settings.state_dir / FOLDER)
    await custodian.receive(bank, *moved.values())
    await ClockStepper(bank).set_to(et_instant(bank.market.bill(BILL).maturity, 18))
    assert BILL not in custodian.holdings()
    assert not await bank.pool.fetchval("SELECT sum(debits - credits) FROM account WHERE kind = 'redemptions'")
    await expect_clean(bank)
