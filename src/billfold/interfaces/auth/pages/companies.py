"""For which company somebody acts on a page: as its member, or as its administrator."""

from __future__ import annotations

from uuid import UUID

from billfold.domain import people
from billfold.domain.people import Membership
from billfold.domain.team import Administrator
from billfold.interfaces.auth.pages.entrance import Desk
from billfold.interfaces.auth.pages.recorded import origin_of
from billfold.interfaces.auth.pages.visits import Visit
from billfold.kit.errors import NotFound, Refused


async def memberships(desk: Desk, visit: Visit) -> list[Membership]:
    """Return the memberships of the visitor that are in force, by the companies' names."""
    found = await people.memberships_of(desk.bank.pool, visit.person.user_id)
    return [each for each in found if each.status == "ACTIVE"]


async def membership_in(desk: Desk, visit: Visit, customer_id: str) -> Membership:
    """Return what the visitor is to a company. Raises NotFound, for companies of others as well."""
    for each in await memberships(desk, visit):
        if str(each.customer_id) == customer_id.lower():
            return each
    raise NotFound("There is no such company among yours.")


async def administrator_in(desk: Desk, visit: Visit, customer_id: str) -> Administrator:
    """Return the visitor as whoever changes a team. Raises NotFound, Refused `forbidden`."""
    member = await membership_in(desk, visit, customer_id)
    if member.role != "ADMIN":
        raise Refused("forbidden", "Only administrators of the company can do this.")
    bank = desk.bank
    return Administrator(
        pool=bank.pool,
        vault=bank.vault,
        customer_id=member.customer_id,
        customer_name=member.customer_name,
        name=visit.person.name,
        origin=origin_of(visit, visit.person, member.member_id),
        scopes=None,
        pages=desk.origin,
        now=await bank.now(),
        wall=visit.now,
    )


def id_in(text: str) -> UUID:
    """Return an id that is part of an address. Raises NotFound when it is none."""
    try:
        return UUID(text)
    except ValueError:
        raise NotFound("The address is wrong.") from None
