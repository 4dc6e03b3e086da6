"""Reports through both APIs: requested, made, downloaded; and everything that is refused."""

import csv
import hashlib
import io
import re
from decimal import Decimal

import openpyxl
from tests.reports.requests.test_bookkeeping import read_beancount, read_ledger
from tests.support.world import UNKNOWN

from billfold.reports.proofs import signed_files
from billfold.reports.proofs.signatures import DOCUMENT, SignedManifest, list_public_keys, verify
from billfold.reports.proofs.signed_files import Verdict, verify_file
from billfold.reports.requests.bookkeeping import UNASSIGNED
from billfold.reports.requests.renderers import formats_of
from billfold.reports.requests.types import ReportParameters, ReportType
from billfold.reports.requests.worker import make_reports

ALL = "/api/v1/report-requests/"
TRADES = {"date_from": "2025-06-01", "date_to": "2025-06-02"}


def report_request(type_="TRADE_REPORT", formats=("CSV",), **parameters):
    return {"type": type_, "parameters": parameters, "output_formats": [*formats]}


async def make_report(desk, body):
    """Request a report, have it made, and return its request."""
    shown = await desk.post(ALL, body, status=202)
    assert (shown["status"], shown["report_id"], shown["progress"]) == ("PENDING", None, 0)
    while await make_reports(desk.bank):
        pass
    return await desk.get(f"{ALL}{shown['id']}/")


async def content(desk, path, output_format=None):
    """Return the file of a report as text."""
    return (await file_of(desk, path, output_format)).decode("utf-8", "replace")


async def file_of(desk, path, output_format=None):
    """Return the file of a report."""
    body = {} if output_format is None else {"output_format": output_format}
    link = await desk.post(f"{path.rstrip('/')}/download/", body)
    http = desk.http if hasattr(desk, "http") else desk.client.http
    answer = await http.get(link["url"])
    assert answer.status_code == 200
    assert f'filename="{link["file_name"]}"' in answer.headers["content-disposition"]
    file = signed_files.read(answer.content, (link["proof"] or "").encode())
    assert file.proof is not None
    signed, _ = verify(file.proof, await list_public_keys(desk.bank.pool), DOCUMENT, SignedManifest)
    assert hashlib.sha256(file.content).hexdigest() == signed.content.sha256
    return answer.content


def rows_of(text):
    assert text.endswith("\r\n")
    return list(csv.DictReader(io.StringIO(text)))


async def test_a_member_requests_a_trade_report_and_downloads_it(customer_world, customer_desk, other_customer):
    pocket = await customer_desk.pocket()
    await customer_world.wire(pocket, 100_000_00)
    done = await make_report(customer_desk, report_request(formats=["CSV", "TMS_CSV", "CSV"], **TRADES))
    assert (done["status"], done["progress"], done["failure_reason"]) == ("COMPLETED", 100, None)
    assert done["output_formats"] == ["CSV", "TMS_CSV"]
    assert done["parameters"] == {**TRADES, "date_type": "BOOK_DATE"}
    path = f"/api/v1/report/{done['report_id']}"
    report = await customer_desk.get(path)
    assert report == await customer_desk.get(f"{path}/")
    assert [(each["output_format"], each["status"]) for each in report["formats"]] == [
        ("CSV", "COMPLETED"),
        ("TMS_CSV", "COMPLETED"),
    ]
    await customer_desk.invalid("POST", f"{path}/download/", {}, loc="body.output_format")
    await customer_desk.invalid("POST", f"{path}/download/", {"output_format": "PDF"}, loc="body.output_format")
    text = await content(customer_desk, path, "TMS_CSV")
    assert text == await content(customer_desk, path, "CSV")
    (trade,) = (await customer_desk.get("/api/v2/trades/"))["items"]
    (row,) = rows_of(text)
    assert (row["trade_id"], row["cusip"], row["side"]) == (trade["id"], trade["cusip"], "BUY")
    assert (row["pocket_id"], row["pocket_name"], row["price_per_100"]) == (pocket.id, "Reserve", trade["price"])
    assert row["gross_amount"] == row["net_amount"] == row["cost_amount"] == f"{trade['notional']['value'] / 100:.2f}"
    assert (row["quantity_par"], row["realised_gain"]) == (str(trade["quantity"] * 100), "0.00")
    assert (row["book_date"], row["settlement_date"], row["status"]) == ("2025-06-02", "2025-06-03", "BOOKED")
    logged = {each["action"] for each in (await customer_desk.get("/api/v1/team/audit-logs/"))["items"]}
    assert {"report.requested", "report.downloaded"} <= logged
    told = (await customer_desk.get("/api/v1/notifications/"))["items"]
    assert [each["notification_metadata"]["report_id"] for each in told if each["type"] == "REPORT_READY"] == [
        done["report_id"]
    ]
    for foreign in (path, f"{ALL}{done['id']}/"):
        await other_customer.refused("GET", foreign, status=404, code="not-found")
    await other_customer.refused("POST", f"{path}/download/", {}, status=404, code="not-found")
    assert (await other_customer.get(ALL))["items"] == []
    assert (await customer_world.get(f"/api/v1/reports/{done['report_id']}/"))["id"] == done["report_id"]


