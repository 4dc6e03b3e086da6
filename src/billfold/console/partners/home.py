"""The first page of a partner."""

from __future__ import annotations

from litestar import get

from billfold.console.partner import InPartner
from billfold.pages.page_context import PageResponse


@get("/partners/{slug:str}")
async def show_partner(partner: InPartner) -> PageResponse:
    """Show who the partner is."""
    return partner.render("partner_home")
