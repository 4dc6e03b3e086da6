"""Two processes of one bank, as on two hosts: each has its own cache and sees the other's commits."""

import pytest
from tests.support.whole_bank import EngineCommands, close_bank, expect_clean, open_bank

from billfold.accounts.customers.commands import SetCustomerState
from billfold.ledger.customers import CustomerStatus
from billfold.platform.errors import Refused


async def test_a_freeze_or_payment_on_one_host_is_effective_on_the_other_immediately(bank, bank_dsn, new_holder):
    there = await open_bank(bank_dsn)
    payer, payee = await new_holder(name="Payer"), await new_holder(name="Payee")
    await payer.deposit(1_000_00)
    hosts = EngineCommands(bank, "here"), EngineCommands(there, "there")
    for host in hosts:  # from now on both have the books in memory
        assert (await host.transfer(payer.place, payee.place, 100_00))["status"] == "COMPLETED"
    for freezing, paying in (hosts, hosts[::-1]):
        await freezing.submit(
            SetCustomerState,
            payer.customer_id,
            status=CustomerStatus.FROZEN,
            reason="An order",
            references=(payer.customer_id,),
        )
        with pytest.raises(Refused) as refused:
            await paying.transfer(payer.place, payee.place, 100_00)
        assert refused.value.code == "customer-not-open"
        await paying.submit(
            SetCustomerState,
            payer.customer_id,
            status=CustomerStatus.OPEN,
            reason="It is lifted",
            references=(payer.customer_id,),
        )
        assert (await freezing.transfer(payer.place, payee.place, 100_00))["status"] == "COMPLETED"
    for host in hosts:  # six hundred are left, and no host spends the money that the other has spent
        assert (await host.transfer(payer.place, payee.place, 601_00))["status"] == "REJECTED"
    await expect_clean(there)
    await close_bank(there)
