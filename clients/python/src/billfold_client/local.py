"""Connections to a bank on this machine: its host names end in `localhost`, its certificate is its own."""

import ssl
from pathlib import Path

import httpx
from typing_extensions import override

TIMEOUT_SECONDS = 120
"""Timeout: the clock of a sandbox takes time to advance over many days."""


def local_client(
    base_url: str, ca_file: Path | str, auth: httpx.Auth | None = None, *, address: str = "127.0.0.1"
) -> httpx.Client:
    """Return a client that connects to `https://api.localhost:8443` at an address of this machine."""
    transport = _AtAddress(ssl.create_default_context(cafile=str(ca_file)), address)
    return httpx.Client(base_url=base_url, auth=auth, transport=transport, timeout=TIMEOUT_SECONDS)


def local_async_client(
    base_url: str, ca_file: Path | str, auth: httpx.Auth | None = None, *, address: str = "127.0.0.1"
) -> httpx.AsyncClient:
    """Do the same for programs that await."""
    transport = _AsyncAtAddress(ssl.create_default_context(cafile=str(ca_file)), address)
    return httpx.AsyncClient(base_url=base_url, auth=auth, transport=transport, timeout=TIMEOUT_SECONDS)


class _AtAddress(httpx.HTTPTransport):
    """Connects to one address regardless of the host name of the request."""

    def __init__(self, context: ssl.SSLContext, address: str) -> None:
        super().__init__(verify=context)
        self._address = address

    @override
    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request."""
        return super().handle_request(_at(request, self._address))


class _AsyncAtAddress(httpx.AsyncHTTPTransport):
    def __init__(self, context: ssl.SSLContext, address: str) -> None:
        super().__init__(verify=context)
        self._address = address

    @override
    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request."""
        return await super().handle_async_request(_at(request, self._address))


def _at(request: httpx.Request, address: str) -> httpx.Request:
    """Return a request to an address; its Host header already names the host.

    The request is not changed: sending it again proves its address again.
    """
    return httpx.Request(
        request.method,
        request.url.copy_with(host=address),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": request.url.host},
    )
