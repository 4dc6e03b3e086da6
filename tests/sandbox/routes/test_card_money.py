"""An approved swipe clears after two business days, unless it was reversed or cleared before."""

from tests.support.whole_bank import expect_clean


async def test_an_approved_swipe_clears_automatically_after_two_business_days(cardholder):
    swiped = await cardholder.simulate("swipe", amount_usdc=42_50)
    assert (swiped["decision"], swiped["approved_amount"], swiped["reason"]) == ("APPROVED", 42_50, None)
    await cardholder.desk.days(1)
    assert await cardholder.listed() == [("DEBIT", "BOOKED", 42_50)]
    assert await cardholder.desk.bank.pool.fetchval("SELECT count(*) FROM card_payment") == 0
    await cardholder.desk.days(1)
    assert await cardholder.listed() == [("DEBIT", "SETTLED", 42_50)]
    assert await cardholder.desk.bank.pool.fetchval("SELECT sum(reserved) FROM account") == 0
    await expect_clean(cardholder.desk.bank)


async def test_a_swipe_is_cleared_once_by_its_network_reference(cardholder):
    swiped = await cardholder.simulate("swipe", amount_usdc=42_50)
    reference = swiped["network_reference"]
    await cardholder.simulate("clearing", network_reference=reference, amount_usdc=45_00)
    reversed_one = await cardholder.simulate("swipe", amount_usdc=7_00)
    await cardholder.simulate("reversal", network_reference=reversed_one["network_reference"])
    less = await cardholder.simulate("swipe", amount_usdc=9_00)
    await cardholder.simulate("reversal", network_reference=less["network_reference"], amount_usdc=2_00)
    refused = await cardholder.simulate("swipe", amount_usdc=10_04)
    assert (refused["decision"], refused["reason"]) == ("DECLINED", "SUSPECTED_FRAUD")
    await cardholder.desk.days(5)
    assert await cardholder.listed() == [("DEBIT", "SETTLED", 45_00), ("DEBIT", "SETTLED", 7_00)]
    await expect_clean(cardholder.desk.bank)
