"""Calls of the APIs of this process, sent as a program sends them and signed with the credentials of the sandbox.

Only operations of the OpenAPI documents are called, at the hosts of this bank: nothing leads elsewhere.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx
import msgspec
from litestar.types import Send

from billfold.client.dpop import DpopAuth
from billfold.client.keys import client_assertion
from billfold.client.oauth import ASSERTION_TYPE, Authorization, ClientRegistration, Tokens
from billfold.client.request_signature import PartnerAuth
from billfold.documentation.operations import FILE, FILE_TYPE, ApiOperation, Call, Content, Proof, operations_of
from billfold.platform.errors import NotFound, Unavailable
from billfold.sandbox.credentials_file import SandboxFile, read_sandbox_file
from billfold.sandbox.sandbox_client import SERVICE_CLIENT_ID

_BEARER_CLIENT_ID = "sandbox-bearer"
_ASSERTION_SECONDS = 60
_KEY_HEADERS = ("x-service-idempotency", "idempotency-key")
READ_BYTES_MAX = 128 * 1024
"""How much of a response without a declared end is read."""
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
    """An API of this process: its application, where it answers, and its OpenAPI document."""

    app: Any
    origin: str
    document: Callable[[], Mapping[str, Any]]


class SignedCalls:
    """The APIs by the names that they have in the addresses of the documentation."""

    def __init__(self, apis: Mapping[str, ServedApi], state_dir: Path) -> None:
        self._apis, self._state_dir = apis, state_dir
        self._operations: dict[str, dict[str, ApiOperation]] = {}
        self._auth: dict[str, httpx.Auth] = {}

    def find(self, api: str, operation_id: str) -> ApiOperation:
        """Return an operation. Raises NotFound."""
        if api not in self._apis:
            raise NotFound("There is no such API.")
        if api not in self._operations:
            document = msgspec.to_builtins(self._apis[api].document())
            self._operations[api] = {each.id: each for each in operations_of(api, document)}
        found = self._operations[api].get(operation_id)
        if found is None:
            raise NotFound("There is no such operation.")
        return found

    @property
    def credentials(self) -> SandboxFile:
        """What the sandbox has published. Raises Unavailable where no sandbox has started this bank."""
        box = read_sandbox_file(self._state_dir)
        if box is None:
            raise Unavailable("The sandbox has not written its credentials yet. Try again when it is open.")
        return box

    async def send(self, call: Call, *, key: str, client: str) -> httpx.Response:
        """Send a call under an idempotency key, from the address of a browser; return what is answered."""
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
            self._auth[operation.api] = _customer_auth(box) if operation.api == "customer" else _partner_auth(box)
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
    """Return an application whose streams end after `READ_BYTES_MAX`: to it, the client has gone."""

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


def _partner_auth(box: SandboxFile) -> PartnerAuth:
    return PartnerAuth(
        url=box.partner_url,
        username=box.username,
        shared_secret=box.shared_secret,
        private_key=box.private_key,
        kid=box.kid,
    )


def _customer_auth(box: SandboxFile) -> DpopAuth:
    """Return the credentials of the service user of the sandbox's customer; the first request gets a token."""
    client = next(each for each in box.clients if each.client_id == SERVICE_CLIENT_ID)
    registration = ClientRegistration(
        issuer=box.auth_url, client_id=client.client_id, kid=client.kid, private_key=client.private_key
    )
    none_yet = Tokens(access_token="", token_type="DPoP", scope="", expires_at=0)  # noqa: S106 - no secret
    return DpopAuth(Authorization(registration), none_yet)
