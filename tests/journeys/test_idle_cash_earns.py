"""A company earns on idle cash: money in, bills, yield, maturity, money out."""

import pytest


@pytest.fixture
async def home(town):
    customer = await town.customer()
    return customer, await town.pocket(customer), await town.pocket(customer, "UST-26W", "Long")


async def test_a_wire_becomes_bills_and_the_bank_side_is_zero(town, home):
    _, short, _ = home
    await town.wire(short, 25_000_000)
    pocket = await town.get(f"/api/v2/pockets/{short}/")
    held = pocket["portfolio"]["securities"]
    assert [(s["cusip"], s["quantity"]) for s in held] == [("912797PT8", 2506)]
    assert pocket["portfolio"]["cash"]["value"] == 1616
    path = f"/api/v2/pockets/{short}/transactions/"
    plain = (await town.get(path))["items"]
    assert [(t["type"], t["direction"], t["amount"]["value"]) for t in plain] == [("WIRE", "CREDIT", 25_000_000)]
    both = (await town.get(path, query="include_sweeps=true"))["items"]
    signed = [t["amount"]["value"] * (1 if t["direction"] == "CREDIT" else -1) for t in both]
    assert sum(signed) == 0
    assert {t["type"] for t in both} == {"WIRE", "SWEEP"}
    await town.prove()


async def test_value_moves_between_pockets_without_a_cent_lost(town, home):
    customer, short, long = home
    await town.wire(short, 25_000_000)
    await town.fund(long, 1_500_000, count=3)
    asked = {
        "type": "INTERNAL_REALLOCATION",
        "from_account": {"id": short, "type": "SERVICE_ACCOUNT"},
        "to_account": {"id": long, "type": "SERVICE_ACCOUNT"},
        "amount": {"type": "REQUESTED_AMOUNT", "amount_usdc": 6_000_050},
        "description": "to the longer end",
    }
    done = await town.post("/api/v1/transfers/on-us/", asked)
    assert (done["status"], done["reason"]) == ("COMPLETED", None)
    read = await town.get(f"/api/v1/transfers/on-us/{done['id']}/")
    assert read == done
    listed = await town.get(f"/api/v2/customers/{customer}/transactions/", query="type[]=ON_US&order=asc")
    assert [t["direction"] for t in listed["items"]] == ["DEBIT", "CREDIT"]
    one = listed["items"][0]
    path = f"/api/v2/pockets/{short}/transactions/"
    assert await town.get(f"{path}{one['id']}/") == one
    assert (await town.get(f"{path}{one['transaction_id']}/"))["id"] == one["id"]
    trades = await town.get(f"/api/v2/customers/{customer}/trades/")
    assert {t["activity"] for t in trades["items"]} == {"BUY", "SELL"}
    sold = next(t for t in trades["items"] if t["activity"] == "SELL")
    assert sold["status"] == "BOOKED"
    await town.prove()


async def test_bills_move_whole_and_keep_their_value(town, home):
    customer, short, long = home
    await town.wire(short, 10_000_000)
    before = await town.value(short)
    asked = {
        "type": "INTERNAL_REALLOCATION",
        "transfer_type": "SECURITY_TRANSFER",
        "from_account": {"id": short},
        "to_account": {"id": long},
        "amount_usdc": 2_500_050,
    }
    done = await town.post("/api/v1/transfers/on-us/", asked)
    moved = done["transfer"]["amount"]["value"]
    assert 2_500_050 <= moved < 2_500_050 + 10_000
    assert await town.value(short) + await town.value(long) == before
    trades = await town.get(f"/api/v2/pockets/{long}/trades/")
    assert [t["activity"] for t in trades["items"]] == ["SAME_ENTITY_SECURITY_TRANSFER"]
    v1 = await town.get(f"/api/v1/service-accounts/{long}/trades/")
    assert v1["items"] == []
    earned = await town.get("/api/v2/earnings/", query=f"customer_id={customer}")
    total = earned["aggregate"]["earnings"]["value"]
    assert total == sum(item["earnings"]["value"] for item in earned["items"])
    await town.prove()


