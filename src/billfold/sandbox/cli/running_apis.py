"""The APIs of a running sandbox, called with its own credentials. Errors inside are raised as CliError."""

from collections.abc import Iterator
from contextlib import contextmanager

from billfold.sandbox.running_sandbox import SandboxFile, cli_errors, customer_auth, partner_http
from billfold_client.customer import CustomerApi
from billfold_client.local import local_client
from billfold_client.partner import PartnerApi


@contextmanager
def open_partner_api(box: SandboxFile, *, attempts: int = 1) -> Iterator[PartnerApi]:
    """Yield the Partner API."""
    with cli_errors(), PartnerApi(partner_http(box), attempts=attempts) as api:
        yield api


@contextmanager
def open_customer_api(box: SandboxFile, *, attempts: int = 1) -> Iterator[CustomerApi]:
    """Yield the Customer API."""
    http = local_client(box.customer_url, box.ca_file, customer_auth(box))
    with cli_errors(), CustomerApi(http, attempts=attempts) as api:
        yield api
