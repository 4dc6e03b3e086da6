"""One request per operation of the Partner API and of the sandbox."""

from uuid import UUID

from tests.reference.card_calls import play_cards
from tests.reference.recorder import HIDDEN
from tests.reference.return_calls import play_reversals
from tests.reference.shared_calls import (
    ACCOUNT,
    DEPOSITS,
    make_june,
    play_applications,
    play_batch,
    play_both,
    play_debit,
    play_documents,
    play_events,
    play_explanations,
    play_hold,
    play_note,
    play_plans,
    play_preview,
    play_reports,
    play_request_log,
    send_deposits,
)
from tests.support.applications import PERSON, PICTURE, RETAIL
from tests.support.whole_bank import ADDRESS, EngineCommands

from billfold.platform import ids
from billfold.reports.proofs.roots.worker import publish_root

PROOF, BOX, V1, V2 = "WIRE_COUNTERPARTY_VERIFICATION", "/api/v1/sandbox", "/api/v1", "/api/v2"


async def play_partner_api(r):
    """Play everything a partner can ask for."""
    await r.post("log_in", f"{V1}/login/", {"username": "acme-app", "password": "correct horse battery"})
    r.notes["exchange_assertion"] = {
        "response": {"access_token": HIDDEN["token"], "token_type": "Bearer", "expires_in": 3600}
    }
    customer = (await r.post("sandbox_customer", f"{BOX}/customers/", {"name": "Northwind"}))["id"]
    payee = (await r.post("-", f"{BOX}/customers/", {"name": "Contoso"}))["id"]
    made, theirs = f"{V2}/customers/{customer}/pockets/", f"{V2}/customers/{payee}/pockets/"
    new = {"pocket_name": "Reserve", "deposit_strategy_id": "UST-4W", "metadata": {"team": "ops"}}
    pocket = (await r.post("create_pocket", made, new))["id"]
    other = (await r.post("-", made, {"pocket_name": "Long", "deposit_strategy_id": "UST-26W"}))["id"]
    inbox = (await r.post("-", theirs, {"pocket_name": "Inbox", "deposit_strategy_id": "UST-13W"}))["id"]
    await r.post("sandbox_pocket", f"{BOX}/pockets/{pocket}/", {"real_time_yield": True})
    portal = (await r.get("list_portals", f"{V2}/pockets/{pocket}/portals/"))["items"][0]["id"]
    await _let_arrive(r, portal, other, inbox)
    await _play_reads(r, customer, pocket)
    await _play_portals(r, customer, pocket)
    inbox_portal = (await r.get("-", f"{V2}/pockets/{inbox}/portals/"))["items"][0]
    await _play_payments(r, customer, pocket, address=inbox_portal["network_address"])
    await _play_wires(r, customer, pocket)
    await _play_ach(r, customer, pocket)
    await play_cards(r, customer, pocket)
    await _play_chain(r, pocket)
    await r.post("sandbox_customer_state", f"{BOX}/customers/{payee}/", {"status": "FROZEN", "reason": "Order 7/25"})
    await r.patch("update_customer", f"{V1}/customers/{customer}/", {"email": "treasury@northwind.example"})
    consent = {"version": "2025-06-01", "timestamp": "2025-06-02T13:00:00Z", "ip_address": "203.0.113.7"}
    await r.post("accept_agreements", f"{V1}/customers/{customer}/agreement-consent/", consent)
    await r.patch("update_pocket", f"{made}{other}/", {"pocket_name": "Longer"})
    await _play_applications(r)
    await _play_clock(r, customer)
    await _play_events(r)
    await _play_statements(r, customer, pocket)


async def _play_reports(r, customer):
    span = {"customer_id": customer, "date_from": "2025-06-01", "date_to": "2025-06-02"}
    body = {"type": "TRADE_REPORT", "parameters": span, "output_formats": ["CSV"]}
    report = await play_reports(r, f"{V1}/reports/", body)
    await r.post("add_report_formats", f"{report}formats/", {"output_formats": ["TMS_CSV"]})


