"""A client of a sandbox: its host names end in `localhost`, its certificate is its own."""

from __future__ import annotations

import ssl
from pathlib import Path

import httpx
from typing_extensions import override


def local_client(
    base_url: str, ca_file: Path | str, auth: httpx.Auth | None = None
) -> httpx.Client:
    """Return a client that finds `https://api.localhost:8443` on this machine."""
    context = ssl.create_default_context(cafile=str(ca_file))
    return httpx.Client(base_url=base_url, auth=auth, transport=_ThisMachine(context), timeout=30)


class _ThisMachine(httpx.HTTPTransport):
    """Connects to this machine under whatever name the request is for."""

    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__(verify=context)

    @override
    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; its Host header says already whom it is for.

        The request itself stays as it is: whoever sends it once more proves its address anew.
        """
        here = httpx.Request(
            request.method,
            request.url.copy_with(host="127.0.0.1"),
            headers=request.headers,
            stream=request.stream,
            extensions={**request.extensions, "sni_hostname": request.url.host},
        )
        return super().handle_request(here)
