"""A company in the console: the visitor as a member of its team, and the Customer API as this member may use it.

A page function takes it as `company`; its path begins with `/companies/{customer_id:str}`.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from litestar.params import SkipValidation
from typing_extensions import override

from billfold.apis.customer_api import CustomerApi
from billfold.http.api import Identity
from billfold.http.operations import Operation, Proof
from billfold.http.raw_request import RawRequest
from billfold.identity.users.rules import PERMISSIONS
from billfold.identity.users.types import Confirmation, Membership
from billfold.oauth.caller import AccessTokenAuthenticator
from billfold.oauth.types import AccessToken
from billfold.platform.errors import Refused
from billfold.web.console.api_client import ApiClient
from billfold.web.console.team import ApiTeam, Visit, visit_of
from billfold.web.page_context import PageContext, PageResponse

CLIENT_ID = "console"
"""What the audit log names the console among the clients of a company."""
_OAUTH = frozenset({Proof.OAUTH})
_LIFETIME = timedelta(minutes=1)


class Company(ApiTeam):
    """One request of a member to a page of a company."""

    layout = "company.html"

    def __init__(self, visit: Visit, api: CustomerApi) -> None:
        super().__init__(visit)
        self.path = f"/companies/{self.customer_id}"
        self.token = _token_of(self.page, self.own)
        authenticator = api.authenticator
        assert isinstance(authenticator, AccessTokenAuthenticator)
        self._authenticator = authenticator
        host = urlsplit(api.bank.settings.customer_origin).netloc
        self.api = ApiClient(api, self.page, proofs=_OAUTH, host=host, identify=self._identify)

    @override
    def may(self, scope: str) -> bool:
        """Tell whether the member's role includes what a scope stands for."""
        return scope in self.token.scopes

    def require(self, scope: str) -> None:
        """Refuse a page whose form the member could not send. Raises `forbidden`."""
        if not self.may(scope):
            raise Refused("forbidden", f"The role {self.own.role} does not include {scope}.")

    def confirmed(self, confirmation: Confirmation) -> None:
        """Let the rest of this request count as sent by a member who has just authenticated for it."""
        self.token = replace(self.token, auth_time=self.page.now, confirmation=confirmation)

    @override
    def render(self, name: str, **facts: Any) -> PageResponse:
        """Return a page with what all pages of a company show."""
        return super().render(name, company=self, **facts)

    async def _identify(self, operation: Operation, request: RawRequest) -> Identity:
        access = operation.access_by(_OAUTH)
        assert access is not None
        return await self._authenticator.identity_of(self.token, request, operation, access=access)


InCompany = SkipValidation[Company]
"""What a page function takes as `company`."""


def company_of(api: CustomerApi) -> Callable[[PageContext, str], Awaitable[Company]]:
    """Return what makes the `company` of a request. It raises NotFound, for companies of others as well.

    The bank itself and partners are no companies: their teams have pages of their own.
    """

    async def find_company(page: PageContext, customer_id: str) -> Company:
        def is_wanted(each: Membership) -> bool:
            return str(each.customer_id) == customer_id.lower() and each.is_of_company

        return Company(await visit_of(page, is_wanted, "company"), api)

    return find_company


def _token_of(page: PageContext, own: Membership) -> AccessToken:
    """Return what an access token of the member would stand for that includes all that the role may do."""
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
