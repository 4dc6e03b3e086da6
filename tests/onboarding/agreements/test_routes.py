"""Agreements through both APIs: permanent versions, acceptances, and operations refused without one."""

import asyncio
from io import BytesIO

import asyncpg
import pikepdf
import pytest
from pypdf import PdfReader
from tests.support.applications import FIRST, SECOND, Applicant, changed, release
from tests.support.approvals import REQUESTS, on_us
from tests.support.cases import in_one_bank
from tests.support.damage import undetected
from tests.support.world import UNKNOWN

from billfold.onboarding.agreements import store
from billfold.onboarding.agreements.texts import InvalidAgreements, Section, read_texts, shipped_texts, to_toml
from billfold.verify.fingerprints import check_fingerprints

PATH = "/api/v1/agreements/"
ODD = '#panic("x") *b* $y$ <script>alert(1)</script> \\ @a // https://b.example "q" ' + "Ωж ع हिं"


def consent(version=SECOND, **fields):
    return {"version": version, "timestamp": "2025-06-02T13:00:00Z", **fields}


async def test_an_agreement_version_takes_effect_on_its_date_and_earlier_files_remain(world, customer_desk):
    first = await customer_desk.get(PATH)
    assert first == await world.get(PATH)
    assert first["version"] == first["release_date"] == FIRST
    assert len({each["type"] for each in first["documents"]}) == len(first["documents"]) == 20
    files = {}
    for each in first["documents"]:
        assert each["pdf_download_url"].startswith(f"{customer_desk.base}/agreements/{FIRST}/")
        answer = await customer_desk.http.get(each["pdf_download_url"])
        assert answer.headers["content-type"] == "application/pdf"
        assert answer.headers["content-disposition"].startswith("attachment")
        assert each["title"] in PdfReader(BytesIO(answer.content)).pages[0].extract_text()
        files[each["pdf_download_url"]] = answer.content
    await release(customer_desk.bank)
    assert (await customer_desk.get(PATH))["version"] == FIRST
    await world.until(f"{SECOND}T00:00-04:00")
    second = await customer_desk.get(PATH)
    assert second["version"] == second["release_date"] == SECOND
    for address, content in files.items():
        assert (await customer_desk.http.get(address)).content == content
        assert (await customer_desk.http.get(address.replace(FIRST, SECOND))).content != content
    for path in (f"{FIRST}/x.pdf", "2024-01-01/form-crs.pdf", f"{FIRST}/form_crs.pdf"):
        assert (await customer_desk.http.get(f"/agreements/{path}")).status_code == 404


async def test_an_agreement_pdf_escapes_its_text_and_is_accessible(bank):
    sections = (Section(heading=ODD, paragraphs=("word " * 900, ODD)),)
    await release(bank, texts=changed(title="<b>Terms</b>", sections=sections))
    content = await store.get_pdf(bank.pool, SECOND, "TERMS_OF_USE")
    with pikepdf.open(BytesIO(content)) as pdf:
        root = pdf.Root
        assert (str(root.Lang), bool(root.MarkInfo.Marked)) == ("en-US", True)
        assert bool(root.ViewerPreferences.DisplayDocTitle)
        assert "/StructTreeRoot" in root
        assert str(pdf.docinfo["/Title"]) == "<b>Terms</b>"
        assert {"/JavaScript", "/OpenAction", "/AA"}.isdisjoint({*root, *root.get("/Names", {})})
    pages = [each.extract_text() for each in PdfReader(BytesIO(content)).pages]
    for text in ("<b>Terms</b>", f"Version {SECOND}", "July 1, 2025", "The Bank", "<script>alert(1)</script>", "Ωж"):
        assert text in pages[0]
    assert [f"Page {nth} of {len(pages)}" in text for nth, text in enumerate(pages, 1)] == [True] * len(pages)
    assert '#panic("x") *b* $y$' in " ".join(pages)
    with pytest.raises(InvalidAgreements, match=r"cannot be printed, TERMS_OF_USE.*\U00012000"):
        await release(bank, "2025-08-01", texts=changed(title="\U00012000"))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"title": " "}, "an empty title"),
        ({"title": "x" * 121}, "more than 120"),
        ({"paragraphs": (), "sections": ()}, "no paragraph"),
        ({"paragraphs": ("a", "")}, "an empty paragraph"),
        ({"paragraphs": ("a\x07",)}, "cannot be printed"),
        ({"paragraphs": ("a\u202eb",)}, "cannot be printed"),
        ({"sections": (Section(heading="", paragraphs=("a",)),)}, "an empty heading"),
        ({"sections": (Section(heading="a", paragraphs=()),)}, "heading without a paragraph"),
        ({"type": "OTHER"}, "unknown type 'OTHER'"),
        ({"type": "FORM_CRS"}, "2 FORM_CRS instead"),
    ],
)
def test_an_invalid_agreements_file_is_refused_with_the_reason(fields, said):
    with pytest.raises(InvalidAgreements, match=said):
        read_texts(to_toml(changed(**fields).documents).encode())


@pytest.mark.parametrize("raw", [b"", b"\xff", b"documents = 1", b'documents = []\nother = "x"', b"x" * 5_000_000])
def test_a_malformed_agreements_file_is_refused(raw):
    with pytest.raises(InvalidAgreements):
        read_texts(raw)


