"""A company earns on idle cash: money in, bills, maturity, a fee, money out."""

CLOSING = {"status": "CLOSED", "closure_reason": "USER_INSTIGATED"}


async def test_a_company_earns_until_it_withdraws_and_closes_the_pocket(partner_desk):
    short = await partner_desk.pocket()
    long = await partner_desk.pocket(short.customer, weeks=26, name="Long")
    await partner_desk.wire(short, 250_000_00)
    portfolio = (await partner_desk.get(short.path))["portfolio"]
    assert [(each["cusip"], each["quantity"]) for each in portfolio["securities"]] == [("912797PT8", 2506)]
    assert portfolio["cash"]["value"] == 16_16

    await partner_desk.until("2025-06-24T09:00:00-04:00")
    trades = (await partner_desk.get(f"{short.path}trades/"))["items"]
    assert [each["activity"] for each in trades] == ["BUY", "MATURITY", "BUY"]
    await partner_desk.until("2025-06-30T18:00:00-04:00")
    (accrued,) = (await partner_desk.get(short.path))["portfolio"]["fees"]
    await partner_desk.until("2025-07-01T09:00:00-04:00")
    (fee,) = (await partner_desk.get(f"{short.path}transactions/", {"type[]": "FEE"}))["items"]
    assert (fee["fee_type"], fee["direction"]) == ("AUM_FEE", "DEBIT")
    assert fee["amount"]["value"] >= accrued["amount"]["value"] > 0
    for period in ("all-time", "ytd", "mtd", "wtd"):
        expect_consistent(await partner_desk.get(f"{short.path}earnings/", {"period": period}), fee)

    path = f"/api/v2/customers/{short.customer}/pockets/{short.id}/"
    await partner_desk.transfer(short, long, None)
    unsettled = await partner_desk.refused("PATCH", path, CLOSING, status=422, code="pocket-not-empty")
    assert "2025-07-02" in unsettled["detail"]
    await partner_desk.days(1)
    assert (await partner_desk.patch(path, CLOSING))["status"] == "CLOSED"
    accounts = await partner_desk.get(f"/api/v1/customers/{short.customer}/service-accounts/")
    assert {each["id"]: each["status"] for each in accounts["items"]} == {short.id: "CLOSED", long.id: "OPEN"}
    assert await partner_desk.value(long) > 250_000_00


def expect_consistent(earned, fee):
    """The figures of a period in which this fee was charged agree with each other."""
    cents = {name: each["value"] for name, each in earned.items() if isinstance(each, dict)}
    assert cents["fees"] == fee["amount"]["value"]
    assert cents["earnings"] == cents["realised"] + cents["unrealised_change"]
    assert cents["earnings"] == cents["earnings_net"] + cents["fees"]
    grown = cents["end_value"] - cents["start_value"]
    assert cents["earnings_net"] == grown - cents["contributions"] + cents["withdrawals"]
