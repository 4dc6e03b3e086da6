"""Explains the status of transactions, trades, transfers, transfer requests, wires and ACH entries."""

from datetime import datetime, timedelta

from billfold.accounts.explain.earnings import explain_charge
from billfold.accounts.explain.schemas import (
    Explanation,
    Formula,
    Row,
    RowKind,
    Step,
    Unit,
    explain,
    given,
    happened,
    narrate,
)
from billfold.accounts.trades.schemas import Trade, settles_on
from billfold.accounts.trades.store import TradeRow
from billfold.accounts.transactions.schemas import FeeActivity, Transaction
from billfold.accounts.transactions.settlement import TransactionRow, settles_at
from billfold.approvals.execute_transfers import commands_of
from billfold.approvals.schemas import ShownTransferRequest
from billfold.approvals.transfer_orders import content_of
from billfold.approvals.types import TransferRequest
from billfold.explanations import dates, store
from billfold.explanations.refusals import INSUFFICIENT_FUNDS, REASONS, explain_shortfall
from billfold.http.schemas import usd
from billfold.ledger.bank import Bank
from billfold.payments.ach.commands import AchEntry, AchStatus
from billfold.payments.on_us.commands import TransferRow, TransferStatus
from billfold.payments.on_us.store import get_transfer
from billfold.payments.on_us.worker import CALLER as PENDING_TRANSFER
from billfold.payments.wires.commands import WAITING_FOR_FUNDS, WireDirection, WireRow, WireStatus
from billfold.platform.ids import command_id
from billfold.platform.money import format_usd

_WIRE = {
    "PENDING": "It is booked, and waits for the time at which it is sent. Until then it can be cancelled.",
    "PROCESSING": "It is with Fedwire, which settles it or rejects it.",
    "COMPLETED": "It has settled, and waits for nothing.",
    "REJECTED": "It was not carried out. What had been booked has returned to the Pocket.",
    WAITING_FOR_FUNDS: "It is due, and waits for funds of the bank. It leaves by itself; nothing has to be done.",
}
_ACH = {
    "PENDING": "It is in review: an operator of the bank decides about it.",
    "APPROVED": "It waits for its window: the deadline of the next file for the network.",
    "REJECTED": "The bank did not send it. What had been booked has returned to the Pocket.",
    "CANCELLED": "It was cancelled before it was sent. What had been booked has returned to the Pocket.",
    "IN_TRANSIT": "It was sent. It counts as settled when most returns would have arrived.",
    "PROCESSED": "It has settled. The other bank may still return it, within the deadlines of the network.",
    "FAILED": "The other bank returned it.",
}
_TRANSFER = {
    "PENDING": "It was accepted, and the bank carries it out within seconds.",
    "COMPLETED": "It was carried out, and waits for nothing.",
    "REJECTED": "It was not carried out, and nothing moved.",
}
_REQUEST = {
    "APPROVED": "It has the approvals that it needs.",
    "DENIED": "A reviewer denied it, and nothing moves.",
    "CANCELLED": "It was cancelled, and nothing moves.",
    "EXPIRED": "It was not approved in time, and nothing moves.",
}


_FEES = {
    "WIRE_FEE": "The fee of the bank for sending a wire, as it was set then. It is charged with the wire.",
    "SAME_DAY_FEE": "Proceeds were used before the day on which they settle. The fee is what that costs: interest"
    " until that day, and the difference between the prices for the same day and for the next.",
}
_NO_DATE = timedelta(days=366)
"""Reads date later than this what has no date yet: cash on hold for cards, and ACH entries that are not sent."""


def _reason(reason: str | None) -> list[Step]:
    return [] if reason is None else [happened("Reason", REASONS.get(reason, reason.replace("_", " ").lower()))]


def explain_transaction(shown: Transaction, row: TransactionRow, bank: Bank, fee: Explanation | None) -> Explanation:
    """Explain why a transaction is BOOKED or SETTLED."""
    at = settles_at(row, bank.calendars)
    ways = (("wire_id", RowKind.WIRE, "Wire"), ("ach_id", RowKind.ACH_ENTRY, "ACH entry"))
    causes = [(kind, label, found) for name, kind, label in ways if (found := getattr(shown, name, None))]
    words = "It is booked from the instant at which it counts in the Pocket, and settled when its money has moved."
    if row.is_hold:
        words = "Cash is reserved for a payment by card, until the merchant claims it."
    steps, parts = [happened("Booked", row.booked_at, amount=row.amount)], [fee]
    if at < row.booked_at + _NO_DATE:
        steps.append(happened("Settled" if shown.status == "SETTLED" else "Settles", at))
        parts.insert(0, dates.explain_transaction_date(row, bank))
    elif not row.is_hold:
        words = f"{words} It waits to be sent, which decides about the day."
    rows = [Row(kind=kind, label=label, id=str(found)) for kind, label, found in causes]
    return narrate("Status", shown.status, words, *steps, parts=parts, rows=rows)


