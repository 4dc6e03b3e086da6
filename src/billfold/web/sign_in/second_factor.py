"""The second factor after a password, and the same proof again before something delicate."""

from __future__ import annotations

from urllib.parse import quote

from litestar import get, post

from billfold.web.sign_in.signed_in import check_lockout, clear_lockout, complete_sign_in, reauthenticate
from billfold.web.sign_in_audit import record_wrong_factor
from billfold.identity.users import lockout, totp
from billfold.identity.users import store as user_store
from billfold.web.page_context import FIRST_FACTOR, Mistake, PageContext, PageResponse, redirect
from billfold.platform.errors import InvalidInput
from billfold.platform.telemetry.metrics import SIGN_IN_FAILURES

_WRONG = InvalidInput.at("code", msg="is wrong, or was used already; wait for the next one")


@get("/second-factor", opt=FIRST_FACTOR)
async def ask_for_code(page: PageContext) -> PageResponse:
    """Ask for a code or a passkey; who has neither sets one up."""
    return redirect(page.next_path) if page.is_signed_in else await _ask(page)


@post("/second-factor", opt=FIRST_FACTOR)
async def check_second_factor(page: PageContext) -> PageResponse:
    """Check a code; the session is complete when it is right."""
    next_path = page.next_path
    if page.is_signed_in:
        return redirect(next_path)
    return await _refuse_code(page) or await complete_sign_in(page, "otp", next_path)


@get("/confirm")
async def ask_reauthentication(page: PageContext) -> PageResponse:
    """Show the form that re-authenticates a signed-in user."""
    return await _ask(page)


@post("/confirm")
async def confirm(page: PageContext) -> PageResponse:
    """Check a code; if it is right, the user has authenticated now."""
    next_path = page.next_path
    return await _refuse_code(page) or await reauthenticate(page, "otp", next_path)


async def _ask(page: PageContext, wrong: Mistake = "") -> PageResponse:
    factors = await user_store.get_factors(page.pool, page.user.user_id)
    next_path = page.next_path
    if not factors.has_second_factor:
        return redirect(f"/set-up?next={quote(next_path, safe='')}")
    return page.render("second_factor", wrong=wrong, action=page.request.path, next=next_path, factors=factors)


async def _refuse_code(page: PageContext) -> PageResponse | None:
    """Return the page that says what is wrong with a code, or None when it is right."""
    used = await use_code(page)
    return None if isinstance(used, int) else await _ask(page, used)


async def use_code(page: PageContext) -> int | Mistake:
    """Use up the code of a form; return its time step, or what is wrong with it. Wrong ones count, and are recorded."""
    user = page.user
    subject = lockout.totp_subject(user.user_id)
    locked = await check_lockout(page, subject, user)
    if locked is not None:
        return locked
    code = page.form.get("code", "")
    step = await totp.consume_code(page.pool, page.vault, user.user_id, code=code, now=page.now)
    if step is None:
        SIGN_IN_FAILURES.add("code")
        await record_wrong_factor(page, user, factor="code")
        return _WRONG
    await clear_lockout(page, subject)
    return step
