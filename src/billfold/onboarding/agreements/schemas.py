"""The agreements as both APIs and the pages show them."""

from datetime import date, datetime
from typing import Annotated, Literal

import msgspec

from billfold.http.schemas import one_of
from billfold.ledger.bank import Bank
from billfold.onboarding.agreements import store
from billfold.onboarding.agreements.texts import TYPES, Category, slug_of
from billfold.platform.dates import et_date


class AgreementDocument(msgspec.Struct, kw_only=True):
    """One text, as a file."""

    type: Annotated[str, one_of(*TYPES)]
    title: str
    category: Category
    pdf_download_url: str


class Agreement(msgspec.Struct, kw_only=True):
    """All texts in force."""

    version: str
    release_date: date
    documents: list[AgreementDocument]
    object_type: Literal["Agreement"] = "Agreement"


async def read_agreement(bank: Bank, now: datetime) -> Agreement:
    """Return what is in force at an instant of business time."""
    version = bank.terms.agreements.in_force(et_date(now))
    assert version is not None  # the first one came with the bank
    where = f"{bank.settings.customer_origin}/agreements/{version}"
    return Agreement(
        version=version,
        release_date=date.fromisoformat(version),
        documents=[
            AgreementDocument(
                type=each.type,
                title=each.title,
                category=each.category,
                pdf_download_url=f"{where}/{slug_of(each.type)}.pdf",
            )
            for each in await store.list_documents(bank.pool, version)
        ],
    )
