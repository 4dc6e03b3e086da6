"""The limits and features of a company."""

from litestar import get

from billfold.approvals.limits_routes import get_limits
from billfold.explanations.limits import label_of
from billfold.web.console.team import InCompany
from billfold.web.page_context import PageResponse


@get("/companies/{customer_id:str}/limits")
async def show_limits(company: InCompany) -> PageResponse:
    """Show what the company may do, and how much of it is left."""
    found = await company.api.get(get_limits)
    counted = sorted((each for each in found.limits if each.used is not None), key=lambda each: each.unit != "CENTS")
    used = [each for each in counted if each.used or each.unit == "CENTS"]
    unused = [each for each in counted if each not in used]
    return company.render("limits", found=found, used=used, unused=unused, label_of=label_of)
