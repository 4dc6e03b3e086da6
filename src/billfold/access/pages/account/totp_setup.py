"""Setting up an authenticator app: at the first sign-in, or later from the account."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import segno
from litestar import Request, Response, get, post
from litestar.handlers import HTTPRouteHandler
from markupsafe import Markup

from billfold.access.pages.page_context import HALFWAY, Desk
from billfold.access.pages.session import Visit, query_of
from billfold.access.pages.sign_in.signed_in import come_in, write
from billfold.access.pages.sign_in_audit import FACTOR_CHANGED, complete_login, note_change
from billfold.access.pages.theme import go
from billfold.access.users import store as user_store
from billfold.access.users import totp
from billfold.events.email import templates as notices

_ADDED = "an authenticator app was added"
_WRONG = "This code is not the one your app shows for this key. Try the next one."


@get("/set-up", opt=HALFWAY)
async def show_secret(request: Request[Any, Any, Any], desk: Desk, visit: Visit) -> Response[Any]:
    """Show a key to be read by an app, and ask for the first code."""
    to = visit.own_path(query_of(request.scope).get("next"))
    return await turned_from_set_up(desk, visit, to) or await _show(desk, visit, to)


@post("/set-up", opt=HALFWAY)
async def confirm_app(desk: Desk, visit: Visit) -> Response[Any]:
    """Take the app into use when it shows the right code."""
    to = visit.own_path(visit.form.get("next"))
    turned = await turned_from_set_up(desk, visit, to)
    if turned is not None:
        return turned
    person, bank = visit.person, desk.bank
    async with bank.pool.acquire() as conn, conn.transaction():
        right = await totp.confirm_authenticator(
            conn, bank.vault, person.user_id, code=visit.form.get("code", ""), now=visit.now
        )
        if right:
            await note_change(conn, desk, visit, person, FACTOR_CHANGED, _ADDED)
    if not right:
        return await _show(desk, visit, to, wrong=_WRONG)
    await write(desk, visit, person, notices.factor_changed(person, _ADDED, visit.now))
    if visit.is_signed_in:
        return go(to)
    cookie = await complete_login(desk, visit, proved="otp")
    if cookie is None:
        return go("/sign-in")
    return await come_in(desk, visit, person, cookie, to)


async def turned_from_set_up(desk: Desk, visit: Visit, to: str) -> Response[bytes] | None:
    """Return where to go instead of adding a factor, or None.

    Who has a second factor proves himself with it first; only who has none begins with a password.
    """
    if visit.is_fresh:
        return None
    factors = await user_store.factors_of(desk.bank.pool, visit.person.user_id)
    if visit.is_signed_in:
        return go("/confirm?next=%2Fset-up")
    if factors.has_second:
        return go(f"/second-factor?next={quote(to, safe='')}")
    return None


async def _show(desk: Desk, visit: Visit, to: str, wrong: str = "") -> Response[Any]:
    person, bank = visit.person, desk.bank
    secret = await totp.find_proposed_secret(bank.pool, bank.vault, person.user_id)
    if secret is None:
        secret = totp.new_secret()
        if not await totp.propose_authenticator(
            bank.pool, bank.vault, person.user_id, secret=secret, now=visit.now
        ):
            # There is an app already: what can be added is a passkey.
            return desk.looks.page(visit, "set_up", next=to, wrong="", picture="", secret="")
    address = totp.address_of_secret(secret, person.email)
    return desk.looks.page(
        visit,
        "set_up",
        status=422 if wrong else 200,
        next=to,
        wrong=wrong,
        picture=_picture(address),
        secret=" ".join(secret[at : at + 4] for at in range(0, len(secret), 4)),
    )


def _picture(address: str) -> Markup:
    """Return an address as a QR code: drawn by our own library, so it is no text of anybody's."""
    drawn = segno.make(address, error="m").svg_inline(
        scale=4, border=3, light="#fff", dark="#000", svgclass="qr", lineclass=None
    )
    return Markup(drawn)  # noqa: S704 - as said


PAGE_ROUTES: list[HTTPRouteHandler] = [show_secret, confirm_app]
