"""The agreements in force, and each of them as a file that anybody may read."""

from __future__ import annotations

from datetime import date
from typing import Literal

import msgspec
from litestar import Response, get

from billfold.domain.agreements import current_agreement
from billfold.engine.bank import Bank
from billfold.interfaces.customer_api.groups import AGREEMENTS
from billfold.interfaces.customer_api.member import Member
from billfold.interfaces.http.marks import OPEN, granted
from billfold.kit.errors import NotFound
from billfold.kit.pdf import text_pdf


class AgreementDocument(msgspec.Struct, kw_only=True):
    """One text, as a file."""

    type: str
    title: str
    category: Literal["BANK", "BROKERAGE", "GENERAL", "E-SIGN"]
    pdf_download_url: str


class Agreement(msgspec.Struct, kw_only=True):
    """All texts in force."""

    version: str
    release_date: date
    documents: list[AgreementDocument]
    object_type: Literal["Agreement"] = "Agreement"


@get(
    "/api/v1/agreements/",
    operation_id="get_agreements",
    opt=granted("agreements.read", AGREEMENTS),
    tags=["agreements"],
)
async def get_agreements(member: Member, bank: Bank) -> Agreement:
    """Read the agreements in force."""
    del member
    agreement = current_agreement()
    where = f"{bank.settings.customer_origin}/agreements/{agreement.version}"
    return Agreement(
        version=agreement.version,
        release_date=agreement.release_date,
        documents=[
            AgreementDocument(
                type=each.type,
                title=each.title,
                category=each.category,
                pdf_download_url=f"{where}/{each.slug}.pdf",
            )
            for each in agreement.documents
        ],
    )


@get("/agreements/{version:str}/{file:str}", opt=OPEN, include_in_schema=False)
async def show_agreement(version: str, file: str) -> Response[bytes]:
    """Show one text as a PDF."""
    agreement = current_agreement()
    for each in agreement.documents:
        if version == agreement.version and file == f"{each.slug}.pdf":
            return Response(
                text_pdf(each.title, each.paragraphs),
                media_type="application/pdf",
                headers={"content-disposition": f'attachment; filename="{file}"'},
            )
    raise NotFound("There is no such agreement.")


ROUTES = [get_agreements, show_agreement]
