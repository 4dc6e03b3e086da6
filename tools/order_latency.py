#!/usr/bin/env python
"""Measures the time from a customer's trade to its order at a dealer, on the running sandbox of BILLFOLD_STATE_DIR.

`python -m tools.order_latency 10`: 20 wires buy bills at moments spread over the interval of the desk, 10 seconds here.
The clock of a trade begins before its request is sent, and ends when its order is in the books of a dealer.
"""

import json
import os
import sys
import time
from pathlib import Path

from billfold.sandbox.dealers.books import DEALERS
from billfold.sandbox.dealers.launch import DEALER_FOLDER
from billfold.sandbox.running_sandbox import partner_http, require_sandbox_file

_TRADES, _CENTS, _POLL_SECONDS, _TIMEOUT_SECONDS = 20, 150_000_00, 0.002, 120.0
_GOLDEN = 0.618034


def _orders(state: Path) -> set[str]:
    """Return the orders that are in the books of the dealers."""
    found = set()
    for dealer in DEALERS:
        path = state / DEALER_FOLDER / dealer / "books.jsonl"
        lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        orders = (json.loads(line).get("order") for line in lines if line.endswith(b"\n"))
        found |= {each["order_id"] for each in orders if each}
    return found


def main(interval: float) -> None:
    """Trade, and print the latencies."""
    state = Path(os.environ.get("BILLFOLD_STATE_DIR", ".billfold"))
    taken = []
    with partner_http(require_sandbox_file(state)) as http:
        customer = http.post("/api/v1/sandbox/customers/", json={"name": "Order latency"}).json()["id"]
        body = {"pocket_name": "Trades", "deposit_strategy_id": "UST-4W"}
        pocket = http.post(f"/api/v2/customers/{customer}/pockets/", json=body).json()["id"]
        portal = http.get(f"/api/v2/pockets/{pocket}/portals/").json()["items"][0]["id"]
        wire = {"portal_id": portal, "amount_usdc": _CENTS, "sender_name": "Order latency"}
        for nth in range(_TRADES):
            time.sleep(nth * _GOLDEN % 1 * interval)  # moments that are spread over the interval
            known, began = _orders(state), time.monotonic()
            http.post("/api/v1/sandbox/wire/", json=wire).raise_for_status()
            while not _orders(state) - known:
                if time.monotonic() - began > _TIMEOUT_SECONDS:
                    sys.exit("No order came. Is the market open, and the session on?")
                time.sleep(_POLL_SECONDS)
            taken.append(time.monotonic() - began)
    taken.sort()
    sys.stdout.write(f"{_TRADES} trades: median {taken[_TRADES // 2]:.2f} s, largest {taken[-1]:.2f} s\n")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 60.0)
