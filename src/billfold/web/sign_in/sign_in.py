"""Signing in with an e-mail address and a password, and signing out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from litestar import get, post

from billfold.oauth import clients, consent, grants
from billfold.web.sign_in.signed_in import begin_sign_in, check_lockout, clear_lockout, password_subject
from billfold.web.sign_in_audit import record_failed_login
from billfold.identity.users import passwords, sessions
from billfold.identity.users import store as user_store
from billfold.web.page_context import PUBLIC, PageContext, PageResponse, redirect
from billfold.pages.theme import session_cookie
from billfold.platform.crypto import new_token
from billfold.platform.errors import BillfoldError, InvalidInput
from billfold.platform.ids import command_id

_UNKNOWN_USER_ID = command_id("people", "nobody")
_WRONG_CREDENTIALS = InvalidInput.at("password", msg="does not belong to this email address")


@get("/sign-in", opt=PUBLIC)
async def show_sign_in(page: PageContext) -> PageResponse:
    """Ask for address and password."""
    if page.is_signed_in:
        return redirect(page.next_path)
    return page.render("sign_in", next=page.next_path, email=page.query.get("email", ""))


@post("/sign-in", opt=PUBLIC)
async def sign_in(page: PageContext) -> PageResponse:
    """Check address and password; the second factor comes next."""
    next_path = page.next_path
    email = page.form.get("email", "").strip().lower()
    user = await user_store.find_user_by_email(page.pool, page.vault, email)
    subject = await password_subject(page, email, user)
    locked = await check_lockout(page, subject, user)
    if locked is not None:
        return page.render("sign_in", wrong=locked, next=next_path, email=email)
    # Done always, so that an unknown address takes as long as any other.
    user_id = _UNKNOWN_USER_ID if user is None else user.user_id
    password_hash = await passwords.find_password_hash(page.pool, user_id)
    password = page.form.get("password", "")
    if not await page.server.gate.verify(password_hash, password) or user is None:
        answer = page.render("sign_in", wrong=_WRONG_CREDENTIALS, next=next_path, email=email)
        return record_failed_login(answer, page, user, factor="password")
    await clear_lockout(page, subject)
    await sessions.end_session(page.pool, page.cookie_hash)
    return await begin_sign_in(page, user.user_id, next_path)


@get("/sign-out", opt=PUBLIC)
async def show_sign_out(page: PageContext) -> PageResponse:
    """Ask whether to sign out: a link alone does not do it."""
    leaving = await _logout_target(page, page.query)
    if page.session is None:
        return page.render("signed_out", leaving=leaving)
    return page.render("sign_out", form_target_uri=None if leaving is None else leaving.address, leaving=leaving)


@post("/sign-out", opt=PUBLIC)
async def sign_out(page: PageContext) -> PageResponse:
    """End the session and the access tokens issued from it; redirect to a client that requested it."""
    leaving = await _logout_target(page, page.form)
    ended = await sessions.end_session(page.pool, page.cookie_hash)
    if ended is not None:
        await grants.revoke_session_tokens(page.pool, ended)
    new_cookie, _ = new_token()
    return redirect("/sign-out" if leaving is None else leaving.address, [session_cookie(new_cookie)])


class LogoutTarget(NamedTuple):
    """Where a client wants its user to be when they have signed out, `state` and all."""

    name: str
    client_id: str
    registered: str
    state: str
    address: str


async def _logout_target(page: PageContext, sent: Mapping[str, str]) -> LogoutTarget | None:
    """Return where to lead on to, or None. Raises `bad-request` where it is not registered."""
    target = sent.get("post_logout_redirect_uri")
    if not target:
        return None
    client = await clients.find_client(page.pool, sent.get("client_id", ""))
    if client is None or target not in client.post_logout_redirect_uris:
        raise BillfoldError("bad-request", "This link leads away from these pages.")
    state = sent.get("state", "")
    address = consent.redirect_with(target, {"state": state or None})
    return LogoutTarget(client.name, client.client_id, target, state=state, address=address)
