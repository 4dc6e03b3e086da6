"""The members of a team: everybody sees them, administrators invite and change them."""

from collections.abc import Mapping

from litestar import get, post
from litestar.params import SkipValidation

from billfold.approvals.store.requests import TRANSFER_REQUESTS
from billfold.approvals.types import AuthorizationRequestRow
from billfold.audit.rules import EntryFilter
from billfold.audit.store import list_entries, render_entry
from billfold.identity.members import store
from billfold.identity.members.rules import ROLES, STATUSES, InviteMember, Member
from billfold.identity.users.rules import PERMISSIONS, Membership, Role, UserRole
from billfold.platform.errors import InvalidInput, NotFound, Refused
from billfold.team import invitations, members
from billfold.team.administrator import Administrator
from billfold.web.account.security_log import origin_of
from billfold.web.console.audit_sentences import sentence_of
from billfold.web.console.team import past_day
from billfold.web.forms import Form, field_errors, read_form
from billfold.web.page_context import (
    RECENT_AUTHENTICATION,
    FormError,
    PageContext,
    PageResponse,
    path_id,
    redirect,
    shown_again,
)

ByAdministrator = SkipValidation[Administrator]
"""The visitor as an administrator of the company in the path; a page function takes it as `by`."""


async def get_membership(page: PageContext, customer_id: str) -> Membership:
    """Return the visitor's membership of a team. Raises NotFound, for other teams as well.

    The bank and partners have teams, but are not companies: company pages do not exist for them.
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
    """Redirect after a change, to a path of the team; or show that the change needs another member's approval."""
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


_MAY = {
    "transfers.write": "request transfers",
    "counterparties.write": "change counterparties",
    "transfers.approve": "approve transfers",
    "authorization_requests.write": "confirm sensitive changes",
    "pockets.write": "open and close Pockets",
    "reports.write": "order reports",
    "customer.write": "change the company's details",
    "team.write": "change the team",
    "approval_rules.write": "propose approval rules and policies",
    "subscriptions.write": "change webhooks",
}
"""What a role may do beyond seeing everything, by its permissions."""


def role_powers(role: Role) -> list[str]:
    """Return what a role may do besides seeing everything."""
    return [words for permission, words in _MAY.items() if permission in PERMISSIONS[role]]


def effects_of(now: Role, then: Role) -> str:
    """Return in words what another role changes for a member."""
    before, after = role_powers(now), role_powers(then)
    gained, lost = [each for each in after if each not in before], [each for each in before if each not in after]
    said = [("Gains", gained), ("Loses", lost)]
    return " ".join(f"{verb}: {', '.join(words)}." for verb, words in said if words)


ROLE_DESCRIPTIONS: dict[UserRole, str] = {
    "ADMIN": "Everything, this team included",
    "MANAGER": "Pockets, transfers and their approval",
    "APPROVER": "Approve transfers, and see everything",
    "INITIATOR": "Request transfers and change counterparties, and see everything",
    "VIEWER": "See everything, change nothing",
}
_HEADINGS = {
    "ACTIVE": "Members",
    "PENDING": "Invited",
    "EXPIRED": "Invitations that have expired",
    "DEACTIVATED": "Deactivated",
}
_ENTRIES, _SHOWN = 60, 12
_APPROVALS = {
    f"{kind}.{verb}" for kind in ("transfer_request", "authorization_request") for verb in ("approved", "denied")
}
_NO_ROLE = InvalidInput.at("role", msg="must be chosen")


async def _member_page(page: PageContext, by: Administrator, member_id: str, *, wrong: FormError = "") -> PageResponse:
    found = await store.get_member(by.pool, by.vault, by.customer_id, member_id=path_id(member_id), now=by.now)
    if found.is_service_user:
        raise NotFound("This is a service user, which has a different page.")
    entries = await list_entries(
        by.pool, EntryFilter(customer_id=by.customer_id, member_id=found.member_id), None, limit=_ENTRIES
    )
    rows = [render_entry(by.vault, each) for each in entries]
    approvals = [each for each in rows if each.action in _APPROVALS]
    security = await store.list_security(by.pool, by.customer_id, wall=by.wall)
    paid = [path_id(each.resource_id or "") for each in approvals if each.resource_type == "transfer_request"]
    requests = await TRANSFER_REQUESTS.list_named(by.pool, by.customer_id, paid, now=by.now) if paid else []
    return page.render(
        "team_member",
        wrong=wrong,
        by=by,
        member=found,
        roles={role: (words, effects_of(found.role, role)) for role, words in ROLE_DESCRIPTIONS.items()},
        powers=role_powers(found.role),
        security=security.get(found.member_id),
        approvals=approvals[:_SHOWN],
        amounts={str(each.request_id): each.amount for each in requests},
        activity=[
            (each, sentence_of(each.action, each.resource_id, each.details, {}))
            for each in rows
            if each.action not in _APPROVALS
        ][:_SHOWN],
        keys=await store.list_keys_registered_by(by.pool, by.customer_id, found.member_id, wall=by.wall),
        is_of_company=(await get_membership(page, str(by.customer_id))).is_of_company,
    )


