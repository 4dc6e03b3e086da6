"""A partner serves its customers: names, portals, payees, funding, and what is refused."""

import uuid


async def test_a_customer_is_changed_and_closed(town):
    customer = await town.customer("Northwind")
    path = f"/api/v1/customers/{customer}/"
    assert (await town.get(path))["account_status"] == "PENDING"
    address = {"street_address": "1 Main St", "city": "Dover", "postal_code": "19901", "state": "DE", "country": "US"}
    changed = await town.patch(path, {"email": "cfo@northwind.example", "address": address})
    assert changed["email"] == "cfo@northwind.example"
    assert changed["address"]["city"] == "Dover"
    await town.patch(path, {"trusted_contact": {"first_name": "Ann"}})
    assert (await town.patch(path, {"trusted_contact": None}))["trusted_contact"] is None
    await town.patch(path, {}, status=422)
    await town.patch(path, {"account_status": "OPEN"}, status=422)
    pocket = await town.pocket(customer)
    await town.fund(pocket, 100_000)
    close = {"status": "CLOSED", "closure_reason": "INACTIVITY"}
    assert (await town.patch(path, close, status=422))["code"] == "customer-has-balance"
    other = await town.customer("Empty")
    closed = await town.patch(f"/api/v1/customers/{other}/", close)
    assert closed["account_status"] == "CLOSED"
    listed = await town.get("/api/v1/customers/", query="account_status=CLOSED")
    assert [c["id"] for c in listed["items"]] == [other]


async def test_portals_open_rename_and_close_for_ever(town):
    customer = await town.customer()
    pocket = await town.pocket(customer)
    v2 = f"/api/v2/pockets/{pocket}/portals/"
    made = await town.post(v2, {"name": "Payroll", "payment_rails": ["ACH", "WIRE"]})
    assert made["payment_rails"] == ["ACH", "WIRE"]
    assert "network_address" not in made
    one = f"{v2}{made['id']}/"
    assert (await town.patch(one, {"name": "Wages"}))["name"] == "Wages"
    told = await town.get(f"{one}funding-instructions/")
    assert [i["payment_rail"] for i in told["instructions"]] == ["ACH", "WIRE"]
    assert told["instructions"][0]["account_number"] == made["account_number"]
    v1 = f"/api/v1/service-accounts/{pocket}/portals/"
    old = await town.post(v1, {"name": "Old"})
    assert (await town.get(v1))["count"] == 3
    assert (await town.get(f"{v1}{old['id']}/"))["name"] == "Old"
    assert (await town.patch(f"{v1}{old['id']}/", {"name": "Older"}))["name"] == "Older"
    await town.post(f"{v1}{old['id']}/close/", status=204)
    second = await town.post(f"{v1}{old['id']}/close/", status=412)
    assert second["code"] == "already-closed"
    assert (await town.get(one))["status"] == "OPEN"
    assert (await town.get(f"/api/v1/customers/{customer}/portals/"))["count"] == 3
    page = await town.get(f"/api/v2/customers/{customer}/portals/", query="limit=2")
    rest = await town.get(f"/api/v2/customers/{customer}/portals/", query=f"limit=2&cursor={page['next_page']}")
    assert len(page["items"]) + len(rest["items"]) == 3
    crypto = {"name": "c", "type": "CRYPTO_DEPOSIT_ADDRESS_PORTAL", "chain": "BASE"}
    assert (await town.post(v2, crypto, status=422))["code"] == "rail-not-available"


async def test_one_customer_pays_another_over_the_network(town):
    payer, payee = await town.customer("Payer"), await town.customer("Payee")
    origin, target = await town.pocket(payer), await town.pocket(payee, "UST-13W")
    await town.wire(origin, 10_000_000)
    portal = (await town.get(f"/api/v2/pockets/{target}/portals/"))["items"][0]
    path = f"/api/v2/customers/{payer}/counterparties/"
    body = {
        "type": "on_us",
        "account_number": portal["network_address"],
        "counterparty_name": {"type": "business", "business_name": "Payee Inc"},
        "display_name": "Supplier",
    }
    linked = await town.post(path, body)
    assert (linked["status"], linked["display_name"]) == ("LINKED", "Supplier")
    assert await town.get(f"{path}{linked['id']}/") == linked
    assert len((await town.get(path, query="type=on_us&status=LINKED"))["items"]) == 1
    await town.post(path, {**body, "account_number": "700000000000"}, status=422)
    asked = {
        "type": "PEER_TO_PEER",
        "from_account": {"id": origin},
        "counterparty_id": linked["id"],
        "amount_usdc": 1_234_550,
        "description": "invoice 7",
        "end_to_end_identification": "E2E-7",
    }
    done = await town.post("/api/v1/transfers/on-us/", asked)
    assert done["status"] == "COMPLETED"
    got = (await town.get(f"/api/v2/pockets/{target}/transactions/"))["items"][0]
    assert got["counterparty"]["name"] == "Payer"
    assert got["end_to_end_identification"] == "E2E-7"
    assert got["status"] == "SETTLED"
    await town.patch(f"{path}{linked['id']}/", {"status": "UNLINKED"})
    refused = await town.post("/api/v1/transfers/on-us/", asked, status=422)
    assert refused["code"] == "counterparty-not-verified"
    await town.prove()


