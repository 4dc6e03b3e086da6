"""What a person has here: factors, browsers he is signed in with, his password."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from litestar import Response, get, post
from litestar.handlers import HTTPRouteHandler

from billfold.access.oauth import grants
from billfold.access.pages.account.password_reset import check_new_password
from billfold.access.pages.page_context import FRESH, Desk
from billfold.access.pages.session import Visit
from billfold.access.pages.sign_in.signed_in import forget, in_words, wait_for, write
from billfold.access.pages.sign_in_audit import FACTOR_CHANGED, PASSWORD_CHANGED, note_change
from billfold.access.pages.theme import go
from billfold.access.users import lockout, passkeys, passwords, sessions, totp
from billfold.access.users import store as user_store
from billfold.events.email import templates as notices
from billfold.platform.errors import InvalidInput, NotFound

_LAST = "This is your only second factor. Add another one first."
_APP_REMOVED = "the authenticator app was removed"
_PASSKEY_REMOVED = "a passkey was removed"
_NOT_YOURS = "The current password is not right."


@get("/account")
async def show_account(desk: Desk, visit: Visit) -> Response[Any]:
    """Show what there is."""
    return await _show(desk, visit)


@post("/account/sessions/{session_id:str}/end")
async def end_session(session_id: str, desk: Desk, visit: Visit) -> Response[Any]:
    """Sign another browser out."""
    ended = _uuid(session_id)
    if not await sessions.end_one_session(desk.bank.pool, visit.person.user_id, ended):
        raise NotFound("This browser is not signed in any more.")
    await grants.revoke_session(desk.bank.pool, ended)
    return go("/account#browsers")


@post("/account/sessions/end-others")
async def end_other_sessions(desk: Desk, visit: Visit) -> Response[Any]:
    """Sign out everywhere but here."""
    await _end_others(desk, visit)
    return go("/account#browsers")


@post("/account/authenticator/remove", opt=FRESH)
async def remove_authenticator(desk: Desk, visit: Visit) -> Response[Any]:
    """Forget the authenticator app, unless nothing would be left."""
    person, pool = visit.person, desk.bank.pool
    factors = await user_store.factors_of(pool, person.user_id)
    if not factors.passkeys:
        return await _show(desk, visit, wrong=_LAST)
    async with pool.acquire() as conn, conn.transaction():
        if removed := await totp.remove_authenticator(conn, person.user_id):
            await note_change(conn, desk, visit, person, FACTOR_CHANGED, _APP_REMOVED)
    if removed:
        await write(desk, visit, person, notices.factor_changed(person, _APP_REMOVED, visit.now))
    return go("/account")


@post("/account/passkeys/{passkey_id:str}/remove", opt=FRESH)
async def remove_passkey(passkey_id: str, desk: Desk, visit: Visit) -> Response[Any]:
    """Forget a passkey, unless nothing would be left."""
    person, pool = visit.person, desk.bank.pool
    factors = await user_store.factors_of(pool, person.user_id)
    if factors.passkeys == 1 and factors.authenticator_since is None:
        return await _show(desk, visit, wrong=_LAST)
    async with pool.acquire() as conn, conn.transaction():
        if not await passkeys.remove_passkey(conn, person.user_id, _uuid(passkey_id)):
            raise NotFound("This passkey is gone already.")
        await note_change(conn, desk, visit, person, FACTOR_CHANGED, _PASSKEY_REMOVED)
    await write(desk, visit, person, notices.factor_changed(person, _PASSKEY_REMOVED, visit.now))
    return go("/account")


@get("/account/password", opt=FRESH)
async def ask_for_password(desk: Desk, visit: Visit) -> Response[Any]:
    """Ask for the current password and a new one."""
    return desk.looks.page(visit, "change_password", wrong="")


@post("/account/password", opt=FRESH)
async def change_password(desk: Desk, visit: Visit) -> Response[Any]:
    """Change the password and sign out everywhere else."""
    person, pool = visit.person, desk.bank.pool
    subject = lockout.password_of(person.email)
    wait = await wait_for(desk, visit, subject, person)
    if wait:
        return _wrong(desk, visit, f"There were too many tries. Wait {in_words(wait)}.", 429)
    current = await passwords.find_password_hash(pool, person.user_id)
    if not await desk.gate.verify(current, visit.form.get("current", "")):
        return _wrong(desk, visit, _NOT_YOURS)
    await forget(desk, visit, subject)
    password = visit.form.get("password", "")
    try:
        check_new_password(person, password, visit.form.get("again", ""))
    except InvalidInput as wrong:
        return _wrong(desk, visit, f"The password {wrong.errors[0].msg}.")
    password_hash = await desk.gate.hash(password)
    async with pool.acquire() as conn, conn.transaction():
        await passwords.set_password(conn, person.user_id, password_hash, now=visit.now)
        await note_change(conn, desk, visit, person, PASSWORD_CHANGED, "the password was changed")
    await _end_others(desk, visit)
    await write(desk, visit, person, notices.password_changed(person, visit.now))
    return go("/account")


async def _show(desk: Desk, visit: Visit, wrong: str = "") -> Response[Any]:
    user_id, pool = visit.person.user_id, desk.bank.pool
    return desk.looks.page(
        visit,
        "account",
        status=409 if wrong else 200,
        wrong=wrong,
        factors=await user_store.factors_of(pool, user_id),
        passkeys=await user_store.passkeys_of(pool, user_id),
        sessions=await user_store.sessions_of(pool, user_id, visit.now),
        memberships=await user_store.memberships_of(pool, user_id),
    )


async def _end_others(desk: Desk, visit: Visit) -> None:
    session = visit.session
    assert session is not None
    async with desk.bank.pool.acquire() as conn, conn.transaction():
        user_id = session.person.user_id
        for ended in await sessions.end_sessions(conn, user_id, but=session.session_id):
            await grants.revoke_session(conn, ended)


def _wrong(desk: Desk, visit: Visit, sentence: str, status: int = 422) -> Response[Any]:
    return desk.looks.page(visit, "change_password", status=status, wrong=sentence)


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise NotFound from None


PAGE_ROUTES: list[HTTPRouteHandler] = [
    show_account, end_session, end_other_sessions, remove_authenticator, remove_passkey,
    ask_for_password, change_password,
]  # fmt: skip
