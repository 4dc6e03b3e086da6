"""A team in the console: the visitor as its member, and the other teams that the visitor may go to."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from litestar import Request
from litestar.params import SkipValidation

from billfold.identity.users.rules import Membership
from billfold.platform.errors import NotFound
from billfold.web.console.api_client import ApiClient
from billfold.web.console.page_clock import PageClock, read_page_clock
from billfold.web.page_context import PageContext, PageResponse
from billfold.web.team.administrator import memberships


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
    found = await memberships(page)
    own = next(filter(is_wanted, found), None)
    if own is None:
        raise NotFound(f"You are not a member of such a {kind}.")
    return Visit(page, own, [each for each in found if each is not own], await read_page_clock(page))
