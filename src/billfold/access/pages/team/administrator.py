"""The visitor as whoever changes a team: he is named in letters, notifications and the log."""

from __future__ import annotations

from billfold.access.pages.page_context import Desk
from billfold.access.pages.session import Visit
from billfold.access.pages.sign_in_audit import origin_of
from billfold.access.pages.team.company import company_of
from billfold.access.team.transaction import Administrator


async def administrator_in(desk: Desk, visit: Visit, customer_id: str) -> Administrator:
    """Return the visitor as an administrator of a company. Raises as `company_of`."""
    member = await company_of(desk, visit, customer_id)
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
