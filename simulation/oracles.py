"""The truths of the end, from the documents of the bank: none of its code for money is used."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection
from typing import Any

FACE_CENTS = 100_00
MICROS = 1_000_000
"""Prices are millionths of a dollar per $100 of face."""
YIELD_MAX = 0.20
UNITS_PER_CENT, MINIMUM_CENTS = 10_000, 100
"""Of a token, and of a deposit that is credited at once."""
REFUSED_CENTS = 3
"""The last cents of an entry that the other bank returns."""
_MOVED = """
SELECT pocket_id::text, type, title, CASE direction WHEN 'CREDIT' THEN amount ELSE -amount END AS cents,
       customer_id::text, entry_no FROM transaction
 WHERE settles_at < '2999-01-01' AND title NOT LIKE 'Shortfall %' ORDER BY customer_id, entry_no, posting_no
"""
"""Without holds of cards, and what the bank advances: that is in the account `owed`."""
_TRADED = """
SELECT pocket_id::text, activity, incoming, cusip, units, price_micros, notional, traded_at
  FROM trade ORDER BY customer_id, entry_no, trade_no
"""
_RETURNED = """
SELECT original_wire_id::text AS payment, array_agg(amount) AS amounts FROM wire
 WHERE wire_type = 'RETURN' AND direction = 'INCOMING' GROUP BY 1
"""
_RETURNED_LATE = "SELECT amount FROM suspense_item WHERE reason LIKE '%(R68)%'"
"""Returns of entries after their time: their money is held."""
_FAILED = "SELECT ach_id AS id FROM ach_entry WHERE status = 'FAILED'"
_HELD = """
SELECT pocket_id::text, kind, asset, sum(credits - debits)::bigint AS amount FROM account
 WHERE kind IN ('cash', 'lot', 'owed') GROUP BY 1, 2, 3
"""
_LATE = """
SELECT (SELECT count(*) FROM ledger_head WHERE due_at <= $1 AND customer_id <> ALL($2)) AS customers,
       (SELECT count(*) FROM scheduled_job WHERE due_at <= $1 AND coalesce(customer_id, object_id) <> ALL($2)) AS jobs,
       (SELECT count(*) FROM transfer WHERE status = 'PENDING') AS transfers,
       (SELECT count(*) FROM wire WHERE status = 'PENDING' AND send_at <= $1
            OR status = 'PROCESSING' AND updated_at <= $1 - interval '5 minutes') AS wires,
       (SELECT count(*) FROM ach_entry
         WHERE status = 'APPROVED' AND due_at <= $1 OR status = 'IN_TRANSIT' AND settled_at <= $1) AS entries,
       (SELECT count(*) FROM rail_file WHERE done_at IS NULL) AS files,
       (SELECT count(*) FROM crypto_withdrawal WHERE status IN ('PENDING', 'PROCESSING')) AS withdrawals,
       (SELECT count(*) FROM chain_transfer WHERE status = 'PENDING') AS deposits,
       (SELECT count(*) FROM failed_work WHERE kind LIKE 'deposit on %') AS failed_deposits,
       (SELECT count(*) FROM delivery WHERE state = 'pending' AND subscription_id <> ALL($2)) AS deliveries,
       (SELECT count(*) FROM report_request WHERE status IN ('PENDING', 'PROCESSING')) AS reports,
       (SELECT count(*) FROM outbound_email WHERE sent_at IS NULL AND email_id <> ALL($2)) AS emails
