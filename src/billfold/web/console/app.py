"""The pages of a bank put together: sign-in and teams, and the console, a client of both APIs."""

from collections.abc import Callable, Mapping
from datetime import datetime
from types import MappingProxyType

from litestar.di import Provide

from billfold.apis.customer_api import CustomerApi
from billfold.apis.partner_api import PartnerApi
from billfold.ledger.bank import Bank
from billfold.platform.clock import wall_now
from billfold.web.app import PagesApp
from billfold.web.console.bank import in_bank
from billfold.web.console.company import company_of
from billfold.web.console.partner import partner_of
from billfold.web.console.team import team_of
from billfold.web.team.administrator import page_administrator

NONE_GIVEN: Mapping[str, Provide] = MappingProxyType({})
PACKAGES = ("billfold.web", "billfold.web.console")


def create_pages_app(
    bank: Bank,
    customer_api: CustomerApi,
    partner_api: PartnerApi,
    *,
    clock: Callable[[], datetime] = wall_now,
    packages: tuple[str, ...] = (),
    given: Mapping[str, Provide] = NONE_GIVEN,
) -> PagesApp:
    """Return the ASGI application of the pages for one worker. `clock` is wall time.

    `packages` have further pages, which take what is `given` by name.
    """
    packages = (*PACKAGES, *packages)
    find_company, find_partner = company_of(customer_api), partner_of(partner_api)
    own = {
        "by": Provide(page_administrator),
        "company": Provide(find_company),
        "operator": Provide(in_bank),
        "partner": Provide(find_partner),
        "team": Provide(team_of(find_company, find_partner)),
    }
    pages = PagesApp(packages, {**own, **given})
    pages.open_bank(bank, clock)
    return pages
