"""The account page: factors, sessions and password of a user."""

from __future__ import annotations

from typing import Any

from litestar import Response, get, post
from litestar.handlers import HTTPRouteHandler

from billfold.access.oauth import grants
from billfold.access.pages.account.password_reset import check_new_password
from billfold.access.pages.page_context import RECENT_AUTHENTICATION, PageServer
from billfold.access.pages.session import PageContext
from billfold.access.pages.sign_in.signed_in import check_lockout, clear_lockout, format_wait, send_email
from billfold.access.pages.sign_in_audit import FACTOR_CHANGED, PASSWORD_CHANGED, record_credential_change
from billfold.access.pages.team.administrator import path_id
from billfold.access.pages.theme import redirect
from billfold.access.users import lockout, passkeys, passwords, sessions, totp
from billfold.access.users import store as user_store
from billfold.events.email import templates as notices
from billfold.platform.errors import InvalidInput, NotFound

_LAST_FACTOR = "This is your only second factor. Add another one first."
_APP_REMOVED = "the authenticator app was removed"
_PASSKEY_REMOVED = "a passkey was removed"
_WRONG_PASSWORD = "The current password is not right."  # noqa: S105 - a name, not a secret


@get("/account")
async def show_account(server: PageServer, context: PageContext) -> Response[Any]:
    """Show what there is."""
    return await _show(server, context)


@post("/account/sessions/{session_id:str}/end")
async def end_session(session_id: str, server: PageServer, context: PageContext) -> Response[Any]:
    """Sign another browser out."""
    ended = path_id(session_id)
    if not await sessions.end_one_session(server.bank.pool, context.user.user_id, ended):
        raise NotFound("This browser is not signed in any more.")
    await grants.revoke_session_tokens(server.bank.pool, ended)
    return redirect("/account#browsers")


@post("/account/sessions/end-others")
async def end_other_sessions(server: PageServer, context: PageContext) -> Response[Any]:
    """Sign out everywhere but here."""
    await _end_others(server, context)
    return redirect("/account#browsers")


@post("/account/authenticator/remove", opt=RECENT_AUTHENTICATION)
async def remove_authenticator(server: PageServer, context: PageContext) -> Response[Any]:
    """Delete the authenticator app, unless nothing would be left."""
    user, pool = context.user, server.bank.pool
    factors = await user_store.get_factors(pool, user.user_id)
    if not factors.passkeys:
        return await _show(server, context, wrong=_LAST_FACTOR)
    async with pool.acquire() as conn, conn.transaction():
        if removed := await totp.remove_authenticator(conn, user.user_id):
            await record_credential_change(conn, server, context, user=user, action=FACTOR_CHANGED, clause=_APP_REMOVED)
    if removed:
        await send_email(server, context, user, notice=notices.factor_changed(user, _APP_REMOVED, context.now))
    return redirect("/account")


@post("/account/passkeys/{passkey_id:str}/remove", opt=RECENT_AUTHENTICATION)
async def remove_passkey(passkey_id: str, server: PageServer, context: PageContext) -> Response[Any]:
    """Delete a passkey, unless nothing would be left."""
    user, pool = context.user, server.bank.pool
    factors = await user_store.get_factors(pool, user.user_id)
    if factors.passkeys == 1 and factors.authenticator_since is None:
        return await _show(server, context, wrong=_LAST_FACTOR)
    async with pool.acquire() as conn, conn.transaction():
        if not await passkeys.remove_passkey(conn, user.user_id, path_id(passkey_id)):
            raise NotFound("This passkey is gone already.")
        await record_credential_change(conn, server, context, user=user, action=FACTOR_CHANGED, clause=_PASSKEY_REMOVED)
    await send_email(server, context, user, notice=notices.factor_changed(user, _PASSKEY_REMOVED, context.now))
    return redirect("/account")


@get("/account/password", opt=RECENT_AUTHENTICATION)
async def ask_for_password(server: PageServer, context: PageContext) -> Response[Any]:
    """Ask for the current password and a new one."""
    return server.theme.page(context, "change_password", wrong="")


@post("/account/password", opt=RECENT_AUTHENTICATION)
async def change_password(server: PageServer, context: PageContext) -> Response[Any]:
    """Change the password and sign out everywhere else."""
    user, pool = context.user, server.bank.pool
    subject = lockout.password_subject(user.email)
    wait = await check_lockout(server, context, subject, user=user)
    if wait:
        return _password_error(server, context, f"There were too many tries. Wait {format_wait(wait)}.", status=429)
    current = await passwords.find_password_hash(pool, user.user_id)
    if not await server.gate.verify(current, context.form.get("current", "")):
        return _password_error(server, context, _WRONG_PASSWORD)
    await clear_lockout(server, context, subject)
    password = context.form.get("password", "")
    try:
        check_new_password(user, password, context.form.get("again", ""))
    except InvalidInput as wrong:
        return _password_error(server, context, f"The password {wrong.errors[0].msg}.")
    password_hash = await server.gate.hash(password)
    async with pool.acquire() as conn, conn.transaction():
        await passwords.set_password(conn, user.user_id, password_hash, now=context.now)
        await record_credential_change(
            conn, server, context, user=user, action=PASSWORD_CHANGED, clause="the password was changed"
        )
    await _end_others(server, context)
    await send_email(server, context, user, notice=notices.password_changed(user, context.now))
    return redirect("/account")


async def _show(server: PageServer, context: PageContext, wrong: str = "") -> Response[Any]:
    user_id, pool = context.user.user_id, server.bank.pool
    return server.theme.page(
        context,
        "account",
        status=409 if wrong else 200,
        wrong=wrong,
        factors=await user_store.get_factors(pool, user_id),
        passkeys=await user_store.list_passkeys(pool, user_id),
        sessions=await user_store.list_sessions(pool, user_id, context.now),
        memberships=await user_store.list_user_memberships(pool, user_id),
    )


async def _end_others(server: PageServer, context: PageContext) -> None:
    session = context.session
    assert session is not None
    async with server.bank.pool.acquire() as conn, conn.transaction():
        user_id = session.user.user_id
        for ended in await sessions.end_sessions(conn, user_id, except_session_id=session.session_id):
            await grants.revoke_session_tokens(conn, ended)


def _password_error(server: PageServer, context: PageContext, sentence: str, status: int = 422) -> Response[Any]:
    return server.theme.page(context, "change_password", status=status, wrong=sentence)


PAGE_ROUTES: list[HTTPRouteHandler] = [
    show_account,
    end_session,
    end_other_sessions,
    remove_authenticator,
    remove_passkey,
    ask_for_password,
    change_password,
]
