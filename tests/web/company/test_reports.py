"""Reports and statements in the console: requested by a form, made, downloaded and verified; not by others."""

import asyncio
import io
from zipfile import ZipFile

import pytest
from tests.reference.shared_calls import make_june
from tests.support.browser import Browser, forms_of
from tests.support.world import UNKNOWN

from billfold.reports.proofs.signatures import DOCUMENT, SignedManifest, list_public_keys, verify
from billfold.reports.requests.worker import make_reports


@pytest.fixture
async def pocket(customer_desk, customer_world):
    own = await customer_desk.pocket(name="Reserve")
    await customer_world.wire(own, 100_000_00)
    return own


async def test_a_report_form_submitted_twice_creates_one_request(console, customer_desk, pocket, bank):
    browser = await console(customer_desk, role="MANAGER")
    new = f"{browser.home}/reports/new"
    await browser.go(f"{new}?type=TRADE_REPORT")
    await browser.send(new, **{"date_from": "2025-06-02", "date_to": "2025-06-01", "format.CSV": "yes"})
    assert browser.page.status_code == 422
    assert "date_to" in browser.mistakes
    form = forms_of(browser.page.text)[new] | {"date_to": "2025-06-02", f"pocket.{pocket.id}": "yes"}
    assert form["format.CSV"] == "yes"
    twice = await asyncio.gather(*[browser.post(new, form) for _ in range(2)])
    assert 303 in {each.status_code for each in twice}
    (request,) = (await customer_desk.get("/api/v1/report-requests/"))["items"]
    assert request["parameters"]["pocket_ids"] == [pocket.id]
    own = f"{browser.home}/reports/{request['id']}"
    await browser.go(own)
    assert "0% of it is made" in browser.text
    while await make_reports(bank):
        pass
    await browser.go(own)
    assert "Completed" in browser.text
    file = await browser.go(f"{own}/CSV")
    assert file.status_code == 303
    assert file.headers["location"].startswith("https://api.")
    proof = await browser.go(f"{own}/CSV?proof=1")
    assert proof.headers["content-disposition"].endswith('.csv.proof"')
    verify(proof.text.split()[1], await list_public_keys(bank.pool), DOCUMENT, SignedManifest)
    for wrong in (f"{own}/PDF", f"{browser.home}/reports/{UNKNOWN}", f"{browser.home}/reports/new?type=X"):
        assert (await browser.go(wrong)).status_code == 404


async def test_a_viewer_can_read_reports_but_not_request_them(
    console, customer_desk, other_customer, pocket, console_app
):
    viewer = await console(customer_desk, role="VIEWER")
    await viewer.go(f"{viewer.home}/reports")
    assert "Create report" not in viewer.text
    new = f"{viewer.home}/reports/new"
    form = {"csrf": viewer.csrf, "type": "POSITION_SUMMARY_REPORT", "date": "2025-06-02", "format.PDF": "yes"}
    assert (await viewer.post(new, form)).status_code == 403
    assert (await viewer.post(new, {**form, "csrf": "x" * 43})).status_code == 403
    assert (await viewer.go(new)).status_code == 403
    other = await console(other_customer)
    await other.go(f"{other.home}/reports")
    form |= {"csrf": other.csrf, f"pocket.{pocket.id}": "yes"}
    assert (await other.post(new, form)).status_code == 404
    assert (await other.post(f"{other.home}/reports/new", form)).status_code == 404
    stranger = Browser(console_app)
    assert (await stranger.go(new)).headers["location"].startswith("/sign-in")
    await stranger.close()


async def test_console_statements_link_to_their_files(console, customer_desk, other_customer, pocket):
    await make_june(customer_desk, customer_desk.team.customer)
    browser = await console(customer_desk, role="VIEWER")
    await browser.go(f"{browser.home}/reports")
    assert f'href="{browser.home}/statements/2025-06/all.zip"' in browser.page.text
    await browser.go(f"{browser.home}/statements?period=2025-06&type=BANK&pocket={pocket.id}")
    assert "June 2025" in browser.text
    assert "Bank statement" in browser.text.rsplit("Filter")[-1]
    assert "Brokerage statement" not in browser.text.rsplit("Filter")[-1]
    (shown,) = (await customer_desk.get("/api/v1/statements/", {"type[]": "BANK"}))["items"]
    path = f"pockets/{pocket.id}/statements/2025-06/{shown['id']}"
    assert f'href="{browser.home}/{path}"' in browser.page.text
    file = await browser.go(f"{browser.home}/{path}")
    assert f"/downloads/{shown['id']}?" in file.headers["location"]
    assert (await browser.go(f"{browser.home}/pockets/{pocket.id}/statements/2025-07/{shown['id']}")).status_code == 404
    assert (await browser.go(f"{browser.home}/statements?period=June")).status_code == 422
    whole = await browser.http.get(f"{browser.home}/statements/2025-06/all.zip")
    listed = (await customer_desk.get("/api/v1/statements/", {"key": "2025-06"}))["items"]
    with ZipFile(io.BytesIO(whole.content)) as archive:
        assert len(archive.namelist()) == len(listed)
        assert archive.testzip() is None
        assert {archive.read(each)[:5] for each in archive.namelist()} == {b"%PDF-"}
    stranger = await console(other_customer)
    for gone, status in (("2025-07", 404), ("June", 422), ("..", 404)):
        assert (await browser.http.get(f"{browser.home}/statements/{gone}/all.zip")).status_code == status, gone
    assert (await stranger.http.get(f"{browser.home}/statements/2025-06/all.zip")).status_code == 404
    assert (await stranger.http.get(f"{stranger.home}/statements/2025-06/all.zip")).status_code == 404
    other = await console(other_customer)
    assert (await other.go(f"{other.home}/{path}")).status_code == 404
