"""The page behind an e-mailed invitation: join a team, with an existing account or a new one."""

from urllib.parse import quote

from litestar import get, post

from billfold.identity.members.rules import Invitation
from billfold.identity.users import passwords, rules, store
from billfold.platform.errors import InvalidInput
from billfold.team import invitations
from billfold.team.invitations import InvitationAcceptance
from billfold.web.account.security_log import origin_of
from billfold.web.account.sign_in import begin_sign_in
from billfold.web.page_context import PUBLIC, FormError, PageContext, PageResponse, redirect


@get("/invitation", opt=PUBLIC)
async def show_invitation(page: PageContext) -> PageResponse:
    """Show the invitation. This does not use it up."""
    invitation = await _find(page)
    return _link_expired(page) if invitation is None else await _show(page, invitation)


@post("/invitation", opt=PUBLIC)
async def accept_invitation(page: PageContext) -> PageResponse:
    """Accept as the signed-in user, or as a new user, whose second factor comes next."""
    invitation = await _find(page)
    if invitation is None:
        return _link_expired(page)
    if page.is_signed_in:
        acceptance = await _acceptance(page)
        async with page.pool.acquire() as conn:
            joined = await invitations.redeem_invitation(conn, acceptance, page.user)
        return _link_expired(page) if joined is None else redirect(f"/team/{invitation.customer_id}", done="joined")
    try:
        return await _accept_as_new_user(page, invitation)
    except InvalidInput as error:
        return await _show(page, invitation, error)


async def _accept_as_new_user(page: PageContext, invitation: Invitation) -> PageResponse:
    form = page.form
    first_name = rules.check_name(form.get("first_name", invitation.first_name), "first_name")
    last_name = rules.check_name(form.get("last_name", invitation.last_name), "last_name")
    password = rules.check_new_password(form, known=(invitation.email, first_name, last_name))
    password_hash = await page.server.gate.hash(password)
    acceptance = await _acceptance(page)
    async with page.pool.acquire() as conn:
        user = await invitations.accept_as_new_user(
            conn, acceptance, first_name=first_name, last_name=last_name, password_hash=password_hash
        )
    if user is None:
        return _link_expired(page)
    return await begin_sign_in(page, user.user_id, f"/team/{invitation.customer_id}")


async def _acceptance(page: PageContext) -> InvitationAcceptance:
    return InvitationAcceptance(page.link, origin_of(page), page.vault, now=await page.server.bank.now(), wall=page.now)


async def _find(page: PageContext) -> Invitation | None:
    now = await page.server.bank.now()
    return await invitations.find_invitation(page.pool, page.vault, page.link, now=now, wall=page.now)


async def _show(page: PageContext, invitation: Invitation, wrong: FormError = "") -> PageResponse:
    user = await store.find_user_by_email(page.pool, page.vault, invitation.email)
    has_account = user is not None and bool(await passwords.find_password_hash(page.pool, user.user_id))
    back = quote(f"/invitation?link={page.link}", safe="")
    return page.render(
        "invitation",
        wrong=wrong,
        found=invitation,
        given=page.form,
        link=page.link,
        has_account=has_account,
        sign_in=f"/sign-in?email={quote(invitation.email, safe='')}&next={back}",
    )


def _link_expired(page: PageContext) -> PageResponse:
    return page.render("invitation_gone", status=404)
