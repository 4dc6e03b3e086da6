"""Applications of businesses and of persons, and what is missing of each."""

from typing import Any

from litestar import get

from billfold.onboarding.applications.beneficial_owner_routes import list_related_parties
from billfold.onboarding.applications.routes import (
    get_business_application,
    get_individual_application,
    list_application_documents,
    list_business_applications,
    list_individual_applications,
)
from billfold.onboarding.applications.types import ApplicationStatus
from billfold.web.console.listing import read_listing
from billfold.web.console.partner import InPartner
from billfold.web.page_context import PageResponse, path_id

_PATH = "/partners/{slug:str}/applications"
_PAGE = 30
_FILTERS = {"status": "status"}
_NONE = "There is no such application."


@get(_PATH)
async def show_applications(partner: InPartner) -> PageResponse:
    """Show applications of businesses, the newest first."""
    return await _list(partner, list_business_applications, kind="business")


@get(f"{_PATH}/persons")
async def show_individual_applications(partner: InPartner) -> PageResponse:
    """Show applications of persons, the newest first."""
    return await _list(partner, list_individual_applications, kind="person")


@get(f"{_PATH}/{{application_id:str}}")
async def show_application(partner: InPartner, application_id: str) -> PageResponse:
    """Show an application and what is missing before it can be submitted."""
    key, api = path_id(application_id, _NONE), partner.api
    return partner.render(
        "partner_application",
        application=await api.get(get_business_application, application_id=key),
        people=await api.get(list_related_parties, application_id=key),
        documents=await api.get(list_application_documents, application_id=key),
    )


@get(f"{_PATH}/persons/{{application_id:str}}")
async def show_individual_application(partner: InPartner, application_id: str) -> PageResponse:
    """Show the application of a person, and what the bank still needs."""
    found = await partner.api.get(get_individual_application, application_id=path_id(application_id, _NONE))
    return partner.render("partner_person", application=found, documents=found.documents)


async def _list(partner: InPartner, operation: Any, *, kind: str) -> PageResponse:  # noqa: ANN401 - of either kind
    listing = await read_listing(partner, operation, _FILTERS, limit=_PAGE)
    return partner.render(
        "partner_applications",
        wrong=listing.wrong,
        listing=listing,
        kind=kind,
        states=[(each.value, each.value.replace("_", " ").capitalize()) for each in ApplicationStatus],
    )
