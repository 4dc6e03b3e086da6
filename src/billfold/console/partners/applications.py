"""Business applications, and what is missing of each."""

from __future__ import annotations

from litestar import get

from billfold.console.listing import read_listing
from billfold.console.partner import InPartner
from billfold.onboarding.applications.routes.business import get_business_application, list_business_applications
from billfold.onboarding.applications.routes.related_parties import list_application_documents, list_related_parties
from billfold.onboarding.applications.types import ApplicationStatus
from billfold.pages.page_context import PageResponse, path_id

_PATH = "/partners/{slug:str}/applications"
_PAGE = 30
_FILTERS = {"status": "status"}


@get(_PATH)
async def show_applications(partner: InPartner) -> PageResponse:
    """Show applications, the newest first."""
    listing = await read_listing(partner, list_business_applications, _FILTERS, limit=_PAGE)
    return partner.render(
        "partner_applications",
        wrong=listing.wrong,
        listing=listing,
        states=[(each.value, each.value.replace("_", " ").capitalize()) for each in ApplicationStatus],
    )


@get(f"{_PATH}/{{application_id:str}}")
async def show_application(partner: InPartner, application_id: str) -> PageResponse:
    """Show an application and what is missing before it can be submitted."""
    key, api = path_id(application_id, "There is no such application."), partner.api
    return partner.render(
        "partner_application",
        application=await api.get(get_business_application, application_id=key),
        people=await api.get(list_related_parties, application_id=key),
        documents=await api.get(list_application_documents, application_id=key),
    )
