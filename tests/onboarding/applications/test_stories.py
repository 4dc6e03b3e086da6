"""Businesses and persons become customers, through HTTP only."""

import asyncio
from datetime import timedelta
from uuid import UUID

import pytest
from tests.support.applications import (
    BUSINESS,
    MINORITY,
    OWNER,
    PARTNER_OWNER,
    PERSON,
    PICTURE,
    RETAIL,
    SIMPLE,
    V1,
    V2,
    Applicant,
    run_jobs,
)
from tests.support.damage import undetected
from tests.support.databases import owner_of
from tests.support.world import UNKNOWN

from billfold.data_keys.keys import DataKeys
from billfold.documents import store
from billfold.documents.ports import StoredFileMissing
from billfold.documents.store import fetch_opened
from billfold.identity.operators import Operator
from billfold.ledger.directory import find_customer
from billfold.ledger.types import ScheduledJob
from billfold.onboarding import review_queue
from billfold.onboarding.applications import approval
from billfold.onboarding.applications import store as applications_store
from billfold.onboarding.applications.ports import IdentityCheck
from billfold.onboarding.applications.types import APPROVE_JOB
from billfold.onboarding.review_queue import ReviewDecision
from billfold.sandbox.simulated_providers import SimulatedIdentityCheck
from billfold.verify.fingerprints import check_fingerprints

REJECTED = ReviewDecision(approved=False, reason="It is cut off.", by=Operator.of_command_line("olga"))


@pytest.fixture
def applicant(world):
    """An applicant of a partner."""
    return Applicant(world)


async def events_of(desk):
    """Return the kinds of the events of applications, the first one first."""
    found = await desk.get("/api/v1/events/", {"limit": 100})
    kinds = [each["event"]["event_type"] for each in reversed(found["items"])]
    return [kind for kind in kinds if kind.startswith("application.")]


POCKET = {"pocket_name": "Reserve", "deposit_strategy_id": "UST-4W"}


async def test_an_incomplete_application_lists_missing_requirements_and_masks_tax_ids(applicant):
    desk = applicant.desk
    made = await desk.post(V1, {"name": BUSINESS["name"]})
    assert (made["status"], made["customer_id"], made["address"]) == ("CREATED", None, None)
    assert {"entity_type", "address", "related_parties"} <= set(made["missing_requirements"])
    one = applicant.path(made["id"])
    changed = await desk.patch(one, BUSINESS)
    assert changed["identification_number"]["identification_number"] == "*****6789"
    refused = await desk.refused("POST", f"{one}apply/", {}, status=422, code="application-incomplete")
    assert {"related_parties.CONTROL_PERSON", "documents.EIN_CONFIRMATION"} <= set(refused["missing_requirements"])
    first, second = [await desk.post(applicant.parties(made["id"]), each) for each in (OWNER, PARTNER_OWNER)]
    assert first["identification_number"]["identification_number"] == "*****6789"
    assert [each["id"] for each in await desk.get(applicant.parties(made["id"]))] == [first["id"], second["id"]]
    requested = {each["type"] for each in await desk.get(f"{one}documents/")}
    assert requested == {"EIN_CONFIRMATION", "ARTICLES_OF_ORGANIZATION", "OPERATING_AGREEMENT", "ORG_CHART"}
    passport = await desk.get(applicant.parties(made["id"], second["id"]))
    assert [each["type"] for each in passport] == ["PASSPORT"]
    await applicant.upload_all(made["id"])
    assert (await applicant.get(made["id"]))["missing_requirements"] == []


async def test_an_llc_with_two_owners_is_approved_immediately(applicant, other_partner):
    desk = applicant.desk
    made = await applicant.filled(OWNER, PARTNER_OWNER, first_pocket=POCKET)
    one = applicant.path(made)
    assert (await applicant.apply(made))["status"] == "SUBMITTED"
    await desk.refused("PATCH", one, {"name": "Other"}, status=409, code="application-not-editable")
    await run_jobs(desk.bank)
    approved = await applicant.get(made)
    assert (approved["status"], approved["exception_reasons"]) == ("APPROVED", [])
    assert await events_of(desk) == ["application.approved"]
    documents = await applicant.documents(made)
    assert {each["status"] for each in documents} == {"APPROVED"}
    again = f"/api/v1/documents/{documents[0]['id']}/"
    await desk.refused("POST", again, b"%PDF-", status=412, code="already-approved")
    await expect_customer(desk, approved["customer_id"])
    owners = f"/api/v1/customers/{approved['customer_id']}/beneficial-owners/"
    assert [each["name"]["last_name"] for each in await desk.get(owners)] == ["Marsh", "Reyes"]
    for path in (one, f"{one}documents/", owners):
        await other_partner.refused("GET", path, status=404, code="not-found")


