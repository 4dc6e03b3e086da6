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
from billfold.interfaces.http.operations import operations_of
from billfold.interfaces.http.packaged import examples_of, routes_of
from billfold.interfaces.http.pages import PAGES, reference_pages
from billfold.interfaces.http.signatures import plain_signatures
from billfold.interfaces.http.webhook_calls import webhooks_of
from billfold.interfaces.partner_api.login import LoginDesk
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
_INJECTED = ("bank", "caller", "desk", "newsroom")


def partner_routes(
    sandbox: Sequence[ControllerRouterHandler] = (),
) -> list[ControllerRouterHandler]:
    """Return the ROUTES of every module here, and those of the sandbox where there is one."""
    return [*routes_of(str(__package__)), *sandbox]


def create_partner_app(
    bank: Bank, *, routes: Sequence[ControllerRouterHandler], newsroom: Newsroom | None = None
) -> Litestar:
    """Return the ASGI application of one worker. Whoever opens the bank starts its engine."""
    keeper, desk = Doorkeeper(bank), LoginDesk(bank)
    room = newsroom or newsroom_of(bank)

    def the_bank() -> Bank:
        return bank

    def the_desk() -> LoginDesk:
        return desk

    def the_newsroom() -> Newsroom:
        return room

    with plain_signatures():
        app = Litestar(
            route_handlers=[
                *routes,
                *PAGES,
                *reference_pages(lambda: partner_document(bank.settings, tuple(routes))),
            ],
            middleware=[DefineMiddleware(Door, keeper=keeper)],
            dependencies={
                "bank": Provide(the_bank, sync_to_thread=False),
                "caller": Provide(_the_caller, sync_to_thread=False),
                "desk": Provide(the_desk, sync_to_thread=False),
                "newsroom": Provide(the_newsroom, sync_to_thread=False),
            },
            exception_handlers={Exception: on_error},
            request_class=ArrivedRequest,
            openapi_config=None,
            logging_config=None,
            on_shutdown=[room.close, keeper.close],
        )
    app.state.bank, app.state.partner_routes = bank, tuple(routes)
    keeper.operations = operations_of(app)
    app.asgi_handler = Frame(app.asgi_handler, bank.settings, keeper.clock_face)
    return app


def partner_openapi(app: Litestar, *, include_deprecated: bool = False) -> Document:
    """Return the OpenAPI document of the Partner API."""
    bank: Bank = app.state.bank
    return partner_document(
        bank.settings, app.state.partner_routes, include_deprecated=include_deprecated
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
