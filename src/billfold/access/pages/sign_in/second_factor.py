"""The second factor after a password, and the same proof again before something delicate."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from litestar import Request, Response, get, post
from litestar.handlers import HTTPRouteHandler

from billfold.access.pages.page_context import HALFWAY, Desk
from billfold.access.pages.session import Visit, query_of
from billfold.access.pages.sign_in.signed_in import come_in, forget, in_words, wait_for
from billfold.access.pages.sign_in_audit import complete_login, note_failure
from billfold.access.pages.theme import go, session_cookie
from billfold.access.users import lockout, sessions, totp
from billfold.access.users import store as user_store

_WRONG = "This code is wrong, or was used already. Wait for the next one."


@get("/second-factor", opt=HALFWAY)
async def ask_for_code(request: Request[Any, Any, Any], desk: Desk, visit: Visit) -> Response[Any]:
    """Ask for a code or a passkey; who has neither sets one up."""
    to = visit.own_path(query_of(request.scope).get("next"))
    if visit.is_signed_in:
        return go(to)
    return await _ask(desk, visit, "/second-factor", to)


@post("/second-factor", opt=HALFWAY)
async def give_code(desk: Desk, visit: Visit) -> Response[Any]:
    """Look at a code; the session is whole when it is right."""
    to = visit.own_path(visit.form.get("next"))
    if visit.is_signed_in:
        return go(to)
    refused = await _look_at_code(desk, visit, "/second-factor", to)
    if refused is not None:
        return refused
    cookie = await complete_login(desk, visit, proved="otp")
    if cookie is None:
        return go(f"/sign-in?next={quote(to, safe='')}")
    return await come_in(desk, visit, visit.person, cookie, to)


@get("/confirm")
async def ask_again(request: Request[Any, Any, Any], desk: Desk, visit: Visit) -> Response[Any]:
    """Ask somebody who is signed in to prove once more that it is he."""
    to = visit.own_path(query_of(request.scope).get("next"))
    return await _ask(desk, visit, "/confirm", to)


@post("/confirm")
async def confirm(desk: Desk, visit: Visit) -> Response[Any]:
    """Look at a code; right, it counts as having signed in now."""
    to = visit.own_path(visit.form.get("next"))
    refused = await _look_at_code(desk, visit, "/confirm", to)
    if refused is not None:
        return refused
    cookie = await sessions.prove_again(
        desk.bank.pool, visit.cookie_hash, proved="otp", now=visit.now
    )
    if cookie is None:
        return go(f"/sign-in?next={quote(to, safe='')}")
    return go(to, session_cookie(cookie))


async def _ask(
    desk: Desk,
    visit: Visit,
    action: str,
    to: str,
    *,
    wrong: str = "",
    status: int = 200,
    headers: dict[str, str] | None = None,
) -> Response[Any]:
    factors = await user_store.factors_of(desk.bank.pool, visit.person.user_id)
    if not factors.has_second:
        return go(f"/set-up?next={quote(to, safe='')}")
    return desk.looks.page(
        visit, "second_factor", status=status, headers=headers, action=action, next=to,
        factors=factors, wrong=wrong,
    )  # fmt: skip


async def _look_at_code(desk: Desk, visit: Visit, action: str, to: str) -> Response[Any] | None:
    """Return the page that says what is wrong with a code, or None when it is right."""
    person, pool = visit.person, desk.bank.pool
    subject = lockout.code_of(person.user_id)
    wait = await wait_for(desk, visit, subject, person)
    if wait:
        sentence = f"There were too many tries. Wait {in_words(wait)}, or use a passkey."
        return await _ask(
            desk, visit, action, to, wrong=sentence, status=429,
            headers={"retry-after": str(wait)},
        )  # fmt: skip
    code = visit.form.get("code", "")
    if not await totp.use_code(pool, desk.bank.vault, person.user_id, code=code, now=visit.now):
        answer = await _ask(desk, visit, action, to, wrong=_WRONG, status=422)
        return note_failure(answer, desk, visit, person, "code")
    await forget(desk, visit, subject)
    return None


PAGE_ROUTES: list[HTTPRouteHandler] = [ask_for_code, give_code, ask_again, confirm]
