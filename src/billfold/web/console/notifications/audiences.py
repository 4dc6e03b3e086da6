"""Who is notified of what: the audience of each type, chosen by administrators or the default."""

from __future__ import annotations

from litestar import get, post

from billfold.team.routes import get_team
from billfold.web.console.company import Company, InCompany
from billfold.events.notifications import routes
from billfold.events.notifications.kinds import NOTIFICATION_TYPES, ROLES
from billfold.web.page_context import Mistake, PageResponse, redirect
from billfold.platform.errors import InvalidInput, Refused

_PATH = "/companies/{customer_id:str}/notifications/audiences"
_ONE = f"{_PATH}/{{notification_type:str}}"
_ACTIVE = "ACTIVE"


@get(_PATH)
async def show_audiences(company: InCompany) -> PageResponse:
    """Show every type with its audience."""
    listed = await company.api.get(routes.list_notification_audiences)
    return company.render(
        "notification_audiences",
        audiences=listed.items,
        meanings={name: each.raised_when for name, each in NOTIFICATION_TYPES.items()},
        members=await _members(company),
    )


@get(_ONE)
async def show_audience(company: InCompany, notification_type: str) -> PageResponse:
    """Show the form of one audience."""
    return await _show(company, notification_type)


@post(_ONE)
async def set_audience(company: InCompany, notification_type: str) -> PageResponse:
    """Choose an audience, or go back to the default."""
    form, key = company.page.form, company.page.form_key
    try:
        if form.get("change") == "default":
            await company.api.send(routes.clear_notification_audience, key=key, notification_type=notification_type)
        else:
            body = {"roles": _chosen(form, "role."), "user_ids": _chosen(form, "user.")}
            await company.api.send(routes.set_notification_audience, body, key=key, notification_type=notification_type)
    except (InvalidInput, Refused) as wrong:
        if wrong.code == "forbidden":
            raise
        return await _show(company, notification_type, wrong=wrong)
    return redirect(f"{company.path}/notifications/audiences", done="saved")


async def _show(company: Company, notification_type: str, *, wrong: Mistake = "") -> PageResponse:
    audience = await company.api.get(routes.get_notification_audience, notification_type=notification_type)
    return company.render(
        "notification_audience",
        wrong="This role, or this member, is not one of the team." if isinstance(wrong, InvalidInput) else wrong,
        audience=audience,
        kind=NOTIFICATION_TYPES[notification_type],
        roles=ROLES,
        members=await _members(company),
    )


async def _members(company: Company) -> dict[str, str]:
    """Return the names of the active people of the team by the ids of their users."""
    if not company.may("team.read"):
        return {}
    team = await company.api.get(get_team)
    return {
        str(each.user_id): f"{each.first_name} {each.last_name}"
        for group in team.groups
        if group.status == _ACTIVE
        for each in group.members
        if not each.is_service_user
    }


def _chosen(form: dict[str, str], prefix: str) -> list[str]:
    return [name.removeprefix(prefix) for name in form if name.startswith(prefix)]