"""


class WrongBank(AssertionError):
    """The bank did what it must not do."""


class Model:
    """The acknowledged amounts: cents into and out of each Pocket, each exactly once.

    A wire or entry whose answer says REJECTED, as of a sandbox's sanctioned amount, is not told: it books nothing.
    """

    def __init__(self) -> None:
        self.booked: defaultdict[str, Counter[int]] = defaultdict(Counter)
        self.transfers: dict[str, tuple[str, str, int]] = {}
        self.wires: dict[str, tuple[str, int]] = {}
        self.entries: dict[str, tuple[str, int]] = {}
        self.returned: defaultdict[str, list[int]] = defaultdict(list)
        """The amounts that other banks sent back of each payment. What is more than it was is not booked."""
        self.reports: set[str] = set()
        self.unsure: set[str] = set()
        """Transfers and wires that need not be there: they were asked for, and may have been executed."""

    def book(self, pocket: str, cents: int) -> None:
        """Remember that this was acknowledged, once."""
        self.booked[pocket][cents] += 1

    def forget(self, transfer: str) -> None:
        """Expect nothing of a transfer or wire that was refused."""
        self.transfers.pop(transfer, None)
        self.wires.pop(transfer, None)

    async def expected(self, conn: Any) -> dict[str, Counter[int]]:
        """Return the amounts of each Pocket, with those whose result is known only in the end."""
        booked: defaultdict[str, Counter[int]] = defaultdict(Counter)
        for pocket, amounts in self.booked.items():
            booked[pocket] += amounts
        results = {
            str(row["id"]): row["status"]
            for row in await conn.fetch(
                "SELECT transfer_id AS id, status FROM transfer"
                " UNION ALL SELECT wire_id, status FROM wire WHERE entry_no IS NOT NULL OR status <> 'REJECTED'"
                " UNION ALL SELECT ach_id, status FROM ach_entry"
                " UNION ALL SELECT withdrawal_id, status FROM crypto_withdrawal"
            )
        }
        for transfer, (origin, there, cents) in self.transfers.items():
            require(
                transfer in results or transfer in self.unsure, f"the acknowledged transfer {transfer} is not there"
            )
            if results.get(transfer) == "COMPLETED" and origin != there:
                booked[origin][-cents] += 1
                booked[there][cents] += 1
        for payment, (origin, cents) in (self.wires | self.entries).items():
            require(payment in results or payment in self.unsure, f"the acknowledged payment {payment} is not there")
            if payment not in results:
                continue
            booked[origin][-cents] += 1
            if results[payment] in {"REJECTED", "FAILED", "CANCELLED"}:
                booked[origin][cents] += 1
        came = {row["payment"]: row["amounts"] for row in await conn.fetch(_RETURNED)}
        for payment in (came.keys() | self.returned.keys()) - self.entries.keys():
            (origin, cents), taken = self.wires[payment], Counter[int](came.get(payment, ()))
            refused, rest = Counter(self.returned[payment]) - taken, cents - sum(came.get(payment, ()))
            require(taken <= Counter(self.returned[payment]) and rest >= 0, f"{taken} came back of the wire {payment}")
            require(all(each > rest for each in refused), f"{refused} did not come back of the wire {payment}")
            booked[origin] += taken
        return booked

    async def check_entries(self, conn: Any) -> None:
        """Each entry that the other bank returned in time has failed, and no other."""
        late = {row["amount"] for row in await conn.fetch(_RETURNED_LATE)}
        failed = {str(row["id"]) for row in await conn.fetch(_FAILED)}
        for entry, (_, cents) in self.entries.items():
            if entry in failed:
                require(entry in self.returned or cents % 100 == REFUSED_CENTS, f"nobody returned the entry {entry}")
            else:
                require(entry not in self.returned or cents in late, f"the return of the entry {entry} is not booked")


def require(holds: bool, text: str) -> None:
    """Raise WrongBank unless this holds."""
    if not holds:
        raise WrongBank(text)


async def check_reports(conn: Any, model: Model) -> None:
    """Each report whose request was acknowledged is made, or has failed for a reason that passes."""
    made = await conn.fetch(
        "SELECT report_request_id::text AS id FROM report_request"
        " WHERE status = 'COMPLETED' OR failure_reason IN ('STORAGE_UNAVAILABLE', 'INTERRUPTED')"
    )
    missing = model.reports - {row["id"] for row in made}
    require(not missing, f"reports that were not made: {sorted(missing)[:3]}")


async def check_money(conn: Any, model: Model) -> None:
    """Each acknowledged amount is booked once, and nothing else; cash and bills follow from what was booked."""
    moved, expected = await conn.fetch(_MOVED), await model.expected(conn)
    await model.check_entries(conn)
    booked: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for row in moved:
        if row["type"] != "FEE" and row["title"] != "Crypto deposit":
            booked[row["pocket_id"]][row["cents"]] += 1
    on_us = sum(row["cents"] for row in moved if row["type"] == "ON_US")
    require(not on_us, f"between customers {on_us} cents appeared")
    for pocket in expected.keys() | booked.keys():
        missing, extra = expected[pocket] - booked[pocket], booked[pocket] - expected[pocket]
        require(not missing and not extra, f"Pocket {pocket}: not booked {dict(missing)}, not asked {dict(extra)}")
    await _check_causes(conn, moved)


async def _check_causes(conn: Any, moved: Any) -> None:
    """The cash and the bills of each Pocket are the sum of what was booked and traded."""
    cash: Counter[str] = Counter()
    units: Counter[tuple[str, str]] = Counter()
    for row in moved:
        cash[row["pocket_id"]] += row["cents"]
    for row in await conn.fetch(_TRADED):
        _check_price(row)
        came = row["activity"] == "BUY" or (row["activity"].endswith("TRANSFER") and row["incoming"])
        units[row["pocket_id"], row["cusip"]] += row["units"] if came else -row["units"]
        if not row["activity"].endswith("TRANSFER"):
            cash[row["pocket_id"]] += -row["notional"] if came else row["notional"]
    for row in await conn.fetch(_HELD):
        if row["kind"] == "lot":
            units[row["pocket_id"], row["asset"]] -= row["amount"]
        else:
            cash[row["pocket_id"]] -= row["amount"]
    require(not any(cash.values()), f"cash without a cause: { {k: v for k, v in cash.items() if v} }")
    require(not any(units.values()), f"bills without a cause: { {k: v for k, v in units.items() if v} }")


def _check_price(row: Any) -> None:
    """A bill matures at par, costs less before, and its notional is its price."""
    price, par = row["price_micros"], 100 * MICROS
    if row["activity"] == "MATURITY":
        require(row["notional"] == row["units"] * FACE_CENTS, f"not at par: {dict(row)}")
    elif row["activity"] in {"BUY", "SELL"}:
        require(par * (1 - YIELD_MAX) < price <= par, f"no price of a bill: {dict(row)}")
        exact = row["units"] * price / 10_000
        require(abs(row["notional"] - exact) <= 1, f"not its price: {dict(row)}")


async def check_nothing_for_free(conn: Any) -> None:
    """At one instant nobody can sell a bill for more than it costs."""
    dearest: dict[tuple[str, Any], int] = {}
    cheapest: dict[tuple[str, Any], int] = {}
    for row in await conn.fetch(_TRADED):
        at = row["cusip"], row["traded_at"]
        if row["activity"] == "SELL":
            dearest[at] = max(row["price_micros"], dearest.get(at, 0))
        elif row["activity"] == "BUY":
            cheapest[at] = min(row["price_micros"], cheapest.get(at, 100 * MICROS))
    for at in dearest.keys() & cheapest.keys():
        require(dearest[at] <= cheapest[at], f"{at} is sold at {dearest[at]} and bought at {cheapest[at]}")


async def check_holds(conn: Any, held: dict[tuple[str, str], int], now: Any) -> None:
    """The bank holds for each purchase, by card and reference, what the network counts on, until that expires."""
    rows = await conn.fetch("SELECT card_id::text, network_reference, remaining, expires_at FROM card_authorization")
    found = {(row["card_id"], row["network_reference"]): row for row in rows}
    require(found.keys() <= held.keys(), f"purchases that nobody made: {sorted(found.keys() - held.keys())[:3]}")
    for purchase, cents in held.items():
        row = found.get(purchase)
        has = 0 if row is None else row["remaining"]
        is_over = row is not None and not has and row["expires_at"] <= now
        require(has == cents or is_over, f"for the purchase {purchase} {has} is held, not {cents}")


async def check_chain(conn: Any, arrived: Counter[str], paid: Counter[tuple[str, int]], payees: dict[str, str]) -> None:
    """Units that arrived for a Pocket are credited but for less than the minimum; the bank paid each withdrawal once.

    `paid` is the transfers of the bank's wallet: to which address how many units.
    """
    credited: Counter[str] = Counter()
    for row in await conn.fetch(_MOVED):
        if row["title"] == "Crypto deposit":
            require(row["cents"] >= MINIMUM_CENTS, f"less than the minimum is credited: {dict(row)}")
            credited[row["pocket_id"]] += row["cents"] * UNITS_PER_CENT
    for pocket in arrived.keys() | credited.keys():
        left = arrived[pocket] - credited[pocket]
        require(0 <= left < MINIMUM_CENTS * UNITS_PER_CENT, f"of the USDC of Pocket {pocket} {left} units are left")
    done = await conn.fetch("SELECT customer_id::text, amount FROM crypto_withdrawal WHERE status = 'COMPLETED'")
    asked = Counter((payees[row["customer_id"]], row["amount"] * UNITS_PER_CENT) for row in done)
    require(asked == paid, f"not paid on the chain {asked - paid}, paid for nothing {paid - asked}")
    losses = await conn.fetchval("SELECT coalesce(sum(credits - debits), 0) FROM account WHERE kind = 'losses'")
    require(not losses, f"everything is on the chain again, and {losses} cents are lost")


async def check_overdrafts(conn: Any, forced: Counter[str]) -> None:
    """A Pocket owes at most what was taken from it without the bank's approval."""
    for row in await conn.fetch(_HELD):
        owed = -row["amount"] if row["kind"] == "owed" else 0
        require(owed <= forced[row["pocket_id"]], f"Pocket {row['pocket_id']} owes {owed} after approvals by the bank")