async def _let_arrive(r, portal, other, inbox):
    wire = {"portal_id": portal, "amount_usdc": 25_000_000, "sender_name": "Acme"}
    await r.post("sandbox_wire", f"{BOX}/wire/", wire)
    await r.post("sandbox_dealer_behavior", f"{BOX}/dealers/harbor/behavior/", {"behavior": "PARTIAL_FILL"})
    await r.get("sandbox_dealers", f"{BOX}/dealers/")
    await r.post("sandbox_cover", f"{BOX}/dealers/cover/")
    await r.get("sandbox_desk", f"{BOX}/desk/")
    await r.post("sandbox_fund", f"{BOX}/fund/", {"account_id": other, "amount_usdc": 1_500_000, "count": 1})
    bills = {"account_id": inbox, "direction": "IN", "cusip": "912797PT8", "quantity": 100}
    bills |= {"counterparty_name": "Harbor Custody", "acquired_on": "2025-05-29", "cost_usdc": 995_000}
    await r.post("sandbox_security_transfer", f"{BOX}/security-transfer/", bills)
    await r.post("sandbox_custodian", f"{BOX}/custodian/", {"fails_days": 3, "settles_units_first": 400})


async def _play_reads(r, customer, pocket):
    of_customer, of_pocket = f"{V2}/customers/{customer}", f"{V2}/pockets/{pocket}"
    account = f"{V1}/service-accounts/{pocket}"
    for name, path in (
        ("get_agreements", f"{V1}/agreements/"),
        ("list_customers", f"{V1}/customers/"),
        ("get_customer", f"{V1}/customers/{customer}/"),
        ("list_accounts", f"{V1}/customers/{customer}/service-accounts/"),
        ("get_account", f"{account}/"),
        ("list_customer_pockets", f"{of_customer}/pockets/"),
        ("list_pockets", f"{V2}/pockets/"),
        ("get_customer_pocket", f"{of_customer}/pockets/{pocket}/"),
        ("get_pocket", f"{of_pocket}/"),
        ("get_pocket_earnings", f"{of_pocket}/earnings/"),
        ("list_earnings", f"{V2}/earnings/"),
        ("list_trading_strategies", f"{V2}/trading-strategies/"),
        ("list_pocket_configurations", f"{V2}/pocket-configurations/"),
        ("list_transactions", f"{V2}/transactions/"),
        ("list_customer_transactions", f"{of_customer}/transactions/"),
        ("list_v1_customer_transactions", f"{V1}/customers/{customer}/transactions/"),
        ("list_v1_transactions", f"{account}/transactions/"),
        ("list_v1_customer_trades", f"{V1}/customers/{customer}/trades/"),
        ("list_v1_trades", f"{account}/trades/"),
        ("list_customer_trades", f"{of_customer}/trades/"),
        ("list_pocket_trades", f"{of_pocket}/trades/"),
    ):
        await r.get(name, path)
    one = (await r.get("list_pocket_transactions", f"{of_pocket}/transactions/"))["items"][0]["id"]
    await r.get("get_transaction", f"{of_pocket}/transactions/{one}/")
    await r.get("explain_transaction", f"{of_pocket}/transactions/{one}/explain/")
    await r.get("get_v1_transaction", f"{account}/transactions/{one}/")
    await _play_reports(r, customer)


async def _play_portals(r, customer, pocket):
    v2, v1 = f"{V2}/pockets/{pocket}/portals/", f"{V1}/service-accounts/{pocket}/portals/"
    made = f"{v2}{(await r.post('create_portal', v2, {'name': 'Payroll'}))['id']}/"
    await r.get("get_portal", made)
    await r.patch("rename_portal", made, {"name": "Wages"})
    await r.get("get_funding_instructions", f"{made}funding-instructions/")
    await r.get("list_customer_portals", f"{V2}/customers/{customer}/portals/")
    old = f"{v1}{(await r.post('create_account_portal', v1, {'name': 'Suppliers'}))['id']}/"
    await r.get("list_account_portals", v1)
    await r.get("get_account_portal", old)
    await r.patch("rename_account_portal", old, {"name": "Vendors"})
    await r.post("close_account_portal", f"{old}close/")
    await r.get("list_customer_account_portals", f"{V1}/customers/{customer}/portals/")