async def test_a_partner_funds_and_defunds_its_customer(town):
    own = str(town.client.partner.own_customer_id)
    house = await town.pocket(own, name="Facilitation")
    await town.wire(house, 50_000_000)
    customer = await town.customer()
    pocket = await town.pocket(customer)
    fund = {
        "type": "PARTNER_CUSTOMER_FUNDING",
        "from_account": {"id": house},
        "to_account": {"id": pocket},
        "amount_usdc": 1_000_050,
        "source": "operating account",
    }
    assert (await town.post("/api/v1/transfers/on-us/", fund))["status"] == "COMPLETED"
    await town.post(
        "/api/v1/transfers/on-us/", {**fund, "amount": {"type": "FULL_WITHDRAWAL"}, "amount_usdc": None}, status=422
    )
    swapped = {**fund, "from_account": {"id": pocket}, "to_account": {"id": house}}
    refused = await town.post("/api/v1/transfers/on-us/", swapped, status=422)
    assert refused["code"] == "transfer-type-not-allowed"
    back = {
        "type": "PARTNER_CUSTOMER_DEFUNDING",
        "from_account": {"id": pocket},
        "to_account": {"id": house},
        "amount": {"type": "FULL_WITHDRAWAL"},
        "target": "payouts",
    }
    assert (await town.post("/api/v1/transfers/on-us/", back))["status"] == "COMPLETED"
    assert await town.value(pocket) == 0
    everything = await town.get("/api/v2/transactions/", query="type[]=ON_US&limit=100")
    assert len(everything["items"]) == 4
    await town.prove()


async def test_what_cannot_be_done_is_rejected_and_moves_nothing(town):
    customer = await town.customer()
    poor, rich = await town.pocket(customer), await town.pocket(customer)
    await town.fund(poor, 100_000)
    before = await town.legs()
    asked = {
        "type": "INTERNAL_REALLOCATION",
        "from_account": {"id": poor},
        "to_account": {"id": rich},
        "amount_usdc": 5_000_050,
    }
    done = await town.post("/api/v1/transfers/on-us/", asked)
    assert (done["status"], done["reason"]) == ("REJECTED", "INSUFFICIENT_FUNDS")
    for cents, reason in ((1001, "ACCOUNT_UNAVAILABLE"), (1002, "SANCTION_SCREEN_FAILED")):
        done = await town.post("/api/v1/transfers/on-us/", {**asked, "amount_usdc": cents})
        assert (done["status"], done["reason"]) == ("REJECTED", reason)
    for wrong in (0, -5, 10**15, "100", 1.5):
        await town.post("/api/v1/transfers/on-us/", {**asked, "amount_usdc": wrong}, status=422)
    same = {**asked, "amount_usdc": 1050, "to_account": {"id": poor}}
    assert (await town.post("/api/v1/transfers/on-us/", same, status=422))["code"] == "same-pocket"
    await town.post("/api/v1/transfers/on-us/", {**asked, "colour": "red"}, status=422)
    await town.post(f"/api/v1/sandbox/pockets/{poor}/", {"status": "FROZEN"}, status=200)
    frozen = await town.post("/api/v1/transfers/on-us/", {**asked, "amount_usdc": 1050}, status=409)
    assert frozen["code"] == "pocket-frozen"
    assert await town.legs() == before
    await town.prove()


async def test_a_transfer_id_of_the_callers_own_is_used_once(town):
    customer = await town.customer()
    one, two = await town.pocket(customer), await town.pocket(customer)
    await town.wire(one, 1_000_000)
    asked = {
        "type": "INTERNAL_REALLOCATION",
        "from_account": {"id": one},
        "to_account": {"id": two},
        "amount_usdc": 10_050,
        "transfer_id": str(uuid.uuid4()),
    }
    first = await town.post("/api/v1/transfers/on-us/", asked)
    before = await town.legs()
    assert await town.post("/api/v1/transfers/on-us/", asked) == first
    other = {**asked, "amount_usdc": 20_050}
    assert (await town.post("/api/v1/transfers/on-us/", other, status=409))["code"] == "duplicate-id"
    assert await town.legs() == before


async def test_an_accepted_transfer_is_carried_out_afterwards(town):
    customer = await town.customer()
    one, two = await town.pocket(customer), await town.pocket(customer)
    await town.wire(one, 1_000_000)
    asked = {
        "type": "INTERNAL_REALLOCATION",
        "from_account": {"id": one},
        "to_account": {"id": two},
        "amount_usdc": 10_050,
        "async_mode": True,
    }
    pending = await town.post("/api/v1/transfers/on-us/", asked)
    assert pending["status"] == "PENDING"
    read = pending
    for _ in range(200):
        read = await town.get(f"/api/v1/transfers/on-us/{pending['id']}/")
        if read["status"] != "PENDING":
            break
    assert read["status"] == "COMPLETED"
    assert await town.value(two) > 0
    await town.prove()
