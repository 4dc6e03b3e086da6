"""Setting up an authenticator app: at the first sign-in, or later from the account."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import segno
from litestar import Request, Response, get, post
from litestar.handlers import HTTPRouteHandler
from markupsafe import Markup

from billfold.access.pages.page_context import FIRST_FACTOR, PageServer
from billfold.access.pages.session import PageContext, parse_query
from billfold.access.pages.sign_in.signed_in import finish_sign_in, send_email
from billfold.access.pages.sign_in_audit import FACTOR_CHANGED, complete_login, record_credential_change
from billfold.access.pages.theme import redirect
from billfold.access.users import store as user_store
from billfold.access.users import totp
from billfold.events.email import templates as notices

_ADDED = "an authenticator app was added"
_WRONG = "This code is not the one your app shows for this key. Try the next one."


@get("/set-up", opt=FIRST_FACTOR)
async def show_secret(request: Request[Any, Any, Any], server: PageServer, context: PageContext) -> Response[Any]:
    """Show a key to be read by an app, and ask for the first code."""
    next_path = context.local_path(parse_query(request.scope).get("next"))
    return await redirect_from_set_up(server, context, next_path) or await _show(server, context, next_path)


@post("/set-up", opt=FIRST_FACTOR)
async def confirm_app(server: PageServer, context: PageContext) -> Response[Any]:
    """Take the app into use when it shows the right code."""
    next_path = context.local_path(context.form.get("next"))
    redirected = await redirect_from_set_up(server, context, next_path)
    if redirected is not None:
        return redirected
    user, bank = context.user, server.bank
    async with bank.pool.acquire() as conn, conn.transaction():
        is_correct = await totp.confirm_authenticator(
            conn, bank.vault, user.user_id, code=context.form.get("code", ""), now=context.now
        )
        if is_correct:
            await record_credential_change(conn, server, context, user=user, action=FACTOR_CHANGED, clause=_ADDED)
    if not is_correct:
        return await _show(server, context, next_path, wrong=_WRONG)
    await send_email(server, context, user, notice=notices.factor_changed(user, _ADDED, context.now))
    if context.is_signed_in:
        return redirect(next_path)
    cookie = await complete_login(server, context, auth_methods="otp")
    if cookie is None:
        return redirect("/sign-in")
    return await finish_sign_in(server, context, user, cookie=cookie, to=next_path)


async def redirect_from_set_up(server: PageServer, context: PageContext, next_path: str) -> Response[bytes] | None:
    """Return where to go instead of adding a factor, or None.

    A user with a second factor must present it first; only one without any begins with a password.
    """
    if context.is_fresh:
        return None
    factors = await user_store.get_factors(server.bank.pool, context.user.user_id)
    if context.is_signed_in:
        return redirect("/confirm?next=%2Fset-up")
    if factors.has_second_factor:
        return redirect(f"/second-factor?next={quote(next_path, safe='')}")
    return None


async def _show(server: PageServer, context: PageContext, next_path: str, wrong: str = "") -> Response[Any]:
    user, bank = context.user, server.bank
    secret = await totp.find_pending_secret(bank.pool, bank.vault, user.user_id)
    if secret is None:
        secret = totp.new_secret()
        if not await totp.store_pending_authenticator(
            bank.pool, bank.vault, user.user_id, secret=secret, now=context.now
        ):
            # There is an app already: what can be added is a passkey.
            return server.theme.page(context, "set_up", next=next_path, wrong="", picture="", secret="")
    address = totp.totp_uri(secret, user.email)
    return server.theme.page(
        context,
        "set_up",
        status=422 if wrong else 200,
        next=next_path,
        wrong=wrong,
        picture=_qr_code(address),
        secret=" ".join(secret[at : at + 4] for at in range(0, len(secret), 4)),
    )


def _qr_code(address: str) -> Markup:
    """Return a URI as the SVG of a QR code; its markup contains no user input."""
    svg = segno.make(address, error="m").svg_inline(
        scale=4, border=3, light="#fff", dark="#000", svgclass="qr", lineclass=None
    )
    return Markup(svg)  # noqa: S704 - as said


PAGE_ROUTES: list[HTTPRouteHandler] = [show_secret, confirm_app]
