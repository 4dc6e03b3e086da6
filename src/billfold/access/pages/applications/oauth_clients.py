"""The OAuth clients of a company: registered, given other keys, and revoked by administrators."""

from __future__ import annotations

import re
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
from billfold.access.pages.applications.client_form import chosen_scopes, client_form
from billfold.access.pages.page_context import RECENT_AUTHENTICATION, PageServer
from billfold.access.pages.session import PageContext
from billfold.access.pages.sign_in.signed_in import send_email
from billfold.access.pages.team.administrator import page_administrator
from billfold.access.pages.theme import redirect
from billfold.access.team.transaction import Administrator, audited
from billfold.events.email import templates
from billfold.platform.errors import InvalidInput, NotFound, Refused

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection

_ALL = "/companies/{customer_id:str}/programs"
_ONE = f"{_ALL}/{{client_id:str}}"
_FORM = "oauth_client_new"
CLIENTS_MAX, CLIENT_KEYS_MAX = 50, 10
"""How many active clients a company may have, and how many keys each."""
_TOO_MANY_KEYS = f"There are {CLIENT_KEYS_MAX} keys in use. Retire one first."
_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
_EMPTY = {"profile": PROFILES[0], "refreshes": "yes"}


@get(_ALL)
async def list_clients(customer_id: str, server: PageServer, context: PageContext) -> Response[Any]:
    """List the clients of the company."""
    by = await page_administrator(server, context, customer_id)
    found = await clients.list_customer_clients(by.pool, by.customer_id)
    return server.theme.page(context, "oauth_clients", by=by, clients=found)


@get(f"{_ALL}/new", opt=RECENT_AUTHENTICATION)
async def show_new_client(customer_id: str, server: PageServer, context: PageContext) -> Response[Any]:
    """Show the form that registers a client."""
    by = await page_administrator(server, context, customer_id)
    return client_form(server, _FORM, context, by=by, given=_EMPTY, scopes=SCOPES)


@post(_ALL, opt=RECENT_AUTHENTICATION)
async def register_client(customer_id: str, server: PageServer, context: PageContext) -> Response[Any]:
    """Register a client with its first key."""
    by, form = await page_administrator(server, context, customer_id), context.form
    try:
        async with audited(by, "program.created", ("program", None)) as action:
            client = await _register(action.conn, by.customer_id, form, now=context.now)
            action.resource_id = client.client_id
            action.details |= {"name": client.name, "scopes": client.scopes, "profile": client.profile}
    except InvalidInput as wrong:
        return client_form(server, _FORM, context, by=by, given=form, scopes=SCOPES, wrong=wrong)
    await _notify(server, context, by, change=f"the OAuth client {client.name} was registered")
    return redirect(_path(by, client.client_id))


@get(_ONE)
async def show_client(customer_id: str, client_id: str, server: PageServer, context: PageContext) -> Response[Any]:
    """Show a client and its keys."""
    by, client = await _get_client(server, context, customer_id, client_id=client_id)
    return await _show(server, context, by, client=client)


@post(f"{_ONE}/keys", opt=RECENT_AUTHENTICATION)
async def add_key(customer_id: str, client_id: str, server: PageServer, context: PageContext) -> Response[Any]:
    """Accept one more key; the others go on until they are retired."""
    by, client = await _get_client(server, context, customer_id, client_id=client_id, only_active=True)
    if len(await clients.list_client_keys(by.pool, client.client_id, context.now)) >= CLIENT_KEYS_MAX:
        return await _show(server, context, by, client=client, wrong=_TOO_MANY_KEYS)
    try:
        async with audited(by, "program.key_added", ("program", client.client_id)) as action:
            key = context.form.get("key", "")
            added = await clients.add_client_key(action.conn, client.client_id, key, now=context.now)
            action.details["key_id"] = added.key_id
    except InvalidInput as wrong:
        return await _show(server, context, by, client=client, wrong=f"The key {wrong.errors[0].msg}.", status=422)
    except Refused as refused:
        return await _show(server, context, by, client=client, wrong=refused.detail)
    await _notify(server, context, by, change=f"the key {added.key_id} was added to {client.name}")
    return redirect(_path(by, client.client_id))


