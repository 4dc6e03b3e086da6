"""The authorization server put together: its endpoints behind one frame; pages are apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from litestar import Litestar, Request, Response
from litestar.di import Provide
from litestar.handlers import HTTPRouteHandler
from litestar.middleware import DefineMiddleware

from billfold import __version__
from billfold.domain.oauth import OAuthError
from billfold.engine.bank import Bank
from billfold.interfaces.auth import refused
from billfold.interfaces.auth.desk import Desk
from billfold.interfaces.http.addresses import count_address
from billfold.interfaces.http.answers import answer_to, as_response
from billfold.interfaces.http.arrivals import ArrivedRequest, arrival_of, read_body
from billfold.interfaces.http.clock_face import clock_face_of
from billfold.interfaces.http.frame import Frame
from billfold.interfaces.http.openapi import Described, Document, describe
from billfold.interfaces.http.packaged import routes_of
from billfold.interfaces.http.signatures import plain_signatures
from billfold.kit.clock import wall_now
from billfold.kit.settings import Settings

if TYPE_CHECKING:
    from litestar.types import ASGIApp, HTTPScope, Receive, Scope, Send

    from billfold.interfaces.http.clock_face import ClockFace

_TITLE = "Authorization server"
_DESCRIPTION = (
    "OAuth 2.0 and OpenID Connect for the Customer API: authorization code with PKCE, pushed "
    "requests, clients that prove themselves by `private_key_jwt`, and tokens bound to a key by "
    "DPoP. Access tokens are opaque and last 900 seconds.\n\n"
    "Clients of the profile `fapi2` push their requests and prove their key with our nonce; for "
    "clients of the profile `documented` both are optional. Errors are those of RFC 6749.\n\n"
    "Administrators of a company register its clients with their public keys on the pages of this "
    "server, under Programs."
)
_INJECTED = ("desk",)
_NEVER_COUNTED = "/.well-known/"


class Tenant:
    """The bank behind the server, and what the server keeps of it."""

    bank: Bank
    desk: Desk
    clock_face: ClockFace | None

    async def move_out(self) -> None:
        """Let go of the bank."""
        if self.clock_face is not None:
            await self.clock_face.close()


class Porch:
    """The ASGI layer before the endpoints: the body is read, and who asks too often waits."""

    def __init__(self, app: ASGIApp, tenant: Tenant) -> None:
        self._app = app
        self._tenant = tenant

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in."""
        arrival = arrival_of(scope)
        pace: list[tuple[bytes, bytes]] = []
        if not arrival.path.startswith(_NEVER_COUNTED):
            pace = await count_address(self._tenant.bank.pool, arrival.client, wall_now())
        arrival.body = await read_body(cast("HTTPScope", scope), receive)

        async def paced(message: Any) -> None:  # noqa: ANN401 - a message of ASGI
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *pace]
            await send(message)

        await self._app(scope, receive, paced)


def auth_routes() -> list[HTTPRouteHandler]:
    """Return the ROUTES of every module here."""
    return routes_of(str(__package__))


def create_auth_app(bank: Bank) -> Litestar:
    """Return the ASGI application of one worker."""
    app = build_auth_app()
    move_in(app, bank)
    return app


def move_in(app: Litestar, bank: Bank) -> None:
    """Put a bank behind a server in which there is none, or from which one has moved out."""
    tenant: Tenant = app.state.tenant
    tenant.bank, tenant.desk, tenant.clock_face = bank, Desk(bank), clock_face_of(bank)
    app.asgi_handler = Frame(app.state.inside, bank.settings, tenant.clock_face)


def build_auth_app() -> Litestar:
    """Return the server without a bank: what costs time, and is the same for all."""
    tenant = Tenant()

    def the_desk() -> Desk:
        return tenant.desk

    def on_error(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
        return _on_error(tenant.desk, request, error)

    with plain_signatures():
        app = Litestar(
            route_handlers=auth_routes(),
            middleware=[DefineMiddleware(Porch, tenant=tenant)],
            dependencies={"desk": Provide(the_desk, sync_to_thread=False)},
            exception_handlers={Exception: on_error},
            request_class=ArrivedRequest,
            openapi_config=None,
            logging_config=None,
            on_shutdown=[tenant.move_out],
        )
    app.state.tenant, app.state.inside = tenant, app.asgi_handler
    return app


def auth_document(settings: Settings) -> Document:
    """Return the OpenAPI document of the authorization server; it needs no bank."""
    what = Described(
        routes=auth_routes(),
        injected=_INJECTED,
        title=_TITLE,
        version=__version__,
        description=_DESCRIPTION,
        servers=[{"url": settings.auth_origin}],
    )
    document = describe(what)
    # Its paths are published as the specifications spell paths: without a closing slash.
    document["paths"] = {path.rstrip("/"): item for path, item in document["paths"].items()}
    return document


def _on_error(desk: Desk, request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    arrival = arrival_of(request.scope)
    if isinstance(error, OAuthError):
        nonce = (b"dpop-nonce", desk.nonces.current(wall_now()).encode())
        headers = [nonce] if error.error == "use_dpop_nonce" else []
        answer = refused.as_json(error, *headers)
    else:
        answer = answer_to(error, arrival)
    return as_response(answer)
