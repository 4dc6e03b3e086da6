"""Passkeys: the only pages that need a script, since only a script may ask a browser for one.

The script asks for options, passes them to the browser, and sends back its response.
"""

from __future__ import annotations

from typing import Any

import msgspec
from litestar import Response, post
from litestar.datastructures import Cookie
from litestar.enums import MediaType
from litestar.handlers import HTTPRouteHandler

from billfold.access.pages.account.totp_setup import redirect_from_set_up
from billfold.access.pages.page_context import FIRST_FACTOR, PUBLIC, PageServer
from billfold.access.pages.session import PageContext
from billfold.access.pages.sign_in.signed_in import finish_sign_in, send_email
from billfold.access.pages.sign_in_audit import FACTOR_CHANGED, complete_login, record_credential_change, start_login
from billfold.access.pages.theme import session_cookie
from billfold.access.users import passkeys, sessions
from billfold.access.users import store as user_store
from billfold.access.users.types import Passkey
from billfold.events.email import templates as notices
from billfold.platform.errors import BillfoldError

_NAME_CHARS_MAX = 60
_ADDED = "a passkey was added"
_NOT_ACCEPTED = "This passkey was not accepted. Try again, or sign in another way."


class HttpResponse(msgspec.Struct, frozen=True):
    """What the script sends back: the browser's answer, and where the page wants to go next."""

    credential: msgspec.Raw
    next: str = ""


@post("/passkeys/sign-in/options", opt=PUBLIC)
async def ask_for_passkey(server: PageServer, context: PageContext) -> Response[Any]:
    """Return the options for the browser; for a known user with their passkeys only."""
    known: list[Passkey] = []
    if context.session is not None:
        known = await user_store.list_passkeys(server.bank.pool, context.user.user_id)
    challenge = await passkeys.new_challenge(server.bank.pool, context.cookie_hash, context.now)
    return _json(passkeys.sign_in_options(server.site, challenge, known))


@post("/passkeys/sign-in", opt=PUBLIC)
async def sign_in_with_passkey(server: PageServer, context: PageContext) -> Response[Any]:
    """Sign in with a passkey, which counts as both factors."""
    answer = _read(context)
    next_path = context.local_path(answer.next)
    passkey = await _verify_passkey(server, context, bytes(answer.credential).decode())
    if passkey is None:
        return _json({"wrong": _NOT_ACCEPTED}, status=422)
    user = await user_store.find_user(server.bank.pool, passkey.user_id)
    if user is None or (context.session is not None and context.user.user_id != user.user_id):
        return _json({"wrong": _NOT_ACCEPTED}, status=422)
    if context.is_signed_in:
        cookie = await sessions.reauthenticate(
            server.bank.pool, context.cookie_hash, auth_methods="hwk", now=context.now
        )
        return _redirect_json(next_path, session_cookie(cookie or context.cookie))
    await sessions.end_session(server.bank.pool, context.cookie_hash)
    cookie = await start_login(server, context, user, auth_methods="hwk")
    come = await finish_sign_in(server, context, user, cookie=cookie, to=next_path)
    return _redirect_json(next_path, *come.cookies)


@post("/passkeys/options", opt=FIRST_FACTOR)
async def ask_to_make_passkey(server: PageServer, context: PageContext) -> Response[Any]:
    """Say what passkey the browser is to make."""
    redirected = await redirect_from_set_up(server, context, "/account")
    if redirected is not None:
        return _json({"go": redirected.headers["location"]})
    user = context.user
    known = await user_store.list_passkeys(server.bank.pool, user.user_id)
    challenge = await passkeys.new_challenge(server.bank.pool, context.cookie_hash, context.now)
    return _json(passkeys.registration_options(server.site, user, known, challenge=challenge))


@post("/passkeys", opt=FIRST_FACTOR)
async def add_passkey(server: PageServer, context: PageContext) -> Response[Any]:
    """Keep a passkey that was made for us."""
    answer = _read(context)
    next_path = context.local_path(answer.next)
    redirected = await redirect_from_set_up(server, context, "/account")
    if redirected is not None:
        return _json({"go": redirected.headers["location"]})
    credential = bytes(answer.credential).decode()
    challenge = await _consume_challenge(server, context, credential)
    made = challenge and passkeys.verify_registration(server.site, credential, challenge)
    if not made or not await _add_passkey(server, context, made):
        return _json({"wrong": _NOT_ACCEPTED}, status=422)
    user = context.user
    await send_email(server, context, user, notice=notices.factor_changed(user, _ADDED, context.now))
    if context.is_signed_in:
        return _redirect_json(next_path)
    cookie = await complete_login(server, context, auth_methods="hwk")
    come = await finish_sign_in(server, context, user, cookie=cookie or context.cookie, to=next_path)
    return _redirect_json(next_path, *come.cookies)


async def _add_passkey(server: PageServer, context: PageContext, made: passkeys.NewPasskey) -> bool:
    """Store a new passkey, unless it is registered already."""
    user = context.user
    name = f"{context.client_info.device}"[:_NAME_CHARS_MAX]
    async with server.bank.pool.acquire() as conn, conn.transaction():
        added = await passkeys.add_passkey(conn, user.user_id, made, name=name, now=context.now)
        if added:
            await record_credential_change(conn, server, context, user=user, action=FACTOR_CHANGED, clause=_ADDED)
    return added


async def _verify_passkey(server: PageServer, context: PageContext, credential: str) -> Passkey | None:
    """Return the passkey an answer comes from when it holds."""
    challenge = await _consume_challenge(server, context, credential)
    credential_id = passkeys.parse_credential_id(credential)
    if challenge is None or credential_id is None:
        return None
    passkey = await user_store.find_passkey(server.bank.pool, credential_id)
    if passkey is None:
        return None
    count = passkeys.verify_authentication(server.site, passkey, credential, challenge=challenge)
    if count is None or not await passkeys.record_passkey_use(server.bank.pool, passkey, count, now=context.now):
        return None
    return passkey


async def _consume_challenge(server: PageServer, context: PageContext, credential: str) -> bytes | None:
    """Return the challenge of an answer when it was ours for this browser and still good."""
    challenge = passkeys.parse_challenge(credential)
    if challenge is None or not await passkeys.consume_challenge(
        server.bank.pool, challenge, context.cookie_hash, now=context.now
    ):
        return None
    return challenge


def _read(context: PageContext) -> HttpResponse:
    try:
        return msgspec.json.decode(context.arrival.body, type=HttpResponse)
    except msgspec.MsgspecError:
        raise BillfoldError("bad-request", "The answer of the browser cannot be read.") from None


def _redirect_json(next_path: str, *cookies: Cookie) -> Response[Any]:
    return _json({"go": next_path}, cookies=list(cookies))


def _json(content: str | dict[str, str], *, status: int = 200, cookies: list[Cookie] | None = None) -> Response[bytes]:
    body = content.encode() if isinstance(content, str) else msgspec.json.encode(content)
    return Response(body, status_code=status, media_type=MediaType.JSON, cookies=cookies or [])


PAGE_ROUTES: list[HTTPRouteHandler] = [ask_for_passkey, sign_in_with_passkey, ask_to_make_passkey, add_passkey]
