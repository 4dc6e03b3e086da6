"""For which company the visitor acts on a page, and as what; and the form that registers a client for it."""

from collections.abc import Mapping

from litestar.params import SkipValidation

from billfold.approvals.types import AuthorizationRequestRow
from billfold.identity.users.types import Membership
from billfold.platform.errors import InvalidInput, NotFound, Refused
from billfold.team.administrator import Administrator
from billfold.web.account.security_log import origin_of
from billfold.web.forms import field_errors
from billfold.web.page_context import PageContext, PageResponse, redirect

ByAdministrator = SkipValidation[Administrator]
"""The visitor as an administrator of the company in the path; a page function takes it as `by`."""


async def get_membership(page: PageContext, customer_id: str) -> Membership:
    """Return the visitor's membership of a team. Raises NotFound, for teams of others as well.

    The bank and partners have teams, but are no companies: there are no pages of a company for them.
    """
    needs_company = page.request.path.startswith("/companies/")
    for each in await page.memberships():
        if str(each.customer_id) == customer_id.lower() and (each.is_of_company or not needs_company):
            return each
    raise NotFound("You are not a member of such a company.")


async def page_administrator(page: PageContext, customer_id: str) -> Administrator:
    """Return the visitor as an administrator of a company. Raises NotFound, Refused `forbidden`."""
    member = await get_membership(page, customer_id)
    if member.role != "ADMIN":
        raise Refused("forbidden", f"Only administrators of {member.customer_name} can do this.")
    bank = page.server.bank
    now = await bank.now()
    return Administrator(
        pool=page.pool,
        vault=page.vault,
        customer_id=member.customer_id,
        customer_name=member.customer_name,
        member_id=member.member_id,
        user_id=page.user.user_id,
        client_id="",
        role=member.role,
        scopes=None,
        name=page.user.name,
        origin=origin_of(page, page.user.name, member.member_id),
        pages=page.server.origin,
        limits=bank.settings.limits,
        now=now,
        business_date=bank.calendars.business_date(now),
        wall=page.now,
    )


def respond(
    page: PageContext, by: Administrator, result: object | AuthorizationRequestRow, *, done: str, to: str = ""
) -> PageResponse:
    """Redirect after a change, to a path of the team; or show that the change waits for another member's approval."""
    if isinstance(result, AuthorizationRequestRow):
        return page.render("awaiting_approval", status=202, by=by, requested=result)
    return redirect(f"/team/{by.customer_id}{to}", done=done)


def client_form(
    page: PageContext,
    template: str,
    by: Administrator,
    *,
    scopes: Mapping[str, str],
    given: Mapping[str, str],
    wrong: InvalidInput | None = None,
) -> PageResponse:
    """Return the form that registers a client with its first key: as filled in, each field with its first error."""
    errors = field_errors(wrong)
    if "scopes" in errors:
        errors["scopes"] = "Choose at least one of these."
    return page.render(template, wrong=wrong or "", by=by, given=given, field_errors=errors, scopes=scopes)