async def test_a_partner_requests_reports_of_its_customers(partner_desk, other_partner):
    pocket = await partner_desk.funded(100_000_00)
    second = await partner_desk.pocket(pocket.customer)
    stranger = await partner_desk.pocket()
    body = report_request("POSITION_SUMMARY_REPORT", date="2025-06-02", customer_id=pocket.customer)
    done = await make_report(partner_desk, body)
    assert done["parameters"] == {"customer_id": pocket.customer, "date": "2025-06-02"}
    path = f"/api/v1/reports/{done['report_id']}/"
    (row,) = rows_of(await content(partner_desk, path))
    holding = (await partner_desk.get(pocket.path))["portfolio"]["securities"][0]
    assert list(row) == ["Pocket", "CUSIP", "Quantity", "Market Price", "Market Value", "Historical Cost Value"]
    assert row["Pocket"] == f"Reserve ({pocket.id[:8]})"
    assert (row["CUSIP"], row["Quantity"]) == (holding["cusip"], str(holding["quantity"]))
    (trade,) = (await partner_desk.get(f"{pocket.path}trades/"))["items"]
    assert row["Historical Cost Value"] == f"{trade['notional']['value'] / 100:.2f}"

    for wrong, loc in (
        (report_request(**TRADES), "body.parameters.customer_id"),
        (report_request(pocket_ids=[pocket.id, stranger.id], **TRADES), "body.parameters.pocket_ids.1"),
    ):
        await partner_desk.invalid("POST", ALL, wrong, loc=loc)
    mixed = report_request(pocket_ids=[stranger.id], customer_id=pocket.customer, **TRADES)
    await partner_desk.refused("POST", ALL, mixed, status=404, code="not-found")
    for foreign in ({"customer_id": pocket.customer}, {"pocket_ids": [pocket.id]}, {"pocket_ids": [UNKNOWN]}):
        await other_partner.refused("POST", ALL, report_request(**TRADES, **foreign), status=404, code="not-found")
    of_both = await make_report(partner_desk, report_request(pocket_ids=[pocket.id, second.id, pocket.id], **TRADES))
    assert of_both["parameters"]["pocket_ids"] == [pocket.id, second.id]

    path = f"/api/v1/reports/{of_both['report_id']}/"
    listed = await partner_desk.pages(ALL, limit=1)
    assert [each["id"] for each in listed] == [of_both["id"], done["id"]]
    for filters, found in (
        ({"type[]": "TRADE_REPORT"}, [of_both]),
        ({"status[]": ["FAILED", "PENDING"]}, []),
        ({"customer_id": stranger.customer}, []),
        ({"time_created_from": "2025-06-02", "time_created_to": "2025-06-02"}, [of_both, done]),
        ({"time_created_to": "2025-06-01"}, []),
    ):
        assert [each["id"] for each in (await partner_desk.get(ALL, filters))["items"]] == [e["id"] for e in found]
    events = await partner_desk.pages("/api/v1/events/", limit=100)
    raised = [each["event"] for each in events if each["event"]["event_type"] == "reports.completed"]
    assert sorted(each["payload"]["report_id"] for each in raised) == sorted([done["report_id"], of_both["report_id"]])
    await partner_desk.until("2025-08-31T10:00:00-04:00")
    for gone in (path, f"{ALL}{done['id']}/"):
        await partner_desk.refused("GET", gone, status=404, code="not-found")
    assert (await partner_desk.get(ALL))["items"] == []