async def explain_fee(shown: Transaction, row: TransactionRow, bank: Bank) -> Explanation | None:
    """Explain the fee on assets of a month by its days, other fees by what they are for; None without a fee."""
    if not isinstance(shown, FeeActivity):
        return None
    if shown.fee_type != "AUM_FEE":
        charged = happened("Charged", row.booked_at, amount=row.amount)
        return narrate("Fee charged", format_usd(row.amount), _FEES[shown.fee_type], charged)
    charge = row.activity_id, row.entry_no, row.booked_at
    return await explain_charge(bank, row.customer_id, row.pocket_id, charge)


def explain_trade(shown: Trade, row: TradeRow, bank: Bank) -> Explanation:
    """Explain why a trade is BOOKED or SETTLED."""
    return narrate(
        "Status",
        shown.status,
        "It is booked when it is agreed, and settled when bills and money change hands.",
        happened("Traded", row.traded_at, amount=row.notional),
        happened("Settled" if shown.status == "SETTLED" else "Settles", settles_on(row, bank.calendars)),
        parts=[dates.explain_trade_date(row, bank)],
    )


async def explain_wire(row: WireRow, bank: Bank, *, at: datetime) -> Explanation:
    """Explain the status of a wire at an instant."""
    outgoing = row.direction == WireDirection.OUTGOING
    steps = [happened("Created" if outgoing else "Received", row.created_at, amount=row.amount)]
    is_waiting = row.status == WireStatus.PENDING and row.reason == WAITING_FOR_FUNDS
    if outgoing and row.status == WireStatus.PENDING and row.send_at is not None:
        steps.append(happened("Due" if is_waiting else "Leaves", bank.calendars.settles_at(row.send_at)))
    if outgoing and row.imad is not None:
        former = await store.list_former(bank.pool, row.customer_id, "wire", row.wire_id, at=at)
        steps += [happened("Sent to Fedwire", each.until) for each in former if each.row["imad"] is None][-1:]
    if row.settled_at is not None:
        steps.append(happened("Settled", row.settled_at))
    if row.status == WireStatus.REJECTED:
        steps += [happened("Rejected", row.updated_at), *_reason(row.reason)]
    return narrate(
        "Status",
        row.status,
        _WIRE[WAITING_FOR_FUNDS if is_waiting else row.status],
        *steps,
        parts=[dates.explain_wire_date(row.created_at, row.send_at, bank) if outgoing and row.send_at else None],
    )


async def explain_ach(entry: AchEntry, bank: Bank, *, at: datetime) -> Explanation:
    """Explain the status of an ACH origination at an instant."""
    steps, approved_at = [happened("Created", entry.created_at, amount=entry.amount)], entry.created_at
    former = await store.list_former(bank.pool, entry.customer_id, "ach_entry", entry.ach_id, at=at)
    for changed_at, status in store.status_changes(former, entry.status):
        steps.append(happened(status.replace("_", " ").capitalize(), changed_at))
        approved_at = changed_at if status == AchStatus.APPROVED else approved_at
    if entry.reason is not None and entry.status == AchStatus.PENDING:
        steps.append(happened("In review", entry.reason))
    if entry.return_code is not None:
        steps.append(happened("Return code", entry.return_code))
    waits = {
        AchStatus.APPROVED: ("Leaves", entry.due_at),
        AchStatus.IN_TRANSIT: ("Counts as settled", entry.settled_at),
    }
    label, next_at = waits.get(entry.status, ("", None))
    if next_at is not None:
        steps.append(happened(label, bank.calendars.settles_at(next_at)))
    return narrate(
        "Status", entry.status, _ACH[entry.status], *steps, parts=dates.explain_ach_dates(entry, approved_at, bank)
    )


