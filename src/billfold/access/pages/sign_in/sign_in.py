"""Signing in with an address of mail and a password, and signing out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

from litestar import Request, Response, get, post
from litestar.handlers import HTTPRouteHandler

from billfold.access.oauth import clients, consent, grants
from billfold.access.pages.page_context import PUBLIC, PageServer
from billfold.access.pages.session import PageContext, parse_query
from billfold.access.pages.sign_in.signed_in import check_lockout, clear_lockout, format_wait
from billfold.access.pages.sign_in_audit import record_failed_login
from billfold.access.pages.theme import redirect, session_cookie
from billfold.access.users import lockout, passwords, sessions
from billfold.access.users import store as user_store
from billfold.platform.crypto import new_token
from billfold.platform.errors import BillfoldError
from billfold.platform.ids import command_id

_UNKNOWN_USER_ID = command_id("people", "nobody")
_WRONG_CREDENTIALS = "The email address and the password do not belong together."


@get("/", opt=PUBLIC)
async def go_home() -> Response[bytes]:
    """Lead to the account."""
    return redirect("/account")


@get("/sign-in", opt=PUBLIC)
async def show_sign_in(request: Request[Any, Any, Any], server: PageServer, context: PageContext) -> Response[Any]:
    """Ask for address and password."""
    query = parse_query(request.scope)
    next_path = context.local_path(query.get("next"))
    if context.is_signed_in:
        return redirect(next_path)
    return server.theme.page(context, "sign_in", next=next_path, email=query.get("email", ""), wrong="")


@post("/sign-in", opt=PUBLIC)
async def sign_in(server: PageServer, context: PageContext) -> Response[Any]:
    """Look at address and password; the second factor comes next."""
    next_path = context.local_path(context.form.get("next"))
    email = context.form.get("email", "").strip().lower()
    user = await user_store.find_user_by_email(server.bank.pool, email)
    subject = lockout.password_subject(email)
    wait = await check_lockout(server, context, subject, user=user)
    if wait:
        return _locked_out(server, context, next_path, email=email, wait=wait)
    # Done always, so that an unknown address takes as long as any other.
    user_id = _UNKNOWN_USER_ID if user is None else user.user_id
    password_hash = await passwords.find_password_hash(server.bank.pool, user_id)
    password = context.form.get("password", "")
    if not await server.gate.verify(password_hash, password) or user is None:
        page = server.theme.page(context, "sign_in", status=422, next=next_path, email=email, wrong=_WRONG_CREDENTIALS)
        return record_failed_login(page, server, context, user=user, factor="password")
    await clear_lockout(server, context, subject)
    await sessions.end_session(server.bank.pool, context.cookie_hash)
    cookie = await sessions.open_session(
        server.bank.pool,
        user.user_id,
        auth_methods=("pwd",),
        complete=False,
        client_info=context.client_info,
        now=context.now,
    )
    return redirect(f"/second-factor?next={quote(next_path, safe='')}", session_cookie(cookie))


@get("/sign-out", opt=PUBLIC)
async def show_sign_out(request: Request[Any, Any, Any], server: PageServer, context: PageContext) -> Response[Any]:
    """Ask whether to sign out: a link alone does not do it."""
    leaving = await _logout_target(server, parse_query(request.scope))
    if context.session is None:
        return server.theme.page(context, "signed_out", leaving=leaving)
    form_target_uri = None if leaving is None else leaving.address
    return server.theme.page(context, "sign_out", form_target_uri=form_target_uri, leaving=leaving)


@post("/sign-out", opt=PUBLIC)
async def sign_out(server: PageServer, context: PageContext) -> Response[Any]:
    """End the session and the access tokens issued from it; redirect to a client that requested it."""
    leaving = await _logout_target(server, context.form)
    ended = await sessions.end_session(server.bank.pool, context.cookie_hash)
    if ended is not None:
        await grants.revoke_session_tokens(server.bank.pool, ended)
    new_cookie, _ = new_token()
    return redirect("/sign-out" if leaving is None else leaving.address, session_cookie(new_cookie))


class LogoutTarget(NamedTuple):
    """Where a client wants its user to be when they have signed out, `state` and all."""

    name: str
    client_id: str
    registered: str
    state: str
    address: str


async def _logout_target(server: PageServer, sent: Mapping[str, str]) -> LogoutTarget | None:
    """Return where to lead on to, or None. Raises `bad-request` where it is not registered."""
    target = sent.get("post_logout_redirect_uri")
    if not target:
        return None
    client = await clients.find_client(server.bank.pool, sent.get("client_id", ""))
    if client is None or target not in client.post_logout_redirect_uris:
        raise BillfoldError("bad-request", "This link leads away from these pages.")
    state = sent.get("state", "")
    address = consent.redirect_with(target, {"state": state or None})
    return LogoutTarget(client.name, client.client_id, target, state=state, address=address)


def _locked_out(server: PageServer, context: PageContext, next_path: str, email: str, wait: int) -> Response[Any]:
    sentence = f"There were too many tries. Wait {format_wait(wait)}, then try again. A passkey still works."
    return server.theme.page(
        context, "sign_in", status=429, headers={"retry-after": str(wait)}, next=next_path, email=email, wrong=sentence
    )


PAGE_ROUTES: list[HTTPRouteHandler] = [go_home, show_sign_in, sign_in, show_sign_out, sign_out]
