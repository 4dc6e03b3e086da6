"""A client of a sandbox: its host names end in `localhost`, its certificate is its own."""

from __future__ import annotations

import ssl
from pathlib import Path

import httpx
from typing_extensions import override

TIMEOUT_SECONDS = 120
"""The clock of a sandbox takes its time over many days."""


def local_client(
    base_url: str, ca_file: Path | str, auth: httpx.Auth | None = None, *, address: str = "127.0.0.1"
) -> httpx.Client:
    """Return a client that finds `https://api.localhost:8443` at an address of this machine."""
    transport = _AtAddress(ssl.create_default_context(cafile=str(ca_file)), address)
    return httpx.Client(base_url=base_url, auth=auth, transport=transport, timeout=TIMEOUT_SECONDS)


class _AtAddress(httpx.HTTPTransport):
    """Connects to one address under whatever name the request is for."""

    def __init__(self, context: ssl.SSLContext, address: str) -> None:
        super().__init__(verify=context)
        self._address = address

    @override
    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; its Host header says already whom it is for.

        The request itself stays as it is: whoever sends it once more proves its address anew.
        """
        local_request = httpx.Request(
            request.method,
            request.url.copy_with(host=self._address),
            headers=request.headers,
            stream=request.stream,
            extensions={**request.extensions, "sni_hostname": request.url.host},
        )
        return super().handle_request(local_request)
