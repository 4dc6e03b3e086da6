"""One request to the control room: its access check, and the Partner API with the sandbox's partner as caller.

Users on the sandbox's own machine own it and need not sign in. Requests from pages of another site are
refused by the page stack: they have another origin, no form token, or another host than the pages.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import partial
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx
import msgspec
from litestar.di import Provide
from litestar.params import SkipValidation
from litestar.types import Send

from billfold.apis.customer_api import CustomerApi, customer_document
from billfold.apis.partner_api import PROOFS, PartnerApi
from billfold.documentation.operations import FILE, FILE_TYPE, ApiOperation, Call, Content, Proof, operations_of
from billfold.http.api import Identity
from billfold.http.edge import AppWithLifespan
from billfold.http.operations import Operation
from billfold.http.raw_request import RawRequest
from billfold.identity.partners import store
from billfold.identity.partners.caller import SignedRequestAuthenticator
from billfold.identity.partners.rules import Credential
from billfold.oauth.server.app import auth_document
from billfold.platform.dates import ET
from billfold.platform.errors import NotFound, Refused, Unavailable
from billfold.platform.ids import command_id
from billfold.sandbox.provisioning import PARTNER
from billfold.sandbox.running_sandbox import SandboxFile, customer_auth, partner_auth, read_sandbox_file
from billfold.web.console.api import ApiClient
from billfold.web.console.team import PageClock, read_page_clock
from billfold.web.page_context import PageContext, PageResponse
from billfold_client.keys import client_assertion
from billfold_client.oauth import ASSERTION_TYPE

_BEARER_CLIENT_ID = "sandbox-bearer"
_ASSERTION_SECONDS = 60
_KEY_HEADERS = ("x-service-idempotency", "idempotency-key")
READ_BYTES_MAX = 128 * 1024
"""Maximum number of bytes read of a response without a declared length."""
EXAMPLE_FILE = (
    b"%PDF-1.4\n"
    b"1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n"
    b"2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
    b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]>>endobj\n"
    b"xref\n"
    b"0 4\n"
    b"0000000000 65535 f \n"
    b"0000000009 00000 n \n"
    b"0000000052 00000 n \n"
    b"0000000101 00000 n \n"
    b"trailer<</Size 4/Root 1 0 R>>\n"
    b"startxref\n"
    b"164\n"
    b"%%EOF\n"
)


class ServedApi(NamedTuple):
    """An API of this process: its application, its address, and its OpenAPI document."""

    app: Any
    origin: str
    document: Callable[[], Mapping[str, Any]]


class SignedCalls:
    """The APIs by the names that they have in the documentation's addresses."""

    def __init__(self, apis: Mapping[str, ServedApi], state_dir: Path) -> None:
        self._apis, self.state_dir = apis, state_dir
        self._operations: dict[str, dict[str, ApiOperation]] = {}
        self._auth: dict[str, httpx.Auth] = {}

    def find(self, api: str, operation_id: str) -> ApiOperation:
        """Return an operation. Raises NotFound."""
        found = self.operations(api).get(operation_id)
        if found is None:
            raise NotFound("There is no such operation.")
        return found

    def operations(self, api: str) -> Mapping[str, ApiOperation]:
        """Return the operations of an API by their ids. Raises NotFound."""
        if api not in self._apis:
            raise NotFound("There is no such API.")
        if api not in self._operations:
            document = msgspec.to_builtins(self._apis[api].document())
            self._operations[api] = {each.id: each for each in operations_of(api, document)}
        return self._operations[api]

    @property
    def credentials(self) -> SandboxFile:
        """Return the credentials that the sandbox published. Raises Unavailable if no sandbox has started this bank."""
        box = read_sandbox_file(self.state_dir)
        if box is None:
            raise Unavailable("The sandbox has not written its credentials yet. Try again when it is open.")
        return box

    async def send(self, call: Call, *, key: str, client: str) -> httpx.Response:
        """Send a call with an idempotency key, from a browser's address; return the response."""
        operation = call.operation
        path = operation.path.format_map({name: quote(value, safe="") for name, value in call.variables.items()})
        transports = {
            each.origin: httpx.ASGITransport(_ended_early(each.app), raise_app_exceptions=False, client=(client, 0))
            for each in self._apis.values()
        }
        headers = {} if operation.method == "GET" else dict.fromkeys(_KEY_HEADERS, key)
        async with httpx.AsyncClient(mounts=transports, trust_env=False) as http:
            return await http.request(
                operation.method,
                f"{self._apis[operation.api].origin}{path}{'?' if call.query else ''}{call.query}",
                headers=headers,
                auth=self._auth_of(operation),
                **self._content(operation, call.body),
            )

    def _content(self, operation: ApiOperation, body: object) -> dict[str, Any]:
        match operation.content:
            case Content.JSON:
                return {"json": body}
            case Content.FORM:
                assert isinstance(body, dict)
                return {"data": body | (self._assertion() if operation.proof is Proof.ASSERTION else {})}
            case Content.FILE:
                return {"files": {"file": (FILE, EXAMPLE_FILE, FILE_TYPE)}}
            case Content.NONE:
                return {}

    def _auth_of(self, operation: ApiOperation) -> httpx.Auth | None:
        if operation.proof in {Proof.NONE, Proof.ASSERTION}:
            return None
        if operation.api not in self._auth:
            box = self.credentials
            self._auth[operation.api] = customer_auth(box) if operation.api == "customer" else partner_auth(box)
        return self._auth[operation.api]

    def _assertion(self) -> dict[str, str]:
        box = self.credentials
        client = next(each for each in box.clients if each.client_id == _BEARER_CLIENT_ID)
        assertion = client_assertion(
            client.client_id,
            box.auth_url,
            private_key=client.private_key,
            kid=client.kid,
            lifetime_seconds=_ASSERTION_SECONDS,
        )
        return {"client_assertion_type": ASSERTION_TYPE, "client_assertion": assertion}


