"""The agreements in force, each as a public file, and acceptances reported by partners."""

from datetime import date, datetime, timedelta
from ipaddress import ip_address
from typing import Annotated, Final, Literal
from uuid import UUID

import msgspec

from billfold.accounts.agreements.rules import AcceptAgreements, AcceptedBy, Consent
from billfold.accounts.customers.routes import show_customer
from billfold.accounts.customers.schemas import Customer
from billfold.http.caller import Call
from billfold.http.operations import OPEN, SIGNED, get, post, with_scope
from billfold.http.responses import HttpResponse
from billfold.http.schemas import one_of
from billfold.identity.partners.caller import Caller
from billfold.ledger.bank import Bank
from billfold.onboarding.agreements import store
from billfold.onboarding.agreements.texts import TYPES, Category, slug_of
from billfold.platform.dates import et_date, require_aware
from billfold.platform.errors import InvalidInput, NotFound


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
    """Return the agreements in force at an instant of business time."""
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


READS = with_scope("agreements.read", "agreements")
_KINDS = {f"{slug_of(each)}.pdf": each for each in TYPES}
_LEEWAY: Final = timedelta(minutes=5)
_AGENT_MAX: Final = 500


class AcceptAgreementsRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The version that the customer accepted, when, and from where if known."""

    version: Annotated[str, msgspec.Meta(min_length=1, max_length=50)]
    timestamp: datetime
    ip_address: Annotated[str, msgspec.Meta(min_length=1, max_length=45)] | None = None
    user_agent: Annotated[str, msgspec.Meta(min_length=1, max_length=_AGENT_MAX)] | None = None


@get("/api/v1/agreements/", SIGNED, READS, tag="agreements")
async def get_agreements(caller: Call, bank: Bank) -> Agreement:
    """Get the agreements in force."""
    return await read_agreement(bank, caller.now)


@get("/agreements/{version}/{file}", OPEN, READS, hidden=True)
async def show_agreement(bank: Bank, version: str, file: str) -> HttpResponse:
    """Show one text as a PDF, from any version ever published."""
    if file not in _KINDS:
        raise NotFound("There is no such agreement.")
    pdf = await store.get_pdf(bank.pool, version, _KINDS[file])
    disposition = f'attachment; filename="{version}-{file}"'
    return HttpResponse(200, "application/pdf", pdf, headers=[(b"content-disposition", disposition.encode())])


@post(
    "/api/v1/customers/{customer_id}/agreement-consent/",
    tag="customers",
    status=200,
    refuses=("customer-not-open", "agreement-not-in-force"),
)
async def accept_agreements(caller: Caller, bank: Bank, customer_id: UUID, data: AcceptAgreementsRequest) -> Customer:
    """Accept agreements.

    The customer has accepted the agreements in force, on pages of the partner. Accepting them twice has no effect.
    """
    row = await caller.customer(bank, customer_id)
    _check_timestamp(data.timestamp, latest=max(caller.now, caller.wall) + _LEEWAY)
    consent = Consent(
        version=data.version,
        accepted_at=data.timestamp,
        accepted_by=AcceptedBy.PARTNER,
        accepted_by_id=caller.partner_id,
        ip_address=_checked_address(data.ip_address) or caller.address,
        user_agent=data.user_agent or (caller.agent or "")[:_AGENT_MAX] or None,
    )
    await bank.engine.submit(AcceptAgreements(**caller.command_fields(row.customer_id), consent=consent))
    return await show_customer(caller, bank, row.customer_id)


def _check_timestamp(at: datetime, latest: datetime) -> None:
    """Raise InvalidInput for an instant without an offset, or in the future."""
    try:
        is_future = require_aware(at) > latest
    except ValueError:
        raise InvalidInput.at("body", "timestamp", msg="needs an offset, such as Z or -04:00") from None
    if is_future:
        raise InvalidInput.at("body", "timestamp", msg="may not be in the future")


def _checked_address(text: str | None) -> str | None:
    """Return an IP address in canonical form. Raises InvalidInput."""
    try:
        return None if text is None else str(ip_address(text))
    except ValueError:
        raise InvalidInput.at("body", "ip_address", msg="must be an IP address, like 203.0.113.7") from None
