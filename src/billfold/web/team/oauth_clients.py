"""The OAuth clients of a company: registered, given other keys, and revoked by administrators."""

import re
from collections.abc import Mapping

from litestar import get, post

from billfold.events.email import templates
from billfold.oauth import clients
from billfold.oauth.rules.authorization_params import SCOPES
from billfold.oauth.rules.client_metadata import PROFILES
from billfold.oauth.types import AUTHORIZATION_CODE, REFRESH_TOKEN, Client, NewClient
from billfold.platform.database.connection import Connection
from billfold.platform.errors import InvalidInput, NotFound, Refused
from billfold.team.administrator import Administrator, audited
from billfold.web.account.security_log import send_email
from billfold.web.forms import ticked
from billfold.web.page_context import RECENT_AUTHENTICATION, FormError, PageContext, PageResponse, redirect
from billfold.web.team.members import ByAdministrator, client_form

_ALL = "/companies/{customer_id:str}/applications"
_ONE = f"{_ALL}/{{client_id:str}}"
_FORM = "oauth_client_new"
CLIENTS_MAX = 50
"""Maximum number of active clients of a company."""
_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
_EMPTY = {"profile": PROFILES[0], "refreshes": "yes"}


@get(_ALL)
async def list_clients(page: PageContext, by: ByAdministrator) -> PageResponse:
    """List the clients of the company."""
    return page.render("oauth_clients", by=by, clients=await clients.list_customer_clients(by.pool, by.customer_id))


@get(f"{_ALL}/new", opt=RECENT_AUTHENTICATION)
async def show_new_client(page: PageContext, by: ByAdministrator) -> PageResponse:
    """Show the form that registers a client."""
    return client_form(page, _FORM, by, scopes=SCOPES, given=_EMPTY)


@post(_ALL, opt=RECENT_AUTHENTICATION)
async def register_client(page: PageContext, by: ByAdministrator) -> PageResponse:
    """Register a client with its first key."""
    try:
        async with audited(by, "program.created", ("program", None)) as action:
            client = await _register_client(action.conn, by, page.form)
            action.resource_id = client.client_id
            action.details |= {"name": client.name, "scopes": client.scopes, "profile": client.profile}
            await _notify_visitor(action.conn, page, by, change=f"the application {client.name} was registered")
    except InvalidInput as wrong:
        return client_form(page, _FORM, by, scopes=SCOPES, given=page.form, wrong=wrong)
    return _redirect_to_clients(by, client.client_id, done="application-registered")


@get(_ONE)
async def show_client(client_id: str, page: PageContext, by: ByAdministrator) -> PageResponse:
    """Show a client and its keys."""
    return await _show(page, by, await _get_client(by, client_id))


@post(f"{_ONE}/keys", opt=RECENT_AUTHENTICATION)
async def add_key(client_id: str, page: PageContext, by: ByAdministrator) -> PageResponse:
    """Add a key; the others stay valid until they are retired."""
    client = await _get_client(by, client_id, only_active=True)
    try:
        async with audited(by, "program.key_added", ("program", client.client_id)) as action:
            await clients.check_key_count(action.conn, client.client_id, page.now)
            key = page.form.get("public_key", "")
            added = await clients.add_client_key(action.conn, client.client_id, key, now=page.now, by=by.member_id)
            action.details["key_id"] = added.key_id
            await _notify_visitor(action.conn, page, by, change=f"the key {added.key_id} was added to {client.name}")
    except (InvalidInput, Refused) as wrong:
        return await _show(page, by, client, wrong=wrong)
    return _redirect_to_clients(by, client.client_id, done="key-added")


@post(f"{_ONE}/keys/{{key_id:str}}/revoke", opt=RECENT_AUTHENTICATION)
async def revoke_key(client_id: str, key_id: str, page: PageContext, by: ByAdministrator) -> PageResponse:
    """Stop accepting a key. The last one cannot be removed."""
    client = await _get_client(by, client_id, only_active=True)
    try:
        async with audited(by, "program.key_retired", ("program", client.client_id), key_id=key_id) as action:
            await clients.retire_client_key(action.conn, client.client_id, key_id, now=page.now)
            await _notify_visitor(action.conn, page, by, change=f"the key {key_id} of {client.name} was revoked")
    except Refused as refused:
        return await _show(page, by, client, wrong=refused)
    return _redirect_to_clients(by, client.client_id, done="key-revoked")


@post(f"{_ONE}/revoke", opt=RECENT_AUTHENTICATION)
async def revoke_client(client_id: str, page: PageContext, by: ByAdministrator) -> PageResponse:
    """Revoke a client for good; its tokens end at once."""
    client = await _get_client(by, client_id, only_active=True)
    async with audited(by, "program.revoked", ("program", client.client_id), name=client.name) as action:
        await clients.revoke_client(action.conn, client.client_id, now=page.now)
        await _notify_visitor(action.conn, page, by, change=f"the application {client.name} was revoked")
    return _redirect_to_clients(by, done="application-revoked")


async def _register_client(conn: Connection, by: Administrator, form: Mapping[str, str]) -> Client:
    """Register what a form describes. Raises InvalidInput with the errors of all fields."""
    found = await clients.list_customer_clients(conn, by.customer_id)
    if sum(each.revoked_at is None for each in found) >= CLIENTS_MAX:
        raise InvalidInput.at("name", msg=f"is one too many: {CLIENTS_MAX} applications are in use; revoke one first")
    new = NewClient(
        name=form.get("name", ""),
        description=form.get("description", ""),
        profile=form.get("profile", ""),
        redirect_uris=_lines(form, "redirect_uris"),
        post_logout_redirect_uris=_lines(form, "post_logout_redirect_uris"),
        scopes=tuple(ticked(form, "scopes")),
        grant_types=(AUTHORIZATION_CODE, REFRESH_TOKEN)[: 1 + (form.get("refreshes") == "yes")],
        owner_id=by.customer_id,
        requires_signature=form.get("requires_signature") == "yes",
    )
    key = form.get("public_key", "")
    client, _ = await clients.register_client_with_key(conn, new, key, now=by.wall, wall=by.wall, by=by.member_id)
    return client


def _lines(form: Mapping[str, str], name: str) -> tuple[str, ...]:
    lines = (line.strip() for line in form.get(name, "").splitlines())
    return tuple(dict.fromkeys(line for line in lines if line))


async def _get_client(by: Administrator, client_id: str, *, only_active: bool = False) -> Client:
    """Return a client of the company. Raises NotFound."""
    if _ID.fullmatch(client_id) is None:
        raise NotFound("There is no such application.")
    client = await clients.get_customer_client(by.pool, by.customer_id, client_id)
    if only_active and client.revoked_at is not None:
        raise NotFound("This application is revoked.")
    return client


async def _show(page: PageContext, by: Administrator, client: Client, *, wrong: FormError = "") -> PageResponse:
    keys = await clients.list_client_keys(by.pool, client.client_id, page.now)
    refreshes = REFRESH_TOKEN in client.grant_types
    return page.render("oauth_client", wrong=wrong, by=by, client=client, keys=keys, refreshes=refreshes)


async def _notify_visitor(conn: Connection, page: PageContext, by: Administrator, *, change: str) -> None:
    """Notify the visitor by e-mail of a change made in their name."""
    notice = templates.client_changed(page.user, by.customer_name, change, now=page.now)
    await send_email(conn, page, page.user, notice=notice)


def _redirect_to_clients(by: Administrator, *further: str, done: str) -> PageResponse:
    return redirect("/".join((f"/companies/{by.customer_id}/applications", *further)), done=done)
