"""Statements over HTTP: which are listed, to whom, and what their URLs answer."""

from uuid import UUID

from tests.support.world import UNKNOWN

from billfold.reports.statements.store import Month
from billfold.reports.statements.worker import correct_statements, make_statements

JUNE = Month.parse("2025-06")


async def test_statements_are_listed_by_account_type_and_month_with_a_url_and_the_team_is_notified(
    customer_world, customer_desk, other_customer
):
    partner, customer = customer_world, customer_desk.team.customer
    pockets = [await partner.funded(1_000_000_00, customer, name=name) for name in ("=1+1 株式会社", "Payroll" * 18)]
    bank, listed = partner.bank, f"/api/v1/customers/{customer}/statements/"
    await partner.until("2025-07-01T05:59:00-04:00")
    assert await partner.get(listed) == await customer_desk.get("/api/v1/statements/")
    await partner.until("2025-07-01T06:00:00-04:00")
    assert await make_statements(bank, UUID(customer), JUNE) == 4
    rows = await customer_desk.pages("/api/v1/statements/")
    assert {(each["service_account_id"], each["type"], each["key"]) for each in rows} == {
        (pocket.id, type_, "2025-06") for pocket in pockets for type_ in ("BANK", "BROKERAGE")
    }
    for filters, count in (
        ({"account[]": pockets[0].id}, 2),
        ({"account[]": [each.id for each in pockets], "type[]": "BANK"}, 2),
        ({"type[]": ["1099INT", "1099-B"]}, 0),
        ({"key": "2025-06", "limit": 150}, 4),
        ({"key": "2025"}, 4),
        ({"key": "2025-07"}, 0),
    ):
        assert len((await customer_desk.get("/api/v1/statements/", filters))["items"]) == count, filters
        assert len((await partner.get(listed, filters))["items"]) == count, filters
    for name, value in (
        ("key", "2025-6"),
        ("key", "2025-13"),
        ("type[]", "TAX"),
        ("limit", 151),
        ("account[]", "x"),
        ("month", "2025-06"),
    ):
        await customer_desk.ask("GET", "/api/v1/statements/", status=422, filters={name: value})
    await customer_desk.refused(
        "GET", "/api/v1/statements/", status=404, code="not-found", filters={"account[]": UNKNOWN}
    )
    await other_customer.refused(
        "GET", "/api/v1/statements/", status=404, code="not-found", filters={"account[]": pockets[0].id}
    )
    assert (await other_customer.get("/api/v1/statements/"))["items"] == []
    old = await partner.ask("GET", f"/api/v1/service-accounts/{pockets[0].id}/statements/", status=200)
    assert {each["type"] for each in old.json()["items"]} == {"BANK", "BROKERAGE"}
    assert "deprecation" in old.headers
    file = await customer_desk.http.get(rows[0]["pdf_download_url"])
    assert (file.status_code, file.content[:5]) == (200, b"%PDF-")
    assert file.headers["content-disposition"].startswith('attachment; filename="2025-06-')
    told = (await customer_desk.get("/api/v1/notifications/"))["items"]
    (news,) = [each for each in told if each["type"] == "STATEMENT_AVAILABLE"]
    assert "June 2025" in news["title"]
    await correct_statements(bank, *pockets[0].key, month=JUNE, reason="A name was wrong.")
    again = (await partner.get(listed, {"account[]": pockets[0].id}))["items"]
    assert [(each["version"], each["reason"]) for each in again] == [(2, "A name was wrong.")] * 2
