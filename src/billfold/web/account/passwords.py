"""Pages behind e-mailed links: a first password, or a new one; and the request for such a link."""

from litestar import get, post
from litestar.background_tasks import BackgroundTask

from billfold.events.email import templates
from billfold.identity.users import email_links, lockout, passwords, rules, sessions, store
from billfold.oauth import grants
from billfold.platform.errors import InvalidInput
from billfold.web.account.security_log import record_password_change, send_email
from billfold.web.account.sign_in import begin_sign_in
from billfold.web.page_context import HOME, PUBLIC, PageContext, PageResponse


@get("/password", opt=PUBLIC)
async def show_new_password(page: PageContext) -> PageResponse:
    """Show the form for a new password. Loading it does not use up the link, because e-mail clients load it too."""
    user = await email_links.find_link_user(page.pool, page.vault, page.link, now=page.now)
    return _link_expired(page) if user is None else page.render("new_password", link=page.link, user=user)


@post("/password", opt=PUBLIC)
async def set_new_password(page: PageContext) -> PageResponse:
    """Set the password and use up the link; the second factor is next.

    The old password may be known to others: every session ends, and every token.
    """
    user = await email_links.find_link_user(page.pool, page.vault, page.link, now=page.now)
    if user is None:
        return _link_expired(page)
    try:
        password = rules.check_new_password(page.form, known=(user.email, user.first_name, user.last_name))
    except InvalidInput as wrong:
        return page.render("new_password", wrong=wrong, link=page.link, user=user)
    password_hash = await page.server.gate.hash(password)
    async with page.pool.acquire() as conn, conn.transaction():
        if await email_links.consume_link(conn, page.link, page.now) is None:
            return _link_expired(page)
        await passwords.set_password(conn, user.user_id, password_hash, now=page.now)
        await lockout.clear_attempts(conn, lockout.password_subject(page.vault, user.email))
        await sessions.end_sessions(conn, user.user_id)
        await grants.revoke_user_tokens(conn, user.user_id)
        await record_password_change(conn, page, user)
    return await begin_sign_in(page, user.user_id, HOME)


@get("/forgot", opt=PUBLIC)
async def show_forgot(page: PageContext) -> PageResponse:
    """Show the form that requests a link by e-mail."""
    return page.render("forgot", sent_to="")


@post("/forgot", opt=PUBLIC)
async def send_link(page: PageContext) -> PageResponse:
    """Send a link if the address is known. Response and time are the same if it is not."""
    email = page.form.get("email", "").strip().lower()
    answer = page.render("forgot", sent_to=email)
    answer.background = BackgroundTask(_send_link, page, email)
    return answer


async def _send_link(page: PageContext, email: str) -> None:
    async with page.pool.acquire() as conn, conn.transaction():
        user = await store.find_user_by_email(conn, page.vault, email)
        if user is None:
            return
        limits = page.server.bank.settings.limits
        secret = await email_links.create_reset_link(conn, user.user_id, limits=limits, now=page.now)
        if secret is None:
            return
        address = f"{page.server.origin}/password?link={secret}"
        await send_email(conn, page, user, notice=templates.password_reset(user, address))


def _link_expired(page: PageContext) -> PageResponse:
    return page.render("link_gone", status=404)