async def test_a_partner_adds_formats_to_a_report_that_show_the_same_instant(partner_desk, other_partner):
    pocket = await partner_desk.funded(100_000_00)
    done = await make_report(partner_desk, report_request(pocket_ids=[pocket.id], **TRADES))
    path = f"/api/v1/reports/{done['report_id']}/"
    await partner_desk.invalid("POST", f"{path}formats/", {"output_formats": ["PDF"]}, loc="body.output_formats.0")
    await partner_desk.invalid("POST", f"{path}formats/", {"output_formats": []}, loc="body.output_formats")
    more = await partner_desk.post(f"{path}formats/", {"output_formats": ["TMS_CSV", "CSV"]}, status=202)
    assert [(each["output_format"], each["status"]) for each in more["formats"]] == [
        ("CSV", "COMPLETED"),
        ("TMS_CSV", "PENDING"),
    ]
    await partner_desk.refused(
        "POST", f"{path}download/", {"output_format": "TMS_CSV"}, status=409, code="report-not-completed"
    )
    await partner_desk.wire(pocket, 5_000_00)  # at the very instant of the request, on a clock that stands still
    await partner_desk.until("2025-06-04T10:00:00-04:00")
    assert await make_reports(partner_desk.bank) == 1
    assert await content(partner_desk, path, "TMS_CSV") == await content(partner_desk, path, "CSV")
    for refused, method in ((path, "GET"), (f"{path}download/", "POST"), (f"{path}formats/", "POST")):
        sent = {"output_formats": ["CSV"]} if refused.endswith("formats/") else {}
        await other_partner.refused(method, refused, sent if method == "POST" else b"", status=404, code="not-found")
    kinds = [each["event"]["event_type"] for each in await partner_desk.pages("/api/v1/events/", limit=100)]
    assert kinds.count("reports.completed") == 2


async def test_every_report_type_is_rendered_in_every_format_and_signed(customer_world, customer_desk, tmp_path):
    pocket, empty = await customer_desk.pocket(), await customer_desk.pocket(name="\uff1dcmd \u674e")
    await customer_world.wire(pocket, 100_000_00)
    await customer_world.until("2025-06-04T10:00:00-04:00")
    days = {"pocket_ids": [pocket.id, empty.id], "date": "2025-06-02"}
    span = {"date_from": "2025-06-01", "date_to": "2025-06-04"}
    parameters = {"TRADE_REPORT": span, "SECURITY_PRICE_REPORT": span}
    for type_ in ReportType:
        formats = formats_of(type_, ReportParameters())
        done = await make_report(customer_desk, report_request(type_, formats, **parameters.get(type_, days)))
        assert (done["status"], done["failure_reason"]) == ("COMPLETED", None)
        path = f"/api/v1/report/{done['report_id']}"
        files = {str(name): await content(customer_desk, path, name) for name in formats}
        assert all(files.values())
        await check_books(customer_desk, pocket, files)
        if type_ == ReportType.POSITION_SUMMARY_REPORT:
            assert files["PDF"].startswith("%PDF-")
            assert [row["Pocket"] for row in rows_of(files["CSV"])] == ["Reserve"]
        elif type_ == ReportType.SECURITY_PRICE_REPORT:
            prices = rows_of(files["TMS_CSV"])
            assert {row["price_date"] for row in prices} == {"2025-06-02", "2025-06-03"}
            assert all(row["bid_price"] < row["end_of_day_price"] < row["ask_price"] for row in prices)
        elif type_ != ReportType.TRADE_REPORT:
            assert files["CAMT053"].count("<Stmt>") == 2
        if type_ == ReportType.BROKERAGE_STATEMENT_REPORT:
            altered = tmp_path / "camt053.xml"
            closing = re.findall(r"CLBD.*?<Amt[^>]*>([\d.]+)<", files["CAMT053"])[0]
            reads = closing[:-1] + ("2" if closing[-1] == "1" else "1")
            altered.write_text(files["CAMT053"].replace(f">{closing}<", f">{reads}<"))
            found = verify_file(altered, await list_public_keys(customer_desk.bank.pool))
            assert found.verdict == Verdict.ALTERED
            assert f"Closing balance of Reserve reads {reads}; the bank signed {closing}." in found.findings


async def check_books(desk, pocket, files):
    """The books, in the reports that have them, show what the Pocket has and what its bills cost."""
    if "BEANCOUNT" not in files:
        return
    balances, _ = read_beancount(files["BEANCOUNT"])
    assert read_ledger(files["LEDGER"]) == balances
    cash, bills = [next(cents for name, cents in balances.items() if name.endswith(end)) for end in (":Cash", ":Bills")]
    shown = (await desk.get(f"/api/v2/pockets/{pocket.id}/"))["portfolio"]
    assert cash == shown["cash"]["value"]
    assert (cash + bills, balances[UNASSIGNED]) == (100_000_00, -100_000_00)
    moved = [row["Amount"] for row in rows_of(files["QUICKBOOKS_CSV"])]
    assert moved[0] == "100000.00"
    assert [row["*Amount"] for row in rows_of(files["XERO_CSV"])] == moved
    assert sum(map(Decimal, moved)) * 100 == cash


