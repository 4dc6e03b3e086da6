"""Selects the application of a request by host name and path."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from litestar.types import Receive, Scope, Send

from billfold.http.edge.serve import AppWithLifespan
from billfold.http.raw_request import name_of
from billfold.platform.settings.settings import Settings

_PROTOCOL_PATHS = ("/api/", "/.well-known/")
_DOCS = "/docs"


class HostRouter:
    """ASGI: the Partner API, unless the host is that of the authorization server, customers or the card processor.

    The host of the authorization server has its endpoints and the sign-in `pages`. The documentation is on all hosts
    but that of the card processor.
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
        if self._documentation is not None and f"{scope['path']}/".startswith(f"{_DOCS}/"):
            return self._documentation
        if host == self._auth_host:
            is_protocol = scope["path"].startswith(_PROTOCOL_PATHS)
            return self._auth if is_protocol else self._pages
        return self._customer if host == self._customer_host else self._partner
