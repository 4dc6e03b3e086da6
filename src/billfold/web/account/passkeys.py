"""Passkeys: the only pages that need a script, because only a script can ask a browser for one.

The script asks for options, passes them to the browser, and sends back its response.
"""

from collections.abc import Sequence

import msgspec
from litestar import Response, post
from litestar.datastructures import Cookie
from litestar.enums import MediaType

from billfold.identity.users import passkeys, store
from billfold.identity.users.rules import Passkey
from billfold.platform.errors import BillfoldError
from billfold.web.account.security_log import record_factor_change
from billfold.web.account.sign_in import complete_sign_in, reauthenticate, sign_in_at_once
from billfold.web.account.totp import redirect_from_set_up
from billfold.web.page_context import FIRST_FACTOR, PUBLIC, PageContext, PageResponse, redirect

_NAME_CHARS_MAX = 60
_NOT_ACCEPTED = "This passkey was not accepted. Try again, or sign in another way."


class PasskeyAnswer(msgspec.Struct, frozen=True):
    """The request of the script: the browser's answer, and the next page."""

    credential: msgspec.Raw
    next: str = ""


@post("/passkeys/sign-in/options", opt=PUBLIC)
async def ask_for_passkey(page: PageContext) -> PageResponse:
    """Return the options for the browser; for a known user with their passkeys only."""
    known: list[Passkey] = []
    if page.session is not None:
        known = await store.list_passkeys(page.pool, page.user.user_id)
    challenge = await passkeys.new_challenge(page.pool, page.cookie_hash, page.now)
    return _json(passkeys.sign_in_options(page.server.site, challenge, known).encode())


@post("/passkeys/sign-in", opt=PUBLIC)
async def sign_in_with_passkey(page: PageContext) -> PageResponse:
    """Sign in with a passkey, which counts as both factors."""
    credential, next_path = _read(page)
    passkey = await verify_passkey(page, credential)
    user = None if passkey is None else await store.find_user(page.pool, page.vault, passkey.user_id)
    if user is None or (page.session is not None and page.user.user_id != user.user_id):
        return _not_accepted()
    if page.is_signed_in:
        return _as_json(await reauthenticate(page, "hwk", next_path))
    return _as_json(await sign_in_at_once(page, user, "hwk", to=next_path))


@post("/passkeys/options", opt=FIRST_FACTOR)
async def ask_to_make_passkey(page: PageContext) -> PageResponse:
    """Return the options for the browser to create a passkey."""
    redirected = await redirect_from_set_up(page, "/account")
    if redirected is not None:
        return _as_json(redirected)
    known = await store.list_passkeys(page.pool, page.user.user_id)
    challenge = await passkeys.new_challenge(page.pool, page.cookie_hash, page.now)
    return _json(passkeys.registration_options(page.server.site, page.user, known, challenge=challenge).encode())


@post("/passkeys", opt=FIRST_FACTOR)
async def add_passkey(page: PageContext) -> PageResponse:
    """Store a passkey that the browser created."""
    credential, next_path = _read(page)
    redirected = await redirect_from_set_up(page, "/account")
    if redirected is not None:
        return _as_json(redirected)
    challenge = await _consume_challenge(page, credential)
    made = challenge and passkeys.verify_registration(page.server.site, credential, challenge)
    if not made or not await _add_passkey(page, made):
        return _not_accepted()
    return _as_json(redirect(next_path) if page.is_signed_in else await complete_sign_in(page, "hwk", next_path))


async def _add_passkey(page: PageContext, made: passkeys.NewPasskey) -> bool:
    """Store a new passkey, unless it is registered already."""
    name = page.client_info.device[:_NAME_CHARS_MAX]
    async with page.pool.acquire() as conn, conn.transaction():
        added = await passkeys.add_passkey(conn, page.user.user_id, made, name=name, now=page.now)
        if added:
            await record_factor_change(conn, page, "a passkey was added")
    return added


async def verify_passkey(page: PageContext, credential: str, *, over: bytes | None = None) -> Passkey | None:
    """Return the passkey of a valid answer, which answers the challenge `over` if there is one."""
    challenge = await _consume_challenge(page, credential)
    credential_id = passkeys.parse_credential_id(credential)
    if challenge is None or credential_id is None or over not in {None, challenge}:
        return None
    passkey = await store.find_passkey(page.pool, credential_id)
    if passkey is None:
        return None
    count = passkeys.verify_authentication(page.server.site, passkey, credential, challenge=challenge)
    if count is None or not await passkeys.record_passkey_use(page.pool, passkey, count, now=page.now):
        return None
    return passkey


async def _consume_challenge(page: PageContext, credential: str) -> bytes | None:
    """Return the challenge of an answer if it was made for this browser and is still valid."""
    challenge = passkeys.parse_challenge(credential)
    if challenge is None:
        return None
    is_ours = await passkeys.consume_challenge(page.pool, challenge, page.cookie_hash, now=page.now)
    return challenge if is_ours else None


def _read(page: PageContext) -> tuple[str, str]:
    """Return the browser's answer and the next page. Raises `bad-request`."""
    try:
        answer = msgspec.json.decode(page.request.body, type=PasskeyAnswer)
    except msgspec.MsgspecError:
        raise BillfoldError("bad-request", "The browser's answer cannot be read.") from None
    return bytes(answer.credential).decode(), page.local_path(answer.next)


def _as_json(redirected: PageResponse) -> PageResponse:
    """Return a redirect in the form that the script follows."""
    body = msgspec.json.encode({"go": redirected.headers["location"]})
    return _json(body, cookies=redirected.cookies)


def _not_accepted() -> PageResponse:
    return _json(msgspec.json.encode({"wrong": _NOT_ACCEPTED}), status=422)


def _json(body: bytes, *, status: int = 200, cookies: Sequence[Cookie] = ()) -> PageResponse:
    return Response(body, status_code=status, media_type=MediaType.JSON, cookies=cookies)
