"""The agreements in force, and each of them as a public file."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal

import msgspec

from billfold.documents.pdf import text_pdf
from billfold.http.caller import CustomerCaller
from billfold.http.operations import OPEN, get, with_scope
from billfold.http.responses import HttpResponse
from billfold.http.schemas import one_of
from billfold.ledger.bank import Bank
from billfold.onboarding.agreements.texts import Category, current_agreement
from billfold.platform.errors import NotFound

READS = with_scope("agreements.read", "agreements")


class AgreementDocument(msgspec.Struct, kw_only=True):
    """One text, as a file."""

    type: Annotated[str, one_of(*(each.type for each in current_agreement().documents))]
    title: str
    category: Category
    pdf_download_url: str


class Agreement(msgspec.Struct, kw_only=True):
    """All texts in force."""

    version: str
    release_date: date
    documents: list[AgreementDocument]
    object_type: Literal["Agreement"] = "Agreement"


@get("/api/v1/agreements/", READS, tag="agreements")
async def get_agreements(member: CustomerCaller, bank: Bank) -> Agreement:
    """Read the agreements in force."""
    del member
    agreement = current_agreement()
    where = f"{bank.settings.customer_origin}/agreements/{agreement.version}"
    return Agreement(
        version=agreement.version,
        release_date=agreement.release_date,
        documents=[
            AgreementDocument(
                type=each.type, title=each.title, category=each.category, pdf_download_url=f"{where}/{each.slug}.pdf"
            )
            for each in agreement.documents
        ],
    )


@get("/agreements/{version}/{file}", OPEN, READS, hidden=True)
async def show_agreement(version: str, file: str) -> HttpResponse:
    """Show one text as a PDF."""
    agreement = current_agreement()
    for each in agreement.documents:
        if version == agreement.version and file == f"{each.slug}.pdf":
            disposition = f'attachment; filename="{file}"'
            return HttpResponse(
                200,
                "application/pdf",
                text_pdf(each.title, each.paragraphs),
                headers=[(b"content-disposition", disposition.encode())],
            )
    raise NotFound("There is no such agreement.")
