"""The visitor as whoever changes a team: he is named in letters, notifications and the log."""

from __future__ import annotations

from billfold.access.pages.page_context import PageServer
from billfold.access.pages.session import PageContext
from billfold.access.pages.sign_in_audit import origin_of
from billfold.access.pages.team.company import get_administered_company
from billfold.access.team.transaction import Administrator


async def page_administrator(server: PageServer, context: PageContext, customer_id: str) -> Administrator:
    """Return the visitor as an administrator of a company. Raises as `company_of`."""
    member = await get_administered_company(server, context, customer_id)
    bank = server.bank
    return Administrator(
        pool=bank.pool,
        vault=bank.vault,
        customer_id=member.customer_id,
        customer_name=member.customer_name,
        name=context.person.name,
        origin=origin_of(context, context.person, member.member_id),
        scopes=None,
        pages=server.origin,
        now=await bank.now(),
        wall=context.now,
    )
