"""Operations that both APIs offer: events and subscriptions, documents."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec
from tests.documents.test_inspection import a_picture
from tests.reference.recorder import number
from tests.support.applications import BUSINESS, OWNER, PAGE, PARTIES, Applicant, run_jobs

from billfold.accounts.counterparties.rules.manage import DEPOSITS_DUE
from billfold.events.schemas import DeliveryAttempt
from billfold.http.schemas import CursorList
from billfold.ledger.scheduler import run_scheduled_jobs
from billfold.reports.requests.worker import make_reports
from billfold.reports.statements.store import Month
from billfold.reports.statements.worker import make_statements

EVENTS, SUBSCRIPTIONS = "/api/v1/events/", "/api/v1/subscriptions/"
SUBSCRIPTION = {
    "url": "https://hooks.northwind.example/billfold",
    "events": ["transfers.on-us.success", "transfers.wire.in.success"],
    "shared_secret": "whsec_bm90IGEgc2VjcmV0IGJ1dCBhbiBleGFtcGxlIG9mIG9uZQ==",
    "retry_policy": {
        "retry_on_status_codes": [],
        "backoff_coefficient": 2,
        "maximum_attempts": 10,
        "initial_interval_seconds": 30,
        "maximum_interval_seconds": 3600,
    },
}
SINCE = {"since": "2025-06-02T00:00:00-04:00"}
DEPOSITS = {"amounts": [11, 22]}


async def send_deposits(bank):
    """Send the pending micro-deposits without advancing the clock."""
    await run_scheduled_jobs(bank, await bank.now(), kinds=[DEPOSITS_DUE])
    await bank.pool.execute("UPDATE ach_entry SET status = 'IN_TRANSIT' WHERE description = 'ACCTVERIFY'")


ACCOUNT: dict[str, Any] = {
    "type": "ach",
    "counterparty_name": {"type": "business", "business_name": "Contoso"},
    "routing_number": "021000021",
    "account_number": "1234567890",
    "account_type": "CHECKING",
    "verification": {"type": "micro_deposits"},
}


async def play_reports(r, reports, body):
    """Request a report, have it made, and download it."""
    requests = "/api/v1/report-requests/"
    one = f"{requests}{(await r.post('create_report_request', requests, body))['id']}/"
    await make_reports(r.desk.bank)
    made = await r.get("get_report_request", one)
    await r.get("list_report_requests", requests)
    path = f"{reports}{made['report_id']}/"
    await r.get("get_report", path if reports.endswith("reports/") else path.rstrip("/"))
    await r.post("download_report", f"{path}download/", {"output_format": "CSV"})
    return path


async def play_events(r):
    """Read events, subscribe to them, and ask for them again."""
    await r.get("list_event_types", f"{EVENTS}types/")
    made = (await r.post("create_subscription", SUBSCRIPTIONS, SUBSCRIPTION))["id"]
    one = f"{SUBSCRIPTIONS}{made}/"
    await r.get("list_subscriptions", SUBSCRIPTIONS)
    await r.get("get_subscription", one)
    await r.get("list_events", EVENTS, limit=2)
    await r.post("replay_missing_events", f"{one}replay-missing/", SINCE)
    waiting = await r.get("-", EVENTS, subscription_id=made)
    event_id = waiting["items"][0]["event"]["event_id"]
    await r.get("get_event", f"{EVENTS}{event_id}/")
    await r.post("resend_event", f"{one}resend/", {"event_id": event_id})
    await r.post("recover_events", f"{one}recover/", SINCE)
    await r.post("send_example_event", f"{one}send-example/", {"event_type": "transfers.wire.in.success"})
    await r.get("list_delivery_attempts", f"{one}attempts/")
    r.notes["list_delivery_attempts"] = {"response": attempts(made, event_id)}
    r.notes["stream_events"] = {}
    await r.patch("update_subscription", one, {"description": "Books"})
    await r.delete("delete_subscription", one)


async def play_request_log(r):
    """Read the log of sent and refused requests."""
    log = "/api/v2/request-log/"
    await r.desk.send("GET", "/api/v2/pockets/x/")
    await r.desk.app.request_log.write()
    newest = (await r.get("list_logged_requests", log, error_code="invalid-input"))["items"][0]
    await r.get("list_request_errors", f"{log}errors/", limit=1)
    one = f"{log}{UUID(newest['trace_id'])}/"
    await r.get("get_logged_request", one)
    await r.get("explain_logged_request", f"{one}explain/")


def attempts(subscription_id, event_id):
    """Return a failed attempt, because nothing is delivered while examples are recorded."""
    attempt = DeliveryAttempt(
        delivery_attempt_id=UUID("6f0c7c0e-1b7e-4d2c-9a51-0c3f7d1e2b4a"),
        subscription_id=UUID(subscription_id),
        event_id=UUID(event_id),
        success=False,
        response_code=503,
        response_message="Service Unavailable",
        called_at=datetime(2025, 6, 2, 13, 0, 2, tzinfo=UTC),
        duration_ms=41,
    )
    page = CursorList(prev_page=None, next_page=None, items=[attempt])
    return msgspec.json.decode(msgspec.json.encode(page))


async def play_documents(r, by_type, by_id, read):
    """Upload an invalid file and a replacement, and read the result."""

    async def send(name, path, file_name):
        headers = {"content-type": "image/png", "content-disposition": f'attachment; filename="{file_name}"'}
        return await r.play(name, "POST", path, a_picture("PNG"), headers=headers)

    document = (await send("upload_document", by_type, "invalid scan.png"))["document_id"]
    await send("upload_document_file", f"{by_id}{document}/", "statement.png")
    await r.get("get_document", f"{read}{document}/")


async def play_applications(r, base):
    """Complete and submit an application, and let it be approved; return the result."""
    made = (await r.post("create_business_application", base, {"name": BUSINESS["name"]}))["id"]
    one, parties = f"{base}{made}/", f"{base}{made}/{PARTIES[base]}/"
    changes = {name: value for name, value in BUSINESS.items() if name != "name"}
    await r.patch("update_business_application", one, changes)
    other = (await r.post("-", base, {"name": "Northwind Holding"}))["id"]
    await r.post("withdraw_business_application", f"{base}{other}/withdraw/", {})
    extra = (await r.post("-", parties, {"title": "Clerk"}))["id"]
    await r.delete("delete_related_party", f"{parties}{extra}/")
    party = (await r.post("create_related_party", parties, OWNER | {"title": "President"}))["id"]
    await r.patch("update_related_party", f"{parties}{party}/", {"title": OWNER["title"]})
    await r.get("list_related_parties", parties)
    await r.get("list_application_documents", f"{one}documents/")
    await r.get("list_related_party_documents", f"{parties}{party}/documents/")
    for each in await r.get("-", f"{one}documents/"):
        path = f"{Applicant(r.desk, base).by_id}{each['id']}/"
        named = {"content-type": "application/pdf", "content-disposition": 'attachment; filename="page.pdf"'}
        await r.play("-", "POST", path, PAGE, headers=named)
    await r.post("apply_business_application", f"{one}apply/", {})
    await run_jobs(r.desk.bank)
    await r.get("list_business_applications", base)
    found = await r.get("get_business_application", one)
    await r.get("explain_business_application", f"{one}explain/")
    assert found["status"] == "APPROVED"
    return found, f"{parties}{party}/"


async def make_june(desk, customer):
    """Let June be over, and make the statements of a customer."""
    await desk.until("2025-07-01T10:00:00-04:00")
    await make_statements(desk.bank, UUID(customer), Month.parse("2025-06"))


async def play_explanations(r, pocket, pockets):
    """Ask how amounts came about; `pockets` is the path under which the Pockets of one customer are."""
    of_pocket = f"/api/v2/pockets/{pocket}"
    held = (await r.get("-", f"{of_pocket}/"))["portfolio"]["securities"][0]["cusip"]
    await r.get("explain_earnings", f"{of_pocket}/earnings/explain/", field="end_value")
    for name, path in (
        ("explain_pocket", of_pocket),
        ("explain_total_of_pockets", f"{pockets}/pockets"),
        ("explain_pocket_fees", f"{of_pocket}/fees"),
        ("explain_security_price", f"/api/v2/securities/{held}"),
        ("explain_pocket_status", f"{of_pocket}/status"),
        ("explain_limits", f"{pockets.replace('v2', 'v1')}/limits"),
    ):
        await r.get(name, f"{path}/explain/")
    await r.get("get_portfolio", f"{pockets}/portfolio/")


async def play_preview(r, customer, asked):
    """Preview a partner's transfer."""
    order = {
        "id": str(number(2209)),
        "type": "ON_US",
        "origin_pocket_id": asked["from_account"]["id"],
        "amount": asked["amount"],
        "details": {"type": asked["type"], "destination_counterparty_id": asked["counterparty_id"]},
        "description": asked["description"],
    }
    path = f"/api/v1/customers/{customer}/transfer-requests/preview/"
    await r.post("preview_transfer", path, {"transfer": order, "reviewers": []})


