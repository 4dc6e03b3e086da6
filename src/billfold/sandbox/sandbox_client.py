"""A running sandbox called from outside, with the credentials it wrote down."""

from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from billfold.cli.context import CliError
from billfold.client.customer_api import CustomerApi
from billfold.client.dpop import DpopAuth
from billfold.client.oauth import Authorization, ClientRegistration
from billfold.client.partner_api import PartnerApi
from billfold.client.request_signature import PartnerAuth
from billfold.client.responses import ApiError
from billfold.client.sandbox import local_client
from billfold.sandbox.credentials_file import SandboxFile

_START_HINT = "Start it with `billfold sandbox`, in this folder or the one BILLFOLD_STATE_DIR names."


@contextmanager
def open_partner_api(box: SandboxFile) -> Iterator[PartnerApi]:
    """Lend the Partner API of a running sandbox. What fails inside is raised as CliError."""
    with cli_errors(), partner_http(box) as http:
        api = PartnerApi(http)
        api.bank_time()  # a stream would try again forever
        yield api


@contextmanager
def open_customer_api(box: SandboxFile) -> Iterator[CustomerApi]:
    """Lend the Customer API of a running sandbox. What fails inside is raised as CliError."""
    with cli_errors(), local_client(box.customer_url, box.ca_file, _service_credentials(box)) as http:
        yield CustomerApi(http)


def partner_http(box: SandboxFile) -> httpx.Client:
    """Return a client that signs as the sandbox's partner."""
    address = httpx.URL(box.base_url).host
    return local_client(box.partner_url, box.ca_file, partner_auth(box), address=address)


def partner_auth(box: SandboxFile) -> PartnerAuth:
    """Return what signs as the sandbox's partner."""
    names = ("username", "shared_secret", "private_key", "kid")
    return PartnerAuth(url=box.partner_url, **{name: getattr(box, name) for name in names})


def service_client(box: SandboxFile) -> ClientRegistration:
    """Return the program that acts for the sandbox's customer by itself."""
    client = next(each for each in box.clients if each.client_id == "sandbox-service")
    return ClientRegistration(
        issuer=box.auth_url, client_id=client.client_id, kid=client.kid, private_key=client.private_key
    )


def _service_credentials(box: SandboxFile) -> DpopAuth:
    authorization = Authorization(service_client(box))
    with local_client(box.auth_url, box.ca_file) as http:
        return DpopAuth(authorization, authorization.client_credentials(http, ["subscriptions.read"]))


@contextmanager
def cli_errors() -> Iterator[None]:
    """Say in a sentence what went wrong between us and the sandbox."""
    try:
        yield
    except ApiError as error:
        raise CliError(f"The sandbox answered {error}", "See `billfold doctor`.") from error
    except httpx.TransportError as error:
        raise CliError(f"The sandbox does not answer: {error}", _START_HINT) from error
