"""A team in the console: the visitor as its member, the bank's clock, and the teams that the visitor may switch to.

A page function takes an operator of the bank as `operator`; its path begins with `/bank`.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, NamedTuple

from litestar import Request
from litestar.params import SkipValidation
from typing_extensions import override

from billfold.identity.operators.types import Operator, Power
from billfold.identity.users.types import Membership
from billfold.platform.database.business_clock import read_clock
from billfold.platform.errors import NotFound
from billfold.web.account.security_log import origin_of
from billfold.web.console.api import ApiClient
from billfold.web.page_context import PageContext, PageResponse


class PageClock(NamedTuple):
    """What time it is in the bank; in a sandbox the clock can be set, and stopped."""

    now: datetime
    is_settable: bool
    is_frozen: bool


async def read_page_clock(page: PageContext) -> PageClock:
    """Return the clock at the moment of a request."""
    bank = page.server.bank
    if not bank.engine.test_clock:
        return PageClock(page.now, is_settable=False, is_frozen=False)
    async with page.pool.acquire() as conn:
        state = await read_clock(conn)
    if state is None:
        return PageClock(page.now, is_settable=True, is_frozen=False)
    return PageClock(state.at(page.now), is_settable=True, is_frozen=state.frozen)


class Visit(NamedTuple):
    """A visitor of a team: their membership, those of other teams, and the bank's clock."""

    page: PageContext
    own: Membership
    others: list[Membership]
    clock: PageClock


class TeamPage:
    """One request of a member of a team to a page of the console."""

    def __init__(self, visit: Visit) -> None:
        self.page, self.own, self.others, self.clock = visit
        self.customer_id, self.name, self.path = self.own.customer_id, self.own.customer_name, self.own.path

    def render(self, name: str, **facts: Any) -> PageResponse:
        """Return a page with what all pages of a team show."""
        return self.page.render(name, team=self, clock=self.clock, **facts)


class ApiTeam(TeamPage, ABC):
    """A team that has an API: its member uses the operations as far as the role goes. `layout` frames its pages."""

    layout: str
    api: ApiClient

    @abstractmethod
    def may(self, scope: str) -> bool:
        """Tell whether the member's role includes what a scope stands for."""


InTeam = SkipValidation[ApiTeam]
"""What a page function takes as `team` whose pages companies and partners both have."""


def paths_of(ending: str) -> list[str]:
    """Return where a page is that companies and partners both have."""
    return [f"/companies/{{customer_id:str}}{ending}", f"/partners/{{slug:str}}{ending}"]


def team_of(
    company_of: Callable[[PageContext, str], Awaitable[ApiTeam]],
    partner_of: Callable[[PageContext, str], Awaitable[ApiTeam]],
) -> Callable[[Request[Any, Any, Any], PageContext], Awaitable[ApiTeam]]:
    """Return what makes the `team` of a request: a company or a partner, as its path says."""

    async def find_team(request: Request[Any, Any, Any], page: PageContext) -> ApiTeam:
        names = request.path_params
        return await (partner_of(page, names["slug"]) if "slug" in names else company_of(page, names["customer_id"]))

    return find_team


async def visit_of(page: PageContext, is_wanted: Callable[[Membership], bool], kind: str) -> Visit:
    """Return the visitor in the team that is wanted. Raises NotFound, for teams of others as well."""
    found = await page.memberships()
    own = next(filter(is_wanted, found), None)
    if own is None:
        raise NotFound(f"You are not a member of such a {kind}.")
    return Visit(page, own, [each for each in found if each is not own], await read_page_clock(page))


class BankPage(TeamPage):
    """One request of an operator to a page of the bank. `by` is the operator as the bank's functions take one."""

    def __init__(self, visit: Visit) -> None:
        super().__init__(visit)
        self.name = "Operators"
        self.bank = self.page.server.bank
        origin = origin_of(self.page, self.page.user.name, self.own.member_id)
        self.by = Operator.of_member(origin, user_id=self.page.user.user_id, role=self.own.role)

    def may(self, power: str) -> bool:
        """Tell whether the operator has a power, by its name in lower case."""
        return self.by.may(Power[power.upper()])

    @override
    def render(self, name: str, **facts: Any) -> PageResponse:
        """Return a page with what all pages of the bank show."""
        return super().render(name, operator=self, **facts)


InBank = SkipValidation[BankPage]
"""What a page function takes as `operator`."""


async def in_bank(page: PageContext) -> BankPage:
    """Return the visitor as an operator. Raises NotFound for everybody else."""
    return BankPage(await visit_of(page, lambda each: each.is_of_bank, "bank"))
