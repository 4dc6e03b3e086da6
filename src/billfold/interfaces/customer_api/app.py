"""The Customer API put together: the routes of every resource behind one door."""

from __future__ import annotations

from litestar import Litestar
from litestar.di import Provide
from litestar.exceptions import NotAuthorizedException
from litestar.middleware import DefineMiddleware
from litestar.types import ControllerRouterHandler

from billfold import __version__
from billfold.domain.events import CUSTOMER_KINDS
from billfold.engine.bank import Bank
from billfold.interfaces.customer_api.door import MemberDoor, Usher
from billfold.interfaces.customer_api.member import Member
from billfold.interfaces.customer_api.told import DESCRIPTION, TITLE, components
from billfold.interfaces.http.answers import on_error
from billfold.interfaces.http.arrivals import ArrivedRequest, arrival_of
from billfold.interfaces.http.frame import Frame
from billfold.interfaces.http.newsroom import Newsroom, newsroom_of
from billfold.interfaces.http.openapi import Described, Document, describe
from billfold.interfaces.http.operations import one_by_one, operations_of
from billfold.interfaces.http.packaged import examples_of, routes_of
from billfold.interfaces.http.pages import PAGES, reference_pages
from billfold.interfaces.http.signatures import plain_signatures
from billfold.interfaces.http.webhook_calls import webhooks_of
from billfold.kit.settings import Settings

_INJECTED = ("bank", "member", "newsroom")


def customer_routes() -> list[ControllerRouterHandler]:
    """Return the ROUTES of every module here."""
    return routes_of(str(__package__))


class Tenant:
    """The bank behind an application, and what the application keeps of it."""

    bank: Bank
    usher: Usher
    newsroom: Newsroom

    async def move_out(self) -> None:
        """Let go of the bank."""
        await self.newsroom.close()
        await self.usher.close()


def create_customer_app(bank: Bank, *, newsroom: Newsroom | None = None) -> Litestar:
    """Return the ASGI application of one worker. Whoever opens the bank starts its engine."""
    app = build_customer_app()
    move_in(app, bank, newsroom)
    return app


def move_in(app: Litestar, bank: Bank, newsroom: Newsroom | None = None) -> None:
    """Put a bank behind an application in which there is none, or from which one has moved out."""
    tenant: Tenant = app.state.tenant
    tenant.bank, tenant.usher = bank, Usher(bank)
    tenant.newsroom = newsroom or newsroom_of(bank)
    tenant.usher.operations = app.state.operations
    app.asgi_handler = Frame(app.state.inside, bank.settings, tenant.usher.clock_face)


def build_customer_app() -> Litestar:
    """Return the application without a bank: what costs time, and is the same for all."""
    tenant = Tenant()

    def the_bank() -> Bank:
        return tenant.bank

    def the_newsroom() -> Newsroom:
        return tenant.newsroom

    with plain_signatures():
        app = Litestar(
            route_handlers=[
                *customer_routes(),
                *PAGES,
                *reference_pages(lambda: customer_document(tenant.bank.settings)),
            ],
            middleware=[DefineMiddleware(MemberDoor, tenant=tenant)],
            dependencies={
                "bank": Provide(the_bank, sync_to_thread=False),
                "member": Provide(_the_member, sync_to_thread=False),
                "newsroom": Provide(the_newsroom, sync_to_thread=False),
            },
            exception_handlers={Exception: on_error},
            request_class=ArrivedRequest,
            openapi_config=None,
            logging_config=None,
            on_shutdown=[tenant.move_out],
        )
    app.state.tenant = tenant
    app.state.inside, app.state.operations = app.asgi_handler, operations_of(one_by_one(app))
    return app


def customer_document(settings: Settings) -> Document:
    """Return the OpenAPI document of the Customer API; no bank needs to be open for it."""
    what = Described(
        routes=customer_routes(),
        injected=_INJECTED,
        title=TITLE,
        version=__version__,
        description=DESCRIPTION,
        servers=[{"url": settings.customer_origin}],
        examples=examples_of(str(__package__)),
        components=components(settings),
        webhooks=webhooks_of(CUSTOMER_KINDS, customer=True),
    )
    return describe(what)


def _the_member(request: ArrivedRequest) -> Member:
    member = arrival_of(request.scope).caller
    if not isinstance(member, Member):
        raise NotAuthorizedException
    return member
