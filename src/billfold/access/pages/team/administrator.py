"""For which company the visitor acts on a page, and as what."""

from __future__ import annotations

from uuid import UUID

from billfold.access.pages.page_context import PageServer
from billfold.access.pages.session import PageContext
from billfold.access.pages.sign_in_audit import origin_of
from billfold.access.team.transaction import Administrator
from billfold.access.users import store as user_store
from billfold.access.users.types import Membership
from billfold.http.raw_request import is_uuid
from billfold.platform.errors import NotFound, Refused


async def memberships(server: PageServer, context: PageContext) -> list[Membership]:
    """Return the active memberships of the visitor, by the names of the companies."""
    found = await user_store.list_user_memberships(server.bank.pool, context.user.user_id)
    return [each for each in found if each.status == "ACTIVE"]


async def get_membership(server: PageServer, context: PageContext, customer_id: str) -> Membership:
    """Return the visitor's membership of a company. Raises NotFound, for companies of others as well."""
    for each in await memberships(server, context):
        if str(each.customer_id) == customer_id.lower():
            return each
    raise NotFound("You are not a member of such a company.")


async def page_administrator(server: PageServer, context: PageContext, customer_id: str) -> Administrator:
    """Return the visitor as an administrator of a company. Raises NotFound, Refused `forbidden`."""
    member = await get_membership(server, context, customer_id)
    if member.role != "ADMIN":
        raise Refused("forbidden", f"Only administrators of {member.customer_name} can do this.")
    bank = server.bank
    return Administrator(
        pool=bank.pool,
        vault=bank.vault,
        customer_id=member.customer_id,
        customer_name=member.customer_name,
        name=context.user.name,
        origin=origin_of(context, context.user, member.member_id),
        scopes=None,
        pages=server.origin,
        now=await bank.now(),
        wall=context.now,
    )


def path_id(text: str, detail: str = "The address is wrong.") -> UUID:
    """Return the id in the path of a page. Raises NotFound."""
    if not is_uuid(text):
        raise NotFound(detail)
    return UUID(text)
