"""Partners for operators: who they are, and what their customers and programs do."""

from litestar import get

from billfold.identity.partners.store import find_partner, list_partners
from billfold.platform.errors import NotFound
from billfold.web.console.activity import activity_of
from billfold.web.console.team import InBank
from billfold.web.page_context import PageResponse


@get("/bank/partners")
async def show_partners(operator: InBank) -> PageResponse:
    """List every partner."""
    return operator.render("bank_partners", partners=await list_partners(operator.bank.pool))


@get("/bank/partners/{slug:str}")
async def show_partner_of_bank(operator: InBank, slug: str) -> PageResponse:
    """Show the activity of a partner."""
    partner = await find_partner(operator.bank.pool, slug)
    if partner is None:
        raise NotFound("There is no such partner.")
    return operator.render("bank_partner", partner=partner, **await activity_of(operator, partner.partner_id))
