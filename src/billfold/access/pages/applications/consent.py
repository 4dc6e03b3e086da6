"""Consent to OAuth clients: given, listed and revoked."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote
from uuid import UUID

from litestar import Request, Response, get, post
from litestar.handlers import HTTPRouteHandler

from billfold.access.oauth import authorization_requests, consent
from billfold.access.oauth import grants as grants_module
from billfold.access.oauth.rules.scopes import SCOPES
from billfold.access.oauth.types import PendingRequest
from billfold.access.pages.page_context import PageServer
from billfold.access.pages.session import PageContext, parse_query
from billfold.access.pages.sign_in.signed_in import send_email
from billfold.access.pages.sign_in_audit import record_for_teams
from billfold.access.pages.team.administrator import memberships, path_id
from billfold.access.pages.theme import redirect
from billfold.access.users.types import Membership
from billfold.events.email import templates as notices
from billfold.platform.errors import NotFound

_REQUEST_EXPIRED = "This request is unknown, too old, or was answered already. Go back to the application."


@get("/consent")
async def ask_consent(request: Request[Any, Any, Any], server: PageServer, context: PageContext) -> Response[Any]:
    """Show the consent page."""
    wanted = await _pending(server, context, parse_query(request.scope).get("request", ""))
    if _must_reauthenticate(wanted, context):
        return redirect(f"/confirm?next={quote(f'/consent?request={wanted.request_id}', safe='')}")
    return await _show(server, context, wanted)


@post("/consent")
async def answer_consent(server: PageServer, context: PageContext) -> Response[Any]:
    """Grant or refuse it, and go back to the application either way."""
    wanted = await _pending(server, context, context.form.get("request", ""))
    pool, session = server.bank.pool, context.session
    assert session is not None
    if context.form.get("decision") != "grant":
        async with pool.acquire() as conn:
            return redirect(await consent.deny(conn, wanted.request_id, issuer=server.origin, now=context.now))
    if _must_reauthenticate(wanted, context):
        return redirect(f"/confirm?next={quote(f'/consent?request={wanted.request_id}', safe='')}")
    chosen_customer = context.form.get("customer", "")
    members = await _memberships(server, context, wanted.owner_id)
    member = next((each for each in members if str(each.customer_id) == chosen_customer), None)
    if member is None:
        return await _show(server, context, wanted, wrong="Choose a company.")
    user = context.user
    async with pool.acquire() as conn, conn.transaction():
        back = await consent.approve(
            conn,
            wanted.request_id,
            user_id=user.user_id,
            customer_id=member.customer_id,
            authenticated_at=session.authenticated_at,
            session_id=session.session_id,
            issuer=server.origin,
            now=context.now,
        )
        details = {"client": wanted.client_id, "scopes": wanted.scopes}
        await record_for_teams(
            conn, server, context, user=user, action="grant.created", details=details, only=member.customer_id
        )
    words = [SCOPES[scope] for scope in wanted.scopes]
    notice = notices.access_granted(user, wanted.client_name, member.customer_name, scope_texts=words, now=context.now)
    await send_email(server, context, user, notice=notice)
    return redirect(back)


@get("/applications")
async def list_applications(server: PageServer, context: PageContext) -> Response[Any]:
    """List what was granted."""
    grants = await grants_module.list_grants(server.bank.pool, context.user.user_id)
    return server.theme.page(context, "applications", grants=grants, words=SCOPES)


@post("/applications/{grant_id:str}/revoke")
async def revoke(grant_id: str, server: PageServer, context: PageContext) -> Response[Any]:
    """Take a grant back; its tokens end at once."""
    user, grant_uuid = context.user, path_id(grant_id, _REQUEST_EXPIRED)
    grants = await grants_module.list_grants(server.bank.pool, user.user_id)
    grant = next((each for each in grants if each.grant_id == grant_uuid), None)
    async with server.bank.pool.acquire() as conn, conn.transaction():
        if grant is None or not await grants_module.revoke_grant(
            conn, user_id=user.user_id, grant_id=grant_uuid, now=context.now
        ):
            raise NotFound("This access was revoked before.")
        details = {"client": grant.client_id}
        await record_for_teams(
            conn, server, context, user=user, action="grant.revoked", details=details, only=grant.customer_id
        )
    return redirect("/applications")


async def _pending(server: PageServer, context: PageContext, request_id: str) -> PendingRequest:
    return await authorization_requests.get_pending_request(
        server.bank.pool, path_id(request_id, _REQUEST_EXPIRED), context.now
    )


async def _memberships(server: PageServer, context: PageContext, owner_id: UUID | None) -> list[Membership]:
    """Return the memberships for which the client may be granted access; a company's client only its own."""
    found = await memberships(server, context)
    return [each for each in found if owner_id in {None, each.customer_id}]


async def _show(server: PageServer, context: PageContext, wanted: PendingRequest, wrong: str = "") -> Response[Any]:
    return server.theme.page(
        context,
        "consent",
        status=422 if wrong else 200,
        form_target_uri=wanted.redirect_uri,
        wanted=wanted,
        words=[SCOPES[scope] for scope in wanted.scopes],
        memberships=await _memberships(server, context, wanted.owner_id),
        wrong=wrong,
    )


def _must_reauthenticate(wanted: PendingRequest, context: PageContext) -> bool:
    """Return whether the request demands a later authentication than the session's."""
    session = context.session
    assert session is not None
    if session.authenticated_at >= wanted.created_at:
        return False
    age = (context.now - session.authenticated_at).total_seconds()
    return "login" in wanted.prompts or (wanted.max_age is not None and age > wanted.max_age)


PAGE_ROUTES: list[HTTPRouteHandler] = [ask_consent, answer_consent, list_applications, revoke]