async def late(conn: Any, now: Any, apart: Collection[Any]) -> dict[str, int]:
    """Return what is due and not done, counted by kind; not what always fails, which is set `apart`."""
    row = await conn.fetchrow(_LATE, now, list(apart))
    return {kind: count for kind, count in row.items() if count}


class Receiver:
    """A receiver of webhooks: each event arrives, first in order but for those that it refused, and never changed.

    `raised_before` is the number of events before it subscribed, of which it receives the last ones or none.
    """

    def __init__(self) -> None:
        self.seen: dict[str, Any] = {}
        self.wrong: list[str] = []
        self.raised_before = 0
        self._refused: set[int] = set()
        self._next = 0

    def _begin(self, event: Any) -> None:
        self._next = self._next or min(event["sequence"], self.raised_before + 1)

    def refuse(self, event: Any) -> None:
        """Send a delivery back: later ones may overtake it."""
        self._begin(event)
        self._refused.add(event["sequence"])

    def receive(self, event: Any) -> None:
        """Take a delivery. An error here would be the worker's, so mistakes are kept for the end."""
        if self.seen.setdefault(event["event_id"], event) != event:
            self.wrong.append(f"event {event['event_id']} has changed")
        self._begin(event)
        overtaken = set(range(self._next, event["sequence"])) - self._refused
        if overtaken:
            self.wrong.append(f"event {event['sequence']} overtook {sorted(overtaken)}")
        self._next = max(self._next, event["sequence"] + 1)

    async def check(self, conn: Any) -> None:
        """Check that every event has arrived."""
        require(not self.wrong, f"webhooks: {self.wrong[:3]}")
        there = await conn.fetchval("SELECT coalesce(max(partner_sequence), 0) FROM event_sequence")
        arrived = sorted(event["sequence"] for event in self.seen.values())
        first = min(self.raised_before + 1, *arrived) if arrived else 1
        require(arrived == list(range(first, there + 1)), f"of events {first} to {there} {len(arrived)} have arrived")
