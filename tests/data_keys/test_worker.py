"""Closed customers and rejected applicants are forgotten when retention ends: the key goes, the money stays proved."""

from dataclasses import replace
from datetime import timedelta

from tests.data_keys.test_sealed_columns import customer_with_contact, verified
from tests.documents.test_routes import PAGE, sent
from tests.support.applications import Applicant, run_jobs
from tests.wiring.test_worker import set_clock

from billfold.data_keys.rotation import shred_after_retention

YEAR = timedelta(days=366)


def keep_for_a_year(bank):
    bank.settings = replace(bank.settings, retention_years=1)
    return bank


async def test_a_closed_customer_is_shredded_after_retention_and_an_open_one_never(partner_desks):
    partner_desk = await partner_desks("acme", features=("customer_closure",))
    bank = keep_for_a_year(partner_desk.bank)
    (closed_path, closed), (open_path, _) = [
        await customer_with_contact(partner_desk, name) for name in ("Acme", "Beta")
    ]
    await partner_desk.patch(closed_path, {"status": "CLOSED", "closure_reason": "USER_INSTIGATED"})
    closed_at = await bank.now()

    await set_clock(bank, closed_at + YEAR - timedelta(days=2))
    assert await shred_after_retention(bank) == 0
    assert (await partner_desk.get(closed_path))["email"] == "cfo@hidden.example"
    await set_clock(bank, closed_at + YEAR)
    assert [await shred_after_retention(bank) for _ in range(2)] == [1, 0]

    shown = await partner_desk.get(closed_path)
    assert (shown["name"], shown["email"], shown["address"]) == ("Acme", None, None)
    assert (await partner_desk.get(open_path))["email"] == "cfo@hidden.example"
    entry = "SELECT resource_id, actor FROM audit_entry WHERE customer_id = $1 AND action = 'data_key.shredded'"
    assert tuple(await bank.pool.fetchrow(entry, closed)) == (str(closed), "SYSTEM")
    report = await verified(bank)
    assert (report.is_clean, report.checked["data_key_shredded"]) == (True, 1), report.findings[:3]
    await partner_desk.refused(
        "POST",
        f"/api/v1/customers/{closed}/documents/WIRE_COUNTERPARTY_VERIFICATION/file/",
        PAGE,
        headers=sent(),
        status=409,
        code="customer-not-open",
    )


async def test_an_unapproved_applicant_is_shredded_after_retention(partner_desk):
    bank, applicant = keep_for_a_year(partner_desk.bank), Applicant(partner_desk)
    approved, rejected, given_up = [
        await applicant.simple(name=name) for name in ("Approved LLC", "Reject LLC", "Given up LLC")
    ]
    for application, status in ((approved, "APPROVED"), (rejected, "REJECTED")):
        assert (await applicant.decided(application))["status"] == status
    await set_clock(bank, await bank.now() + timedelta(days=91))
    await run_jobs(bank)
    ended_at = await bank.now()

    await set_clock(bank, ended_at + YEAR - timedelta(days=35))
    assert await shred_after_retention(bank) == 1, "the rejected one, who ended before"
    await set_clock(bank, ended_at + YEAR)
    assert [await shred_after_retention(bank) for _ in range(2)] == [1, 0]

    for application in (rejected, given_up):
        await partner_desk.refused("GET", applicant.path(application), status=404, code="not-found")
    assert (await applicant.get(approved))["status"] == "APPROVED"
    entries = "SELECT customer_id, resource_id FROM audit_entry WHERE action = 'data_key.shredded'"
    applicants = "SELECT customer_id, applicant_id::text FROM application WHERE status <> 'APPROVED'"
    assert set(await bank.pool.fetch(entries)) == set(await bank.pool.fetch(applicants))
    report = await verified(bank)
    assert (report.is_clean, report.checked["data_key_shredded"]) == (True, 2), report.findings[:3]