async def expect_customer(desk, customer_id):
    """Check the customer of an approved business, with its Pocket and its consent."""
    customer = await desk.get(f"/api/v1/customers/{customer_id}/")
    assert (customer["name"], customer["account_status"]) == (BUSINESS["name"], "OPEN")
    assert customer["identification_number"]["identification_number"] == "*****6789"
    pockets = await desk.get(f"/api/v2/customers/{customer_id}/pockets/")
    assert [each["pocket_name"] for each in pockets["items"]] == ["Reserve"]
    accepted = await desk.bank.pool.fetchrow("SELECT version, ip_address, user_agent FROM agreement_acceptance")
    assert accepted["version"] == BUSINESS["agreement_consent"]["version"]
    assert accepted["ip_address"]
    assert accepted["user_agent"]


async def test_a_corporation_sent_back_for_documents_is_reviewed_and_approved(applicant):
    desk = applicant.desk
    made = await applicant.filled(MINORITY, name="Contoso Documents Inc.", entity_type="CORPORATE")
    sent_back = await applicant.decided(made)
    assert (sent_back["status"], sent_back["exception_reasons"]) == ("DOCUMENTS_NEEDED", ["SANDBOX_DOCUMENTS_NEEDED"])
    assert sent_back["missing_requirements"] == ["documents", "documents.BUSINESS_DESCRIPTION"]
    await desk.refused("POST", applicant.path(made, "apply"), {}, status=422, code="application-incomplete")
    await applicant.upload_all(made, name="invalid scan.pdf")
    (invalid,) = [each for each in await applicant.documents(made) if each["status"] == "INVALID"]
    assert invalid["exception_reason"] == "IMAGE_QUALITY_ERROR_CUTOFF"
    assert (await applicant.get(made))["status"] == "DOCUMENTS_NEEDED"
    await applicant.upload_all(made)
    assert (await applicant.get(made))["status"] == "MANUAL_REVIEW"
    await run_jobs(desk.bank)

    decision = {"application_id": made, "status": "DOCUMENTS_NEEDED", "reason": "BLURRED"}
    await desk.ask("POST", "/api/v1/sandbox/application-decision/", decision, status=202)
    assert (await applicant.get(made))["exception_reasons"] == ["BLURRED"]
    await run_jobs(desk.bank)
    await applicant.upload_all(made)
    await run_jobs(desk.bank)
    approval = {"application_id": made, "status": "APPROVED"}
    await desk.ask("POST", "/api/v1/sandbox/application-decision/", approval, status=202)
    await run_jobs(desk.bank)
    assert (await applicant.get(made))["status"] == "APPROVED"
    code = "application-not-in-review"
    await desk.refused("POST", "/api/v1/sandbox/application-decision/", approval, status=409, code=code)
    assert await events_of(desk) == [
        *("application.documents_needed", "application.manual_review") * 2,
        "application.approved",
    ]


@pytest.mark.parametrize(
    ("fields", "status", "reasons"),
    [
        ({"name": "Reject Co"}, "REJECTED", ["SANDBOX_REJECTED"]),
        ({"name": "Review Co"}, "MANUAL_REVIEW", ["SANDBOX_REVIEW"]),
        ({"name": "Pending Co"}, "SUBMITTED", []),
        (
            {"agreement_consent": {"version": "2001-01", "timestamp": "2025-06-02T12:00:00Z"}},
            "MANUAL_REVIEW",
            ["AGREEMENT_VERSION_OUTDATED"],
        ),
    ],
)
async def test_the_business_name_and_the_agreement_decide_a_sandbox_application(applicant, fields, status, reasons):
    made = await applicant.simple(**fields)
    decided = await applicant.decided(made)
    assert (decided["status"], decided["exception_reasons"], decided["customer_id"]) == (status, reasons, None)
    events = {"REJECTED": ["application.rejected"], "MANUAL_REVIEW": ["application.manual_review"]}
    assert await events_of(applicant.desk) == events.get(status, [])


