"""Service users in a browser: made, given other keys, and looked at by administrators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from litestar import Response, get, post
from litestar.handlers import HTTPRouteHandler

from billfold.access.oauth.rules.scopes import PERSONAL_SCOPES, SCOPES
from billfold.access.pages.page_context import RECENT_AUTHENTICATION, PageServer
from billfold.access.pages.session import PageContext
from billfold.access.pages.team.administrator import page_administrator
from billfold.access.pages.theme import redirect
from billfold.access.team import service_users as programs
from billfold.access.team.transaction import Administrator
from billfold.platform.errors import InvalidInput, NotFound, Refused

_PATH = "/team/{customer_id:str}/programs"
_ONE = f"{_PATH}/{{member_id:str}}"
_SCOPE = "scope."
_SCOPES = {scope: words for scope, words in SCOPES.items() if scope not in PERSONAL_SCOPES}
_NO_SCOPE = "choose at least one of these"


@get(f"{_PATH}/new", opt=RECENT_AUTHENTICATION)
async def show_new_service_user(customer_id: str, server: PageServer, context: PageContext) -> Response[Any]:
    """Ask what the service user is, may do, and proves itself with."""
    return _form(server, context, await page_administrator(server, context, customer_id), {})


@post(_PATH, opt=RECENT_AUTHENTICATION)
async def create_service_user(customer_id: str, server: PageServer, context: PageContext) -> Response[Any]:
    """Make a service user with its first key."""
    by = await page_administrator(server, context, customer_id)
    form = context.form
    try:
        service_user = await programs.create_service_user(
            by,
            name=form.get("name", ""),
            description=form.get("description", ""),
            scopes=tuple(each.removeprefix(_SCOPE) for each in form if each.startswith(_SCOPE)),
            public_key=form.get("key", ""),
        )
    except InvalidInput as wrong:
        return _form(server, context, by, form, _field_errors(wrong))
    return redirect(_path(by, service_user.member.member_id))


@get(_ONE, opt=RECENT_AUTHENTICATION)
async def show_program(customer_id: str, member_id: str, server: PageServer, context: PageContext) -> Response[Any]:
    """Show what a service user is and has."""
    by = await page_administrator(server, context, customer_id)
    return await _show(server, context, by, _parse_member_id(member_id))


@post(f"{_ONE}/keys", opt=RECENT_AUTHENTICATION)
async def add_key(customer_id: str, member_id: str, server: PageServer, context: PageContext) -> Response[Any]:
    """Accept one more key."""
    by = await page_administrator(server, context, customer_id)
    member_uuid = _parse_member_id(member_id)
    try:
        await programs.add_service_user_key(by, member_uuid, context.form.get("key", ""))
    except InvalidInput as wrong:
        return await _show(server, context, by, member_uuid, wrong=f"The key {wrong.errors[0].msg}.")
    except Refused as refused:
        return await _show(server, context, by, member_uuid, wrong=refused.detail, status=409)
    return redirect(_path(by, member_uuid))


@post(f"{_ONE}/keys/{{key_id:str}}/revoke", opt=RECENT_AUTHENTICATION)
async def revoke_key(
    customer_id: str, member_id: str, key_id: str, server: PageServer, context: PageContext
) -> Response[Any]:
    """Accept a key no longer; every token ends with it."""
    by = await page_administrator(server, context, customer_id)
    member_uuid = _parse_member_id(member_id)
    await programs.revoke_service_user_key(by, member_uuid, key_id)
    return redirect(_path(by, member_uuid))


def _field_errors(wrong: InvalidInput) -> dict[str, str]:
    """Return what is wrong, by field: the first mistake of each."""
    messages = {str(each.loc[-1]): each.msg for each in reversed(wrong.errors)}
    return messages | ({"scopes": _NO_SCOPE} if "scopes" in messages else {})


def _form(
    server: PageServer,
    context: PageContext,
    by: Administrator,
    given: Mapping[str, str],
    wrong: Mapping[str, str] | None = None,
) -> Response[Any]:
    return server.theme.page(
        context, "team_new_program", status=422 if wrong else 200, by=by, given=given, wrong=wrong or {}, scopes=_SCOPES
    )


async def _show(
    server: PageServer, context: PageContext, by: Administrator, member_id: UUID, *, wrong: str = "", status: int = 422
) -> Response[Any]:
    found = await programs.get_service_user(by.pool, by.customer_id, member_id, now=by.now, wall=by.wall)
    return server.theme.page(
        context,
        "team_program",
        status=status if wrong else 200,
        by=by,
        wrong=wrong,
        member=found.member,
        client=found.client,
        keys=found.keys,
        words=SCOPES,
    )


def _path(by: Administrator, member_id: UUID) -> str:
    return f"/team/{by.customer_id}/programs/{member_id}"


def _parse_member_id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise NotFound("The address is wrong.") from None


PAGE_ROUTES: list[HTTPRouteHandler] = [show_new_service_user, create_service_user, show_program, add_key, revoke_key]