async def _play_chain(r, pocket):
    on_chain = {"name": "On chain", "type": "CRYPTO_DEPOSIT_ADDRESS_PORTAL", "chain": "ETHEREUM"}
    wallet = (await r.post("-", f"{V2}/pockets/{pocket}/portals/", on_chain))["id"]
    await r.post("sandbox_crypto_deposit", f"{BOX}/crypto/deposit/", {"portal_id": wallet, "units": 250_000_000})
    await r.post("sandbox_crypto_mine", f"{BOX}/crypto/mine/", {"blocks": 2})
    await r.post("sandbox_crypto_reorganize", f"{BOX}/crypto/reorganize/", {"depth": 1, "keeps_transactions": True})
    await r.post("sandbox_crypto_node", f"{BOX}/crypto/node/", {"node": 2, "fault": "LAG"})


async def _play_payments(r, customer, pocket, address):
    path = f"{V2}/customers/{customer}/counterparties/"
    contoso = {"type": "business", "business_name": "Contoso"}
    body = {"type": "on_us", "account_number": address, "counterparty_name": contoso}
    linked = (await r.post("create_counterparty", path, body))["id"]
    await r.get("list_counterparties", path)
    await r.get("get_counterparty", f"{path}{linked}/")
    await r.get("explain_counterparty", f"{path}{linked}/explain/")
    await r.patch("update_counterparty", f"{path}{linked}/", {"display_name": "Supplier"})
    await _play_verifications(r, customer)
    amount = {"type": "REQUESTED_AMOUNT", "amount_usdc": 1_234_550}
    asked = {"type": "PEER_TO_PEER", "counterparty_id": linked, "amount": amount, "description": "Invoice 7"}
    asked["from_account"] = {"id": pocket, "type": "SERVICE_ACCOUNT"}
    await play_preview(r, customer, asked)
    done = await r.post("create_on_us_transfer", f"{V1}/transfers/on-us/", asked)
    await play_plans(r, f"{V1}/customers/{customer}/limits/", done["id"], pocket_id=pocket)
    await play_reversals(r, done["id"], pays=r, customer_id=customer)
    second = {"pocket_name": "Second", "deposit_strategy_id": "UST-4W"}
    second = (await r.post("-", f"{V2}/customers/{customer}/pockets/", second))["id"]
    sides = {"from_account": {"id": pocket}, "to_account": {"id": second}}
    moved = {"type": "INTERNAL_REALLOCATION", "amount": amount, **sides}
    moved = (await r.post("-", f"{V1}/transfers/on-us/", moved))["id"]
    await r.post("reverse_on_us_transfer", f"{V1}/transfers/on-us/{moved}/reverse/", {"amount_usdc": 10_000})
    await play_batch(r, {"type": "PEER_TO_PEER", "from_pocket_id": pocket, "counterparty_id": linked})


