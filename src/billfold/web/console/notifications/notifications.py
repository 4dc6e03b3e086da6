"""A member's notifications, read or not."""

from __future__ import annotations

from litestar import get, post

from billfold.web.console.company import InCompany
from billfold.events.notifications import routes
from billfold.web.page_context import PageResponse, path_id, redirect
from billfold.platform.errors import InvalidInput

_PATH = "/companies/{customer_id:str}/notifications"
_PAGE = 30
_STATES = ("UNREAD", "READ")


@get(_PATH)
async def show_notifications(company: InCompany) -> PageResponse:
    """Show notifications, the newest first."""
    query = company.page.query
    status = query.get("status", "")
    if status not in {"", *_STATES}:
        raise InvalidInput.at("query", "status", msg=f"must be one of {', '.join(_STATES)}")
    rows = await company.api.get(routes.list_notifications, status=status, cursor=query.get("cursor"), limit=_PAGE)
    return company.render("notifications", rows=rows, filters={"status": status})


@post(f"{_PATH}/{{notification_id:str}}")
async def mark_notification(company: InCompany, notification_id: str) -> PageResponse:
    """Mark a notification as read, or as unread again."""
    key = path_id(notification_id, "There is no such notification.")
    body = {"status": company.page.form.get("status", "")}
    await company.api.send(routes.update_notification, body, key=company.page.form_key, notification_id=key)
    return redirect(f"{company.path}/notifications", done="saved")
