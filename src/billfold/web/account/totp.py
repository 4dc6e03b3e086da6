"""Setting up an authenticator app: at the first sign-in, or later from the account."""

from urllib.parse import quote

import segno
from litestar import get, post
from markupsafe import Markup

from billfold.identity.users import store, totp
from billfold.platform.errors import InvalidInput
from billfold.web.account.security_log import record_factor_change
from billfold.web.account.sign_in import complete_sign_in
from billfold.web.page_context import FIRST_FACTOR, FormError, PageContext, PageResponse, redirect

_WRONG = InvalidInput.at("code", msg="is not the one your app shows for this key; try the next one")


@get("/set-up", opt=FIRST_FACTOR)
async def show_secret(page: PageContext) -> PageResponse:
    """Show a key for an app to read, and ask for the first code."""
    return await redirect_from_set_up(page, page.next_path) or await _show(page)


@post("/set-up", opt=FIRST_FACTOR)
async def confirm_app(page: PageContext) -> PageResponse:
    """Activate the app if it shows the right code."""
    next_path = page.next_path
    redirected = await redirect_from_set_up(page, next_path)
    if redirected is not None:
        return redirected
    async with page.pool.acquire() as conn, conn.transaction():
        code = page.form.get("code", "")
        is_correct = await totp.consume_code(conn, page.vault, page.user.user_id, code=code, now=page.now, pending=True)
        if is_correct:
            await record_factor_change(conn, page, "an authenticator app was added")
    if not is_correct:
        return await _show(page, _WRONG)
    return redirect(next_path) if page.is_signed_in else await complete_sign_in(page, "otp", next_path)


async def redirect_from_set_up(page: PageContext, next_path: str) -> PageResponse | None:
    """Return the page to show instead of adding a factor, or None.

    A user with a second factor must present it first; only a user without one starts with a password.
    """
    if page.is_fresh:
        return None
    if page.is_signed_in:
        return redirect("/confirm?next=%2Fset-up")
    factors = await store.get_factors(page.pool, page.user.user_id)
    return redirect(f"/second-factor?next={quote(next_path, safe='')}") if factors.has_second_factor else None


async def _show(page: PageContext, wrong: FormError = "") -> PageResponse:
    pool, vault, user_id = page.pool, page.vault, page.user.user_id
    secret = await totp.find_pending_secret(pool, vault, user_id)
    if secret is None:
        secret = totp.new_secret()
        if not await totp.store_pending_authenticator(pool, vault, user_id, secret=secret, now=page.now):
            # There already is an app: only a passkey can be added.
            return page.render("set_up", next=page.next_path, picture="", secret="")
    return page.render(
        "set_up",
        wrong=wrong,
        next=page.next_path,
        picture=_qr_code(totp.totp_uri(secret, page.user.email, issuer=page.server.bank.settings.bank_name)),
        secret=" ".join(secret[at : at + 4] for at in range(0, len(secret), 4)),
    )


def _qr_code(address: str) -> Markup:
    """Return a URI as the SVG of a QR code; its markup contains no user input."""
    svg = segno.make(address, error="m").svg_inline(
        scale=4, border=3, light="#fff", dark="#000", svgclass="qr", lineclass=None
    )
    return Markup(svg)  # noqa: S704 - as said
