"""The first page for engineers: addresses, programs with their keys, subscriptions."""

from __future__ import annotations

from litestar import get

from billfold.access.team.routes import get_team
from billfold.access.team.service_user_routes import get_service_user, list_service_user_keys
from billfold.console.company import Company, InCompany
from billfold.events.webhooks.routes import list_subscriptions
from billfold.pages.page_context import PageResponse

_SHOWN = 50
_PROGRAMS = 10


@get("/companies/{customer_id:str}/developer")
async def show_developer(company: InCompany) -> PageResponse:
    """Show what is there for programs."""
    settings = company.page.server.bank.settings
    subscriptions = await company.api.get(list_subscriptions, limit=_SHOWN)
    return company.render(
        "developer",
        addresses={
            "Customer API": settings.customer_origin,
            "Reference": f"{settings.customer_origin}/docs/",
            "Issuer of tokens": settings.auth_origin,
            "Customer ID": str(company.customer_id),
        },
        subscriptions=subscriptions.items,
        programs=await _programs(company) if company.may("team.read") else [],
    )


async def _programs(company: Company) -> list[tuple[object, object]]:
    """Return the service users of the team, each with its keys."""
    team = await company.api.get(get_team)
    members = [each for group in team.groups for each in group.members if each.is_service_user]
    return [
        (
            await company.api.get(get_service_user, member_id=each.member_id),
            (await company.api.get(list_service_user_keys, member_id=each.member_id)).items,
        )
        for each in members[:_PROGRAMS]
    ]