@get("/team")
async def choose_team(page: PageContext) -> PageResponse:
    """Redirect to the only company's team, or show a choice."""
    found = await page.memberships()
    return redirect(f"/team/{found[0].customer_id}") if len(found) == 1 else page.render("teams", memberships=found)


@get("/team/{customer_id:str}")
async def show_team(customer_id: str, page: PageContext) -> PageResponse:
    """Show the members of the team."""
    own = await get_membership(page, customer_id)
    bank = page.server.bank
    past = past_day(page, bank, now := await bank.now())
    found = await store.list_team(page.pool, page.vault, own.customer_id, now=past.at or now, as_of=past.at)
    groups = [(_HEADINGS[status], [m for m in found if m.status == status]) for status in STATUSES]
    leads = own.role == "ADMIN" and past.day is None
    security = await store.list_security(page.pool, own.customer_id, wall=page.now) if leads else {}
    shown = [each for each in groups if each[1]]
    return page.render(
        "team", wrong=past.wrong, past=past, own=own, groups=shown, roles=ROLE_DESCRIPTIONS, security=security
    )


@get("/team/{customer_id:str}/invite", opt=RECENT_AUTHENTICATION)
async def show_invite(page: PageContext, by: ByAdministrator) -> PageResponse:
    """Show the invitation form."""
    return _invite_page(page, by)


@post("/team/{customer_id:str}/invite", opt=RECENT_AUTHENTICATION)
async def invite(page: PageContext, by: ByAdministrator) -> PageResponse:
    """Invite a user."""
    if _role(page) is None:
        return _invite_page(page, by, _NO_ROLE)
    try:
        invited = await invitations.invite(by, read_form(InviteMember, page.form))
    except (InvalidInput, Refused) as wrong:
        return _invite_page(page, by, wrong)
    return respond(page, by, invited, done="invited")


@post("/team/{customer_id:str}/invitations/{member_id:str}/resend", opt=RECENT_AUTHENTICATION)
async def resend(member_id: str, page: PageContext, by: ByAdministrator) -> PageResponse:
    """Resend an invitation."""
    resent = await invitations.resend_invitation(by, path_id(member_id))
    return respond(page, by, resent, done="invitation-resent")


@post("/team/{customer_id:str}/invitations/{member_id:str}/revoke", opt=RECENT_AUTHENTICATION)
async def revoke(member_id: str, by: ByAdministrator) -> PageResponse:
    """Revoke an invitation."""
    await invitations.cancel_invitation(by, path_id(member_id))
    return redirect(f"/team/{by.customer_id}", done="invitation-revoked")


@get("/team/{customer_id:str}/members/{member_id:str}", opt=RECENT_AUTHENTICATION)
async def show_member(member_id: str, page: PageContext, by: ByAdministrator) -> PageResponse:
    """Show the editable fields of a member."""
    return await _member_page(page, by, member_id)


@post("/team/{customer_id:str}/members/{member_id:str}", opt=RECENT_AUTHENTICATION)
@shown_again(_member_page)
async def change_member(member_id: str, page: PageContext, by: ByAdministrator) -> PageResponse:
    """Change a member's role, or deactivate or reactivate them."""
    member_uuid, role = path_id(member_id), _role(page)
    changed: Member | AuthorizationRequestRow
    match page.form.get("change"):
        case "deactivate":
            changed = await members.deactivate_member(by, member_uuid)
            done = "deactivated"
        case "activate":
            changed = await members.change_member(by, member_uuid, status="ACTIVE")
            done = "reactivated"
        case _ if role is not None:
            changed = await members.change_member(by, member_uuid, role=role)
            done = "role-changed"
        case _:
            raise _NO_ROLE
    return respond(page, by, changed, done=done)


def _invite_page(page: PageContext, by: Administrator, wrong: FormError = "") -> PageResponse:
    form = Form(InviteMember, page.form)
    return page.render(
        "team_invite", wrong=wrong, by=by, form=form, role=page.form.get("role", ""), roles=ROLE_DESCRIPTIONS
    )


def _role(page: PageContext) -> UserRole | None:
    return next((role for role in ROLES if role == page.form.get("role")), None)
