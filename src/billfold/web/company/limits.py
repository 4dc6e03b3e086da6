"""The limits and features of a company."""

from litestar import get

from billfold.approvals.limits_routes import get_limits
from billfold.web.console.team import InCompany
from billfold.web.page_context import PageResponse


@get("/companies/{customer_id:str}/limits")
async def show_limits(company: InCompany) -> PageResponse:
    """Show what the company may do, and how much of it is left."""
    return company.render("limits", found=await company.api.get(get_limits))
