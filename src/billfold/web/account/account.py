"""The account page: factors, sessions and password of a user."""

from litestar import get, post

from billfold.identity.users import passkeys, passwords, rules, sessions, store, totp
from billfold.oauth import grants
from billfold.platform.errors import InvalidInput, NotFound
from billfold.web.account.security_log import record_factor_change, record_password_change
from billfold.web.account.sign_in import check_lockout, clear_lockout, password_subject
from billfold.web.page_context import RECENT_AUTHENTICATION, FormError, PageContext, PageResponse, path_id, redirect

_LAST_FACTOR = "This is your only second factor. Add another one first."
_WRONG_PASSWORD = InvalidInput.at("current", msg="is not right")


@get("/account")
async def show_account(page: PageContext) -> PageResponse:
    """Show the account page."""
    return await _show(page)


@post("/account/sessions/{session_id:str}/end")
async def end_session(session_id: str, page: PageContext) -> PageResponse:
    """Sign another browser out."""
    ended = path_id(session_id)
    if not await sessions.end_one_session(page.pool, page.user.user_id, ended):
        raise NotFound("This browser is no longer signed in.")
    await grants.revoke_session_tokens(page.pool, ended)
    return redirect("/account#browsers", done="signed-out")


@post("/account/sessions/end-others")
async def end_other_sessions(page: PageContext) -> PageResponse:
    """Sign out everywhere but here."""
    await _end_others(page)
    return redirect("/account#browsers", done="signed-out")


@post("/account/authenticator/remove", opt=RECENT_AUTHENTICATION)
async def remove_authenticator(page: PageContext) -> PageResponse:
    """Delete the authenticator app, unless it is the last second factor."""
    factors = await store.get_factors(page.pool, page.user.user_id)
    if not factors.passkeys:
        return await _show(page, _LAST_FACTOR)
    async with page.pool.acquire() as conn, conn.transaction():
        if await totp.remove_authenticator(conn, page.user.user_id):
            await record_factor_change(conn, page, "the authenticator app was removed")
    return redirect("/account", done="factor-removed")


@post("/account/passkeys/{passkey_id:str}/remove", opt=RECENT_AUTHENTICATION)
async def remove_passkey(passkey_id: str, page: PageContext) -> PageResponse:
    """Delete a passkey, unless it is the last second factor."""
    factors = await store.get_factors(page.pool, page.user.user_id)
    if factors.passkeys == 1 and factors.authenticator_since is None:
        return await _show(page, _LAST_FACTOR)
    async with page.pool.acquire() as conn, conn.transaction():
        if not await passkeys.remove_passkey(conn, page.user.user_id, path_id(passkey_id)):
            raise NotFound("This passkey has already been removed.")
        await record_factor_change(conn, page, "a passkey was removed")
    return redirect("/account", done="factor-removed")


@get("/account/password", opt=RECENT_AUTHENTICATION)
async def ask_for_password(page: PageContext) -> PageResponse:
    """Ask for the current password and a new one."""
    return page.render("change_password")


@post("/account/password", opt=RECENT_AUTHENTICATION)
async def change_password(page: PageContext) -> PageResponse:
    """Change the password and sign out everywhere else."""
    user = page.user
    subject = await password_subject(page, user.email, user)
    locked = await check_lockout(page, subject, user)
    if locked is not None:
        return page.render("change_password", wrong=locked)
    current = await passwords.find_password_hash(page.pool, user.user_id)
    if not await page.server.gate.verify(current, page.form.get("current", "")):
        return page.render("change_password", wrong=_WRONG_PASSWORD)
    await clear_lockout(page, subject)
    try:
        password = rules.check_new_password(page.form, known=(user.email, user.first_name, user.last_name))
    except InvalidInput as wrong:
        return page.render("change_password", wrong=wrong)
    password_hash = await page.server.gate.hash(password)
    async with page.pool.acquire() as conn, conn.transaction():
        await passwords.set_password(conn, user.user_id, password_hash, now=page.now)
        await record_password_change(conn, page, user)
    await _end_others(page)
    return redirect("/account", done="password-changed")


async def _show(page: PageContext, wrong: FormError = "") -> PageResponse:
    user_id = page.user.user_id
    return page.render(
        "account",
        status=409 if wrong else None,
        wrong=wrong,
        factors=await store.get_factors(page.pool, user_id),
        passkeys=await store.list_passkeys(page.pool, user_id),
        sessions=await store.list_sessions(page.pool, page.vault, user_id, now=page.now),
        memberships=await store.list_user_memberships(page.pool, user_id),
    )


async def _end_others(page: PageContext) -> None:
    async with page.pool.acquire() as conn, conn.transaction():
        own_id = page.own_session.session_id
        for ended in await sessions.end_sessions(conn, page.user.user_id, except_session_id=own_id):
            await grants.revoke_session_tokens(conn, ended)
