"""One program of a company: what it may do, its keys in turn, and its end."""

from __future__ import annotations

import re
from typing import Any

from litestar import Response, get, post
from litestar.handlers import HTTPRouteHandler

from billfold.access.oauth import clients
from billfold.access.oauth.rules.scopes import SCOPES
from billfold.access.oauth.types import REFRESH_TOKEN, Client
from billfold.access.pages.applications.registration import PATH
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
from billfold.platform.errors import InvalidInput, NotFound, Refused

_PROGRAM = f"{PATH}/{{client_id:str}}"
CLIENT_KEYS_MAX = 10
"""How many keys a program may have in use."""
_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
_TOO_MANY = f"There are {CLIENT_KEYS_MAX} keys in use. Retire one first."


@get(_PROGRAM)
async def show_program(customer_id: str, client_id: str, server: PageServer, context: PageContext) -> Response[Any]:
    """Show a program and its keys."""
    company, program = await _get_client(server, context, customer_id, client_id)
    return await _show(server, context, company, program)


@post(f"{_PROGRAM}/keys", opt=RECENT_AUTHENTICATION)
async def add_key(customer_id: str, client_id: str, server: PageServer, context: PageContext) -> Response[Any]:
    """Accept one more key; the others go on until they are retired."""
    company, program = await _get_client(server, context, customer_id, client_id, only_active=True)
    pool = server.bank.pool
    if len(await clients.list_client_keys(pool, program.client_id, context.now)) >= CLIENT_KEYS_MAX:
        return await _show(server, context, company, program, wrong=_TOO_MANY)
    try:
        key = context.form.get("key", "")
        async with audited_client_change(server, context, company, "program.key_added", program.client_id) as audited:
            new_key = await clients.add_client_key(audited.conn, program.client_id, key, now=context.now)
            audited.details["key_id"] = new_key.key_id
    except InvalidInput as wrong:
        sentence = f"The key {wrong.errors[0].msg}."
        return await _show(server, context, company, program, wrong=sentence, status=422)
    except Refused as refused:
        return await _show(server, context, company, program, wrong=refused.detail)
    await notify_client_change(server, context, company, f"the key {new_key.key_id} was added to {program.name}")
    return redirect(clients_path(company.customer_id, program.client_id))


@post(f"{_PROGRAM}/keys/{{key_id:str}}/retire", opt=RECENT_AUTHENTICATION)
async def retire_key(
    customer_id: str, client_id: str, key_id: str, server: PageServer, context: PageContext
) -> Response[Any]:
    """Accept a key no longer. The only one stays."""
    company, program = await _get_client(server, context, customer_id, client_id, only_active=True)
    try:
        async with audited_client_change(server, context, company, "program.key_retired", program.client_id) as audited:
            audited.details["key_id"] = key_id
            await clients.retire_client_key(audited.conn, program.client_id, key_id, now=context.now)
    except Refused as refused:
        return await _show(server, context, company, program, wrong=refused.detail)
    await notify_client_change(server, context, company, f"the key {key_id} of {program.name} was retired")
    return redirect(clients_path(company.customer_id, program.client_id))


@post(f"{_PROGRAM}/revoke", opt=RECENT_AUTHENTICATION)
async def revoke_program(customer_id: str, client_id: str, server: PageServer, context: PageContext) -> Response[Any]:
    """Take a program out of use for good; its tokens end at once."""
    company, program = await _get_client(server, context, customer_id, client_id, only_active=True)
    async with audited_client_change(server, context, company, "program.revoked", program.client_id) as audited:
        audited.details["name"] = program.name
        await clients.revoke_client(audited.conn, program.client_id, now=context.now)
    await notify_client_change(server, context, company, f"the program {program.name} was taken out of use")
    return redirect(clients_path(company.customer_id))


async def _get_client(
    server: PageServer, context: PageContext, customer_id: str, client_id: str, *, only_active: bool = False
) -> tuple[Membership, Client]:
    """Return a program of a company that the visitor may manage. Raises NotFound, `forbidden`."""
    company = await get_administered_company(server, context, customer_id)
    if _ID.fullmatch(client_id) is None:
        raise NotFound("There is no such program.")
    program = await clients.get_customer_client(server.bank.pool, company.customer_id, client_id)
    if only_active and program.revoked_at is not None:
        raise NotFound("This program is out of use.")
    return company, program


async def _show(
    server: PageServer,
    context: PageContext,
    company: Membership,
    program: Client,
    *,
    wrong: str = "",
    status: int = 409,
) -> Response[Any]:
    return server.theme.page(
        context,
        "program",
        status=status if wrong else 200,
        wrong=wrong,
        company=company,
        program=program,
        keys=await clients.list_client_keys(server.bank.pool, program.client_id, context.now),
        words=SCOPES,
        issuer=server.origin,
        refreshes=REFRESH_TOKEN in program.grant_types,
    )


PAGE_ROUTES: list[HTTPRouteHandler] = [show_program, add_key, retire_key, revoke_program]