_OF_ALL = {
    "list_customer_ach_originations": "list_ach_originations",
    "list_customer_cards": "list_cards",
    "get_individual_application": "list_individual_applications",
}


async def play_batch(r, row):
    """Create a batch of two rows like this one, and read it; return its path."""
    path = "/api/v1/batches/"
    rows = [row | {"amount_usdc": 12_500, "description": each, "idempotency_key": each} for each in ("INV-8", "INV-9")]
    await r.desk.bank.pool.execute("DELETE FROM rate_limit_window")
    body = {"kind": "TRANSFERS", "mode": "ATOMIC", "rows": rows}
    await r.post("preview_batch", f"{path}preview/", body)
    made = await r.post("create_batch", path, body)
    one = f"{path}{made['id']}/"
    await r.get("get_batch", one)
    await r.get("list_batch_rows", f"{one}rows/")
    await r.get("list_batches", path)
    return one


async def play_hold(r, pocket):
    """Place a hold, read it, and release it."""
    holds = f"/api/v2/pockets/{pocket}/holds/"
    deposit = {"amount_usdc": 12_500, "reason": "Deposit for unit 4", "expires_at": "2025-06-20T21:00:00Z"}
    one = f"{holds}{(await r.post('place_hold', holds, deposit))['id']}/"
    await r.get("get_hold", one)
    await r.get("explain_hold", f"{one}explain/")
    await r.get("list_holds", holds, **{"filter[status]": "ACTIVE"})
    await r.post("release_hold", f"{one}release/", {})


