"""The service users of a company: created and given other keys by administrators."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from litestar import Response, get, post
from litestar.handlers import HTTPRouteHandler

from billfold.access.oauth.rules.scopes import PERSONAL_SCOPES, SCOPES
from billfold.access.pages.applications.client_form import chosen_scopes, client_form
from billfold.access.pages.page_context import RECENT_AUTHENTICATION, PageServer
from billfold.access.pages.session import PageContext
from billfold.access.pages.team.administrator import page_administrator, path_id
from billfold.access.pages.theme import redirect
from billfold.access.team import service_users
from billfold.access.team.transaction import Administrator
from billfold.platform.errors import InvalidInput, Refused

_PATH = "/team/{customer_id:str}/programs"
_ONE = f"{_PATH}/{{member_id:str}}"
_SCOPES = {scope: words for scope, words in SCOPES.items() if scope not in PERSONAL_SCOPES}
_FORM = "service_user_new"


@get(f"{_PATH}/new", opt=RECENT_AUTHENTICATION)
async def show_new_service_user(customer_id: str, server: PageServer, context: PageContext) -> Response[Any]:
    """Show the form that creates a service user."""
    by = await page_administrator(server, context, customer_id)
    return client_form(server, _FORM, context, by=by, given={}, scopes=_SCOPES)


@post(_PATH, opt=RECENT_AUTHENTICATION)
async def create_service_user(customer_id: str, server: PageServer, context: PageContext) -> Response[Any]:
    """Create a service user with its first key."""
    by = await page_administrator(server, context, customer_id)
    form = context.form
    try:
        created = await service_users.create_service_user(
            by,
            name=form.get("name", ""),
            description=form.get("description", ""),
            scopes=chosen_scopes(form),
            public_key=form.get("key", ""),
        )
    except InvalidInput as wrong:
        return client_form(server, _FORM, context, by=by, given=form, scopes=_SCOPES, wrong=wrong)
    return redirect(_path(by, created.member.member_id))


@get(_ONE, opt=RECENT_AUTHENTICATION)
async def show_service_user(
    customer_id: str, member_id: str, server: PageServer, context: PageContext
) -> Response[Any]:
    """Show a service user and its keys."""
    by = await page_administrator(server, context, customer_id)
    return await _show(server, context, by, member_id=path_id(member_id))


@post(f"{_ONE}/keys", opt=RECENT_AUTHENTICATION)
async def add_key(customer_id: str, member_id: str, server: PageServer, context: PageContext) -> Response[Any]:
    """Accept one more key."""
    by = await page_administrator(server, context, customer_id)
    member_uuid = path_id(member_id)
    try:
        await service_users.add_service_user_key(by, member_uuid, context.form.get("key", ""))
    except InvalidInput as wrong:
        return await _show(server, context, by, member_id=member_uuid, wrong=f"The key {wrong.errors[0].msg}.")
    except Refused as refused:
        return await _show(server, context, by, member_id=member_uuid, wrong=refused.detail, status=409)
    return redirect(_path(by, member_uuid))


@post(f"{_ONE}/keys/{{key_id:str}}/revoke", opt=RECENT_AUTHENTICATION)
async def revoke_key(
    customer_id: str, member_id: str, key_id: str, server: PageServer, context: PageContext
) -> Response[Any]:
    """Revoke a key; every token ends with it."""
    by = await page_administrator(server, context, customer_id)
    member_uuid = path_id(member_id)
    await service_users.revoke_service_user_key(by, member_uuid, key_id)
    return redirect(_path(by, member_uuid))


async def _show(
    server: PageServer, context: PageContext, by: Administrator, member_id: UUID, *, wrong: str = "", status: int = 422
) -> Response[Any]:
    found = await service_users.get_service_user(by.pool, by.customer_id, member_id, now=by.now, wall=by.wall)
    return server.theme.page(
        context,
        "service_user",
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


PAGE_ROUTES: list[HTTPRouteHandler] = [
    show_new_service_user,
    create_service_user,
    show_service_user,
    add_key,
    revoke_key,
]
