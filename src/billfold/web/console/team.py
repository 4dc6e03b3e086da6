"""A team in the console: the visitor as a member of the bank or of a company, the bank's clock, and other teams.

A page function takes it as `operator` below `/bank`, as `company` below `/companies/{customer_id:str}`.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from litestar import Request
from litestar.params import SkipValidation
from typing_extensions import override

from billfold.apis.customer_api import CustomerApi
from billfold.events.notifications.notify import count_unread
from billfold.http.api import Identity
from billfold.http.caller import NOT_YET, instant_named
from billfold.http.operations import Operation, Proof
from billfold.http.parameters import WRONG_DAY
from billfold.http.raw_request import RawRequest
from billfold.identity.operators import Operator, Power
from billfold.identity.users.rules import PERMISSIONS, Confirmation, Membership
from billfold.ledger.bank import Bank
from billfold.oauth.caller import AccessTokenAuthenticator
from billfold.oauth.types import AccessToken
from billfold.platform.database.business_clock import read_clock
from billfold.platform.dates import et_date, format_day, is_day, parse_day
from billfold.platform.errors import InvalidInput, NotFound, Refused
from billfold.web.account.security_log import origin_of
from billfold.web.console.api import ApiClient
from billfold.web.page_context import FormError, PageContext, PageResponse


class PageClock(NamedTuple):
    """The time of the bank; in a sandbox the clock can be set, and stopped."""

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


class PastDay(NamedTuple):
    """The earlier business day that a page shows, and its close; both are None on a page of today."""

    day: date | None
    at: datetime | None
    last_day: date
    wrong: FormError = ""


AS_OF = "as_of"


def past_day(page: PageContext, bank: Bank, now: datetime) -> PastDay:
    """Return the day that the query of a page names."""
    last_day, text = et_date(now) - timedelta(days=1), page.query.get(AS_OF, "")
    if not text:
        return PastDay(None, None, last_day)
    try:
        if not is_day(text):
            raise InvalidInput.at(AS_OF, msg=WRONG_DAY, kind="date_parsing")
        at = instant_named(text, bank.calendars, now, AS_OF)
    except InvalidInput as wrong:
        if not wrong.errors[0].msg.startswith(NOT_YET):
            return PastDay(None, None, last_day, wrong)
        said = f"{format_day(parse_day(text))} has not ended yet. Choose {format_day(last_day)}, or a day before."
        return PastDay(None, None, last_day, said)
    return PastDay(parse_day(text), at, last_day)


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
        """Return a page with what all pages of a team show; a `listing` says itself what is wrong with its filters."""
        if "listing" in facts:
            facts["wrong"] = facts["listing"].wrong
        return self.page.render(name, team=self, clock=self.clock, **facts)


class ApiTeam(TeamPage, ABC):
    """A team that has an API: its member uses the operations that the role includes. `layout` frames its pages."""

    layout: str
    api: ApiClient
    past: PastDay | None = None

    def look_back(self) -> PastDay:
        """Show this page as of the day that its query names: it reads what was answered then, and changes nothing."""
        self.past = past_day(self.page, self.page.server.bank, self.clock.now)
        self.api.as_of = self.past.day
        return self.past

    @property
    def past_at(self) -> datetime | None:
        """The close of the earlier day that the page shows, None on a page of today."""
        return None if self.past is None else self.past.at

    @property
    def is_past(self) -> bool:
        """Tell whether the page shows an earlier day."""
        return self.past_at is not None

    @override
    def render(self, name: str, **facts: Any) -> PageResponse:
        """Return a page, with the day that it is as of."""
        if self.past is not None:
            facts = {"past": self.past, "wrong": self.past.wrong} | facts
        return super().render(name, **facts)

    @abstractmethod
    def may(self, scope: str) -> bool:
        """Tell whether the member's role includes a scope."""


InTeam = SkipValidation[ApiTeam]
"""The type of the parameter `team` of page functions that companies and partners share."""


def paths_of(ending: str) -> list[str]:
    """Return the path of a page that companies and partners both have."""
    return [f"/companies/{{customer_id:str}}{ending}", f"/partners/{{slug:str}}{ending}"]


def team_of(
    company_of: Callable[[PageContext, str], Awaitable[ApiTeam]],
    partner_of: Callable[[PageContext, str], Awaitable[ApiTeam]],
) -> Callable[[Request[Any, Any, Any], PageContext], Awaitable[ApiTeam]]:
    """Return the function that creates the `team` of a request: a company or a partner, according to its path."""

    async def find_team(request: Request[Any, Any, Any], page: PageContext) -> ApiTeam:
        names = request.path_params
        return await (partner_of(page, names["slug"]) if "slug" in names else company_of(page, names["customer_id"]))

    return find_team


