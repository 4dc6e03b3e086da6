"""The server of a bank: all its applications, in a sandbox with simulated counterparts."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from types import FrameType
from typing import Any
from urllib.parse import urlsplit

from billfold.apis.customer_api import CustomerApi, create_customer_app, customer_document
from billfold.apis.partner_api import PartnerApi, create_partner_app, partner_operations
from billfold.cli.process_supervisor import exit_with_parent
from billfold.cli.python_process import tune_garbage_collector
from billfold.data_keys.keys import DataKeys
from billfold.documentation.app import DocumentationApp, OwnValues
from billfold.events.broadcaster import EventBroadcaster, create_event_broadcaster
from billfold.http.edge import AppWithLifespan, name_of, observed
from billfold.http.openapi import Document
from billfold.http.raw_request import Receive, Scope, Send
from billfold.http.serve import ConnectionLimits, LazyApp
from billfold.ledger.bank import Bank
from billfold.monitoring.samples import telemetry
from billfold.oauth.server.app import auth_document, create_auth_app
from billfold.payments.cards.authorizations.messages import create_card_processor_app
from billfold.platform.settings.settings import Settings
from billfold.platform.telemetry.logs import log_as_configured
from billfold.web.app import PagesApp, create_pages_app
from billfold.wiring.open_bank import open_bank
from billfold.wiring.providers import forbid_simulations

_PROTOCOL_PATHS = ("/api/", "/.well-known/")
_DOCS = ("/docs/", "/llms.txt/")


class HostRouter:
    """ASGI: the Partner API, unless the host is that of the authorization server, customers or the card processor.

    The host of the authorization server has its endpoints and the sign-in `pages`. The documentation is on all hosts
    except that of the card processor.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        partner: AppWithLifespan,
        auth: AppWithLifespan,
        pages: AppWithLifespan | None = None,
        customer: AppWithLifespan | None = None,
        cards: AppWithLifespan | None = None,
        documentation: AppWithLifespan | None = None,
    ) -> None:
        self._auth_host = urlsplit(settings.auth_origin).hostname
        self._cards_host = urlsplit(settings.cards_origin).hostname
        self._customer_host = urlsplit(settings.customer_origin).hostname
        self._partner, self._auth = partner, auth
        self._pages, self._customer = pages or auth, customer or partner
        self._cards, self._documentation = cards or partner, documentation
        self._apps = [each for each in (partner, auth, pages, customer, cards, documentation) if each is not None]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        await self._app_for(scope)(scope, receive, send)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Open all applications, close them in reverse."""
        async with AsyncExitStack() as stack:
            for app in self._apps:
                await stack.enter_async_context(app.lifespan())
            yield

    def _app_for(self, scope: Any) -> AppWithLifespan:  # noqa: ANN401 - any scope of a server
        host_header = next((value for name, value in scope["headers"] if name == b"host"), b"")
        host = name_of(host_header.decode("latin-1").lower()).removesuffix(".")
        if host == self._cards_host:
            return self._cards
        if self._documentation is not None and f"{scope['path']}/".startswith(_DOCS):
            return self._documentation
        if host == self._auth_host:
            is_protocol = scope["path"].startswith(_PROTOCOL_PATHS)
            return self._auth if is_protocol else self._pages
        return self._customer if host == self._customer_host else self._partner


def partner_app() -> LazyApp:
    """Return the whole server for one worker of the https server."""
    exit_with_parent()
    log_as_configured(os.environ)
    settings = Settings.from_env(os.environ)
    assert settings.database_url is not None
    if settings.is_production:
        forbid_simulations()

    @asynccontextmanager
    async def open_app() -> AsyncIterator[AppWithLifespan]:
        if settings.is_production:
            async with _open_apps(settings) as (app, _):
                yield app
            return
        from billfold.sandbox.forks.lease import ReopeningApp  # noqa: PLC0415 - production does not import it

        yield ReopeningApp(partial(_open_apps, settings), settings.state_dir)

    return LazyApp(open_app)


@asynccontextmanager
async def _open_apps(settings: Settings) -> AsyncIterator[tuple[AppWithLifespan, EventBroadcaster]]:
    """Open the bank; yield its application, and the streams of its events."""
    pooler = settings.database_pooler_url
    opened = open_bank(settings, pooler or settings.database_url or "", by_pooler=pooler is not None)
    async with opened as bank, telemetry(bank, "api"):
        broadcaster = _event_broadcaster(bank)
        app = make_host_router(bank, broadcaster)
        tune_garbage_collector()
        yield ConnectionLimits(observed(app, settings), settings), broadcaster


def _event_broadcaster(bank: Bank) -> EventBroadcaster:
    """Return the broadcaster of a worker. The server waits for responses, so streams end on a signal."""
    sandbox = not bank.settings.is_production
    keys = bank.ports[DataKeys]
    made = EventBroadcaster(bank.pool, keys, sandbox=sandbox, on_open=lambda: _call_on_signals(made.stop))
    return made


def _call_on_signals(stop: Callable[[], None]) -> None:
    """Call `stop` in this loop in addition to the existing handlers."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, partial(_stop_and_chain, loop, stop, signal.getsignal(number)))


