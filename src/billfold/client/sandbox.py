"""A client of a sandbox: its host names end in `localhost`, its certificate is its own."""

import json
import os
import shlex
import ssl
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
from typing_extensions import override

from billfold.client.dpop import DpopAuth
from billfold.client.keys import client_assertion
from billfold.client.oauth import ASSERTION_TYPE, Authorization, ClientRegistration
from billfold.client.request_signature import PartnerAuth

TIMEOUT_SECONDS = 120
"""Timeout: the clock of a sandbox takes time to advance over many days."""
_NODE_LOOKUP = """\
import dns from "node:dns";const lookup=dns.lookup;\
dns.lookup=(name,...rest)=>lookup(name.endsWith(".localhost")?"127.0.0.1":name,...rest)"""
"""Node.js leaves names below `localhost` to the system, which knows them on few machines; curl knows them itself."""


def sandbox_partner(file: Path | str | None = None) -> httpx.Client:
    """Return a client of a sandbox's Partner API that signs each request as the sandbox's partner."""
    saved = read_sandbox(file)
    auth = PartnerAuth(
        url=saved["partner_url"],
        username=saved["username"],
        shared_secret=saved["shared_secret"],
        private_key=saved["private_key"],
        kid=saved["kid"],
    )
    return local_client(saved["partner_url"], saved["ca_file"], auth)


def sandbox_customer(file: Path | str | None = None) -> httpx.Client:
    """Return a client of a sandbox's Customer API that acts as the service user of the sandbox's customer."""
    saved = read_sandbox(file)
    service = next(each for each in saved["clients"] if each["client_id"] == "sandbox-service")
    registration = ClientRegistration(
        issuer=saved["auth_url"],
        client_id=service["client_id"],
        private_key=service["private_key"],
        kid=service["kid"],
    )
    authorization = Authorization(registration)
    with local_client(saved["auth_url"], saved["ca_file"]) as http:
        tokens = authorization.client_credentials(http)
    return local_client(saved["customer_url"], saved["ca_file"], DpopAuth(authorization, tokens))


def local_client(
    base_url: str, ca_file: Path | str, auth: httpx.Auth | None = None, *, address: str = "127.0.0.1"
) -> httpx.Client:
    """Return a client that connects to `https://api.localhost:8443` at an address of this machine."""
    transport = _AtAddress(ssl.create_default_context(cafile=str(ca_file)), address)
    return httpx.Client(base_url=base_url, auth=auth, transport=transport, timeout=TIMEOUT_SECONDS)


class _AtAddress(httpx.HTTPTransport):
    """Connects to one address regardless of the host name of the request."""

    def __init__(self, context: ssl.SSLContext, address: str) -> None:
        super().__init__(verify=context)
        self._address = address

    @override
    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; its Host header already names the host.

        The request is not changed: sending it again proves its address again.
        """
        local_request = httpx.Request(
            request.method,
            request.url.copy_with(host=self._address),
            headers=request.headers,
            stream=request.stream,
            extensions={**request.extensions, "sni_hostname": request.url.host},
        )
        return super().handle_request(local_request)


def sandbox_auth_server(file: Path | str | None = None) -> httpx.Client:
    """Return a client of a sandbox's authorization server; each request proves its sender itself."""
    saved = read_sandbox(file)
    return local_client(saved["auth_url"], saved["ca_file"])


def environment(file: Path | str | None = None) -> dict[str, str]:
    """Return the variables that the documentation's samples read: addresses, a secret, and new tokens."""
    saved = read_sandbox(file)
    login = {name: saved[name] for name in ("username", "password")}
    with local_client(saved["partner_url"], saved["ca_file"]) as http:
        partner_token = http.post("/api/v1/login/", json=login).raise_for_status().json()["token"]
    form = {"grant_type": "client_credentials", **_client_proof(saved)}
    with local_client(saved["auth_url"], saved["ca_file"]) as http:
        customer_token = http.post("/api/oauth2/token", data=form).raise_for_status().json()["access_token"]
    proof = {name.upper(): value for name, value in _client_proof(saved).items()}
    return {
        "PARTNER_URL": saved["partner_url"],
        "PARTNER_TOKEN": partner_token,
        "PARTNER_SECRET": saved["shared_secret"],
        "CUSTOMER_URL": saved["customer_url"],
        "CUSTOMER_TOKEN": customer_token,
        "AUTH_URL": saved["auth_url"],
        **proof,
        "CURL_CA_BUNDLE": saved["ca_file"],
        "NODE_EXTRA_CA_CERTS": saved["ca_file"],
        "NODE_OPTIONS": f"--import=data:text/javascript,{quote(_NODE_LOOKUP)}",
    }


def _client_proof(saved: dict[str, Any]) -> dict[str, str]:
    """Return the assertion of the client that may use bearer tokens, valid once, within five minutes."""
    client = next(each for each in saved["clients"] if each["client_id"] == "sandbox-bearer")
    assertion = client_assertion(
        client["client_id"],
        saved["auth_url"],
        private_key=client["private_key"],
        kid=client["kid"],
        lifetime_seconds=300,
    )
    return {"client_assertion_type": ASSERTION_TYPE, "client_assertion": assertion}


def sandbox_file() -> Path:
    """Return the folder with the addresses and credentials of a sandbox: `.billfold`, or `BILLFOLD_STATE_DIR`."""
    return Path(os.environ.get("BILLFOLD_STATE_DIR") or ".billfold", "sandbox.json")


def read_sandbox(file: Path | str | None = None) -> dict[str, Any]:
    """Return the addresses and credentials of a sandbox. Raises FileNotFoundError."""
    saved: dict[str, Any] = json.loads(Path(file or sandbox_file()).read_text(encoding="utf-8"))
    return saved


def run_with_sandbox(main: Callable[[], None]) -> None:
    """Run a program that uses a sandbox; if none runs, exit with the way to start one."""
    try:
        main()
    except (FileNotFoundError, httpx.ConnectError):
        sys.exit(
            "No sandbox runs here. Start one with `make sandbox`, or set BILLFOLD_STATE_DIR to the folder of yours."
        )


if __name__ == "__main__":
    for variable, value in environment().items():
        sys.stdout.write(f"export {variable}={shlex.quote(value)}\n")