async def _play_verifications(r, customer):
    """Confirm deposits, link accounts, and read both as v1 tells of them."""
    v1, v2 = f"{V1}/customers/{customer}/", f"{V2}/customers/{customer}/counterparties/"
    details = {name: ACCOUNT[name] for name in ("routing_number", "account_number", "account_type")}
    waiting = await EngineCommands(r.desk.bank, "examples").add_counterparty(
        UUID(customer), "ach", details=details, verification="micro_deposits", name=ACCOUNT["counterparty_name"]
    )
    await send_deposits(r.desk.bank)
    await r.post("verify_micro_deposits", f"{v2}{waiting['counterparty_id']}/verify-micro-deposits/", DEPOSITS)
    path, begun = f"{v1}counterparties/", {"client_name": "Acme", "redirect_uri": "https://acme.example/linked"}
    await r.post("create_link_token", f"{path}linking-provider/link-token/", begun)
    r.notes["create_link_token"]["response"] = {
        "link_token": "link-sandbox-7d0f1c...",
        "expiration": "2025-06-02T17:00:00Z",
    }
    chosen = {"public_token": "public-sandbox-1", "accounts": [{"id": "manual-checking"}]}
    linked = await r.post("link_accounts", f"{path}linking-provider/", chosen)
    account = linked["items"][0]["id"]
    await r.post("verify_linked_account", f"{path}{account}/linking-provider/verify/", {})
    await r.get("list_v1_counterparties", path)
    await r.get("get_v1_counterparty", f"{path}{account}/")
    await play_documents(r, f"{v1}documents/{PROOF}/file/", f"{V1}/documents/", read=f"{V1}/documents/")
    wire = {
        "counterparty_name": ACCOUNT["counterparty_name"],
        "routing_number": ACCOUNT["routing_number"],
        "type": "wire",
        "identifier": "9876543210",
        "verification": {"type": "incoming_wire"},
        "address": ADDRESS,
    }
    waiting = await r.post("-", v2, wire)
    decided = {"counterparty_id": waiting["id"], "status": "APPROVED"}
    await r.post("sandbox_counterparty_verification", f"{BOX}/counterparty-verification/", decided)


async def _play_wires(r, customer, pocket):
    await play_hold(r, pocket)
    portals = (await r.get("-", f"{V2}/pockets/{pocket}/portals/"))["items"]
    portal = next(each["id"] for each in portals if each["status"] == "OPEN" and "WIRE" in each["payment_rails"])
    path = f"{V1}/service-accounts/{pocket}/wires/"
    payee = {"type": "wire", "routing_number": "121182904", "identifier": "5647772655", "address": ADDRESS}
    payee["counterparty_name"] = {"type": "business", "business_name": "Beta LLC"}
    payee["verification"] = {"type": "incoming_wire"}
    linked = await r.post("-", f"{V2}/customers/{customer}/counterparties/", payee)
    theirs = {"sender_account_number": "5647772655", "sender_routing_number": "121182904"}
    proof = {"portal_id": portal, "amount_usdc": 1_00, "sender_name": "Beta LLC", **theirs}
    await r.post("-", f"{BOX}/wire/", proof)
    asked = {"counterparty_id": linked["id"], "amount_usdc": 4_000_000, "description": "Lease 9"}
    first = (await r.post("create_wire", path, asked))["id"]
    second = (await r.post("-", path, {**asked, "amount_usdc": 1_00}))["id"]
    await r.post("cancel_wire", f"{V1}/wires/{(await r.post('-', path, asked))['id']}/cancel/", {})
    await r.post("sandbox_submit_wire", f"{BOX}/wires/{first}/submit/", {})
    await r.post("sandbox_acknowledge_wire", f"{BOX}/wires/{first}/acknowledge/", {})
    await r.post("sandbox_return_wire", f"{BOX}/wires/{first}/return/", {"reason": "AC04", "information": "Closed"})
    await r.post("sandbox_reject_wire", f"{BOX}/wires/{second}/reject/", {"reason": "AC01"})
    arrived = await r.get("-", f"{V1}/wires/", direction="INCOMING")
    paid = next(each["id"] for each in arrived["items"] if each["wire_type"] == "PAYMENT")
    await r.post("sandbox_request_wire_return", f"{BOX}/wires/{paid}/request-return/", {"reason": "DUPL"})
    await r.patch("annotate_wire", f"{V1}/wires/{first}/", {"metadata": {"invoice": "INV-2041"}})
    await r.get("list_wires", f"{V1}/wires/")
    await r.get("get_wire", f"{V1}/wires/{first}/")
    await r.get("explain_wire", f"{V1}/wires/{first}/explain/")


