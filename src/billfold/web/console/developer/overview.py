"""The first page for engineers: addresses, programs with their keys, subscriptions."""

from litestar import get

from billfold.events.webhooks.routes import list_subscriptions
from billfold.team.routes import get_service_user, get_team, list_service_user_keys
from billfold.web.console.company import Company
from billfold.web.console.partner import Partner
from billfold.web.console.team import ApiTeam, InTeam, paths_of
from billfold.web.page_context import PageResponse

_SHOWN = 50
_PROGRAMS = 10


@get(paths_of("/developer"))
async def show_developer(team: InTeam) -> PageResponse:
    """Show what is there for programs."""
    return team.render(
        "developer",
        addresses=_addresses(team),
        subscriptions=(await team.api.get(list_subscriptions, limit=_SHOWN)).items,
        has_programs=isinstance(team, Company),
        programs=await _programs(team) if isinstance(team, Company) and team.may("team.read") else [],
    )


def _addresses(team: ApiTeam) -> dict[str, str]:
    settings = team.page.server.bank.settings
    if isinstance(team, Partner):
        base = f"https://{team.host}"
        return {"Partner API": base, "Reference": f"{base}/docs/", "Partner ID": str(team.row.partner_id)}
    return {
        "Customer API": settings.customer_origin,
        "Reference": f"{settings.customer_origin}/docs/",
        "Issuer of tokens": settings.auth_origin,
        "Customer ID": str(team.customer_id),
    }


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
