"""A member's notifications, and who is notified of what."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import groupby

from litestar import get, post

from billfold.events.notifications import routes
from billfold.events.notifications.kinds import NOTIFICATION_TYPES, ROLES, CustomerNotification
from billfold.platform.dates import format_moment
from billfold.platform.errors import InvalidInput
from billfold.team.routes import get_team
from billfold.web.console.team import Company, InCompany
from billfold.web.forms import body_of
from billfold.web.page_context import FormError, PageResponse, path_id, redirect, shown_again

_PATH = "/companies/{customer_id:str}/notifications"
_PAGE = 30
_STATES = ("UNREAD", "READ")
_CAUSES = {
    "transfer_request_id": "transfer-requests",
    "reversal_request_id": "reversal-requests",
    "counterparty_id": "counterparties",
    "report_request_id": "reports",
    "subscription_id": "developer/subscriptions",
    "pocket_id": "pockets",
}
"""Names in the metadata of a notification, and where what they name is shown."""
SUBJECTS = {
    "Approvals": ("TRANSFER_REQUEST_PENDING_REVIEW", "TRANSFER_REQUEST_REVIEWED", "TRANSFER_REQUEST_BLOCKED"),
    "Payments": ("TRANSFER_COMPLETED", "TRANSFER_REJECTED", "FUNDS_RECEIVED", "REVERSAL_REQUESTED"),
    "Counterparties and cards": ("COUNTERPARTY_STATUS_CHANGED", "CARD_STATUS_CHANGED"),
    "Documents": ("STATEMENT_AVAILABLE", "REPORT_READY"),
    "Team and security": ("TEAM_MEMBER_CHANGED", "SECURITY_ALERT", "APPLICATION_STATUS_CHANGED"),
    "Developer": ("SUBSCRIPTION_DELIVERY_FAILING",),
}
"""What notifications are about, and their types."""
_SUBJECT_OF = {each: subject for subject, types in SUBJECTS.items() for each in types}


async def _show(company: Company, notification_type: str, *, wrong: FormError = "") -> PageResponse:
    audience = await company.api.get(routes.get_notification_audience, notification_type=notification_type)
    return company.render(
        "notification_audience",
        wrong="This role, or this member, is not one of the team." if isinstance(wrong, InvalidInput) else wrong,
        audience=audience,
        kind=NOTIFICATION_TYPES[notification_type],
        roles=ROLES,
        members=await _members(company),
    )


@get(_PATH)
async def show_notifications(company: InCompany) -> PageResponse:
    """Show notifications, the newest first."""
    query = company.page.query
    status = query.get("status", "")
    if status not in {"", *_STATES}:
        raise InvalidInput.at("query", "status", msg=f"must be one of {', '.join(_STATES)}")
    rows = await company.api.get(routes.list_notifications, status=status, cursor=query.get("cursor"), limit=_PAGE)
    zone = company.page.user.time_zone
    days = groupby(rows.items, lambda each: format_moment(each.created_at, zone).rpartition(", ")[0])
    return company.render(
        "notifications",
        rows=rows,
        days=[(day, _by_subject(company, items)) for day, items in days],
        filters={"status": status},
    )


def _by_subject(
    company: Company, items: Iterable[CustomerNotification]
) -> Mapping[str, list[tuple[CustomerNotification, str]]]:
    """Return notifications, each with the path of what it is about, in groups."""
    groups = defaultdict[str, list[tuple[CustomerNotification, str]]](list)
    for each in items:
        groups[_SUBJECT_OF[each.type]].append((each, _cause(company, each)))
    return groups


def _cause(company: Company, notification: CustomerNotification) -> str:
    """Return the path of what a notification is about, or nothing."""
    told = notification.notification_metadata or {}
    return next((f"{company.path}/{place}/{told[name]}" for name, place in _CAUSES.items() if told.get(name)), "")


@post(f"{_PATH}/read")
async def mark_all(company: InCompany) -> PageResponse:
    """Mark all notifications as read."""
    await company.api.send(routes.mark_all_notifications_read, key=company.page.form_key)
    return redirect(f"{company.path}/notifications", done="all-read")


@post(f"{_PATH}/{{notification_id:str}}")
async def mark_notification(company: InCompany, notification_id: str) -> PageResponse:
    """Mark a notification as read, or as unread again."""
    key = path_id(notification_id, "There is no such notification.")
    body = {"status": company.page.form.get("status", "")}
    await company.api.send(routes.update_notification, body, key=company.page.form_key, notification_id=key)
    return redirect(f"{company.path}/notifications", done=f"marked-{body['status'].lower()}")


_AUDIENCES = "/companies/{customer_id:str}/notifications/audiences"
_AUDIENCE = f"{_AUDIENCES}/{{notification_type:str}}"
_ACTIVE = "ACTIVE"


@get(_AUDIENCES)
async def show_audiences(company: InCompany) -> PageResponse:
    """Show every type with its audience."""
    listed = await company.api.get(routes.list_notification_audiences)
    return company.render(
        "notification_audiences",
        subjects={
            subject: [each for each in listed.items if each.notification_type in types]
            for subject, types in SUBJECTS.items()
        },
        meanings={name: each.raised_when for name, each in NOTIFICATION_TYPES.items()},
        members=await _members(company),
    )


@get(_AUDIENCE)
async def show_audience(company: InCompany, notification_type: str) -> PageResponse:
    """Show the form of one audience."""
    return await _show(company, notification_type)


@post(_AUDIENCE)
@shown_again(_show, unless="forbidden")
async def set_audience(company: InCompany, notification_type: str) -> PageResponse:
    """Choose an audience, or go back to the default."""
    form, key = company.page.form, company.page.form_key
    if form.get("change") == "default":
        await company.api.send(routes.clear_notification_audience, key=key, notification_type=notification_type)
    else:
        body = body_of(routes.SetCustomerNotificationAudienceRequest, form)
        await company.api.send(routes.set_notification_audience, body, key=key, notification_type=notification_type)
    return redirect(f"{company.path}/notifications/audiences", done="audience-set")


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
