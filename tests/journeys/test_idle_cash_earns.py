"""A company earns on idle cash: money in, bills, yield, maturity, a fee, money out."""

CLOSING = {"status": "CLOSED", "closure_reason": "USER_INSTIGATED"}


async def test_cash_is_invested_moved_matured_charged_and_paid_out(partner):
    customer = await partner.customer()
    short, long = await partner.pocket(customer), await partner.pocket(customer, weeks=26, name="Long")
    await partner.wire(short, 25_000_000)
    shown = await partner.get(short.path)
    assert [(each["cusip"], each["quantity"]) for each in shown["portfolio"]["securities"]] == [("912797PT8", 2506)]
    assert shown["portfolio"]["cash"]["value"] == 1616
    # The closing slash may be left out.
    assert await partner.get(short.path[:-1]) == shown

    done = await partner.transfer(short, long, 6_000_050, description="to the longer end")
    assert await partner.get(f"/api/v1/transfers/on-us/{done['id']}/") == done
    before = await partner.value(short) + await partner.value(long)
    done = await partner.transfer(short, long, 2_500_050, transfer_type="SECURITY_TRANSFER")
    assert 2_500_050 <= done["transfer"]["amount"]["value"] < 2_500_050 + 10_000
    assert await partner.value(short) + await partner.value(long) == before

    await partner.until("2025-06-24T09:00:00-04:00")
    trades = (await partner.get(f"{short.path}trades/"))["items"]
    assert {each["activity"] for each in trades} == {"BUY", "SELL", "SAME_ENTITY_SECURITY_TRANSFER", "MATURITY"}
    assert {each["price"] for each in trades if each["activity"] == "MATURITY"} == {"100.000000"}
    await expect_earnings_to_add_up(partner, short)

    await partner.until("2025-06-30T18:00:00-04:00")
    accrued = (await partner.get(short.path))["portfolio"]["fees"][0]["amount"]["value"]
    await partner.until("2025-07-01T09:00:00-04:00")
    (fee,) = (await partner.get(f"{short.path}transactions/", {"type[]": "FEE"}))["items"]
    assert fee["amount"]["value"] >= accrued > 0
    assert (await partner.get(f"{short.path}earnings/"))["fees"] == fee["amount"]

    path = f"/api/v2/customers/{customer}/pockets/{short.id}/"
    await partner.refused("PATCH", path, CLOSING, status=422, code="pocket-not-empty")
    await partner.transfer(short, long, None)
    await partner.refused("PATCH", path, CLOSING, status=422, code="pocket-not-empty")
    await partner.days(1)
    assert (await partner.patch(path, CLOSING))["status"] == "CLOSED"


async def expect_earnings_to_add_up(partner, pocket):
    path = f"{pocket.path}earnings/"
    for period in ("all-time", "ytd", "mtd", "wtd"):
        entry = await partner.get(path, {"period": period})
        cents = {name: each["value"] for name, each in entry.items() if isinstance(each, dict)}
        assert cents["earnings"] == cents["realised"] + cents["unrealised_change"]
        assert cents["earnings"] == cents["earnings_net"] + cents["fees"]
        assert cents["earnings_net"] == (
            cents["end_value"] - cents["start_value"] - cents["contributions"] + cents["withdrawals"]
        )
    ranges = (("2025-06-01", "2025-06-10"), ("2025-06-11", "2025-06-23"), ("2025-06-01", "2025-06-23"))
    first, second, whole = [
        (await partner.get(path, {"period": "range", "date_from": since, "date_to": until}))["earnings"]["value"]
        for since, until in ranges
    ]
    assert first + second == whole > 0