MISTAKES = [
    (report_request(formats=["DOCX"], **TRADES), "body.output_formats.0"),
    (report_request(formats=["CSV", "PDF"], **TRADES), "body.output_formats.1"),
    (report_request("SECURITY_PRICE_REPORT", ["CSV"], **TRADES), "body.output_formats.0"),
    (report_request(date_from="2025-06-01"), "body.parameters.date_to"),
    (report_request(date_from="2025-06-02", date_to="2025-06-01"), "body.parameters.date_to"),
    (report_request(date_from="2025-06-01", date_to="2025-06-03"), "body.parameters.date_to"),
    (report_request(date_from="2025-05-02", date_to="2025-06-02"), "body.parameters.date_to"),
    (report_request(**TRADES, cusips=["912797PX6"]), "body.parameters.cusips"),
    (report_request(**TRADES, customer_id=UNKNOWN), "body.parameters.customer_id"),
    (report_request(**TRADES, pocket_ids=[UNKNOWN] * 101), "body.parameters.pocket_ids"),
    (report_request("SECURITY_PRICE_REPORT", ["TMS_CSV"], cusips=["912797PX7"], **TRADES), "body.parameters.cusips.0"),
    (report_request("SECURITY_PRICE_REPORT", ["TMS_CSV"], cusips=["x"], **TRADES), "body.parameters.cusips.0"),
    (report_request("POSITION_SUMMARY_REPORT"), "body.parameters.date"),
    (report_request("POSITION_SUMMARY_REPORT", date="2025-06-03"), "body.parameters.date"),
    (report_request("POSITION_SUMMARY_REPORT", date="2025-06-02", **TRADES), "body.parameters.date_from"),
]


async def test_an_invalid_report_request_is_refused_at_its_field(customer_desk):
    for body, loc in MISTAKES:
        await customer_desk.invalid("POST", ALL, body, loc=loc)
    assert not await make_reports(customer_desk.bank)


async def test_a_report_as_of_an_instant_is_the_one_that_was_made_then(partner_desk, other_partner):
    pocket = await partner_desk.funded(100_000_00)
    before = (await partner_desk.bank.now()).isoformat()
    day = {"date": "2025-06-02", "pocket_ids": [pocket.id]}
    wanted = [
        report_request("POSITION_SUMMARY_REPORT", ["CSV"], **day),
        report_request("BANK_STATEMENT_REPORT", ["CAMT052"], **day),
        report_request("TRADE_REPORT", ["CSV"], customer_id=pocket.customer, **TRADES),
    ]
    made: list[str] = []
    later: list[str] = []
    second = pocket
    for files, as_of in ((made, {}), (later, {"as_of": before})):
        for body in wanted:
            done = await make_report(partner_desk, body | {"parameters": body["parameters"] | as_of})
            files.append(await content(partner_desk, f"/api/v1/reports/{done['report_id']}/"))
            assert ("as_of" in done["parameters"]) == bool(as_of)
        await partner_desk.later(hours=1)
        second = await partner_desk.funded(7_000_00, pocket.customer)
        await partner_desk.wire(pocket, 50_000_00)
        await partner_desk.later(hours=1)
    assert later == made
    now = await make_report(partner_desk, wanted[0])
    assert await content(partner_desk, f"/api/v1/reports/{now['report_id']}/") != made[0]

    await partner_desk.transfer(pocket, second, 10_00, external_id="inv-9", metadata={"team": "=ops"})
    noted = await make_report(partner_desk, report_request("BANK_STATEMENT_REPORT", ["XLSX"], **day))
    book = openpyxl.load_workbook(io.BytesIO(await file_of(partner_desk, f"/api/v1/reports/{noted['report_id']}/")))
    columns, *rows = book["Entries"].iter_rows(values_only=True)
    assert columns[-2:] == ("External id", "Metadata")
    assert {row[-2:] for row in rows} == {("inv-9", "team==ops"), (None, None)}

    def refused_with(as_of, **parameters):
        return report_request("POSITION_SUMMARY_REPORT", **{"date": "2025-06-02", **parameters, "as_of": as_of})

    for wrong in ("2031-01-01", "2025-06-02T10:00:00", "yesterday", ""):
        await partner_desk.invalid(
            "POST", ALL, refused_with(wrong, pocket_ids=[pocket.id]), loc="body.parameters.as_of"
        )
    late = refused_with(before, date="2025-06-03", pocket_ids=[pocket.id])
    await partner_desk.invalid("POST", ALL, late, loc="body.parameters.date")
    for unknown in (
        refused_with(before, pocket_ids=[second.id]),
        refused_with("2025-05-30", date="2025-05-29", customer_id=pocket.customer),
    ):
        await partner_desk.refused("POST", ALL, unknown, status=404, code="not-found")
    await other_partner.refused("POST", ALL, refused_with(before, pocket_ids=[pocket.id]), status=404, code="not-found")