async def test_an_identity_check_takes_time_on_the_bank_clock(applicant):
    applicant.desk.bank.ports[IdentityCheck] = SimulatedIdentityCheck(timedelta(hours=2))
    made = await applicant.simple()
    assert (await applicant.decided(made))["status"] == "PENDING"
    await applicant.desk.later(hours=1)
    assert (await applicant.get(made))["status"] == "PENDING"
    await applicant.desk.later(hours=1)
    assert (await applicant.get(made))["status"] == "APPROVED"


async def test_an_application_without_an_identity_check_or_with_an_invalid_file_goes_to_review(applicant):
    bank = applicant.desk.bank
    made = await applicant.filled(entity_type="SOLE_PROPRIETOR")
    await applicant.apply(made)
    await review_queue.decide(bank, UUID((await applicant.documents(made))[0]["id"]), REJECTED)
    await run_jobs(bank)
    found = await applicant.get(made)
    assert (found["status"], found["exception_reasons"]) == ("MANUAL_REVIEW", ["APPLICATION_INCOMPLETE"])
    bank.ports[IdentityCheck] = None
    assert (await applicant.decided(await applicant.simple()))["status"] == "MANUAL_REVIEW"


async def test_uploading_a_file_to_a_decided_application_is_refused(applicant):
    made = await applicant.filled(name="Review Co", entity_type="SOLE_PROPRIETOR")
    document = (await applicant.documents(made))[0]
    await applicant.decided(made)
    assert (await applicant.upload(document, status=409))["code"] == "document-in-review"
    await review_queue.decide(applicant.desk.bank, UUID(document["id"]), REJECTED)
    rejection = {"application_id": made, "status": "REJECTED"}
    await applicant.desk.ask("POST", "/api/v1/sandbox/application-decision/", rejection, status=202)
    assert (await applicant.upload(document, status=409))["code"] == "application-not-editable"


async def test_an_approved_retail_application_creates_a_customer(world):
    desk = world
    made = await desk.post(
        RETAIL, PERSON | {"identification_number": "D1234567", "identification_type": "DRIVERS_LICENSE"}
    )
    assert (made["status"], made["id_verification_documents_needed"]) == ("CREATED", True)
    assert made["date_of_birth"] == {"date_of_birth": PERSON["date_of_birth"]}
    assert made["identification_number"] == "****4567"
    one = f"{RETAIL}{made['id']}/"
    await desk.refused("POST", f"{one}apply/", {}, status=422, code="application-incomplete")
    for kind in ("ID_FRONT", "ID_BACK", "SELFIE"):
        document = {"id": None, "type": kind}
        sent = await Applicant(desk).upload(document, path=f"{one}documents/{kind}/file/", status=201)
        assert sent["success"]
    assert {each["type"] for each in (await desk.get(one))["documents"]} == {"ID_FRONT", "ID_BACK", "SELFIE"}
    assert (await desk.post(f"{one}apply/", {}, status=200))["status"] == "SUBMITTED"
    await run_jobs(desk.bank)
    approved = await desk.get(one)
    assert (approved["status"], approved["id_verification_documents_needed"]) == ("APPROVED", False)
    customer = await desk.get(f"/api/v1/customers/{approved['customer_id']}/")
    assert (customer["type"], customer["name"]["last_name"]) == ("INDIVIDUAL", "Hill")
    assert (customer["account_status"], customer["date_of_birth"]) == ("PENDING", PERSON["date_of_birth"])
    assert await desk.get(f"/api/v1/customers/{customer['id']}/beneficial-owners/") == []
    for path in (f"{V1}{made['id']}/", f"{RETAIL}{UNKNOWN}/"):
        await desk.refused("GET", path, status=404, code="not-found")


async def test_concurrent_submissions_of_one_application_succeed_once(applicant):
    made = await applicant.simple()
    apply = applicant.path(made, "apply")
    answers = await asyncio.gather(*(applicant.desk.send("POST", apply, {}) for _ in range(4)))
    assert sorted(each.status_code for each in answers) == [200, 409, 409, 409]
    await run_jobs(applicant.desk.bank)
    assert await events_of(applicant.desk) == ["application.approved"]


async def test_a_repeated_application_with_a_client_chosen_id_is_created_once(applicant, other_partner):
    body = BUSINESS | {"id": "4f6a2b7e-52f0-4c6e-9a57-1d0c8b7e4a10"}
    first = await applicant.desk.post(V1, body)
    await applicant.desk.patch(applicant.path(first["id"]), {"name": "Renamed"})
    again = await applicant.desk.post(V1, body)
    assert (again["id"], again["name"]) == (body["id"], "Renamed")
    await applicant.desk.refused("POST", V1, body | {"name": "Other"}, status=409, code="duplicate-id")
    assert (await other_partner.post(V1, body | {"name": "Theirs"}))["name"] == "Theirs"
    assert (await applicant.get(first["id"]))["name"] == "Renamed"


async def test_applications_are_listed_by_status_newest_first(applicant):
    desk = applicant.desk
    made = [(await desk.post(V1, {"name": f"Company {n}"}))["id"] for n in range(3)]
    made.append(await applicant.simple(name="Reject Co"))
    await applicant.decided(made[-1])
    assert [each["id"] for each in await desk.pages(V1)] == made[::-1]
    rejected = await desk.get(V1, {"status[]": ["REJECTED", "APPROVED"]})
    assert [each["id"] for each in rejected["items"]] == made[-1:]
    await desk.invalid("GET", V1, loc="query.status", filters={"status": "OPEN"})


async def test_a_document_request_disappears_when_the_data_no_longer_requires_it(applicant):
    made = await applicant.filled(uploaded=False, entity_type="PARTNERSHIP")
    kinds = {each["type"]: each for each in await applicant.documents(made)}
    assert set(kinds) == {"EIN_CONFIRMATION", "PARTNERSHIP_AGREEMENT", "ORG_CHART"}
    await applicant.upload(kinds["PARTNERSHIP_AGREEMENT"])
    desk = applicant.desk
    risk = {"risk_info": {"source_of_funds": "CLIENT_OR_EXTERNAL_FUNDS", "risk_categories": ["CRYPTOCURRENCY"]}}
    changed = await desk.patch(applicant.path(made), {"entity_type": "CORPORATE", "address": None, **risk})
    assert changed["risk_info"]["annual_revenue"] == BUSINESS["risk_info"]["annual_revenue"]
    kinds = {each["type"]: each["status"] for each in await applicant.documents(made)}
    assert {"ARTICLES_OF_INCORPORATION", "BYLAWS", "FLOW_OF_FUNDS", "MARKET_MANIPULATION_POLICY"} <= set(kinds)
    assert kinds["PARTNERSHIP_AGREEMENT"] == "PENDING_REVIEW"
    assert "EIN_CONFIRMATION" not in kinds
    (party,) = await desk.get(applicant.parties(made))
    await desk.ask("DELETE", applicant.parties(made, party["id"]), status=204)
    assert "ORG_CHART" not in {each["type"] for each in await applicant.documents(made)}
    await desk.refused("DELETE", applicant.parties(made, party["id"]), status=404, code="not-found")


async def test_an_idle_application_is_closed_after_ninety_days(applicant):
    desk = applicant.desk
    idle, kept = [(await desk.post(V1, {"name": name}))["id"] for name in ("Idle", "Kept")]
    await desk.later(days=60)
    await desk.patch(applicant.path(kept), {"website": "kept.example"})
    await desk.later(days=31)
    assert [(await applicant.get(each))["status"] for each in (idle, kept)] == ["CLOSED", "CREATED"]
    await desk.refused("POST", applicant.path(idle, "apply"), {}, status=409, code="application-not-editable")
    await desk.later(days=60)
    assert (await applicant.get(kept))["status"] == "CLOSED"


async def test_the_submitter_of_a_second_company_becomes_administrator_of_its_team(customer_desk, other_customer):
    applicant = Applicant(customer_desk, V2)
    made = await applicant.filled(OWNER, PARTNER_OWNER)
    (party, _) = await customer_desk.get(applicant.parties(made))
    changed = await customer_desk.patch(applicant.parties(made, party["id"]), {"title": "President"})
    assert (changed["title"], changed["name"]) == ("President", party["name"])
    approved = await applicant.decided(made)
    assert approved["status"] == "APPROVED"
    seat = "SELECT user_id, role FROM membership WHERE customer_id = $1"
    member = await customer_desk.bank.pool.fetchrow(seat, approved["customer_id"])
    assert tuple(member) == (customer_desk.team.user_id, "ADMIN")
    added = "SELECT count(*) FROM audit_entry WHERE action = 'member.added' AND customer_id = $1"
    assert await customer_desk.bank.pool.fetchval(added, approved["customer_id"]) == 1
    team = applicant.path(made, "team")
    clerk = {"first_name": "Dee", "last_name": "Fox", "email": "dee@northwind.example", "role": "VIEWER"}
    invited = await customer_desk.post(team, [clerk])
    assert {group["status"]: len(group["members"]) for group in invited["groups"]}.items() >= {
        ("PENDING", 1),
        ("ACTIVE", 1),
    }
    assert invited["customer_id"] == approved["customer_id"]
    await customer_desk.refused("POST", team, [clerk], status=409, code="member-already-invited")
    await customer_desk.invalid("POST", team, [clerk | {"email": "new@x.example"}] * 2, loc="body.1.email")
    notices = (await customer_desk.get("/api/v1/notifications/"))["items"]
    assert "APPLICATION_STATUS_CHANGED" in {each["type"] for each in notices}
    assert [each["id"] for each in (await customer_desk.get(V2))["items"]] == [made]
    assert (await other_customer.get(V2))["items"] == []
    await other_customer.refused("GET", applicant.path(made), status=404, code="not-found")


@pytest.mark.parametrize("step", ["_enrol_customer", "_open_first_pocket", "_complete_approval"])
async def test_an_approval_interrupted_after_any_step_is_completed_once(applicant, monkeypatch, step):
    desk, bank = applicant.desk, applicant.desk.bank
    made = await applicant.simple(first_pocket=POCKET)
    (row,) = await applications_store.list_by_id(bank.pool, UUID(made))
    job = ScheduledJob(APPROVE_JOB, row.applicant_id, row.customer_id, await bank.now())
    await approval.run_approve_job(bank, job)
    assert await find_customer(bank.pool, row.applicant_id) is None, "it is not approved yet"
    finish = getattr(approval, step)

    async def die(*values):
        await finish(*values)
        raise ConnectionError

    with monkeypatch.context() as patched, pytest.raises(AssertionError):
        patched.setattr(approval, step, die)
        await applicant.decided(made)
    await run_jobs(bank)
    pockets = await desk.get(f"/api/v2/customers/{row.applicant_id}/pockets/")
    assert [each["pocket_name"] for each in pockets["items"]] == ["Reserve"]
    assert await events_of(desk) == ["application.approved"]
    assert await bank.pool.fetchval("SELECT count(*) FROM agreement_acceptance") == 1


async def test_personal_data_of_applicants_is_encrypted_in_the_database(applicant):
    made = await applicant.filled(MINORITY, PARTNER_OWNER, **SIMPLE)
    await applicant.decided(made)
    pool = applicant.desk.bank.pool
    for table in ("application", "related_party_application", "application_move", "audit_entry", "command", "customer"):
        text = await pool.fetchval(f"SELECT string_agg(t::text, ' ') FROM {table} t")
        for secret in ("123456789", "12-3456789", "123-45-6789", "X1234567", "1980-02-29"):
            assert secret not in text, (table, secret)
    (passport,) = [each for each in await applicant.documents(made) if each["type"] == "PASSPORT"]
    row = await store.get_document(pool, UUID(passport["id"]))
    assert row.subject == UUID((await applicant.get(made))["customer_id"]), "not the partner, under whom it was sent"
    assert await fetch_opened(applicant.desk.bank, row) == PICTURE
    await applicant.desk.bank.ports[DataKeys].shred(pool, row.subject, await applicant.desk.bank.now())
    assert (await applicant.desk.get(V1))["items"] == []
    await applicant.desk.refused("GET", applicant.path(made), status=404, code="not-found")
    with pytest.raises(StoredFileMissing):
        await fetch_opened(applicant.desk.bank, row)


async def test_verify_reports_an_edited_application_row(applicant):
    made = await applicant.simple()
    await applicant.decided(made)
    async with owner_of(applicant.desk.bank) as conn:
        for table in ("application", "application_move", "related_party_application"):
            assert await undetected(conn, table, check_fingerprints) == []