async def test_an_agreement_version_not_later_than_the_last_is_refused(bank):
    assert read_texts(to_toml(changed(title=ODD).documents).encode()) == changed(title=ODD)
    for day, said in ((FIRST, "today is"), ("2025-05-31", "today is")):
        with pytest.raises(InvalidAgreements, match=said):
            await release(bank, day)
    with pytest.raises(InvalidAgreements, match="before it is in force"):
        await release(bank, SECOND, required_by="2025-06-30")
    with pytest.raises(InvalidAgreements, match="names another version"):
        await release(bank, SECOND, texts=shipped_texts())
    at_once = await asyncio.gather(release(bank), release(bank), return_exceptions=True)
    assert sorted(map(type, at_once), key=str) == sorted((type(None), InvalidAgreements), key=str)
    for day in (SECOND, "2025-06-15"):
        with pytest.raises(InvalidAgreements, match=f"not later than the last version, {SECOND}"):
            await release(bank, day)
    assert [each.version for each in await store.list_versions(bank.pool)] == [SECOND, FIRST]


async def test_outgoing_payments_require_acceptance_of_the_required_agreements(world):
    """From its day on; money still comes in, and moves between the customer's own Pockets."""
    desk = world
    payer = await desk.funded(900_000_00)
    own = await desk.pocket(payer.customer)
    funding = await desk.facilitation()
    shown = f"/api/v1/customers/{payer.customer}/"
    accepts = f"{shown}agreement-consent/"
    assert (await desk.get(shown))["agreement_version"] == FIRST
    await release(desk.bank, required_by="2025-07-08")
    await desk.refused("POST", accepts, consent(), status=409, code="agreement-not-in-force")
    await desk.until(f"{SECOND}T10:00-04:00")
    for version in (FIRST, "2025-08-01", "nonsense"):
        await desk.refused("POST", accepts, consent(version), status=409, code="agreement-not-in-force")
    pays = {"type": "PARTNER_CUSTOMER_DEFUNDING", "target": "us"}
    await desk.transfer(payer, funding, 1_00, **pays)
    await desk.until("2025-07-08T10:00-04:00")
    order = pays | {
        "from_account": {"id": payer.id, "type": "SERVICE_ACCOUNT"},
        "to_account": {"id": funding.id, "type": "SERVICE_ACCOUNT"},
        "amount": {"type": "REQUESTED_AMOUNT", "amount_usdc": 1_00},
    }
    code = {"status": 409, "code": "agreement-not-accepted"}
    await desk.refused("POST", "/api/v1/transfers/on-us/", order, **code)
    pocket = {"pocket_name": "New", "deposit_strategy_id": "UST-4W"}
    await desk.refused("POST", f"/api/v2/customers/{payer.customer}/pockets/", pocket, **code)
    await desk.transfer(payer, own, 1_00)
    await desk.wire(payer, 1_00)
    accepted = await desk.post(accepts, consent(ip_address="203.0.113.7", user_agent="Firefox"), status=200)
    assert accepted == await desk.post(accepts, consent(), status=200)
    await desk.transfer(payer, funding, 1_00, **pays)
    assert await desk.post(f"/api/v2/customers/{payer.customer}/pockets/", pocket)
    rows = await store.list_acceptances(desk.bank.pool, payer.customer)
    assert [(row["version"], row["accepted_by"]) for row in rows] == [(SECOND, "PARTNER"), (FIRST, "PARTNER")]
    assert (rows[0]["ip_address"], rows[0]["user_agent"]) == ("203.0.113.7", "Firefox")
    assert rows[0]["accepted_by_id"] == desk.partner.partner_id


async def test_transfer_requests_and_wires_without_required_agreements_are_refused(world, customer_desk):
    desk = world
    payer = await desk.funded(9_000_00, str(customer_desk.team.customer))
    await release(desk.bank, required_by=SECOND)
    await desk.until(f"{SECOND}T10:00-04:00")
    code = {"status": 409, "code": "agreement-not-accepted"}
    await customer_desk.refused("POST", REQUESTS, on_us(payer, 1_00, counterparty=UNKNOWN), **code)
    await desk.bank.pool.execute("UPDATE partner SET features = array_append(features, 'wires')")
    wire = {"counterparty_id": UNKNOWN, "amount_usdc": 1_00}
    await desk.refused("POST", f"/api/v1/service-accounts/{payer.id}/wires/", wire, **code)


@in_one_bank(
    ("field", "wrong"),
    [("timestamp", "2999-01-01T00:00:00Z"), ("timestamp", "2025-06-02T09:00:00"), ("ip_address", "::x"), ("by", "me")],
)
async def test_an_invalid_agreement_consent_is_refused(world, field, wrong):
    accepts = f"/api/v1/customers/{await world.customer()}/agreement-consent/"
    await world.invalid("POST", accepts, consent(FIRST, **{field: wrong}), loc=f"body.{field}")


async def test_an_application_with_an_outdated_consent_is_reviewed_and_a_current_one_approved(world):
    applicant, desk = Applicant(world), world
    made = await applicant.simple(first_pocket={"pocket_name": "Reserve", "deposit_strategy_id": "UST-4W"})
    await release(desk.bank, required_by=SECOND)
    await desk.until(f"{SECOND}T10:00-04:00")
    reviewed = await applicant.decided(made)
    assert (reviewed["status"], reviewed["exception_reasons"]) == ("MANUAL_REVIEW", ["AGREEMENT_VERSION_OUTDATED"])
    fresh = await applicant.simple(agreement_consent=consent())
    approved = await applicant.decided(fresh)
    assert approved["status"] == "APPROVED"
    assert (await desk.get(f"/api/v1/customers/{approved['customer_id']}/"))["agreement_version"] == SECOND


async def test_verify_reports_damaged_agreement_versions_and_acceptances(world, bank_dsn):
    bank = world.bank
    await world.customer()
    await release(bank, required_by=SECOND)
    conn = await asyncpg.connect(bank_dsn)
    for table in ("agreement_document", "agreement_version", "agreement_acceptance"):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await conn.execute(f"DELETE FROM {table}")
        await conn.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        assert await undetected(conn, table, check_fingerprints) == []
    await conn.close()