def _stop_and_chain(
    loop: asyncio.AbstractEventLoop,
    stop: Callable[[], None],
    previous_handler: object,
    number: int,
    frame: FrameType | None,
) -> None:
    loop.call_soon_threadsafe(stop)
    if callable(previous_handler):
        previous_handler(number, frame)


def make_host_router(bank: Bank, broadcaster: EventBroadcaster | None = None) -> HostRouter:
    """Return all endpoints of a bank's server; both APIs stream events from one broadcaster."""
    broadcaster = broadcaster or create_event_broadcaster(bank)
    partner = make_partner_app(bank, broadcaster)
    customer = create_customer_app(bank, broadcaster=broadcaster)
    auth = create_auth_app(bank)
    return HostRouter(
        bank.settings,
        partner=_with_faults(partner),
        auth=auth,
        customer=_with_faults(customer),
        pages=_make_pages_app(bank, partner, customer, auth=auth),
        cards=create_card_processor_app(bank),
        documentation=make_documentation_app(bank.settings, partner.document, _own_values(partner, customer, auth)),
    )


def _with_faults(api: PartnerApi | CustomerApi) -> AppWithLifespan:
    """Return an API; in a sandbox its requests meet the faults that were asked for."""
    if api.bank.settings.is_production:
        return api
    from billfold.sandbox.control import fault_injection  # noqa: PLC0415 - production does not import the sandbox

    return fault_injection.FaultyApi(api)


def _make_pages_app(bank: Bank, partner: PartnerApi, customer: CustomerApi, *, auth: AppWithLifespan) -> PagesApp:
    """Return the pages of a bank; in a sandbox with its control room."""
    if bank.settings.is_production:
        return create_pages_app(bank, customer, partner)
    from billfold.sandbox.control_room import room  # noqa: PLC0415 - production does not import the sandbox

    return create_pages_app(
        bank,
        customer,
        partner,
        packages=room.PACKAGES,
        given=room.given_by(partner, customer, auth=auth),
    )


def _own_values(partner: PartnerApi, customer: CustomerApi, auth: AppWithLifespan) -> OwnValues | None:
    """Return what fills in the samples of a sandbox's documentation."""
    if partner.bank.settings.is_production:
        return None
    from billfold.sandbox.control_room import room, sample_values  # noqa: PLC0415 - production does not import it

    return sample_values.SampleValues(room.signed_calls(partner, customer, auth=auth))


def make_documentation_app(
    settings: Settings, partner_document: Callable[[], Document], own_values: OwnValues | None = None
) -> DocumentationApp:
    """Return the documentation; it needs no bank."""
    documents: dict[str, Callable[[], Document]] = {
        "partner": partner_document,
        "customer": partial(customer_document, settings),
        "auth": partial(auth_document, settings),
    }
    tries_at = None if settings.is_production else settings.auth_origin
    return DocumentationApp(settings, documents, tries_at=tries_at, own_values=own_values)


def make_partner_app(bank: Bank, broadcaster: EventBroadcaster | None = None) -> PartnerApi:
    """Return the Partner API of a bank; in a sandbox with the sandbox's operations."""
    if bank.settings.is_production:
        return create_partner_app(bank, operations=partner_operations(), broadcaster=broadcaster)
    from billfold.sandbox.routes import operations  # noqa: PLC0415 - production does not import the sandbox

    api = operations.build_sandbox_app()
    operations.open_sandbox(api, bank, broadcaster)
    return api
