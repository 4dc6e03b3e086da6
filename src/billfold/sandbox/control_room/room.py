"""One request to the control room: who may make it, and the Partner API as the sandbox's partner may use it.

Whoever reaches a sandbox from its own machine owns it and need not sign in. What a page of another site sends is
refused by the frame: it has another origin, no token of the form, or another host than that of the pages.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import partial
from ipaddress import IPv6Address, ip_address
from typing import Any

from litestar.di import Provide
from litestar.params import SkipValidation

from billfold.apis.customer_api.app import CustomerApi, customer_document
from billfold.apis.partner_api.app import PROOFS, PartnerApi
from billfold.http.api import Identity
from billfold.http.edge.serve import AppWithLifespan
from billfold.http.operations import Operation
from billfold.http.raw_request import RawRequest
from billfold.identity.partners import store as partner_store
from billfold.identity.partners.signed_requests import SignedRequestAuthenticator
from billfold.identity.partners.types import Credential
from billfold.oauth.server.app import auth_document
from billfold.platform.dates import ET
from billfold.platform.errors import NotFound, Refused
from billfold.platform.ids import command_id
from billfold.sandbox.control_room.signed_calls import ServedApi, SignedCalls
from billfold.sandbox.provisioning import PARTNER
from billfold.web.console.api_client import ApiClient
from billfold.web.console.page_clock import PageClock, read_page_clock
from billfold.web.page_context import PageContext, PageResponse

PACKAGES = ("billfold.sandbox.control_room",)
_LIFETIME = timedelta(minutes=1)
_PER_MINUTE = 3_000
_ELSEWHERE = (
    "The control room is open to browsers on the machine that runs the sandbox. From elsewhere, forward its port:"
    " `ssh -L PORT:127.0.0.1:PORT`."
)


class ControlRoom:
    """One request of a browser on the machine of the sandbox."""

    def __init__(
        self, page: PageContext, api: PartnerApi, calls: SignedCalls, *, credential: Credential, clock: PageClock
    ) -> None:
        self.page, self.clock, self.calls = page, clock, calls
        authenticator = api.authenticator
        assert isinstance(authenticator, SignedRequestAuthenticator)
        self._authenticator, self._credential = authenticator, credential
        settings = api.bank.settings
        self.state_dir = settings.state_dir
        self.host = f"{credential.partner.slug}.{settings.domain}:{settings.port}"
        self.api = ApiClient(api, page, proofs=PROOFS, host=self.host, identify=self._identify)

    def render(self, name: str, **facts: Any) -> PageResponse:
        """Return a page with what all pages of the control room show. Times are those of New York."""
        return self.page.render(name, clock=self.clock, zone=ET.key, **facts)

    async def _identify(self, operation: Operation, request: RawRequest) -> Identity:
        sent = request.header(b"idempotency-key")
        key = None if sent is None else command_id("control room", sent)
        identity = await self._authenticator.identity_of(self._credential, request, operation, key=key)
        # Counted apart: whoever watches a task does not use up the requests of the partner's programs.
        return replace(identity, admission=replace(identity.admission, kind="control room", per_minute=_PER_MINUTE))


InRoom = SkipValidation[ControlRoom]
"""What a page function takes as `room`."""


def given_by(partner: PartnerApi, customer: CustomerApi, *, auth: AppWithLifespan) -> Mapping[str, Provide]:
    """Return what the pages of the control room take by name. The applications are those that can be tried."""
    settings = partner.bank.settings
    apis = {
        "partner": ServedApi(partner, f"https://{PARTNER}.{settings.domain}:{settings.port}", partner.document),
        "customer": ServedApi(customer, settings.customer_origin, partial(customer_document, settings)),
        "auth": ServedApi(auth, settings.auth_origin, partial(auth_document, settings)),
    }
    return {"room": Provide(_room_of(partner, SignedCalls(apis, settings.state_dir)))}


def _room_of(api: PartnerApi, calls: SignedCalls) -> Callable[[PageContext], Awaitable[ControlRoom]]:
    async def enter(page: PageContext) -> ControlRoom:
        if not is_on_this_machine(page.request.client):
            raise Refused("forbidden", _ELSEWHERE)
        partner = await partner_store.find_partner(page.pool, PARTNER)
        user = await partner_store.find_partner_user(page.pool, PARTNER)
        if partner is None or user is None:
            raise NotFound("This sandbox has no partner.")
        credential = Credential(
            partner=partner, user_id=user.user_id, expires_at=page.now + _LIFETIME, shared_secrets=()
        )
        return ControlRoom(page, api, calls, credential=credential, clock=await read_page_clock(page))

    return enter


def is_on_this_machine(client: str) -> bool:
    """Tell whether an address is that of the machine itself."""
    try:
        address = ip_address(client)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback
