"""A client under test: it does the tasks of `billfold certify api` with the Python client, one a run.

    billfold certify api "python examples/certified.py"

A task is JSON on standard input. Exit status 0 means that it is done.
"""

import json
import sys
from typing import Any

from billfold_client.partner import PartnerApi
from billfold_client.sandbox import run_with_sandbox, sandbox_partner


def main() -> None:
    """Do one task as the sandbox's partner."""
    with sandbox_partner() as api:
        print(*perform(api, json.load(sys.stdin)), sep="\n")


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


if __name__ == "__main__":
    run_with_sandbox(main)
