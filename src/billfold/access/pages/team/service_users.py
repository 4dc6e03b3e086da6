"""Service users in a browser: made, given other keys, and looked at by administrators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from litestar import Response, get, post
from litestar.handlers import HTTPRouteHandler

from billfold.access.oauth.rules.scopes import PERSONAL, SCOPES
from billfold.access.pages.page_context import FRESH, Desk
from billfold.access.pages.session import Visit
from billfold.access.pages.team.administrator import administrator_in
from billfold.access.pages.theme import go
from billfold.access.team import service_users as programs
from billfold.access.team.transaction import Administrator
from billfold.platform.errors import InvalidInput, NotFound, Refused

_PATH = "/team/{customer_id:str}/programs"
_ONE = f"{_PATH}/{{member_id:str}}"
_SCOPE = "scope."
_SCOPES = {scope: words for scope, words in SCOPES.items() if scope not in PERSONAL}
_NO_SCOPE = "choose at least one of these"


@get(f"{_PATH}/new", opt=FRESH)
async def ask_for_program(customer_id: str, desk: Desk, visit: Visit) -> Response[Any]:
    """Ask what the service user is, may do, and proves itself with."""
    return _form(desk, visit, await administrator_in(desk, visit, customer_id), {})


@post(_PATH, opt=FRESH)
async def make_program(customer_id: str, desk: Desk, visit: Visit) -> Response[Any]:
    """Make a service user with its first key."""
    by = await administrator_in(desk, visit, customer_id)
    form = visit.form
    try:
        made = await programs.create(
            by,
            name=form.get("name", ""),
            description=form.get("description", ""),
            scopes=tuple(each.removeprefix(_SCOPE) for each in form if each.startswith(_SCOPE)),
            public_key=form.get("key", ""),
        )
    except InvalidInput as wrong:
        return _form(desk, visit, by, form, _mistakes(wrong))
    return go(_path(by, made.member.member_id))


@get(_ONE, opt=FRESH)
async def show_program(customer_id: str, member_id: str, desk: Desk, visit: Visit) -> Response[Any]:
    """Show what a service user is and has."""
    by = await administrator_in(desk, visit, customer_id)
    return await _show(desk, visit, by, _id(member_id))


@post(f"{_ONE}/keys", opt=FRESH)
async def add_key(customer_id: str, member_id: str, desk: Desk, visit: Visit) -> Response[Any]:
    """Accept one more key."""
    by = await administrator_in(desk, visit, customer_id)
    asked = _id(member_id)
    try:
        await programs.add_key(by, asked, visit.form.get("key", ""))
    except InvalidInput as wrong:
        return await _show(desk, visit, by, asked, wrong=f"The key {wrong.errors[0].msg}.")
    except Refused as refused:
        return await _show(desk, visit, by, asked, wrong=refused.detail, status=409)
    return go(_path(by, asked))


@post(f"{_ONE}/keys/{{key_id:str}}/revoke", opt=FRESH)
async def revoke_key(
    customer_id: str, member_id: str, key_id: str, desk: Desk, visit: Visit
) -> Response[Any]:
    """Accept a key no longer; every token ends with it."""
    by = await administrator_in(desk, visit, customer_id)
    asked = _id(member_id)
    await programs.revoke_key(by, asked, key_id)
    return go(_path(by, asked))


def _mistakes(wrong: InvalidInput) -> dict[str, str]:
    """Return what is wrong, by field: the first mistake of each."""
    told = {str(each.loc[-1]): each.msg for each in reversed(wrong.errors)}
    return told | ({"scopes": _NO_SCOPE} if "scopes" in told else {})


def _form(
    desk: Desk,
    visit: Visit,
    by: Administrator,
    given: Mapping[str, str],
    wrong: Mapping[str, str] | None = None,
) -> Response[Any]:
    return desk.looks.page(
        visit, "team_new_program", status=422 if wrong else 200, by=by, given=given,
        wrong=wrong or {}, scopes=_SCOPES,
    )  # fmt: skip


async def _show(
    desk: Desk,
    visit: Visit,
    by: Administrator,
    member_id: UUID,
    *,
    wrong: str = "",
    status: int = 422,
) -> Response[Any]:
    found = await programs.get(by.pool, by.customer_id, member_id, now=by.now, wall=by.wall)
    return desk.looks.page(
        visit, "team_program", status=status if wrong else 200, by=by, wrong=wrong,
        member=found.member, client=found.client, keys=found.keys, words=SCOPES,
    )  # fmt: skip


def _path(by: Administrator, member_id: UUID) -> str:
    return f"/team/{by.customer_id}/programs/{member_id}"


def _id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise NotFound("The address is wrong.") from None


PAGE_ROUTES: list[HTTPRouteHandler] = [
    ask_for_program, make_program, show_program, add_key, revoke_key,
]  # fmt: skip