async def visit_of(page: PageContext, is_wanted: Callable[[Membership], bool], kind: str) -> Visit:
    """Return the visitor in the requested team. Raises NotFound, for other teams as well."""
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
        """Return a page with the common data of the bank's pages."""
        return super().render(name, operator=self, **facts)


InBank = SkipValidation[BankPage]
"""The type of the parameter `operator` of a page function."""


async def in_bank(page: PageContext) -> BankPage:
    """Return the visitor as an operator. Raises NotFound for everybody else."""
    return BankPage(await visit_of(page, lambda each: each.is_of_bank, "bank"))


async def own_shell(
    page: PageContext,
    customer_id: str | None,
    company_of: Callable[[PageContext, str], Awaitable[ApiTeam]],
    partner_of: Callable[[PageContext, str], Awaitable[ApiTeam]],
) -> Mapping[str, Any]:
    """Return what frames a page of a person: the console of the team in its path, or of the first of the person."""
    found = [each for each in await page.memberships() if customer_id in {None, str(each.customer_id)}]
    team: TeamPage
    if not found:
        return {"layout": "console.html", "clock": await read_page_clock(page)}
    if found[0].is_of_bank:
        team, layout, name = await in_bank(page), "bank.html", "operator"
    elif found[0].partner_slug:
        team, layout, name = await partner_of(page, found[0].partner_slug), "partner.html", "partner"
    else:
        team, layout, name = await company_of(page, str(found[0].customer_id)), "company.html", "company"
    return {"layout": layout, name: team, "team": team, "clock": team.clock}


CLIENT_ID = "console"
"""The name of the console among the clients of a company in the audit log."""
_OAUTH = frozenset({Proof.OAUTH})
_LIFETIME = timedelta(minutes=1)


class Company(ApiTeam):
    """One request of a member to a page of a company."""

    layout = "company.html"

    def __init__(self, visit: Visit, api: CustomerApi, unread: int) -> None:
        super().__init__(visit)
        self.unread = unread
        self.path = f"/companies/{self.customer_id}"
        self.token = _token_of(self.page, self.own)
        authenticator = api.authenticator
        assert isinstance(authenticator, AccessTokenAuthenticator)
        self._authenticator = authenticator
        host = urlsplit(api.bank.settings.customer_origin).netloc
        self.api = ApiClient(api, self.page, proofs=_OAUTH, host=host, identify=self._identify)

    @override
    def may(self, scope: str) -> bool:
        """Tell whether the member's role includes a scope; on a page of an earlier day, only those of reads."""
        return self.includes(scope) and (scope.endswith(".read") or not self.is_past)

    def includes(self, scope: str) -> bool:
        """Tell whether the member's role includes a scope."""
        return scope in self.token.scopes

    def require(self, scope: str) -> None:
        """Refuse a page whose form the member could not send. Raises `forbidden`."""
        if not self.may(scope):
            raise Refused("forbidden", f"The role {self.own.role} does not include {scope}.")

    def confirmed(self, confirmation: Confirmation) -> None:
        """Count the rest of this request as sent by a member who has just authenticated for it."""
        self.token = replace(self.token, auth_time=self.page.now, confirmation=confirmation)

    @override
    def render(self, name: str, **facts: Any) -> PageResponse:
        """Return a page with the common data of a company's pages."""
        return super().render(name, company=self, **facts)

    async def _identify(self, operation: Operation, request: RawRequest) -> Identity:
        access = operation.access_by(_OAUTH)
        assert access is not None
        return await self._authenticator.identity_of(self.token, request, operation, access=access)


InCompany = SkipValidation[Company]
"""The type of the parameter `company` of a page function."""


def company_of(api: CustomerApi) -> Callable[[PageContext, str], Awaitable[Company]]:
    """Return the function that creates the `company` of a request. It raises NotFound, for other companies as well.

    The bank itself and partners are not companies: their teams have pages of their own.
    """

    async def find_company(page: PageContext, customer_id: str) -> Company:
        def is_wanted(each: Membership) -> bool:
            return str(each.customer_id) == customer_id.lower() and each.is_of_company

        visit = await visit_of(page, is_wanted, "company")
        return Company(visit, api, await count_unread(page.pool, visit.own.customer_id, page.user.user_id))

    return find_company


def _token_of(page: PageContext, own: Membership) -> AccessToken:
    """Return the subject of an access token of the member that includes everything the role may do."""
    session = page.own_session
    return AccessToken(
        client_id=CLIENT_ID,
        user_id=session.user.user_id,
        member_id=own.member_id,
        customer_id=own.customer_id,
        role=own.role,
        scopes=PERMISSIONS[own.role],
        jkt=None,
        auth_time=session.authenticated_at,
        issued_at=page.now,
        expires_at=page.now + _LIFETIME,
        is_fapi2=True,
        requires_nonce=False,
        requires_signature=False,
        organization=own.organization,
    )
