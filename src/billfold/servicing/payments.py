"""The way of a wire or an ACH entry: a sentence for the customer on the telephone, and the steps behind it."""

from datetime import datetime
from typing import NamedTuple

from billfold.payments.ach.commands import AchEntry, AchStatus
from billfold.payments.wires.commands import WireDirection, WireRow, WireStatus
from billfold.platform.database.connection import Connection
from billfold.platform.money import format_usd

_MESSAGES = """
SELECT kind, send_at, sent_at, imad, file_id FROM wire_message WHERE wire_id = $1 ORDER BY send_at, message_id LIMIT 20
"""
_RETURNS = """
SELECT wire_id, amount, status, created_at FROM wire WHERE customer_id = $1 AND original_wire_id = $2
 ORDER BY created_at LIMIT 20
"""
_CASES = """
SELECT case_id, status, reason, opened_at, closed_at FROM wire_case WHERE wire_id = $1 ORDER BY opened_at LIMIT 20
"""

_WIRES = {
    WireStatus.PENDING: "It waits for the next file to the Fed.",
    WireStatus.PROCESSING: "It was sent, and the Fed has not confirmed it yet.",
    WireStatus.COMPLETED: "The Fed has credited the bank of the payee, which finds it by the IMAD.",
}
_ENTRIES = {
    AchStatus.PENDING: "It waits for a review by the bank.",
    AchStatus.APPROVED: "It leaves with the next file of the network.",
    AchStatus.IN_TRANSIT: "It is with the network and has not settled yet.",
    AchStatus.PROCESSED: "It has settled. It can still be returned.",
}


class Step(NamedTuple):
    """A step on the way of a payment; `at` None has not been reached. `link` is where its evidence is."""

    what: str
    at: datetime | None
    detail: str = ""
    link: str = ""


class Way(NamedTuple):
    """The place of a payment."""

    sentence: str
    steps: list[Step]


async def find_way_of_wire(conn: Connection, wire: WireRow) -> Way:
    """Return where a wire is, with its messages, returns and cases."""
    is_out = wire.direction == WireDirection.OUTGOING
    steps = [Step("Requested" if is_out else "Received", wire.created_at, wire.reference_number)]
    for kind, send_at, sent_at, imad, file_id in await conn.fetch(_MESSAGES, wire.wire_id):
        link = f"/bank/rails/{file_id}" if file_id else ""
        what = f"Sent to the Fed, {kind}" if sent_at else f"To be sent to the Fed, {kind}"
        steps.append(Step(what, sent_at or send_at, imad or "", link))
    if wire.settled_at:
        steps.append(Step("Completed", wire.settled_at, wire.omad or "" if is_out else ""))
    if wire.status == WireStatus.REJECTED:
        steps.append(Step("Rejected", wire.updated_at, _words(wire.reason)))
    for wire_id, amount, status, at in await conn.fetch(_RETURNS, wire.customer_id, wire.wire_id):
        link = f"/bank/customers/{wire.customer_id}/wire/{wire_id}"
        steps.append(Step(f"Returned, {status.lower()}", at, format_usd(amount), link))
    for case_id, status, reason, opened_at, closed_at in await conn.fetch(_CASES, wire.wire_id):
        steps.append(Step(f"Case {status.lower()}", closed_at or opened_at, f"{_words(reason)} ({case_id})"))
    return Way(_sentence_of_wire(wire), sorted(steps, key=lambda each: each.at or wire.created_at))


def way_of_entry(entry: AchEntry) -> Way:
    """Return where an ACH entry is."""
    is_ours = entry.way == "ORIGINATION"
    link = f"/bank/rails/{entry.file_id}" if entry.file_id else ""
    steps = [
        Step("Requested" if is_ours else "Received", entry.created_at, entry.description),
        Step(
            "In a file of the network" if entry.file_id else "Next file", entry.due_at, entry.trace_number or "", link
        ),
        Step("Settles", entry.settles_at),
        Step("Held until", entry.held_until),
        Step("Settled", entry.settled_at),
    ]
    if entry.return_code:
        steps.append(Step("Returned", entry.updated_at, entry.return_code))
    elif entry.reason:
        steps.append(Step("Refused", entry.updated_at, _words(entry.reason)))
    reached = [each for each in steps if each.at]
    return Way(_sentence_of_entry(entry), sorted(reached, key=lambda each: each.at or entry.created_at))


def _sentence_of_wire(wire: WireRow) -> str:
    if wire.reason:
        verb = "was rejected" if wire.status == WireStatus.REJECTED else "has not left"
        return f"It {verb}: {_words(wire.reason)}."
    if wire.direction == WireDirection.INCOMING:
        return "The money is in the Pocket."
    return _WIRES[wire.status]


def _sentence_of_entry(entry: AchEntry) -> str:
    if entry.return_code:
        return f"It was returned with {entry.return_code}."
    return _ENTRIES.get(entry.status) or f"It was {entry.status.lower()}: {_words(entry.reason)}."


def _words(code: str | None) -> str:
    return (code or "no reason was given").replace("_", " ").replace("-", " ").lower()
