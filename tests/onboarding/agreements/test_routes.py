"""Agreements, through the Customer API."""

from io import BytesIO

from pypdf import PdfReader

from billfold.onboarding.agreements.texts import current_agreement

PATH = "/api/v1/agreements/"
CATEGORIES = {"BANK", "BROKERAGE", "GENERAL", "E-SIGN"}


async def test_every_agreement_in_force_is_named_with_its_file(customer_desk):
    told = await customer_desk.get(PATH)
    assert told["version"] == told["release_date"] == "2025-06-01"
    assert len({each["type"] for each in told["documents"]}) == 20
    assert {each["category"] for each in told["documents"]} == CATEGORIES
    for each in told["documents"]:
        assert each["pdf_download_url"].startswith(f"{customer_desk.base}/agreements/2025-06-01/")
        answer = await customer_desk.http.get(each["pdf_download_url"])
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "application/pdf"
        assert answer.headers["content-disposition"].startswith("attachment")
        (page,) = PdfReader(BytesIO(answer.content)).pages
        assert each["title"] in page.extract_text()


async def test_an_unknown_agreement_is_not_found(customer_desk):
    for path in ("/agreements/2025-06-01/x.pdf", "/agreements/2024-01-01/form-crs.pdf"):
        assert (await customer_desk.http.get(path)).status_code == 404


def test_every_text_is_addressed_by_its_type_and_has_something_to_say():
    documents = current_agreement().documents
    assert {each.slug for each in documents if each.type == "FORM_CRS"} == {"form-crs"}
    assert len({each.slug for each in documents}) == len(documents) == 20
    assert all(each.title and each.paragraphs and all(each.paragraphs) for each in documents)
