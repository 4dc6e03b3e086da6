"""What surrounds every answer: https only, a trace id, the headers of a careful server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from billfold.interfaces.http.answers import answer_to, problem
from billfold.interfaces.http.arrivals import Arrival, attach
from billfold.interfaces.http.hosts import client_of, is_trusted
from billfold.kit import ids

if TYPE_CHECKING:
    from litestar.types import ASGIApp, HTTPScope, Receive, Scope, Send

    from billfold.kit.settings import Settings

TRACE_HEADER = b"x-service-trace-id"
CAREFUL = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"strict-transport-security", b"max-age=31536000"),
    (b"cache-control", b"no-store"),
)
HTTPS_REQUIRED = "Only https is accepted. What this request carried counts as seen by others."


class Frame:
    """The outermost layer. Nothing gets out of it as an exception."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._proxies = settings.trusted_proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        http = cast("HTTPScope", scope)
        peer = (scope.get("client") or ("", 0))[0]
        arrival = Arrival(http, ids.new().hex, peer)
        if self._proxies:
            arrival.client = client_of(peer, arrival.header(b"x-forwarded-for"), self._proxies)
        attach(http, arrival)
        started = False

        async def framed(message: Any) -> None:  # noqa: ANN401 - a message of ASGI
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                trace = (TRACE_HEADER, arrival.trace_id.encode())
                message["headers"] = [*message["headers"], *CAREFUL, trace]
            await send(message)

        try:
            if self._is_plain(http, arrival, peer):
                refusal = problem(
                    "https-required", HTTPS_REQUIRED, arrival, (b"connection", b"close")
                )
                await refusal.send(framed)
            else:
                await self._app(scope, receive, framed)
        except Exception as error:
            answer = answer_to(error, arrival)
            if started:
                raise
            await answer.send(framed)

    def _is_plain(self, scope: HTTPScope, arrival: Arrival, peer: str) -> bool:
        """Tell whether the request came over plain http, on its last way or before a proxy."""
        forwarded = None
        if self._proxies and is_trusted(peer, self._proxies):
            forwarded = arrival.header(b"x-forwarded-proto")
        return (forwarded or scope["scheme"]) != "https"
