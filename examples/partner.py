"""A program of a partner: it opens a Pocket for a customer, simulates a deposit, and reads the Pocket.

    python examples/partner.py

It reads `.billfold/sandbox.json`, which `make sandbox` writes, or that of `BILLFOLD_STATE_DIR`.
"""

import argparse
from pathlib import Path

from billfold_client.local import local_client
from billfold_client.partner import PartnerApi
from billfold_client.sandbox import read_sandbox, run_with_sandbox
from billfold_client.signing import PartnerAuth


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
    # Of a bank elsewhere: httpx.Client(base_url=..., auth=auth)
    with PartnerApi(local_client(box["partner_url"], box["ca_file"], auth)) as api:
        show(api, box["customer_id"])


def show(api: PartnerApi, customer_id: str) -> None:
    """Open a Pocket, let a wire arrive, and show what became of it."""
    print(f"A customer: {api.get_customer(customer_id).name}")
    pocket = api.create_pocket(customer_id, pocket_name="From the example", deposit_strategy_id="UST-4W")
    portal = next(iter(api.list_portals(pocket.id)))
    print(f"Pay into {pocket.pocket_name}: {portal.routing_number} {portal.account_number}")
    api.sandbox_wire(portal_id=portal.id, amount_usdc=10_000_00, sender_name="Contoso")
    shown = api.get_pocket(pocket.id).portfolio
    if shown:
        for held in shown.securities:
            print(f"Holds {held.quantity} units of {held.description} at {held.mark_price}")
        print(f"Worth {shown.total_value.formatted}, of which cash {shown.cash.formatted}")


if __name__ == "__main__":
    run_with_sandbox(main)
