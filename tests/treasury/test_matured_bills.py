"""A matured bill is neither sold nor moved from midnight of its maturity until its redemption."""

import pytest
from tests.support.cards import Cardholder
from tests.support.whole_bank import expect_clean


@pytest.fixture
async def matured_bill(partner_desk):
    """A cardholder, another Pocket of the same customer, and the bill: it has matured, and is not redeemed yet."""
    holder = await Cardholder(partner_desk, await partner_desk.pocket()).funded(10_000_00)
    other = await partner_desk.pocket(holder.pocket.customer, weeks=13, name="Other")
    await partner_desk.days(3)
    (held,) = (await holder.portfolio())["securities"]
    await partner_desk.until(f"{held['maturity_date']}T07:00:00-04:00")
    return holder, other, held


async def activities(holder):
    return [each["activity"] for each in (await holder.desk.get(f"{holder.pocket.path}trades/"))["items"]]


async def test_a_matured_bill_counts_at_par_but_not_as_same_day_liquidity(matured_bill):
    holder, _, held = matured_bill
    shown = await holder.portfolio()
    cash, par = shown["cash"]["value"], 100_00 * held["quantity"]
    assert shown["total_value"]["value"] == cash + par
    assert shown["liquidation_value_t0"]["value"] <= cash < par < shown["liquidation_value_t1"]["value"] + 10_00
    for field in ("liquidation_value_t0", "liquidation_value_t1"):
        told = await holder.desk.get(f"{holder.pocket.path}explain/", {"field": field})
        assert told["explanation"]["amount"] == shown[field], field


async def test_a_matured_bill_cannot_be_moved_and_is_redeemed_whole(matured_bill):
    holder, other, held = matured_bill
    desk, pocket = holder.desk, holder.pocket
    in_kind = {"transfer_type": "SECURITY_TRANSFER"}
    for amount, fields in ((1_000_00, {}), (1_000_00, in_kind), (None, in_kind)):
        await desk.transfer(pocket, other, amount, status="REJECTED", **fields)
    await holder.declined("INSUFFICIENT_FUNDS", 1_000_00)
    assert await activities(holder) == ["BUY"]

    await desk.until(f"{held['maturity_date']}T08:30:00-04:00")
    bought, redeemed, _ = (await desk.get(f"{pocket.path}trades/"))["items"]
    assert (redeemed["activity"], redeemed["quantity"], redeemed["price"]) == (
        *("MATURITY", held["quantity"], "100.000000"),
    )
    assert bought["activity"] == "BUY"
    await holder.held(1_000_00)
    for fields in ({}, in_kind):
        await desk.transfer(pocket, other, 1_000_00, **fields)
    await expect_clean(desk.bank)