@post(f"{_ONE}/keys/{{key_id:str}}/retire", opt=RECENT_AUTHENTICATION)
async def retire_key(
    customer_id: str, client_id: str, key_id: str, server: PageServer, context: PageContext
) -> Response[Any]:
    """Accept a key no longer. The only one stays."""
    by, client = await _get_client(server, context, customer_id, client_id=client_id, only_active=True)
    try:
        async with audited(by, "program.key_retired", ("program", client.client_id)) as action:
            action.details["key_id"] = key_id
            await clients.retire_client_key(action.conn, client.client_id, key_id, now=context.now)
    except Refused as refused:
        return await _show(server, context, by, client=client, wrong=refused.detail)
    await _notify(server, context, by, change=f"the key {key_id} of {client.name} was retired")
    return redirect(_path(by, client.client_id))


@post(f"{_ONE}/revoke", opt=RECENT_AUTHENTICATION)
async def revoke_client(customer_id: str, client_id: str, server: PageServer, context: PageContext) -> Response[Any]:
    """Revoke a client for good; its tokens end at once."""
    by, client = await _get_client(server, context, customer_id, client_id=client_id, only_active=True)
    async with audited(by, "program.revoked", ("program", client.client_id)) as action:
        action.details["name"] = client.name
        await clients.revoke_client(action.conn, client.client_id, now=context.now)
    await _notify(server, context, by, change=f"the OAuth client {client.name} was revoked")
    return redirect(_path(by))


async def _register(conn: Connection, owner_id: UUID, form: Mapping[str, str], now: datetime) -> Client:
    """Register what a form describes. Raises InvalidInput with the mistakes of all fields."""
    found = await clients.list_customer_clients(conn, owner_id)
    if sum(each.revoked_at is None for each in found) >= CLIENTS_MAX:
        raise InvalidInput.at("name", msg=f"is one too many: {CLIENTS_MAX} clients are in use; revoke one first")
    new = NewClient(
        name=form.get("name", ""),
        description=form.get("description", ""),
        profile=form.get("profile", ""),
        redirect_uris=_lines(form, "redirect_uris"),
        post_logout_redirect_uris=_lines(form, "post_logout_redirect_uris"),
        scopes=chosen_scopes(form),
        grant_types=(AUTHORIZATION_CODE, REFRESH_TOKEN)[: 1 + (form.get("refreshes") == "yes")],
        owner_id=owner_id,
        requires_signature=form.get("requires_signature") == "yes",
    )
    client, _ = await clients.register_client_with_key(conn, new, form.get("key", ""), now=now, wall=now)
    return client


def _lines(form: Mapping[str, str], name: str) -> tuple[str, ...]:
    lines = (line.strip() for line in form.get(name, "").splitlines())
    return tuple(dict.fromkeys(line for line in lines if line))


async def _get_client(
    server: PageServer, context: PageContext, customer_id: str, client_id: str, *, only_active: bool = False
) -> tuple[Administrator, Client]:
    """Return the visitor as administrator, and a client of the company. Raises NotFound, `forbidden`."""
    by = await page_administrator(server, context, customer_id)
    if _ID.fullmatch(client_id) is None:
        raise NotFound("There is no such OAuth client.")
    client = await clients.get_customer_client(by.pool, by.customer_id, client_id)
    if only_active and client.revoked_at is not None:
        raise NotFound("This OAuth client is revoked.")
    return by, client


async def _show(
    server: PageServer, context: PageContext, by: Administrator, client: Client, *, wrong: str = "", status: int = 409
) -> Response[Any]:
    return server.theme.page(
        context,
        "oauth_client",
        status=status if wrong else 200,
        wrong=wrong,
        by=by,
        client=client,
        keys=await clients.list_client_keys(by.pool, client.client_id, context.now),
        words=SCOPES,
        refreshes=REFRESH_TOKEN in client.grant_types,
    )


async def _notify(server: PageServer, context: PageContext, by: Administrator, change: str) -> None:
    """Write to the visitor what changed in their name."""
    notice = templates.client_changed(context.user, by.customer_name, change, now=context.now)
    await send_email(server, context, context.user, notice=notice)


def _path(by: Administrator, *further: str) -> str:
    return "/".join((f"/companies/{by.customer_id}/programs", *further))


PAGE_ROUTES: list[HTTPRouteHandler] = [
    list_clients,
    show_new_client,
    register_client,
    show_client,
    add_key,
    retire_key,
    revoke_client,
]
