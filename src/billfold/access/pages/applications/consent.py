"""What applications may do: asked once, in words, listed, and taken back at any time."""

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
from billfold.access.pages.page_context import Desk
from billfold.access.pages.session import Visit, query_of
from billfold.access.pages.sign_in.signed_in import write
from billfold.access.pages.sign_in_audit import record
from billfold.access.pages.team.company import memberships
from billfold.access.pages.theme import go
from billfold.access.users.types import Membership
from billfold.events.email import templates as notices
from billfold.platform.errors import NotFound

_GONE = "This request is unknown, too old, or was answered already. Go back to the application."


@get("/consent")
async def ask_consent(request: Request[Any, Any, Any], desk: Desk, visit: Visit) -> Response[Any]:
    """Show what an application asks for."""
    wanted = await _pending(desk, visit, query_of(request.scope).get("request", ""))
    if _must_prove_again(wanted, visit):
        return go(f"/confirm?next={quote(f'/consent?request={wanted.request_id}', safe='')}")
    return await _show(desk, visit, wanted)


@post("/consent")
async def decide(desk: Desk, visit: Visit) -> Response[Any]:
    """Grant or refuse it, and go back to the application either way."""
    wanted = await _pending(desk, visit, visit.form.get("request", ""))
    pool, session = desk.bank.pool, visit.session
    assert session is not None
    if visit.form.get("decision") != "grant":
        async with pool.acquire() as conn:
            return go(
                await consent.deny(conn, wanted.request_id, issuer=desk.origin, now=visit.now)
            )
    if _must_prove_again(wanted, visit):
        return go(f"/confirm?next={quote(f'/consent?request={wanted.request_id}', safe='')}")
    chosen = visit.form.get("customer", "")
    members = await _memberships(desk, visit, wanted.owner_id)
    member = next((each for each in members if str(each.customer_id) == chosen), None)
    if member is None:
        return await _show(desk, visit, wanted, wrong="Choose a company.")
    person = visit.person
    async with pool.acquire() as conn, conn.transaction():
        back = await consent.approve(
            conn,
            wanted.request_id,
            user_id=person.user_id,
            customer_id=member.customer_id,
            authenticated_at=session.proved_at,
            session_id=session.session_id,
            issuer=desk.origin,
            now=visit.now,
        )
        given = {"client": wanted.client_id, "scopes": wanted.scopes}
        await record(conn, desk, visit, person, "grant.created", given, only=member.customer_id)
    words = [SCOPES[scope] for scope in wanted.scopes]
    notice = notices.access_granted(
        person, wanted.client_name, member.customer_name, words, visit.now
    )
    await write(desk, visit, person, notice)
    return go(back)


@get("/applications")
async def list_applications(desk: Desk, visit: Visit) -> Response[Any]:
    """List what was granted."""
    grants = await grants_module.grants_of(desk.bank.pool, visit.person.user_id)
    return desk.looks.page(visit, "applications", grants=grants, words=SCOPES)


@post("/applications/{grant_id:str}/revoke")
async def revoke(grant_id: str, desk: Desk, visit: Visit) -> Response[Any]:
    """Take a grant back; its tokens end at once."""
    person, asked = visit.person, _uuid(grant_id)
    grants = await grants_module.grants_of(desk.bank.pool, person.user_id)
    grant = next((each for each in grants if each.grant_id == asked), None)
    async with desk.bank.pool.acquire() as conn, conn.transaction():
        if grant is None or not await grants_module.revoke_grant(
            conn, user_id=person.user_id, grant_id=asked, now=visit.now
        ):
            raise NotFound("This was taken back already.")
        given = {"client": grant.client_id}
        await record(conn, desk, visit, person, "grant.revoked", given, only=grant.customer_id)
    return go("/applications")


async def _pending(desk: Desk, visit: Visit, request_id: str) -> PendingRequest:
    return await authorization_requests.pending_request(
        desk.bank.pool, _uuid(request_id), visit.now
    )


async def _memberships(desk: Desk, visit: Visit, owner_id: UUID | None) -> list[Membership]:
    """Return for whom a client may be let do something: its owner's members for him alone."""
    found = await memberships(desk, visit)
    return [each for each in found if owner_id in {None, each.customer_id}]


async def _show(desk: Desk, visit: Visit, wanted: PendingRequest, wrong: str = "") -> Response[Any]:
    return desk.looks.page(
        visit,
        "consent",
        status=422 if wrong else 200,
        leads_to=wanted.redirect_uri,
        wanted=wanted,
        words=[SCOPES[scope] for scope in wanted.scopes],
        memberships=await _memberships(desk, visit, wanted.owner_id),
        wrong=wrong,
    )


def _must_prove_again(wanted: PendingRequest, visit: Visit) -> bool:
    """Tell whether the application asks for a person who proved himself later than this one."""
    session = visit.session
    assert session is not None
    if session.proved_at >= wanted.created_at:
        return False
    age = (visit.now - session.proved_at).total_seconds()
    return "login" in wanted.prompts or (wanted.max_age is not None and age > wanted.max_age)


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise NotFound(_GONE) from None


PAGE_ROUTES: list[HTTPRouteHandler] = [ask_consent, decide, list_applications, revoke]
