"""A program of a partner: it opens a Pocket for a customer, simulates a deposit, and reads the Pocket.

    python examples/partner.py

It reads `.billfold/sandbox.json`, which `make sandbox` writes, or that of `BILLFOLD_STATE_DIR`.
"""

import argparse
from pathlib import Path
from uuid import UUID

from billfold.client.partner_api import PartnerApi
from billfold.client.request_signature import PartnerAuth
from billfold.client.sandbox import local_client, read_sandbox, run_with_sandbox


def main() -> None:
    """Sign with the sandbox's credentials, and do what a partner does."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--box", type=Path, default=None)
    box = read_sandbox(options.parse_args().box)
    auth = PartnerAuth(
        url=box["partner_url"],
        username=box["username"],
        shared_secret=box["shared_secret"],
        private_key=box["private_key"],
        kid=box["kid"],
    )
    with local_client(box["partner_url"], box["ca_file"], auth) as http:
        show(PartnerApi(http), UUID(box["customer_id"]))


def show(api: PartnerApi, customer_id: UUID) -> None:
    """Open a Pocket, let a wire arrive, and show what became of it."""
    print(f"A customer: {api.customer(customer_id).name}")
    pocket = api.open_pocket(customer_id, "From the example", "UST-4W")
    portal = next(api.portals(pocket.id))
    print(f"Pay into {pocket.pocket_name}: {portal.routing_number} {portal.account_number}")
    api.simulate("wire", portal_id=portal.id, amount_usdc=10_000_00, sender_name="Contoso")
    shown = api.pocket(pocket.id).portfolio
    if shown is not None:
        for held in shown.securities:
            print(f"Holds {held.quantity} units of {held.description} at {held.mark_price}")
        print(f"Worth {shown.total_value.formatted}, of which cash {shown.cash.formatted}")


if __name__ == "__main__":
    run_with_sandbox(main)