async def test_a_matured_bill_is_bought_again_and_earnings_add_up(town, home):
    customer, short, _ = home
    await town.wire(short, 25_000_000)
    await town.advance(until="2025-06-24T09:00:00-04:00")
    trades = (await town.get(f"/api/v2/pockets/{short}/trades/"))["items"]
    assert [t["activity"] for t in trades] == ["BUY", "MATURITY", "BUY"]
    assert trades[1]["price"] == "100.000000"
    for period in ("all-time", "ytd", "mtd", "wtd"):
        entry = await town.get(f"/api/v2/pockets/{short}/earnings/", query=f"period={period}")
        cents = {k: v["value"] for k, v in entry.items() if isinstance(v, dict)}
        assert cents["earnings"] == cents["realised"] + cents["unrealised_change"]
        assert cents["earnings"] == cents["earnings_net"] + cents["fees"]
        assert cents["earnings_net"] == (
            cents["end_value"] - cents["start_value"] - cents["contributions"] + cents["withdrawals"]
        )
    halves = [
        await town.get(f"/api/v2/pockets/{short}/earnings/", query=f"period=range&{dates}")
        for dates in (
            "date_from=2025-06-01&date_to=2025-06-10",
            "date_from=2025-06-11&date_to=2025-06-23",
            "date_from=2025-06-01&date_to=2025-06-23",
        )
    ]
    first, second, whole = (half["earnings"]["value"] for half in halves)
    assert first + second == whole > 0
    old = await town.get(f"/api/v1/customers/{customer}/trades/", query="order=asc&limit=1")
    assert old["items"][0]["activity"] == "BUY"
    assert old["next_page"]
    await town.prove()


async def test_the_fee_is_charged_on_the_first_business_day_of_the_month(town, home):
    _, short, _ = home
    await town.wire(short, 25_000_000)
    await town.advance(until="2025-06-30T18:00:00-04:00")
    pocket = await town.get(f"/api/v2/pockets/{short}/")
    accrued = pocket["portfolio"]["fees"][0]["amount"]["value"]
    assert accrued > 0
    await town.advance(until="2025-07-01T09:00:00-04:00")
    fees = await town.get(f"/api/v2/pockets/{short}/transactions/", query="type[]=FEE")
    assert [(t["fee_type"], t["direction"]) for t in fees["items"]] == [("AUM_FEE", "DEBIT")]
    charged = fees["items"][0]["amount"]["value"]
    assert charged >= accrued
    entry = await town.get(f"/api/v2/pockets/{short}/earnings/")
    assert entry["fees"]["value"] == charged
    await town.prove()


async def test_everything_leaves_and_the_pocket_closes(town, home):
    customer, short, long = home
    await town.wire(short, 5_000_000)
    path = f"/api/v2/customers/{customer}/pockets/{short}/"
    close = {"status": "CLOSED", "closure_reason": "USER_INSTIGATED"}
    refused = await town.patch(path, close, status=422)
    assert refused["code"] == "pocket-not-empty"
    await town.patch(path, {"status": "CLOSED"}, status=422)
    asked = {
        "type": "INTERNAL_REALLOCATION",
        "from_account": {"id": short},
        "to_account": {"id": long},
        "amount": {"type": "FULL_WITHDRAWAL"},
    }
    done = await town.post("/api/v1/transfers/on-us/", asked)
    assert done["status"] == "COMPLETED"
    unsettled = await town.patch(path, close, status=422)
    assert unsettled["code"] == "pocket-not-empty"
    assert "2025-06-03" in unsettled["detail"]
    await town.advance(business_days=1)
    assert (await town.patch(path, close))["status"] == "CLOSED"
    assert (await town.patch(path, {"pocket_name": "x"}, status=409))["code"] == "pocket-not-open"
    portals = await town.get(f"/api/v2/pockets/{short}/portals/")
    assert {p["status"] for p in portals["items"]} == {"CLOSED"}
    last = await town.patch(f"/api/v2/customers/{customer}/pockets/{long}/", close, status=422)
    assert last["code"] in {"pocket-not-empty", "last-open-pocket"}
    await town.prove()
