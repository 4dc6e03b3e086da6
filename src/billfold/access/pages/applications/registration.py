"""The programs a company has registered for itself: listed, and a new one registered."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from litestar import Response, get, post
from litestar.handlers import HTTPRouteHandler

from billfold.access.oauth import clients
from billfold.access.oauth.rules.client_metadata import PROFILES, NewClient
from billfold.access.oauth.rules.scopes import SCOPES
from billfold.access.oauth.types import CODE, REFRESH, Client
from billfold.access.pages.page_context import FRESH, Desk
from billfold.access.pages.session import Visit
from billfold.access.pages.team.company import company_of, programs_path, recorded, tell
from billfold.access.pages.theme import go
from billfold.access.users.types import Membership
from billfold.platform.errors import FieldError, InvalidInput

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection

PATH = "/companies/{customer_id:str}/programs"
PROGRAMS_MAX = 50
"""How many a company may have in use."""
_SCOPE = "scope."
_NO_SCOPE = "choose at least one of these"
_EMPTY = {"profile": PROFILES[0], "refreshes": "yes"}
_TOO_MANY = f"has to wait: {PROGRAMS_MAX} programs are in use, and one must be ended first"


@get(PATH)
async def list_programs(customer_id: str, desk: Desk, visit: Visit) -> Response[Any]:
    """List what the company has registered."""
    company = await company_of(desk, visit, customer_id)
    programs = await clients.clients_of(desk.bank.pool, company.customer_id)
    return desk.looks.page(visit, "programs", company=company, programs=programs)


@get(f"{PATH}/new", opt=FRESH)
async def ask_for_program(customer_id: str, desk: Desk, visit: Visit) -> Response[Any]:
    """Ask what the program is, where it is answered, and what it proves itself with."""
    return _form(desk, visit, await company_of(desk, visit, customer_id), _EMPTY)


@post(PATH, opt=FRESH)
async def register_program(customer_id: str, desk: Desk, visit: Visit) -> Response[Any]:
    """Register a program with its first key."""
    company = await company_of(desk, visit, customer_id)
    try:
        async with recorded(desk, visit, company, "program.created") as deed:
            made = await _registered(deed.conn, company.customer_id, visit.form, visit.now)
            deed.resource_id = made.client_id
            deed.details |= {"name": made.name, "scopes": made.scopes, "profile": made.profile}
    except InvalidInput as wrong:
        return _form(desk, visit, company, visit.form, _mistakes(wrong))
    await tell(desk, visit, company, f"the program {made.name} was registered")
    return go(programs_path(company.customer_id, made.client_id))


async def _registered(
    conn: Connection, owner_id: UUID, form: Mapping[str, str], now: datetime
) -> Client:
    """Register what a form asks for. Raises InvalidInput with the mistakes of all fields."""
    programs = await clients.clients_of(conn, owner_id)
    if sum(each.revoked_at is None for each in programs) >= PROGRAMS_MAX:
        raise InvalidInput.at("name", msg=_TOO_MANY)
    key = form.get("key", "")
    async with conn.transaction():
        try:
            made = await clients.register_client(conn, _asked(owner_id, form), now=now)
        except InvalidInput as wrong:
            raise InvalidInput([*wrong.errors, *_wrong_key(key)]) from None
        await clients.add_client_key(conn, made.client_id, key, now=now)
    return made


def _wrong_key(key: str) -> list[FieldError]:
    try:
        clients.read_key(key)
    except InvalidInput as wrong:
        return wrong.errors
    return []


def _asked(owner_id: UUID, form: Mapping[str, str]) -> NewClient:
    by_people = (CODE, REFRESH) if form.get("refreshes") == "yes" else (CODE,)
    return NewClient(
        name=form.get("name", ""),
        description=form.get("description", ""),
        profile=form.get("profile", ""),
        redirect_uris=_lines(form, "redirect_uris"),
        post_logout_redirect_uris=_lines(form, "post_logout_redirect_uris"),
        scopes=tuple(each.removeprefix(_SCOPE) for each in form if each.startswith(_SCOPE)),
        grant_types=by_people,
        owner_id=owner_id,
        requires_signature=form.get("requires_signature") == "yes",
    )


def _lines(form: Mapping[str, str], name: str) -> tuple[str, ...]:
    lines = (line.strip() for line in form.get(name, "").splitlines())
    return tuple(dict.fromkeys(line for line in lines if line))


def _mistakes(wrong: InvalidInput) -> dict[str, str]:
    """Return what is wrong, by field: the first mistake of each."""
    told = {str(each.loc[-1]): each.msg for each in reversed(wrong.errors)}
    return told | ({"scopes": _NO_SCOPE} if "scopes" in told else {})


def _form(
    desk: Desk,
    visit: Visit,
    company: Membership,
    given: Mapping[str, str],
    wrong: Mapping[str, str] | None = None,
) -> Response[Any]:
    return desk.looks.page(
        visit, "new_program", status=422 if wrong else 200, company=company, given=given,
        wrong=wrong or {}, scopes=SCOPES,
    )  # fmt: skip


PAGE_ROUTES: list[HTTPRouteHandler] = [list_programs, ask_for_program, register_program]
