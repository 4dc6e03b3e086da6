"""One program of a company: what it may do, its keys in turn, and its end."""

from __future__ import annotations

import re
from typing import Any

from litestar import Response, get, post
from litestar.handlers import HTTPRouteHandler

from billfold.access.oauth import clients
from billfold.access.oauth.rules.scopes import SCOPES
from billfold.access.oauth.types import REFRESH, Client
from billfold.access.pages.applications.registration import PATH
from billfold.access.pages.page_context import FRESH, Desk
from billfold.access.pages.session import Visit
from billfold.access.pages.team.company import company_of, programs_path, recorded, tell
from billfold.access.pages.theme import go
from billfold.access.users.types import Membership
from billfold.platform.errors import InvalidInput, NotFound, Refused

_PROGRAM = f"{PATH}/{{client_id:str}}"
KEYS_MAX = 10
"""How many keys a program may have in use."""
_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
_TOO_MANY = f"There are {KEYS_MAX} keys in use. Retire one first."


@get(_PROGRAM)
async def show_program(customer_id: str, client_id: str, desk: Desk, visit: Visit) -> Response[Any]:
    """Show a program and its keys."""
    company, program = await _own(desk, visit, customer_id, client_id)
    return await _show(desk, visit, company, program)


@post(f"{_PROGRAM}/keys", opt=FRESH)
async def add_key(customer_id: str, client_id: str, desk: Desk, visit: Visit) -> Response[Any]:
    """Accept one more key; the others go on until they are retired."""
    company, program = await _own(desk, visit, customer_id, client_id, in_use=True)
    pool = desk.bank.pool
    if len(await clients.client_keys(pool, program.client_id, visit.now)) >= KEYS_MAX:
        return await _show(desk, visit, company, program, wrong=_TOO_MANY)
    try:
        key = visit.form.get("key", "")
        async with recorded(desk, visit, company, "program.key_added", program.client_id) as deed:
            added = await clients.add_client_key(deed.conn, program.client_id, key, now=visit.now)
            deed.details["key_id"] = added.key_id
    except InvalidInput as wrong:
        sentence = f"The key {wrong.errors[0].msg}."
        return await _show(desk, visit, company, program, wrong=sentence, status=422)
    except Refused as refused:
        return await _show(desk, visit, company, program, wrong=refused.detail)
    await tell(desk, visit, company, f"the key {added.key_id} was added to {program.name}")
    return go(programs_path(company.customer_id, program.client_id))


@post(f"{_PROGRAM}/keys/{{key_id:str}}/retire", opt=FRESH)
async def retire_key(
    customer_id: str, client_id: str, key_id: str, desk: Desk, visit: Visit
) -> Response[Any]:
    """Accept a key no longer. The only one stays."""
    company, program = await _own(desk, visit, customer_id, client_id, in_use=True)
    try:
        async with recorded(desk, visit, company, "program.key_retired", program.client_id) as deed:
            deed.details["key_id"] = key_id
            await clients.retire_client_key(deed.conn, program.client_id, key_id, now=visit.now)
    except Refused as refused:
        return await _show(desk, visit, company, program, wrong=refused.detail)
    await tell(desk, visit, company, f"the key {key_id} of {program.name} was retired")
    return go(programs_path(company.customer_id, program.client_id))


@post(f"{_PROGRAM}/revoke", opt=FRESH)
async def revoke_program(
    customer_id: str, client_id: str, desk: Desk, visit: Visit
) -> Response[Any]:
    """Take a program out of use for good; its tokens end at once."""
    company, program = await _own(desk, visit, customer_id, client_id, in_use=True)
    async with recorded(desk, visit, company, "program.revoked", program.client_id) as deed:
        deed.details["name"] = program.name
        await clients.revoke_client(deed.conn, program.client_id, now=visit.now)
    await tell(desk, visit, company, f"the program {program.name} was taken out of use")
    return go(programs_path(company.customer_id))


async def _own(
    desk: Desk, visit: Visit, customer_id: str, client_id: str, *, in_use: bool = False
) -> tuple[Membership, Client]:
    """Return a program of a company that the visitor may manage. Raises NotFound, `forbidden`."""
    company = await company_of(desk, visit, customer_id)
    if _ID.fullmatch(client_id) is None:
        raise NotFound("There is no such program.")
    program = await clients.find_client_of(desk.bank.pool, company.customer_id, client_id)
    if in_use and program.revoked_at is not None:
        raise NotFound("This program is out of use.")
    return company, program


async def _show(
    desk: Desk,
    visit: Visit,
    company: Membership,
    program: Client,
    *,
    wrong: str = "",
    status: int = 409,
) -> Response[Any]:
    return desk.looks.page(
        visit,
        "program",
        status=status if wrong else 200,
        wrong=wrong,
        company=company,
        program=program,
        keys=await clients.client_keys(desk.bank.pool, program.client_id, visit.now),
        words=SCOPES,
        issuer=desk.origin,
        refreshes=REFRESH in program.grant_types,
    )


PAGE_ROUTES: list[HTTPRouteHandler] = [show_program, add_key, retire_key, revoke_program]
