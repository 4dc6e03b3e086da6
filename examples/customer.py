"""A program of a company: it works with the company's Pockets over the Customer API.

    python examples/customer.py             acts by itself, as a service user
    python examples/customer.py --sign-in   asks you first, in your browser

It reads `.billfold/sandbox.json`, which `make sandbox` writes, or that of `BILLFOLD_STATE_DIR`.
"""

import argparse
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import islice
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from billfold_client.customer import CustomerApi
from billfold_client.dpop import DpopAuth
from billfold_client.local import local_client
from billfold_client.oauth import Authorization, Tokens
from billfold_client.sandbox import read_sandbox, registered, run_with_sandbox

SCOPES = ("openid", "profile", "customer.read", "pockets.read", "pockets.write")


def main() -> None:
    """Get a token that is bound to a key of this program, and use it."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sign-in", action="store_true", help="ask a user in the browser")
    options.add_argument("--box", type=Path, default=None)
    asked = options.parse_args()
    box = read_sandbox(asked.box)
    authorization = Authorization(registered(box, "sandbox-fapi2" if asked.sign_in else "sandbox-service"))
    with local_client(box["auth_url"], box["ca_file"]) as http:
        tokens = signed_in(authorization, http) if asked.sign_in else authorization.client_credentials(http)
        print(f"A {tokens.token_type} token, bound to {authorization.key.thumbprint}")
    auth = DpopAuth(authorization, tokens)
    with CustomerApi(local_client(box["customer_url"], box["ca_file"], auth)) as api:
        show(api)


def signed_in(authorization: Authorization, http: httpx.Client) -> Tokens:
    """Let a user agree in his browser, and exchange the code he comes back with."""
    begun = authorization.begin(http, SCOPES)
    print(f"Open this address and sign in:\n\n  {begun.url}\n")
    print("The sandbox has said as whom. Tell your browser to trust its certificate.")
    return authorization.finish(http, begun, came_back(authorization.redirect_uri))


def came_back(redirect_uri: str) -> str:
    """Wait for the browser at this program's own address; return what it brought."""
    brought = []

    class Landing(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            brought.append(self.path)
            # Without a line in the log: the address holds a code.
            self.send_response_only(200)
            self.end_headers()
            self.wfile.write(b"Go back to the program.")

    where = urlsplit(redirect_uri)
    with HTTPServer((where.hostname or "127.0.0.1", where.port or 80), Landing) as server:
        while not brought or not brought[-1].startswith(where.path):
            server.handle_request()
    return brought[-1]


def show(api: CustomerApi) -> None:
    """Open a Pocket and show all there is."""
    company = api.get_customer()
    print(f"{company.name} ({company.account_status})")
    opened = api.create_pocket(
        pocket_name="From the example", trading_strategy_id="UST-13W", idempotency_key="examples/customer.py"
    )
    portal = next(iter(api.list_portals(opened.id)))
    print(f"Pay into {opened.pocket_name}: {portal.routing_number} {portal.account_number}")
    for pocket in api.list_pockets():
        value = pocket.portfolio.total_value.formatted if pocket.portfolio else "-"
        print(f"{pocket.pocket_name:<24}{pocket.deposit_strategy_id:<8}{value:>16}")
    print(f"Earned this month: {api.list_earnings(period='mtd').aggregate.earnings.formatted}")
    for transaction in islice(api.list_transactions(limit=5), 5):
        print(f"{transaction.time_booked:%Y-%m-%d %H:%M} {transaction.amount.formatted:>16}  "
              f"{transaction.title}")  # fmt: skip


if __name__ == "__main__":
    run_with_sandbox(main)
