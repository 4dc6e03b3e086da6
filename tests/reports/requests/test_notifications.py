"""Notifications of debits and credits: each camt.054 continues where the last one ended."""

from lxml import etree
from tests.reports.formats.readers import read_camt
from tests.reports.requests.test_routes import ALL, content, report_request

from billfold.reports.requests.worker import make_reports

BANK = "BANK_STATEMENT_REPORT"


async def test_notifications_show_every_entry_once(customer_world, customer_desk):
    """Notifications with a clock that stands still, and with days between a request, a booking and the report."""
    pocket, other = await customer_desk.pocket(), await customer_desk.pocket()
    reports: list[str] = []
    references, ids = list[str | None](), set()

    async def notify(date):
        """Return the credits of the next notification; a cent arrives after its request, and belongs in the next."""
        after = {"after_report_id": reports[-1]} if reports else {}
        done = await customer_desk.post(
            ALL, report_request(BANK, ["CAMT054"], pocket_ids=[pocket.id], date=date, **after), status=202
        )
        await customer_world.wire(pocket, 1)
        while await make_reports(customer_desk.bank):
            pass
        reports.append((await customer_desk.get(f"{ALL}{done['id']}/"))["report_id"])
        text = (await content(customer_desk, f"/api/v1/report/{reports[-1]}")).encode()
        (found,) = read_camt(text)
        ids.add(etree.fromstring(text).findtext(".//{*}Ntfctn/{*}Id"))
        references.extend(each.text for each in etree.fromstring(text).iterfind(".//{*}NtryRef"))
        assert sum(found.amounts) == 0
        return [amount for amount in found.amounts if amount > 0]

    assert await notify("2025-06-02") == []
    await customer_world.wire(pocket, 5_000_00)
    assert await notify("2025-06-02") == [1, 5_000_00]
    await customer_world.wire(other, 7_000_00)
    assert await notify("2025-06-02") == [1]
    await customer_world.until("2025-06-03T23:59:00-04:00")
    await customer_world.wire(pocket, 6_000_00)
    await customer_world.until("2025-06-05T10:00:00-04:00")
    assert await notify("2025-06-02") == [1]
    assert await notify("2025-06-04") == [6_000_00]
    assert await notify("2025-06-05") == [1, 1]
    assert (len(ids), len(set(references))) == (6, len(references))


async def test_a_camt054_continuation_must_follow_a_report_of_the_same_pockets(customer_desk, other_customer):
    pocket, other = await customer_desk.pocket(), await customer_desk.pocket()
    made = {}
    for type_ in (BANK, "BROKERAGE_STATEMENT_REPORT"):
        body = report_request(type_, ["CAMT054"], pocket_ids=[pocket.id], date="2025-06-02")
        shown = await customer_desk.post(ALL, body, status=202)
        await make_reports(customer_desk.bank)
        made[type_] = (await customer_desk.get(f"{ALL}{shown['id']}/"))["report_id"]
    last = {"pocket_ids": [pocket.id], "date": "2025-06-02", "after_report_id": made[BANK]}
    for type_, output_format, parameters, loc in (
        (BANK, "CAMT053", {}, "output_formats.0"),
        (BANK, "CAMT054", {"date": "2025-06-01"}, "parameters.date"),
        (BANK, "CAMT054", {"pocket_ids": [pocket.id, other.id]}, "parameters.pocket_ids.1"),
        (BANK, "CAMT054", {"after_report_id": made["BROKERAGE_STATEMENT_REPORT"]}, "parameters.after_report_id"),
        ("BROKERAGE_STATEMENT_REPORT", "CAMT054", {}, "parameters.after_report_id"),
    ):
        body = report_request(type_, [output_format], **last | parameters)
        await customer_desk.invalid("POST", ALL, body, loc=f"body.{loc}")
    theirs = {"pocket_ids": [(await other_customer.pocket()).id]}
    body = report_request(BANK, ["CAMT054"], **last | theirs)
    await other_customer.refused("POST", ALL, body, status=404, code="not-found")