async def _play_ach(r, customer, pocket):
    """Pay and collect, and let banks answer; the account is verified by a wire from it."""
    path = f"{V1}/service-accounts/{pocket}/ach-originating/"
    ada = {
        "type": "ach",
        "counterparty_name": {"type": "individual", "first_name": "Ada", "last_name": "Stone"},
        "routing_number": "021000021",
        "account_number": "000123456789",
        "account_type": "CHECKING",
        "verification": {"type": "incoming_wire"},
    }
    payee = (await r.post("-", f"{V2}/customers/{customer}/counterparties/", ada))["id"]
    portals = (await r.get("-", f"{V2}/pockets/{pocket}/portals/"))["items"]
    portal = next(each["id"] for each in portals if each["status"] == "OPEN")
    theirs = {"sender_account_number": "000123456789", "sender_routing_number": "021000021"}
    await r.post("-", f"{BOX}/wire/", {"portal_id": portal, "amount_usdc": 100, "sender_name": "Ada Stone", **theirs})
    wage = {
        "counterparty_id": payee,
        "direction": "CREDIT",
        "amount_usdc": 151_000,
        "sec_code": "PPD",
        "company_entry_description": "PAYROLL",
        "payment_related_information": ["May 2025"],
    }
    made = await r.post("create_ach_origination", path, wage)
    await r.get("get_ach_origination", f"{path}{made['id']}/")
    await r.get("explain_ach_origination", f"{path}{made['id']}/explain/")
    await r.patch("annotate_ach_origination", f"{path}{made['id']}/", {"metadata": {"payroll": "2025-06"}})
    await r.get("list_account_ach_originations", path)
    await r.post("cancel_ach_origination", f"{path}{(await r.post('-', path, wage))['id']}/cancel/", {})
    await play_both(r, "list_customer_ach_originations", f"/customers/{customer}", "/ach-originating/")
    await r.post("sandbox_ach_submit", f"{BOX}/ach/submit/", {})
    await r.post("sandbox_ach_move", f"{BOX}/ach/{made['id']}/", {"move": "return", "code": "R03"})
    debit = {"portal_id": portal, "direction": "DEBIT", "amount_usdc": 2_500}
    await r.post("sandbox_ach_entry", f"{BOX}/ach/entries/", debit)
    await play_debit(r, f"{V2}/pockets/{pocket}/transactions/")


async def _play_clock(r, customer):
    clock = f"{BOX}/clock/"
    await r.get("sandbox_clock", clock)
    await r.post("sandbox_clock_advance", f"{clock}advance/", {"business_days": 1})
    await publish_root(r.desk.bank)
    await r.get("get_daily_proof", f"{V1}/customers/{customer}/proofs/latest/")
    await r.post("sandbox_clock_run_to_next_event", f"{clock}run-to-next-event/")
    await r.post("sandbox_clock_set", f"{clock}set/", {"now": "2025-06-05T09:00:00-04:00"})
    await r.post("sandbox_clock_freeze", f"{clock}freeze/")
    frozen = r.notes["sandbox_clock_freeze"]["response"]
    resumed = await r.post("sandbox_clock_resume", f"{clock}resume/")
    assert set(resumed) == set(frozen)
    r.notes["sandbox_clock_resume"] = {"response": {**frozen, "frozen": False}}
    await _play_tasks(r)


async def _play_tasks(r):
    """Operations on the sandbox as a whole."""
    found = await r.get("sandbox_simulations", f"{BOX}/simulations/")
    wire = next(each for each in found["items"] if each["name"] == "sandbox_wire")
    r.notes["sandbox_simulations"]["response"] = {"items": [wire], "magic_values": found["magic_values"][:2]}
    scenarios = await r.get("sandbox_scenarios", f"{BOX}/scenarios/")
    scenario = scenarios["items"][0]["name"]
    await _end_task(r, await r.post("sandbox_play_scenario", f"{BOX}/scenarios/{scenario}/play/"))
    await _end_task(r, await r.post("sandbox_fork", f"{BOX}/forks/", {"name": "before-the-wire"}))
    await r.get("sandbox_forks", f"{BOX}/forks/")
    rewind = await r.post("sandbox_rewind", f"{BOX}/forks/before-the-wire/rewind/")
    await _end_task(r, rewind)
    await r.get("sandbox_task", f"{BOX}/tasks/{rewind['id']}/")
    await r.delete("sandbox_drop_fork", f"{BOX}/forks/before-the-wire/")
    await _end_task(r, await r.post("-", f"{BOX}/forks/", {"name": "opening"}))
    await _end_task(r, await r.post("sandbox_reset", f"{BOX}/reset/"))
    fault = {"fault": "answer-lost", "target": "create_wire", "times": 1}
    await r.post("sandbox_fault", f"{BOX}/faults/", fault)
    await r.get("sandbox_faults", f"{BOX}/faults/")
    await r.delete("sandbox_clear_faults", f"{BOX}/faults/")
    await r.post("sandbox_rotate_credentials", f"{BOX}/credentials/rotate/", {})
    r.notes["sandbox_rotate_credentials"]["response"]["shared_secret"] = "a-new-secret-that-is-drawn-at-random"
    r.notes["sandbox_tasks"] = {"response": {"items": [r.notes["sandbox_task"]["response"]]}}
    await r.get("sandbox_tasks", f"{BOX}/tasks/")


