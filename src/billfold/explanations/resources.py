"""Explains the status of Pockets, holds, counterparties, cards and applications."""

from datetime import datetime, timedelta
from itertools import pairwise
from uuid import UUID

import msgspec

from billfold.accounts.counterparties.rules.verification_kinds import WIRE_VERIFICATION_PERIOD
from billfold.accounts.counterparties.schemas import Counterparty
from billfold.accounts.explain.schemas import Explanation, Formula, Input, Step, Unit, explain, given, happened, narrate
from billfold.accounts.holds.commands import HoldStatus, PlacedHold
from billfold.accounts.pockets.commands import PocketRow
from billfold.explanations import store
from billfold.explanations.refusals import REASONS
from billfold.ledger.bank import Bank
from billfold.onboarding.applications.rules.status import IDLE_LIMIT
from billfold.onboarding.applications.schemas import BusinessApplication, IndividualApplication
from billfold.payments.cards.authorizations.commands import (
    AuthorizationRow,
    CardLimitsRow,
    DeclineReason,
)
from billfold.payments.cards.authorizations.store import find_limits
from billfold.payments.cards.commands import CardRow
from billfold.platform.dates import et_date

_POCKET = {
    "PENDING": "It is being opened.",
    "OPEN": "It can pay and be paid.",
    "FROZEN": "It is frozen: it can be paid, and nothing leaves it until the bank unfreezes it.",
    "CLOSED": "It was closed for good.",
}
_HOLD = {
    "ACTIVE": "It keeps money in the Pocket: only payments that name it use that. It counts in the amount held.",
    "CAPTURED": "Payments that named it have used all of it.",
    "RELEASED": "What it still kept was let go.",
    "EXPIRED": "It reached its end, and what it still kept was let go.",
}
_COUNTERPARTY = {
    "PENDING": "It cannot be paid yet: it waits for its verification.",
    "LINKED": "It can be paid.",
    "VERIFIED": "It can be paid: a payment proved its account.",
    "UNLINKED": "It can no longer be paid, and is not linked again.",
}
_CARD = {
    "NOT_ACTIVATED": "It waits for its PIN and its activation.",
    "ONLINE": "It can be used.",
    "OFFLINE": "It was switched off, and can be switched on again.",
    "FROZEN": "The bank has frozen it, and only the bank can unfreeze it.",
    "CLOSED": "It was closed for good.",
}
_APPLICATION = {
    "CREATED": "It waits to be completed and submitted.",
    "SUBMITTED": "It is in review.",
    "PENDING": "It is in review.",
    "MANUAL_REVIEW": "It is in review: a person at the bank decides.",
    "DOCUMENTS_NEEDED": "It waits for documents, and for being submitted again.",
    "APPROVED": "It was approved, and the customer can be used.",
    "REJECTED": "The bank did not approve it.",
    "CLOSED": "It was closed without a decision.",
}


async def _history(bank: Bank, key: tuple[UUID, str, UUID], status: str, *, at: datetime) -> list[Step]:
    """Return the changes of a status until an instant, of a table that keeps its former rows."""
    former = await store.list_former(bank.pool, *key, at=at)
    return [happened(_name(after), at) for at, after in store.status_changes(former, status)]


def _name(status: str) -> str:
    return status.replace("_", " ").capitalize()


async def explain_pocket_status(row: PocketRow, bank: Bank, *, at: datetime) -> Explanation:
    """Explain the status of a Pocket at an instant."""
    changes = await store.list_pocket_statuses(bank.pool, row.customer_id, row.pocket_id, at=at)
    steps = [happened("Opened", row.opened_at), *(happened(_name(status), at) for at, status in changes)]
    return narrate("Status", row.status, _POCKET[row.status], *steps)


async def explain_hold(row: PlacedHold, bank: Bank, *, at: datetime) -> Explanation:
    """Explain what a hold keeps at an instant, and until when."""
    former = await store.list_former(bank.pool, row.customer_id, "hold", row.hold_id, at=at)
    steps = [happened(f"Placed: {row.reason}", row.created_at, amount=row.placed)]
    states = [msgspec.convert(each.row, PlacedHold, strict=False) for each in former]
    used: list[Input] = []
    unlisted, let_go = row.captured, row.placed - row.captured - row.kept
    for before, after in pairwise([*states, row]):
        if (cents := after.captured - before.captured) > 0:
            steps.append(happened("Captured by a payment", after.updated_at, amount=cents))
            used.append(given("c", "Captured by a payment", cents, Unit.CENTS))
            unlisted -= cents
        if after.status in {HoldStatus.RELEASED, HoldStatus.EXPIRED} and before.status != after.status:
            steps.append(happened(_name(after.status), after.updated_at, amount=let_go))
    if unlisted:  # only the newest changes are read
        used.append(given("c", "Captured by payments that are not listed", unlisted, Unit.CENTS))
    if let_go:
        used.append(given("c", _name(row.status), let_go, Unit.CENTS))
    ends_at = bank.calendars.settles_at(row.until)
    if row.status == HoldStatus.ACTIVE:
        moved = ", the next open day: the bank has declared its last day closed" if ends_at != row.until else ""
        steps.append(happened(f"Ends{moved}", ends_at))
    kept = explain(
        "Still kept",
        "What was placed, less what payments used and what was let go.",
        Formula("H", "p - sum(c)", Unit.CENTS, "Still kept"),
        comes_to=row.kept,
        inputs=[given("p", "Placed", row.placed, Unit.CENTS), *used],
    )
    return narrate("Status", row.status, _HOLD[row.status], *steps, parts=[kept])


