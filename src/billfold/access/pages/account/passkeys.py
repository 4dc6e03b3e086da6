"""Passkeys: the only pages that need a script, since only a script may ask a browser for one.

The script asks for options, hands them to the browser, and sends back what it answers.
"""

from __future__ import annotations

from typing import Any

import msgspec
from litestar import Response, post
from litestar.datastructures import Cookie
from litestar.enums import MediaType
from litestar.handlers import HTTPRouteHandler

from billfold.access.pages.account.totp_setup import turned_from_set_up
from billfold.access.pages.page_context import ANYBODY, HALFWAY, Desk
from billfold.access.pages.session import Visit
from billfold.access.pages.sign_in.signed_in import come_in, write
from billfold.access.pages.sign_in_audit import (
    FACTOR_CHANGED,
    complete_login,
    note_change,
    open_login,
)
from billfold.access.pages.theme import session_cookie
from billfold.access.users import passkeys, sessions
from billfold.access.users import store as user_store
from billfold.access.users.types import Passkey
from billfold.events.email import templates as notices
from billfold.platform.errors import BillfoldError

_NAME_CHARS_MAX = 60
_ADDED = "a passkey was added"
_REFUSED = "This passkey was not accepted. Try again, or sign in another way."


class HttpResponse(msgspec.Struct, frozen=True):
    """What the script sends back: the browser's answer, and where the page wants to go next."""

    credential: msgspec.Raw
    next: str = ""


@post("/passkeys/sign-in/options", opt=ANYBODY)
async def ask_for_passkey(desk: Desk, visit: Visit) -> Response[Any]:
    """Say what the browser is to be asked for; of somebody known, his passkeys only."""
    known: list[Passkey] = []
    if visit.session is not None:
        known = await user_store.passkeys_of(desk.bank.pool, visit.person.user_id)
    challenge = await passkeys.new_challenge(desk.bank.pool, visit.cookie_hash, visit.now)
    return _json(passkeys.sign_in_options(desk.site, challenge, known))


@post("/passkeys/sign-in", opt=ANYBODY)
async def sign_in_with_passkey(desk: Desk, visit: Visit) -> Response[Any]:
    """Let in whoever has a passkey of ours: it is both factors at once."""
    answer = _read(visit)
    to = visit.own_path(answer.next)
    passkey = await _proved(desk, visit, bytes(answer.credential).decode())
    if passkey is None:
        return _json({"wrong": _REFUSED}, status=422)
    person = await user_store.find_person(desk.bank.pool, passkey.user_id)
    if person is None or (visit.session is not None and visit.person.user_id != person.user_id):
        return _json({"wrong": _REFUSED}, status=422)
    if visit.is_signed_in:
        cookie = await sessions.prove_again(
            desk.bank.pool, visit.cookie_hash, proved="hwk", now=visit.now
        )
        return _gone(to, session_cookie(cookie or visit.cookie))
    await sessions.end_session(desk.bank.pool, visit.cookie_hash)
    cookie = await open_login(desk, visit, person, proved="hwk")
    come = await come_in(desk, visit, person, cookie, to)
    return _gone(to, *come.cookies)


@post("/passkeys/options", opt=HALFWAY)
async def ask_to_make_passkey(desk: Desk, visit: Visit) -> Response[Any]:
    """Say what passkey the browser is to make."""
    turned = await turned_from_set_up(desk, visit, "/account")
    if turned is not None:
        return _json({"go": turned.headers["location"]})
    person = visit.person
    known = await user_store.passkeys_of(desk.bank.pool, person.user_id)
    challenge = await passkeys.new_challenge(desk.bank.pool, visit.cookie_hash, visit.now)
    return _json(passkeys.registration_options(desk.site, person, known, challenge))


@post("/passkeys", opt=HALFWAY)
async def add_passkey(desk: Desk, visit: Visit) -> Response[Any]:
    """Keep a passkey that was made for us."""
    answer = _read(visit)
    to = visit.own_path(answer.next)
    turned = await turned_from_set_up(desk, visit, "/account")
    if turned is not None:
        return _json({"go": turned.headers["location"]})
    credential = bytes(answer.credential).decode()
    challenge = await _taken(desk, visit, credential)
    made = challenge and passkeys.verified_registration(desk.site, credential, challenge)
    if not made or not await _keep(desk, visit, made):
        return _json({"wrong": _REFUSED}, status=422)
    person = visit.person
    await write(desk, visit, person, notices.factor_changed(person, _ADDED, visit.now))
    if visit.is_signed_in:
        return _gone(to)
    cookie = await complete_login(desk, visit, proved="hwk")
    come = await come_in(desk, visit, person, cookie or visit.cookie, to)
    return _gone(to, *come.cookies)


async def _keep(desk: Desk, visit: Visit, made: passkeys.NewPasskey) -> bool:
    """Keep a new passkey, unless it is somebody's already."""
    person = visit.person
    name = f"{visit.visitor.device}"[:_NAME_CHARS_MAX]
    async with desk.bank.pool.acquire() as conn, conn.transaction():
        added = await passkeys.add_passkey(conn, person.user_id, made, name=name, now=visit.now)
        if added:
            await note_change(conn, desk, visit, person, FACTOR_CHANGED, _ADDED)
    return added


async def _proved(desk: Desk, visit: Visit, credential: str) -> Passkey | None:
    """Return the passkey an answer comes from when it holds."""
    challenge = await _taken(desk, visit, credential)
    credential_id = passkeys.credential_in(credential)
    if challenge is None or credential_id is None:
        return None
    passkey = await user_store.find_passkey(desk.bank.pool, credential_id)
    if passkey is None:
        return None
    count = passkeys.verified_sign_in(desk.site, passkey, credential, challenge)
    if count is None or not await passkeys.note_use(desk.bank.pool, passkey, count, visit.now):
        return None
    return passkey


async def _taken(desk: Desk, visit: Visit, credential: str) -> bytes | None:
    """Return the challenge of an answer when it was ours for this browser and still good."""
    challenge = passkeys.challenge_in(credential)
    if challenge is None or not await passkeys.take_challenge(
        desk.bank.pool, challenge, visit.cookie_hash, visit.now
    ):
        return None
    return challenge


def _read(visit: Visit) -> HttpResponse:
    try:
        return msgspec.json.decode(visit.arrival.body, type=HttpResponse)
    except msgspec.MsgspecError:
        raise BillfoldError("bad-request", "The answer of the browser cannot be read.") from None


def _gone(to: str, *cookies: Cookie) -> Response[Any]:
    return _json({"go": to}, cookies=list(cookies))


def _json(
    content: str | dict[str, str], *, status: int = 200, cookies: list[Cookie] | None = None
) -> Response[bytes]:
    body = content.encode() if isinstance(content, str) else msgspec.json.encode(content)
    return Response(body, status_code=status, media_type=MediaType.JSON, cookies=cookies or [])


PAGE_ROUTES: list[HTTPRouteHandler] = [
    ask_for_passkey, sign_in_with_passkey, ask_to_make_passkey, add_passkey,
]  # fmt: skip
