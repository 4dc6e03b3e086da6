"""Clients of a sandbox, with the credentials that it has written into its folder."""

import json
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from billfold_client.customer import AsyncCustomerApi, CustomerApi
from billfold_client.dpop import DpopAuth
from billfold_client.keys import client_assertion
from billfold_client.local import local_async_client, local_client
from billfold_client.oauth import ASSERTION_TYPE, Authorization, ClientRegistration
from billfold_client.partner import AsyncPartnerApi, PartnerApi
from billfold_client.signing import PartnerAuth

_NODE_LOOKUP = """\
import dns from "node:dns";const lookup=dns.lookup;\
dns.lookup=(name,...rest)=>lookup(name.endsWith(".localhost")?"127.0.0.1":name,...rest)"""
"""Node.js leaves names below `localhost` to the system, which knows them on few machines; curl knows them itself."""


def sandbox_partner(file: Path | str | None = None) -> PartnerApi:
    """Return the Partner API of a sandbox, as its partner."""
    saved = read_sandbox(file)
    return PartnerApi(local_client(saved["partner_url"], saved["ca_file"], partner_auth(saved)))


def async_sandbox_partner(file: Path | str | None = None) -> AsyncPartnerApi:
    """Do the same for programs that await."""
    saved = read_sandbox(file)
    return AsyncPartnerApi(local_async_client(saved["partner_url"], saved["ca_file"], partner_auth(saved)))


def sandbox_customer(file: Path | str | None = None) -> CustomerApi:
    """Return the Customer API of a sandbox, as the service user of its customer."""
    saved = read_sandbox(file)
    auth = DpopAuth(_service_user(saved))
    return CustomerApi(local_client(saved["customer_url"], saved["ca_file"], auth))


def async_sandbox_customer(file: Path | str | None = None) -> AsyncCustomerApi:
    """Do the same for programs that await."""
    saved = read_sandbox(file)
    auth = DpopAuth(_service_user(saved))
    return AsyncCustomerApi(local_async_client(saved["customer_url"], saved["ca_file"], auth))


def partner_auth(saved: dict[str, Any]) -> PartnerAuth:
    """Return the signatures of the sandbox's partner."""
    names = ("username", "shared_secret", "private_key", "kid")
    return PartnerAuth(url=saved["partner_url"], **{name: saved[name] for name in names})


def registered(saved: dict[str, Any], client_id: str) -> ClientRegistration:
    """Return a client that the sandbox has registered: `sandbox-service`, `sandbox-fapi2`, ..."""
    found = next(each for each in saved["clients"] if each["client_id"] == client_id)
    return ClientRegistration(
        issuer=saved["auth_url"],
        client_id=found["client_id"],
        private_key=found["private_key"],
        kid=found["kid"],
        redirect_uri=next(iter(found["redirect_uris"]), ""),
    )


def _service_user(saved: dict[str, Any]) -> Authorization:
    return Authorization(registered(saved, "sandbox-service"))


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