NOTE = {"external_id": "pay-7731", "metadata": {"batch": "2025-06"}}


async def play_plans(r, limits, transfer, **owner):
    """Read what is needed to plan payments, and annotate a transfer."""
    transfers = "/api/v1/transfers/on-us/"
    await r.get("get_limits", limits)
    await r.get("get_calendar", "/api/v1/calendar/", date_from="2025-07-03", date_to="2025-07-04")
    await r.get("get_routing_number", "/api/v1/routing-numbers/021000021/")
    await r.get("list_on_us_transfers", transfers, **owner)
    await r.get("get_on_us_transfer", f"{transfers}{transfer}/")
    await r.get("explain_on_us_transfer", f"{transfers}{transfer}/explain/")
    await r.patch("annotate_on_us_transfer", f"{transfers}{transfer}/", NOTE)


async def play_note(r, application):
    """Annotate an application."""
    await r.patch("annotate_application", f"{application}note/", {"external_id": "lead-93"})
    await r.get("get_application_note", f"{application}note/")


async def play_both(r, name, of_one, path):
    """Read something of one customer, then the list of all."""
    v1 = "" if of_one.startswith("/api") else "/api/v1"
    await r.get(name, f"{v1}{of_one}{path}")
    await r.get(_OF_ALL[name], f"{v1}{path}" if path else "/api/v1/applications/")


async def play_debit(r, transactions):
    """Return the debit that was collected last."""
    booked = (await r.get("-", transactions, type="ACH"))["items"]
    one = f"/api/v1/ach-debits/{next(each['ach_id'] for each in booked if each['title'] == 'ACH debit')}/"
    await r.get("get_ach_debit", one)
    await r.get("list_ach_debits", "/api/v1/ach-debits/", pocket_id=booked[0]["pocket_id"], returned="false")
    await r.post("return_ach_debit", f"{one}return/", {"code": "R08"})
