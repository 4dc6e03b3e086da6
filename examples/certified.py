"""A client under test: it does the tasks of `billfold certify api` with the Python client, one a run.

    billfold certify api "python examples/certified.py"
    billfold certify api "python examples/certified.py --customer" --customer

A task is JSON on standard input. Exit status 0 means that it is done.
"""

import json
import sys
from typing import Any
from uuid import uuid4

from billfold_client.customer import CustomerApi
from billfold_client.partner import PartnerApi
from billfold_client.sandbox import run_with_sandbox, sandbox_customer, sandbox_partner


def main() -> None:
    """Do one task as the sandbox's partner, or as the service user of its customer."""
    task = json.load(sys.stdin)
    if task["do"] == "credentials":
        return  # Each run reads the sandbox's file, which has them.
    if "--customer" in sys.argv[1:]:
        with sandbox_customer() as customer:
            print(*perform_as_customer(customer, task), sep="\n")
    else:
        with sandbox_partner() as partner:
            print(*perform(partner, task), sep="\n")


def perform(api: PartnerApi, task: dict[str, Any]) -> list[str]:
    """Return what is asked for. Raises ApiError if the bank refuses, TransportError if it does not answer."""
    if task["do"] == "pay":
        return [pay(api, task)]
    if task["do"] == "list":
        day = {"time_booked_from": task["day"], "time_booked_to": task["day"]} if "day" in task else {}
        rows = api.list_pocket_transactions(task["pocket_id"], **day)
        # A type that this client does not know yet is a dictionary.
        return [str(row["id"] if isinstance(row, dict) else row.id) for row in rows]
    return [str(api.get_ach_origination(task["pocket_id"], task["transfer_id"]).status)]


def pay(api: PartnerApi, task: dict[str, Any]) -> str:
    """Pay, and return the id of the transfer. A program in use keeps `idempotency_key` before it sends anything."""
    transfer = api.create_on_us_transfer(
        type="PEER_TO_PEER",
        from_account={"id": task["pocket_id"]},
        counterparty_id=task["counterparty_id"],
        amount={"type": "REQUESTED_AMOUNT", "amount_usdc": task["amount_cents"]},
    )
    if transfer.status != "COMPLETED":
        raise SystemExit(f"The bank answered {transfer.status} {transfer.reason}.")
    return str(transfer.id)


def perform_as_customer(api: CustomerApi, task: dict[str, Any]) -> list[str]:
    """Do the same over the Customer API, where others may have to approve a transfer."""
    if task["do"] == "pay":
        requested = api.create_transfer_request(
            transfer={
                "type": "ON_US",
                "id": str(uuid4()),
                "origin_pocket_id": task["pocket_id"],
                "amount": {"type": "REQUESTED_AMOUNT", "amount_usdc": task["amount_cents"]},
                "details": {"type": "PEER_TO_PEER", "destination_counterparty_id": task["counterparty_id"]},
            },
            reviewers=[],
        )
        return [str(requested.id)]
    if task["do"] == "events":
        return [str(each.event.event_id) for each in api.list_events()]
    day = {"time_booked_from": task["day"], "time_booked_to": task["day"]} if "day" in task else {}
    rows = api.list_transactions(pocket=[task["pocket_id"]], **day)
    return [str(row["id"] if isinstance(row, dict) else row.id) for row in rows]


if __name__ == "__main__":
    run_with_sandbox(main)
