"""The programs a company has registered for itself: listed, and a new one registered."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from litestar import Response, get, post
from litestar.handlers import HTTPRouteHandler

from billfold.access.oauth import clients
from billfold.access.oauth.rules.client_metadata import PROFILES, NewClient
from billfold.access.oauth.rules.scopes import SCOPES
from billfold.access.oauth.types import AUTHORIZATION_CODE, REFRESH_TOKEN, Client
from billfold.access.pages.page_context import RECENT_AUTHENTICATION, PageServer
from billfold.access.pages.session import PageContext
from billfold.access.pages.team.company import (
    audited_client_change,
    clients_path,
    get_administered_company,
    notify_client_change,
)
from billfold.access.pages.theme import redirect
from billfold.access.users.types import Membership
from billfold.platform.errors import FieldError, InvalidInput

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection

PATH = "/companies/{customer_id:str}/programs"
CLIENTS_MAX = 50
"""How many a company may have in use."""
_SCOPE = "scope."
_NO_SCOPE = "choose at least one of these"
_EMPTY = {"profile": PROFILES[0], "refreshes": "yes"}
_TOO_MANY = f"has to wait: {CLIENTS_MAX} programs are in use, and one must be ended first"


@get(PATH)
async def list_programs(customer_id: str, server: PageServer, context: PageContext) -> Response[Any]:
    """List what the company has registered."""
    company = await get_administered_company(server, context, customer_id)
    programs = await clients.list_customer_clients(server.bank.pool, company.customer_id)
    return server.theme.page(context, "programs", company=company, programs=programs)


@get(f"{PATH}/new", opt=RECENT_AUTHENTICATION)
async def show_new_client(customer_id: str, server: PageServer, context: PageContext) -> Response[Any]:
    """Ask what the program is, where it is answered, and what it proves itself with."""
    return _form(server, context, await get_administered_company(server, context, customer_id), _EMPTY)


@post(PATH, opt=RECENT_AUTHENTICATION)
async def register_program(customer_id: str, server: PageServer, context: PageContext) -> Response[Any]:
    """Register a program with its first key."""
    company = await get_administered_company(server, context, customer_id)
    try:
        async with audited_client_change(server, context, company, "program.created") as audited:
            client = await _register(audited.conn, company.customer_id, context.form, context.now)
            audited.resource_id = client.client_id
            audited.details |= {"name": client.name, "scopes": client.scopes, "profile": client.profile}
    except InvalidInput as wrong:
        return _form(server, context, company, context.form, _field_errors(wrong))
    await notify_client_change(server, context, company, f"the program {client.name} was registered")
    return redirect(clients_path(company.customer_id, client.client_id))


async def _register(conn: Connection, owner_id: UUID, form: Mapping[str, str], now: datetime) -> Client:
    """Register what a form asks for. Raises InvalidInput with the mistakes of all fields."""
    programs = await clients.list_customer_clients(conn, owner_id)
    if sum(each.revoked_at is None for each in programs) >= CLIENTS_MAX:
        raise InvalidInput.at("name", msg=_TOO_MANY)
    key = form.get("key", "")
    async with conn.transaction():
        try:
            client = await clients.register_client(conn, _new_client(owner_id, form), now=now)
        except InvalidInput as wrong:
            raise InvalidInput([*wrong.errors, *_key_errors(key)]) from None
        await clients.add_client_key(conn, client.client_id, key, now=now)
    return client


def _key_errors(key: str) -> list[FieldError]:
    try:
        clients.read_key(key)
    except InvalidInput as wrong:
        return wrong.errors
    return []


def _new_client(owner_id: UUID, form: Mapping[str, str]) -> NewClient:
    grant_types_chosen = (
        (AUTHORIZATION_CODE, REFRESH_TOKEN) if form.get("refreshes") == "yes" else (AUTHORIZATION_CODE,)
    )
    return NewClient(
        name=form.get("name", ""),
        description=form.get("description", ""),
        profile=form.get("profile", ""),
        redirect_uris=_lines(form, "redirect_uris"),
        post_logout_redirect_uris=_lines(form, "post_logout_redirect_uris"),
        scopes=tuple(each.removeprefix(_SCOPE) for each in form if each.startswith(_SCOPE)),
        grant_types=grant_types_chosen,
        owner_id=owner_id,
        requires_signature=form.get("requires_signature") == "yes",
    )


def _lines(form: Mapping[str, str], name: str) -> tuple[str, ...]:
    lines = (line.strip() for line in form.get(name, "").splitlines())
    return tuple(dict.fromkeys(line for line in lines if line))


def _field_errors(wrong: InvalidInput) -> dict[str, str]:
    """Return what is wrong, by field: the first mistake of each."""
    messages = {str(each.loc[-1]): each.msg for each in reversed(wrong.errors)}
    return messages | ({"scopes": _NO_SCOPE} if "scopes" in messages else {})


def _form(
    server: PageServer,
    context: PageContext,
    company: Membership,
    given: Mapping[str, str],
    wrong: Mapping[str, str] | None = None,
) -> Response[Any]:
    return server.theme.page(
        context,
        "new_program",
        status=422 if wrong else 200,
        company=company,
        given=given,
        wrong=wrong or {},
        scopes=SCOPES,
    )


PAGE_ROUTES: list[HTTPRouteHandler] = [list_programs, show_new_client, register_program]