async def explain_transfer(row: TransferRow, bank: Bank, *, with_pocket: bool) -> Explanation:
    """Explain the status of an on-us transfer, and `with_pocket` what its Pocket could pay."""
    later = await store.find_executed_at(bank.pool, row.customer_id, command_id(PENDING_TRANSFER, row.transfer_id))
    steps, parts = [happened("Created", row.created_at, amount=row.amount or None)], []
    if row.status == TransferStatus.COMPLETED:
        steps.append(happened("Carried out", later or row.created_at))
    if row.status == TransferStatus.REJECTED:
        at = later or row.created_at
        steps += [happened("Rejected", at), *_reason(row.reason)]
        parts.append(await _shortfall(row, at, bank) if with_pocket else None)
    return narrate("Status", row.status, _TRANSFER[row.status], *steps, parts=parts)


async def _shortfall(row: TransferRow, at: datetime, bank: Bank) -> Explanation | None:
    if row.reason != INSUFFICIENT_FUNDS or not row.amount or row.order.in_kind:
        return None
    to = row.to_pocket_id if row.type == "INTERNAL_REALLOCATION" else None
    key = row.customer_id, row.from_pocket_id
    return await explain_shortfall(bank, key, at, amount=row.amount, to=to)


async def explain_request(
    shown: ShownTransferRequest, row: TransferRequest, bank: Bank, *, with_pocket: bool
) -> Explanation:
    """Explain the status of a transfer request: who approved it, who may, and what became of its transfer.

    `with_pocket` also what the Pocket could pay, if that was too little.
    """
    people = {each.member_id: f"{each.first_name} {each.last_name}".strip() for each in shown.reviewers}
    by = f"{shown.requested_by.first_name} {shown.requested_by.last_name}".strip()
    steps = [happened(f"Requested by {by}", row.created_at, amount=row.amount)]
    for each in shown.reviews:
        who = f"{each.reviewer.first_name} {each.reviewer.last_name}".strip()
        void = ", void since the request or the reviewer has changed" if each.is_void else ""
        steps.append(happened(f"{each.decision.capitalize()} by {who}{void}", each.time_created))
    words = _REQUEST.get(row.status, "")
    if row.status == "PENDING":
        able = " or ".join(people.values()) or "members who may approve, other than who requested it"
        words = shown.blocked_reason or f"It waits for approvals by {able}{', in their order' * row.terms.ordered}."
        steps.append(happened("Expires", row.expires_at))
    if row.status == "APPROVED":
        words, steps = f"{words} {_TRANSFER.get(row.execution, 'It is with the bank.')}", [*steps, *_reason(row.reason)]
    rows = [] if shown.approval_rule_id is None else [_rule(shown, row)]
    if row.execution != "NOT_STARTED":
        kind = RowKind.WIRE if row.type == "WIRE" else RowKind.TRANSFER
        rows.append(Row(kind=kind, label="Its payment", id=str(row.request_id), amount=usd(row.paid or row.amount)))
    parts = [_explain_approvals(shown), await _shortfall_of_request(row, bank) if with_pocket else None]
    return narrate("Status", row.status, words, *steps, parts=parts, rows=rows)


def _rule(shown: ShownTransferRequest, row: TransferRequest) -> Row:
    return Row(kind=RowKind.APPROVAL_RULE, label=row.terms.rule_name or "Approval rule", id=str(shown.approval_rule_id))


def _explain_approvals(shown: ShownTransferRequest) -> Explanation:
    given_ = sum(each.decision == "APPROVED" and not each.is_void for each in shown.reviews)
    words = "What its approval rule required when it was requested, less the valid ones. Without a rule it is one."
    if shown.policy_rule is not None:
        words = (
            f"What the rule {shown.policy_rule!r} in version {shown.policy_version} of the policy and its approval rule"
            " required when it was requested, the more of both, less the valid ones."
        )
    return explain(
        "Approvals missing",
        words,
        Formula("M", "max(0, r - a)", Unit.COUNT, "Approvals missing"),
        comes_to=max(0, shown.required_approvals - given_),
        inputs=[
            given("r", "Required", shown.required_approvals, Unit.COUNT),
            given("a", "Valid approvals", given_, Unit.COUNT),
        ],
    )


async def _shortfall_of_request(row: TransferRequest, bank: Bank) -> Explanation | None:
    at = await store.find_executed_at(bank.pool, row.customer_id, *commands_of(row)) if row.reason else None
    if row.reason != INSUFFICIENT_FUNDS or at is None:
        return None
    if row.type == "ON_US":
        return await _shortfall(await get_transfer(bank.pool, row.customer_id, row.request_id), at, bank)
    cents, key = content_of(row).requested_cents, (row.customer_id, row.pocket_id)
    if cents is None:
        return None
    fee = bank.terms.wire_fee_cents if row.type == "WIRE" else 0
    return await explain_shortfall(bank, key, at, amount=cents, fee=fee)
