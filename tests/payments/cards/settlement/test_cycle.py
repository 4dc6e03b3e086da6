"""The sandbox's processor sends what merchants presented: the file of a date agrees with what was booked."""

from tests.support.cardholder import Cardholder
from tests.support.whole_bank import expect_clean

from billfold.ledger.jobs.due_work import bank_customer_id
from billfold.payments.cards.settlement import store


async def test_a_week_of_a_card_is_settled_by_files_to_zero(partner_desk):
    cardholder = await Cardholder(partner_desk, await partner_desk.pocket()).funded()
    bank = partner_desk.bank
    held = await cardholder.held(80_00)
    cleared = await cardholder.simulate("clearing", network_reference=held, amount_usdc=96_00)
    await cardholder.simulate("refund", amount_usdc=12_35)
    await partner_desk.days(1)
    await cardholder.simulate("chargeback", record_id=cleared["record_id"], amount_usdc=50_00)
    await cardholder.simulate("representment", record_id=cleared["record_id"], amount_usdc=20_00)
    await partner_desk.days(4)
    days = await store.reconcile(bank.pool, bank_customer_id(bank.seed))
    interchange = (1_44 - 19, -75 + 30)
    assert [(each.records, each.interchange, each.fees) for each in reversed(days)] == [
        (83_65, interchange[0], 5 + 12),
        (-30_00, interchange[1], 5 + 3),
    ]
    assert all(each.is_settled and each.difference == each.unsettled == 0 for each in days)
    assert await store.list_differences(bank.pool) == []
    await expect_clean(bank)
