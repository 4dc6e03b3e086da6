"""Consent to OAuth clients: granted, listed and revoked."""

from urllib.parse import quote, urlsplit
from uuid import UUID

from litestar import get, post

from billfold.events.email import templates
from billfold.identity.users.rules import Membership
from billfold.oauth import consent
from billfold.oauth import grants as oauth_grants
from billfold.oauth.rules.authorization_params import SCOPES
from billfold.oauth.server import authorize
from billfold.oauth.types import PendingRequest
from billfold.platform.errors import InvalidInput, NotFound
from billfold.web.account.security_log import record_for_teams, send_email
from billfold.web.page_context import FormError, PageContext, PageResponse, path_id, redirect

_REQUEST_EXPIRED = "This request is unknown, too old, or was answered already. Go back to the application."


@get("/consent")
async def ask_consent(page: PageContext) -> PageResponse:
    """Show the consent page."""
    wanted = await _pending(page, page.query.get("request", ""))
    return _reauthentication(page, wanted) or await _show(page, wanted)


@post("/consent")
async def answer_consent(page: PageContext) -> PageResponse:
    """Grant or deny the request, and redirect to the application either way."""
    wanted = await _pending(page, page.form.get("request", ""))
    if page.form.get("decision") != "grant":
        async with page.pool.acquire() as conn:
            return redirect(await consent.deny(conn, wanted.request_id, issuer=page.server.origin, now=page.now))
    reauthentication = _reauthentication(page, wanted)
    if reauthentication is not None:
        return reauthentication
    chosen_customer = page.form.get("customer", "")
    members = await _memberships(page, wanted.owner_id)
    member = next((each for each in members if str(each.customer_id) == chosen_customer), None)
    if member is None:
        return await _show(page, wanted, wrong=InvalidInput.at("customer", msg="must be chosen"))
    return await _grant(page, wanted, member)


@get("/applications")
async def list_applications(page: PageContext) -> PageResponse:
    """List the grants."""
    grants = await oauth_grants.list_grants(page.pool, page.user.user_id)
    return page.render("applications", grants=grants)


@post("/applications/{grant_id:str}/revoke")
async def revoke(grant_id: str, page: PageContext) -> PageResponse:
    """Revoke a grant; its tokens end at once."""
    user, grant_uuid = page.user, path_id(grant_id, _REQUEST_EXPIRED)
    grants = await oauth_grants.list_grants(page.pool, user.user_id)
    grant = next((each for each in grants if each.grant_id == grant_uuid), None)
    async with page.pool.acquire() as conn, conn.transaction():
        if grant is None or not await oauth_grants.revoke_grant(
            conn, user_id=user.user_id, grant_id=grant_uuid, now=page.now
        ):
            raise NotFound("This access was revoked before.")
        await record_for_teams(conn, page, user, action="grant.revoked", client=grant.client_id, only=grant.customer_id)
    return redirect("/applications", done="access-revoked")


async def _grant(page: PageContext, wanted: PendingRequest, member: Membership) -> PageResponse:
    user, session = page.user, page.own_session
    words = [SCOPES[scope] for scope in wanted.scopes]
    notice = templates.access_granted(user, wanted.client_name, member.customer_name, scope_texts=words, now=page.now)
    async with page.pool.acquire() as conn, conn.transaction():
        back = await consent.approve(
            conn,
            wanted.request_id,
            user_id=user.user_id,
            customer_id=member.customer_id,
            authenticated_at=session.authenticated_at,
            session_id=session.session_id,
            issuer=page.server.origin,
            now=page.now,
        )
        await send_email(conn, page, user, notice=notice)
        await record_for_teams(
            conn,
            page,
            user,
            action="grant.created",
            only=member.customer_id,
            client=wanted.client_id,
            scopes=wanted.scopes,
        )
    return redirect(back)


async def _pending(page: PageContext, request_id: str) -> PendingRequest:
    request_uuid = path_id(request_id, _REQUEST_EXPIRED)
    return await authorize.get_pending_request(page.pool, request_uuid, page.now)


async def _memberships(page: PageContext, owner_id: UUID | None) -> list[Membership]:
    """Return the memberships for which the client may be granted access; a company's client only its own."""
    return [each for each in await page.memberships() if owner_id in {None, each.customer_id} and each.is_of_company]


async def _show(page: PageContext, wanted: PendingRequest, wrong: FormError = "") -> PageResponse:
    return page.render(
        "consent",
        wrong=wrong,
        form_target_uri=wanted.redirect_uri,
        wanted=wanted,
        host=urlsplit(wanted.redirect_uri).netloc,
        memberships=await _memberships(page, wanted.owner_id),
    )


def _reauthentication(page: PageContext, wanted: PendingRequest) -> PageResponse | None:
    """Return the sign-in page if the request demands a more recent authentication than the session's, or None."""
    authenticated_at = page.own_session.authenticated_at
    if authenticated_at >= wanted.created_at:
        return None
    age = (page.now - authenticated_at).total_seconds()
    if "login" in wanted.prompts or (wanted.max_age is not None and age > wanted.max_age):
        return redirect(f"/confirm?next={quote(f'/consent?request={wanted.request_id}', safe='')}")
    return None
