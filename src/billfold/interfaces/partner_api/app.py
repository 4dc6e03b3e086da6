"""The Partner API put together: the routes of every resource behind one door."""

from __future__ import annotations

from collections.abc import Sequence

from litestar import Litestar
from litestar.di import Provide
from litestar.exceptions import NotAuthorizedException
from litestar.middleware import DefineMiddleware
from litestar.types import ControllerRouterHandler

from billfold import __version__
from billfold.domain.events import PARTNER_KINDS
from billfold.engine.bank import Bank
from billfold.interfaces.http.answers import on_error
from billfold.interfaces.http.arrivals import ArrivedRequest, arrival_of
from billfold.interfaces.http.calls import Caller
from billfold.interfaces.http.door import Door, Doorkeeper
from billfold.interfaces.http.frame import Frame
from billfold.interfaces.http.newsroom import Newsroom, newsroom_of
from billfold.interfaces.http.openapi import Described, Document, describe
from billfold.interfaces.http.operations import one_by_one, operations_of
from billfold.interfaces.http.packaged import examples_of, routes_of
from billfold.interfaces.http.pages import PAGES, reference_pages
from billfold.interfaces.http.signatures import plain_signatures
from billfold.interfaces.http.webhook_calls import webhooks_of
from billfold.interfaces.partner_api.login import LoginDesk
from billfold.interfaces.partner_api.peers import Peers
from billfold.kit.settings import Settings

_TITLE = "Partner API"
_DESCRIPTION = (
    "Open accounts for your customers whose money lives in US Treasury bills, and move it. "
    "Amounts are integers in cents.\n\n"
    "Every request carries a token, an idempotency key and a signature: `Authorization: Bearer "
    "<token>`, `x-service-idempotency: <uuid>`, `x-service-signature: <base64>`. The signature is "
    "HMAC-SHA256, keyed with your shared secret, over the key, the path and the body as sent, with "
    "nothing between them. Operations of the sandbox need only the token.\n\n"
    "A request may be sent again under its key: it does not run twice, and the first answer comes "
    "back for 24 hours. Errors are problem documents whose `type` is a page that explains them."
)
_INJECTED = ("bank", "caller", "desk", "newsroom", "peers")


def partner_routes(
    sandbox: Sequence[ControllerRouterHandler] = (),
) -> list[ControllerRouterHandler]:
    """Return the ROUTES of every module here, and those of the sandbox where there is one."""
    return [*routes_of(str(__package__)), *sandbox]


class Tenant:
    """The bank behind an application, and what the application keeps of it."""

    bank: Bank
    keeper: Doorkeeper
    desk: LoginDesk
    newsroom: Newsroom
    peers: Peers

    async def move_out(self) -> None:
        """Let go of the bank."""
        await self.newsroom.close()
        await self.peers.close()
        await self.keeper.close()


def create_partner_app(
    bank: Bank, *, routes: Sequence[ControllerRouterHandler], newsroom: Newsroom | None = None
) -> Litestar:
    """Return the ASGI application of one worker. Whoever opens the bank starts its engine."""
    app = build_partner_app(routes)
    move_in(app, bank, newsroom)
    return app


def move_in(app: Litestar, bank: Bank, newsroom: Newsroom | None = None) -> None:
    """Put a bank behind an application in which there is none, or from which one has moved out."""
    tenant: Tenant = app.state.tenant
    tenant.bank, tenant.keeper, tenant.desk = bank, Doorkeeper(bank), LoginDesk(bank)
    tenant.newsroom, tenant.peers = newsroom or newsroom_of(bank), Peers(bank.pool)
    tenant.keeper.operations = app.state.operations
    app.asgi_handler = Frame(app.state.inside, bank.settings, tenant.keeper.clock_face)


def build_partner_app(routes: Sequence[ControllerRouterHandler]) -> Litestar:
    """Return the application without a bank: what costs time, and is the same for all."""
    tenant = Tenant()

    def the_bank() -> Bank:
        return tenant.bank

    def the_desk() -> LoginDesk:
        return tenant.desk

    def the_newsroom() -> Newsroom:
        return tenant.newsroom

    def the_peers() -> Peers:
        return tenant.peers

    with plain_signatures():
        app = Litestar(
            route_handlers=[
                *routes,
                *PAGES,
                *reference_pages(lambda: partner_document(tenant.bank.settings, tuple(routes))),
            ],
            middleware=[DefineMiddleware(Door, tenant=tenant)],
            dependencies={
                "bank": Provide(the_bank, sync_to_thread=False),
                "caller": Provide(_the_caller, sync_to_thread=False),
                "desk": Provide(the_desk, sync_to_thread=False),
                "newsroom": Provide(the_newsroom, sync_to_thread=False),
                "peers": Provide(the_peers, sync_to_thread=False),
            },
            exception_handlers={Exception: on_error},
            request_class=ArrivedRequest,
            openapi_config=None,
            logging_config=None,
            on_shutdown=[tenant.move_out],
        )
    app.state.tenant, app.state.partner_routes = tenant, tuple(routes)
    app.state.inside, app.state.operations = app.asgi_handler, operations_of(one_by_one(app))
    return app


def partner_openapi(app: Litestar, *, include_deprecated: bool = False) -> Document:
    """Return the OpenAPI document of the Partner API."""
    tenant: Tenant = app.state.tenant
    return partner_document(
        tenant.bank.settings, app.state.partner_routes, include_deprecated=include_deprecated
    )


def partner_document(
    settings: Settings,
    routes: Sequence[ControllerRouterHandler],
    *,
    include_deprecated: bool = False,
) -> Document:
    """Return the OpenAPI document of these routes; no bank needs to be open for it."""
    server = {
        "url": f"https://{{partner}}.{settings.domain}:{{port}}",
        "variables": {
            "partner": {"default": "acme", "description": "The name you were given."},
            "port": {"default": str(settings.port)},
        },
    }
    what = Described(
        routes=routes,
        injected=_INJECTED,
        title=_TITLE,
        version=__version__,
        description=_DESCRIPTION,
        servers=[server],
        examples=examples_of(str(__package__)),
        webhooks=webhooks_of(PARTNER_KINDS, customer=False),
    )
    return describe(what, include_deprecated=include_deprecated)


def _the_caller(request: ArrivedRequest) -> Caller:
    caller = arrival_of(request.scope).caller
    if not isinstance(caller, Caller):
        raise NotAuthorizedException
    return caller
