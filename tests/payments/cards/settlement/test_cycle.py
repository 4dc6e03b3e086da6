"""The sandbox's processor sends what merchants presented: the file of a date agrees with what was booked."""

from uuid import UUID

import pytest
from tests.support.approvals import confirm_as_otto
from tests.support.cards import Cardholder, Processor, presentment
from tests.support.whole_bank import expect_clean

from billfold.ledger.scheduler import bank_customer_id
from billfold.payments.cards.settlement import cli, store
from billfold.payments.suspense.rules import ReleaseFromSuspense
from billfold.platform import ids
from billfold.platform.errors import Refused, Unavailable


async def test_a_week_of_card_settlement_files_settles_to_zero(world):
    cardholder = await Cardholder(world, await world.pocket()).funded()
    bank = world.bank
    held = await cardholder.held(80_00)
    cleared = await cardholder.simulate("clearing", network_reference=held, amount_usdc=96_00)
    await cardholder.simulate("refund", amount_usdc=12_35)
    await world.days(1)
    await cardholder.simulate("chargeback", record_id=cleared["record_id"], amount_usdc=50_00)
    await cardholder.simulate("representment", record_id=cleared["record_id"], amount_usdc=20_00)
    await world.days(4)
    days = await store.reconcile(bank.pool, bank_customer_id(bank.seed))
    interchange = (1_44 - 19, -75 + 30)
    assert [(each.records, each.interchange, each.fees) for each in reversed(days)] == [
        (83_65, interchange[0], 5 + 12),
        (-30_00, interchange[1], 5 + 3),
    ]
    assert all(each.is_settled and each.difference == each.unsettled == 0 for each in days)
    assert await store.list_differences(bank.pool) == []
    await expect_clean(bank)


async def test_an_interrupted_confirmation_books_a_settlement_record_once(world, monkeypatch):
    cardholder = await Cardholder(world, await world.pocket()).funded()
    bank, submit = world.bank, world.bank.engine.submit
    await Processor(bank).send(presentment(ids.new(), 40_00))
    ((record, _),) = await store.list_held(bank.pool)
    card = UUID(cardholder.card)
    said = await cli.assign(bank, record.item_id, card)
    await world.days(1)  # it is booked on the day on which it is confirmed

    async def cut_off(command):
        if isinstance(command, ReleaseFromSuspense):
            raise Unavailable("The database is unavailable.")
        return await submit(command)

    with monkeypatch.context() as patch, pytest.raises(Unavailable):
        patch.setattr(bank.engine, "submit", cut_off)
        await confirm_as_otto(bank, said)
    with pytest.raises(Refused, match="booked already"):
        await cli.assign(bank, record.item_id, card)
    await confirm_as_otto(bank, said)
    assert record.record_id is not None
    booked = await store.find_payments(bank.pool, [record.record_id])
    assert [(each.card_id, each.amount) for each in booked.values()] == [(card, 40_00)]
    days = "SELECT settles_on FROM card_payment UNION ALL SELECT business_date FROM ledger_head WHERE customer_id = $1"
    (paid_on,), (open_on,) = await bank.pool.fetch(days, bank_customer_id(bank.seed))
    assert paid_on == open_on
    assert await store.list_held(bank.pool) == []
    await expect_clean(bank)
