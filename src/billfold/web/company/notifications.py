"""A member's notifications, and who is notified of what."""

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple
from uuid import UUID

from litestar import get, post

from billfold.batches.store import find_batches_of
from billfold.events.notifications import routes
from billfold.events.notifications.kinds import NOTIFICATION_TYPES, ROLES, CustomerNotification
from billfold.http.raw_request import is_uuid
from billfold.platform.dates import format_moment
from billfold.platform.errors import InvalidInput
from billfold.platform.money import format_usd
from billfold.team.routes import get_team
from billfold.web.console.team import Company, InCompany
from billfold.web.forms import body_of
from billfold.web.page_context import FormError, PageResponse, path_id, redirect, shown_again

_PATH = "/companies/{customer_id:str}/notifications"
_PAGE = 50
_STATES = ("UNREAD", "READ")
_CAUSES = {
    "batch_id": "{path}/batches/{id}",
    "transfer_request_id": "{path}/transfer-requests/{id}",
    "reversal_request_id": "{path}/reversal-requests/{id}",
    "transaction_id": "{path}/transactions/{id}",
    "counterparty_id": "{path}/counterparties/{id}",
    "report_request_id": "{path}/reports/{id}",
    "authorization_request_id": "{path}/approvals/changes/{id}",
    "subscription_id": "{path}/developer/subscriptions/{id}",
    "key": "{path}/statements?period={id}",
    "member_id": "/team/{owner}/members/{id}",
    "pocket_id": "{path}/pockets/{id}",
}
"""Names in the metadata of a notification, and where what they name is shown, the best first."""
_PAYMENT_IDS = ("wire_id", "on_us_id")
"""Names in the metadata under which the id of a transfer request is."""
_OUTCOMES = {"TRANSFER_COMPLETED": "were carried out", "TRANSFER_REJECTED": "were rejected"}
SUBJECTS = {
    "Approvals": ("TRANSFER_REQUEST_PENDING_REVIEW", "TRANSFER_REQUEST_REVIEWED", "TRANSFER_REQUEST_BLOCKED"),
    "Payments": ("TRANSFER_COMPLETED", "TRANSFER_REJECTED", "FUNDS_RECEIVED", "REVERSAL_REQUESTED"),
    "Counterparties and cards": ("COUNTERPARTY_STATUS_CHANGED", "CARD_STATUS_CHANGED"),
    "Documents": ("STATEMENT_AVAILABLE", "REPORT_READY"),
    "Team and security": ("TEAM_MEMBER_CHANGED", "SECURITY_ALERT", "APPLICATION_STATUS_CHANGED"),
    "Developer": ("SUBSCRIPTION_DELIVERY_FAILING",),
}
"""What notifications are about, and their types."""


class Line(NamedTuple):
    """A line of the list: what it says, where it leads, and its notifications, several for transfers of one batch."""

    text: str
    path: str
    items: list[CustomerNotification]

    @property
    def unread(self) -> list[CustomerNotification]:
        """The unread ones."""
        return [each for each in self.items if each.status == "UNREAD"]


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
    about = query.get("about", "")
    if about and about not in SUBJECTS:
        raise InvalidInput.at("query", "about", msg=f"must be one of {', '.join(SUBJECTS)}")
    filters = {"status": status, "type[]": SUBJECTS.get(about)}
    rows = await company.api.get(
        routes.list_notifications,
        cursor=query.get("cursor"),
        limit=_PAGE,
        **{name: each for name, each in filters.items() if each},
    )
    zone = company.page.user.time_zone
    days = groupby(await _lines(company, rows.items), lambda each: _day_of(each.items[0], zone))
    return company.render(
        "notifications",
        rows=rows,
        days=[(day, list(lines)) for day, lines in days],
        today=format_moment(company.page.now, zone).rpartition(", ")[0],
        subjects=list(SUBJECTS),
        filters={"status": status, "about": about},
    )


def _day_of(notification: CustomerNotification, zone: str) -> str:
    return format_moment(notification.created_at, zone).rpartition(", ")[0]


async def _lines(company: Company, items: Sequence[CustomerNotification]) -> list[Line]:
    """Return notifications as lines: what became of the transfers of a batch on one day is one line."""
    zone = company.page.user.time_zone
    paid = {each.id: key for each in items if each.type in _OUTCOMES and (key := _payment_of(each))}
    batches = await find_batches_of(company.page.pool, company.customer_id, [*paid.values()]) if paid else {}
    lines: dict[object, Line] = {}
    for each in items:
        batch = batches.get(paid[each.id]) if each.id in paid else None
        if batch is None:
            lines[each.id] = Line(each.description, _cause(company, each), [each])
            continue
        path = f"{company.path}/batches/{batch.batch_id}"
        line = lines.setdefault((batch.batch_id, each.type, _day_of(each, zone)), Line("", path, []))
        line.items.append(each)
    return [each if each.text else each._replace(text=_said_together(each.items)) for each in lines.values()]


def _said_together(items: Sequence[CustomerNotification]) -> str:
    if len(items) == 1:
        return items[0].description
    cents = sum((each.notification_metadata or {}).get("amount_usdc") or 0 for each in items)
    return f"{len(items)} transfers of a batch, {format_usd(cents)} together, {_OUTCOMES[items[0].type]}."


def _payment_of(notification: CustomerNotification) -> UUID | None:
    found = notification.notification_metadata or {}
    return next((UUID(found[name]) for name in _PAYMENT_IDS if is_uuid(str(found.get(name, "")))), None)


def _cause(company: Company, notification: CustomerNotification) -> str:
    """Return the path of what a notification is about, or nothing."""
    found, places = notification.notification_metadata or {}, {"path": company.path, "owner": company.customer_id}
    return next((place.format(id=found[name], **places) for name, place in _CAUSES.items() if found.get(name)), "")


@post(f"{_PATH}/read")
async def mark_all(company: InCompany) -> PageResponse:
    """Mark all notifications as read, or those of one line."""
    key, chosen = company.page.form_key, company.page.form.get("ids", "").split()
    for each in chosen[:_PAGE]:
        notification_id = path_id(each, "There is no such notification.")
        names = {"notification_id": notification_id}
        await company.api.send(routes.update_notification, {"status": "READ"}, key=f"{key}{each}", **names)
    if not chosen:
        await company.api.send(routes.mark_all_notifications_read, key=key)
    return redirect(f"{company.path}/notifications", done="marked-read" if chosen else "all-read")


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