def _ended_early(app: Any) -> Any:  # noqa: ANN401 - any application of ASGI
    """Return an application whose streams end after `READ_BYTES_MAX`: it sees a disconnected client."""

    async def serve(scope: Any, receive: Any, send: Send) -> None:  # noqa: ANN401 - of ASGI
        size, ended = 0, False

        async def send_some(message: Any) -> None:  # noqa: ANN401 - a message of ASGI
            nonlocal size, ended
            if ended:
                return
            size += len(message.get("body", b""))
            ended = size >= READ_BYTES_MAX
            message["more_body"] = message.get("more_body", False) and not ended
            await send(message)

        await app(scope, receive, send_some)

    return serve


PATH = "/sandbox"
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
        """Return a page with the common data of the control room. Times are those of New York."""
        return self.page.render(name, clock=self.clock, zone=ET.key, **facts)

    async def _identify(self, operation: Operation, request: RawRequest) -> Identity:
        sent = request.header(b"idempotency-key")
        key = None if sent is None else command_id("control room", sent)
        identity = await self._authenticator.identity_of(self._credential, request, operation, key=key)
        # Counted separately, so that watching a task does not use up the requests of the partner's programs.
        return replace(identity, admission=replace(identity.admission, kind="control room", per_minute=_PER_MINUTE))


InRoom = SkipValidation[ControlRoom]
"""The type of the parameter `room` of a page function."""


def given_by(partner: PartnerApi, customer: CustomerApi, *, auth: AppWithLifespan) -> Mapping[str, Provide]:
    """Return what the pages of the control room take by name. The applications are those that can be tried."""
    return {"room": Provide(_room_of(partner, signed_calls(partner, customer, auth=auth)))}


def signed_calls(partner: PartnerApi, customer: CustomerApi, *, auth: AppWithLifespan) -> SignedCalls:
    """Return the calls of the sandbox's own callers to these applications."""
    settings = partner.bank.settings
    apis = {
        "partner": ServedApi(partner, f"https://{PARTNER}.{settings.domain}:{settings.port}", partner.document),
        "customer": ServedApi(customer, settings.customer_origin, partial(customer_document, settings)),
        "auth": ServedApi(auth, settings.auth_origin, partial(auth_document, settings)),
    }
    return SignedCalls(apis, settings.state_dir)


def _room_of(api: PartnerApi, calls: SignedCalls) -> Callable[[PageContext], Awaitable[ControlRoom]]:
    async def enter(page: PageContext) -> ControlRoom:
        if not is_on_this_machine(page.request.client):
            raise Refused("forbidden", _ELSEWHERE)
        partner = await store.find_partner(page.pool, PARTNER)
        user = await store.find_partner_user(page.pool, PARTNER)
        if partner is None or user is None:
            raise NotFound("This sandbox has no partner.")
        credential = Credential(
            partner=partner, user_id=user.user_id, expires_at=page.now + _LIFETIME, shared_secrets=()
        )
        return ControlRoom(page, api, calls, credential=credential, clock=await read_page_clock(page))

    return enter


def is_on_this_machine(client: str) -> bool:
    """Tell whether an address belongs to the machine itself."""
    try:
        address = ip_address(client)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback
