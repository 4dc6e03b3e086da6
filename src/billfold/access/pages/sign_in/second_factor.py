"""The second factor after a password, and the same proof again before something delicate."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from litestar import Request, Response, get, post
from litestar.handlers import HTTPRouteHandler

from billfold.access.pages.page_context import FIRST_FACTOR, PageServer
from billfold.access.pages.session import PageContext, parse_query
from billfold.access.pages.sign_in.signed_in import check_lockout, clear_lockout, finish_sign_in, format_wait
from billfold.access.pages.sign_in_audit import complete_login, record_failed_login
from billfold.access.pages.theme import redirect, session_cookie
from billfold.access.users import lockout, sessions, totp
from billfold.access.users import store as user_store

_WRONG = "This code is wrong, or was used already. Wait for the next one."


@get("/second-factor", opt=FIRST_FACTOR)
async def ask_for_code(request: Request[Any, Any, Any], server: PageServer, context: PageContext) -> Response[Any]:
    """Ask for a code or a passkey; who has neither sets one up."""
    next_path = context.local_path(parse_query(request.scope).get("next"))
    if context.is_signed_in:
        return redirect(next_path)
    return await _ask(server, context, "/second-factor", next_path=next_path)


@post("/second-factor", opt=FIRST_FACTOR)
async def check_second_factor(server: PageServer, context: PageContext) -> Response[Any]:
    """Look at a code; the session is whole when it is right."""
    next_path = context.local_path(context.form.get("next"))
    if context.is_signed_in:
        return redirect(next_path)
    refused = await _check_code(server, context, "/second-factor", next_path=next_path)
    if refused is not None:
        return refused
    cookie = await complete_login(server, context, auth_methods="otp")
    if cookie is None:
        return redirect(f"/sign-in?next={quote(next_path, safe='')}")
    return await finish_sign_in(server, context, context.user, cookie=cookie, to=next_path)


@get("/confirm")
async def ask_reauthentication(
    request: Request[Any, Any, Any], server: PageServer, context: PageContext
) -> Response[Any]:
    """Show the form that re-authenticates a signed-in user."""
    next_path = context.local_path(parse_query(request.scope).get("next"))
    return await _ask(server, context, "/confirm", next_path=next_path)


@post("/confirm")
async def confirm(server: PageServer, context: PageContext) -> Response[Any]:
    """Look at a code; right, it counts as having signed in now."""
    next_path = context.local_path(context.form.get("next"))
    refused = await _check_code(server, context, "/confirm", next_path=next_path)
    if refused is not None:
        return refused
    cookie = await sessions.reauthenticate(server.bank.pool, context.cookie_hash, auth_methods="otp", now=context.now)
    if cookie is None:
        return redirect(f"/sign-in?next={quote(next_path, safe='')}")
    return redirect(next_path, session_cookie(cookie))


async def _ask(
    server: PageServer,
    context: PageContext,
    action: str,
    next_path: str,
    *,
    wrong: str = "",
    status: int = 200,
    headers: dict[str, str] | None = None,
) -> Response[Any]:
    factors = await user_store.get_factors(server.bank.pool, context.user.user_id)
    if not factors.has_second_factor:
        return redirect(f"/set-up?next={quote(next_path, safe='')}")
    return server.theme.page(
        context,
        "second_factor",
        status=status,
        headers=headers,
        action=action,
        next=next_path,
        factors=factors,
        wrong=wrong,
    )


async def _check_code(server: PageServer, context: PageContext, action: str, next_path: str) -> Response[Any] | None:
    """Return the page that says what is wrong with a code, or None when it is right."""
    user, pool = context.user, server.bank.pool
    subject = lockout.totp_subject(user.user_id)
    wait = await check_lockout(server, context, subject, user=user)
    if wait:
        sentence = f"There were too many tries. Wait {format_wait(wait)}, or use a passkey."
        return await _ask(
            server, context, action, next_path=next_path, wrong=sentence, status=429, headers={"retry-after": str(wait)}
        )
    code = context.form.get("code", "")
    if not await totp.consume_code(pool, server.bank.vault, user.user_id, code=code, now=context.now):
        answer = await _ask(server, context, action, next_path=next_path, wrong=_WRONG, status=422)
        return record_failed_login(answer, server, context, user=user, factor="code")
    await clear_lockout(server, context, subject)
    return None


PAGE_ROUTES: list[HTTPRouteHandler] = [ask_for_code, check_second_factor, ask_reauthentication, confirm]
