"""The operations of ACH, one request each."""


async def play_ach(r, customer, pocket):
    """Pay and collect, and let banks answer; the account is verified by a wire from it."""
    account = f"/api/v1/service-accounts/{pocket}/ach-originating/"
    asked = {
        "type": "ach",
        "counterparty_name": {"type": "individual", "first_name": "Ada", "last_name": "Stone"},
        "routing_number": "021000021",
        "account_number": "000123456789",
        "account_type": "CHECKING",
        "verification": {"type": "incoming_wire"},
    }
    path = f"/api/v2/customers/{customer}/counterparties/"
    payee = (await r.play("-", "POST", path, body=asked))["id"]
    portals = (await r.play("-", "GET", f"/api/v2/pockets/{pocket}/portals/"))["items"]
    portal = next(each["id"] for each in portals if each["status"] == "OPEN")
    wire = {
        "portal_id": portal,
        "amount_usdc": 100,
        "sender_name": "Ada Stone",
        "sender_account_number": "000123456789",
        "sender_routing_number": "021000021",
    }
    await r.play("-", "POST", "/api/v1/sandbox/wire/", body=wire)
    wage = {
        "counterparty_id": payee,
        "direction": "CREDIT",
        "amount_usdc": 151_000,
        "sec_code": "PPD",
        "company_entry_description": "PAYROLL",
        "payment_related_information": ["May 2025"],
    }
    made = await r.play("create_ach_origination", "POST", account, body=wage)
    await r.play("get_ach_origination", "GET", f"{account}{made['id']}/")
    await r.play("list_account_ach_originations", "GET", account)
    await r.play("list_customer_ach_originations", "GET", f"/api/v1/customers/{customer}/ach-originating/")
    box = "/api/v1/sandbox/ach/"
    await r.play("sandbox_ach_submit", "POST", f"{box}submit/", body={})
    returned = {"move": "return", "code": "R03"}
    await r.play("sandbox_ach_move", "POST", f"{box}{made['id']}/", body=returned)
    debit = {"portal_id": portal, "direction": "DEBIT", "amount_usdc": 2_500}
    await r.play("sandbox_ach_entry", "POST", f"{box}entries/", body=debit)
