"""The service users of a company: created and given new keys by administrators."""

from litestar import get, post

from billfold.identity.members.rules import PERSONAL_SCOPES, CreateProgram
from billfold.oauth.rules.authorization_params import SCOPES
from billfold.platform.errors import InvalidInput
from billfold.team import service_users
from billfold.team.administrator import Administrator
from billfold.team.service_users import ServiceUser
from billfold.web.forms import read_form
from billfold.web.page_context import (
    RECENT_AUTHENTICATION,
    FormError,
    PageContext,
    PageResponse,
    path_id,
    redirect,
    shown_again,
)
from billfold.web.team.members import ByAdministrator, client_form, respond

_PATH = "/team/{customer_id:str}/service-users"
_ONE = f"{_PATH}/{{member_id:str}}"
_SCOPES = {scope: words for scope, words in SCOPES.items() if scope not in PERSONAL_SCOPES}
_FORM = "service_user_new"


async def _show(page: PageContext, by: Administrator, member_id: str, *, wrong: FormError = "") -> PageResponse:
    found = await service_users.get_service_user(
        by.pool, by.vault, by.customer_id, member_id=path_id(member_id), now=by.now, wall=by.wall
    )
    return page.render("service_user", wrong=wrong, by=by, **found._asdict())


@get(f"{_PATH}/new", opt=RECENT_AUTHENTICATION)
async def show_new_service_user(page: PageContext, by: ByAdministrator) -> PageResponse:
    """Show the form that creates a service user."""
    return client_form(page, _FORM, by, scopes=_SCOPES, given={})


@post(_PATH, opt=RECENT_AUTHENTICATION)
async def create_service_user(page: PageContext, by: ByAdministrator) -> PageResponse:
    """Create a service user with its first key."""
    try:
        wanted = read_form(CreateProgram, page.form)
        created = await service_users.create_service_user(by, wanted)
    except InvalidInput as wrong:
        return client_form(page, _FORM, by, scopes=_SCOPES, given=page.form, wrong=wrong)
    member_id = created.member.member_id if isinstance(created, ServiceUser) else None
    return respond(page, by, created, to=f"/service-users/{member_id}", done="service-user-created")


@get(_ONE, opt=RECENT_AUTHENTICATION)
async def show_service_user(member_id: str, page: PageContext, by: ByAdministrator) -> PageResponse:
    """Show a service user and its keys."""
    return await _show(page, by, member_id)


@post(f"{_ONE}/keys", opt=RECENT_AUTHENTICATION)
@shown_again(_show)
async def add_key(member_id: str, page: PageContext, by: ByAdministrator) -> PageResponse:
    """Add a key."""
    member_uuid = path_id(member_id)
    added = await service_users.add_service_user_key(by, member_uuid, page.form.get("public_key", ""))
    return respond(page, by, added, to=f"/service-users/{member_uuid}", done="key-added")


@post(f"{_ONE}/keys/{{key_id:str}}/revoke", opt=RECENT_AUTHENTICATION)
@shown_again(_show)
async def revoke_key(member_id: str, key_id: str, page: PageContext, by: ByAdministrator) -> PageResponse:  # noqa: ARG001 - for _show
    """Revoke a key and all tokens. The last one cannot be revoked."""
    member_uuid = path_id(member_id)
    await service_users.revoke_service_user_key(by, member_uuid, key_id)
    return redirect(f"/team/{by.customer_id}/service-users/{member_uuid}", done="key-revoked")
