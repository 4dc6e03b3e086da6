"""The first page of an operator: whether the bank is well."""

from __future__ import annotations

from litestar import get

from billfold.console.bank import InBank
from billfold.pages.page_context import PageResponse


@get("/bank")
async def show_health(operator: InBank) -> PageResponse:
    """Show the bank's clock and day."""
    bank = operator.page.server.bank
    return operator.render("bank_health", business_date=bank.calendars.business_date(operator.clock.now))