async def explain_counterparty(shown: Counterparty, customer_id: UUID, bank: Bank, *, at: datetime) -> Explanation:
    """Explain the status of a counterparty at an instant, by its verification as it is shown."""
    steps = [happened("Created", shown.time_created)]
    steps += await _history(bank, (customer_id, "counterparty", shown.id), shown.status, at=at)
    check = shown.verification
    steps.append(happened(f"Verification: {check.type.replace('_', ' ')}", _name(check.status)))
    if shown.status == "PENDING" and check.type == "incoming_wire":
        steps.append(happened("Expires", shown.time_created + WIRE_VERIFICATION_PERIOD))
    return narrate("Status", shown.status, f"{_COUNTERPARTY[shown.status]} {check.description}", *steps)


def explain_application(shown: BusinessApplication | IndividualApplication) -> Explanation:
    """Explain the status of an application, by what it shows."""
    steps = [happened("Created", shown.time_created)]
    if shown.submitted_at is not None:
        steps.append(happened("Submitted", shown.submitted_at))
    if shown.updated_at > shown.time_created:
        steps.append(happened("Changed last", shown.updated_at))
    steps += [happened("Missing", each) for each in shown.missing_requirements]
    if shown.status == "CREATED":
        steps.append(happened("Is closed if nothing changes by", shown.updated_at + IDLE_LIMIT))
    return narrate("Status", shown.status, _APPLICATION[shown.status], *steps)


_DECLINE = {
    DeclineReason.CARD_LIMIT: "The limit of the card for the day was used up.",
    DeclineReason.CATEGORY_LIMIT: "The limit of the card for merchants of this category was used up for the day.",
    DeclineReason.CATEGORY_BLOCKED: "The card is not accepted at merchants of this category.",
    DeclineReason.INSUFFICIENT_FUNDS: REASONS["INSUFFICIENT_FUNDS"],
    DeclineReason.SUSPECTED_FRAUD: REASONS["SUSPECTED_FRAUD"],
}
_DECLINES_SINCE = timedelta(days=30)


async def explain_card(row: CardRow, bank: Bank, *, at: datetime) -> Explanation:
    """Explain the status of a card, and its latest declined authorizations of the last 30 days."""
    steps = [
        happened("Created", row.created_at),
        *await _history(bank, (row.customer_id, "card", row.card_id), row.status, at=at),
    ]
    since = et_date(at) - _DECLINES_SINCE
    declined = await store.list_declined(bank.pool, row.customer_id, row.card_id, since)
    limits = await find_limits(bank.pool, row.customer_id, row.card_id) if declined else None
    parts = [await _explain_decline(each, limits, bank) for each in declined]
    return narrate("Status", row.status, _CARD[row.status], *steps, parts=parts)


async def _explain_decline(row: AuthorizationRow, limits: CardLimitsRow | None, bank: Bank) -> Explanation:
    reason = row.reason or DeclineReason.UNAVAILABLE
    is_hidden = reason == DeclineReason.SUSPECTED_FRAUD
    of_category = reason == DeclineReason.CATEGORY_LIMIT
    parts = []
    if limits is not None and reason in {DeclineReason.CARD_LIMIT, DeclineReason.CATEGORY_LIMIT}:
        categories = msgspec.json.decode(limits.categories)
        limit = categories.get(row.category_code) if of_category else limits.daily
        if limit is not None:
            category = row.category_code if of_category else None
            parts.append(_explain_spending(limit, *await store.read_spending(bank.pool, row, category)))
    words = _DECLINE.get(reason, f"The rule that declined it: {reason.replace('_', ' ').lower()}.")
    return narrate(
        f"Declined at {_merchant(row)}",
        "DECLINED" if is_hidden else reason,
        words,
        happened("Declined", row.created_at),
        parts=parts,
    )


def _merchant(row: AuthorizationRow) -> str:
    return str(msgspec.json.decode(row.merchant)["name"])


def _explain_spending(limit: int, spent: int, newest: list[AuthorizationRow]) -> Explanation:
    inputs = [given("s", f"At {_merchant(each)}", each.spent_that_day, Unit.CENTS) for each in newest]
    if rest := spent - sum(each.spent_that_day for each in newest):
        inputs.append(given("s", "By payments that are not listed", rest, Unit.CENTS))
    return explain(
        "Left of the limit of that day",
        "The limit as it is now, less what payments of that day have spent or still hold. A day is that of New York.",
        Formula("R", "max(0, L - sum(s))", Unit.CENTS, "Left of the limit of that day"),
        comes_to=max(0, limit - spent),
        inputs=[given("L", "Limit", limit, Unit.CENTS), *inputs],
    )
