"""A partner in the console: the visitor as a member of the partner's own team, and the Partner API with their role.

A page function takes it as `partner`; its path begins with `/partners/{slug:str}`.
"""

from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from litestar.params import SkipValidation
from typing_extensions import override

from billfold.apis.partner_api import PartnerApi
from billfold.http.api import Identity
from billfold.http.operations import Operation, Proof
from billfold.http.raw_request import RawRequest
from billfold.identity.partners import rules
from billfold.identity.partners.administration import CredentialChange
from billfold.identity.partners.caller import identity_of_person
from billfold.identity.partners.rules import PartnerPerson, PartnerRow
from billfold.identity.partners.store import find_partner
from billfold.ledger.types import Origin
from billfold.web.console.api import ApiClient
from billfold.web.console.team import ApiTeam, Visit, visit_of
from billfold.web.page_context import PageContext

_SIGNED = frozenset({Proof.SIGNATURE, Proof.TOKEN_AND_KEY})
_CLIENT_ID = "console"


class Partner(ApiTeam):
    """One request of a member of a partner's team to a page of the partner; `row` is the partner as stored."""

    layout = "partner.html"

    def __init__(self, visit: Visit, row: PartnerRow, api: PartnerApi) -> None:
        super().__init__(visit)
        self.row, self.bank = row, api.bank
        session = self.page.own_session
        self.person = PartnerPerson(
            partner=row,
            member_id=self.own.member_id,
            user_id=session.user.user_id,
            role=self.own.role,
            authenticated_at=session.authenticated_at,
        )
        port = urlsplit(api.bank.settings.customer_origin).port
        self.host = f"{row.slug}.{api.bank.settings.domain}" + (f":{port}" if port else "")
        self.api = ApiClient(api, self.page, proofs=_SIGNED, host=self.host, identify=self._identify)

    @override
    def may(self, scope: str) -> bool:
        """Tell whether the member may read, or also make changes, which a page of an earlier day does not offer."""
        return scope.endswith(".read") or (rules.may_change(self.own.role) and not self.is_past)

    @property
    def change(self) -> CredentialChange:
        """Changes of secrets and keys by this member."""
        origin = Origin(
            kind="MEMBER",
            member_id=self.own.member_id,
            client_id=_CLIENT_ID,
            ip_address=self.page.request.client,
            user_agent=self.page.user_agent,
        )
        return CredentialChange(bank=self.bank, partner=self.row, origin=origin, person=self.person)

    async def _identify(self, operation: Operation, request: RawRequest) -> Identity:
        return await identity_of_person(self.person, request, operation)


InPartner = SkipValidation[Partner]
"""The type of the parameter `partner` of a page function."""


def partner_of(api: PartnerApi) -> Callable[[PageContext, str], Awaitable[Partner]]:
    """Return the function that creates the `partner` of a request. It raises NotFound, for other partners as well."""

    async def find_own_partner(page: PageContext, slug: str) -> Partner:
        visit = await visit_of(page, lambda each: each.partner_slug == slug, "partner")
        row = await find_partner(page.pool, slug)
        assert row is not None
        return Partner(visit, row, api)

    return find_own_partner