async def _end_task(r, task):
    while task["status"] == "RUNNING":
        task = (await r.desk.send("GET", f"{BOX}/tasks/{task['id']}/", {}, key=ids.new())).json()
    assert task["status"] == "COMPLETED", task


async def _play_statements(r, customer, pocket):
    account = f"{V1}/service-accounts/{pocket}"
    of_pocket = f"{V2}/pockets/{pocket}"
    bought = (await r.get("-", f"{of_pocket}/trades/"))["items"][-1]["id"]
    await r.get("get_trade", f"{of_pocket}/trades/{bought}/")
    await r.get("explain_trade", f"{of_pocket}/trades/{bought}/explain/")
    await r.get("get_trade_confirmation", f"{account}/trades/{bought}/confirmation/")
    await make_june(r.desk, customer)
    await r.get("list_pocket_values", f"{of_pocket}/values/", date_from="2025-06-26", date_to="2025-06-30")
    await r.get("list_customer_statements", f"{V1}/customers/{customer}/statements/")
    await r.get("list_account_statements", f"{account}/statements/")
    await r.post("-", f"{BOX}/clock/freeze/")  # Explanations say when they were made.
    await r.desk.until("2025-07-01T10:05:00-04:00")
    await play_explanations(r, pocket, f"{V2}/customers/{customer}")
    await play_request_log(r)
    await r.post("sandbox_statement", f"{BOX}/statements/", {"behavior": "UNKNOWN_LINE"})


async def _play_events(r):
    event = {
        "event_id": "0d1c2b3a-4f5e-4697-8877-665544332211",
        "event_type": "transfers.wire.in.rejected",
        "timestamp": "2025-06-02T09:00:00-04:00",
        "payload": {
            "wire_id": "5d4c3b2a-1f0e-4d9c-8b7a-697867564534",
            "service_account_id": "8c2e6f1a-0d3b-4f7e-8a9c-5b1d2e3f4a60",
        },
    }
    await r.post("sandbox_webhook", f"{BOX}/webhook/", event)
    await play_events(r)


async def _play_applications(r):
    """A business and a person become customers, the person by a decision of the sandbox."""
    business, party = await play_applications(r, f"{V1}/business-applications/")
    await r.get("get_related_party_documents", party)
    await r.get("list_beneficial_owners", f"{V1}/customers/{business['customer_id']}/beneficial-owners/")
    passport = {"identification_number": "X1234567", "identification_type": "PASSPORT"}
    person = (await r.post("create_individual_application", RETAIL, PERSON | passport))["id"]
    one = f"{RETAIL}{person}/"
    await play_note(r, one)
    picture = {"content-type": "image/png", "content-disposition": 'attachment; filename="passport.png"'}
    await r.play("upload_application_document", "POST", f"{one}documents/PASSPORT/file/", PICTURE, headers=picture)
    await r.post("apply_individual_application", f"{one}apply/", {})
    decision = {"application_id": person, "status": "REJECTED", "reason": "NAME_MISMATCH"}
    await r.post("sandbox_application_decision", f"{BOX}/application-decision/", decision)
    await play_both(r, "get_individual_application", one, "")
    await r.get("explain_individual_application", f"{one}explain/")
