"""Payees as they are chosen: whether and how each can be paid, and when it was paid last."""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple
from uuid import UUID

from billfold.accounts.counterparties.requests import render_counterparties
from billfold.accounts.counterparties.routes import list_counterparties
from billfold.accounts.counterparties.rules.verification_kinds import is_unverified
from billfold.accounts.counterparties.schemas import Counterparty
from billfold.accounts.counterparties.store import list_by_ids
from billfold.accounts.customers.store import list_features
from billfold.approvals.store.requests import list_last_payments, list_paid_last
from billfold.ledger.bank import Bank
from billfold.payments.wires.routes import UNVERIFIED_WIRES_FEATURE
from billfold.payments.wires.rules import cut_offs
from billfold.web.console.team import Company

PAYABLE = {"on_us": "ON_US", "wire": "WIRE", "international_wire": "WIRE", "crypto_wallet_address": "USDC"}
"""Kinds of counterparties that a transfer request can pay, and its type."""
_SHOWN_MAX, _RECENT_MAX = 60, 15


class Way(NamedTuple):
    """The arrival of a payment that is approved now, None if at once, and its fee in cents."""

    at: datetime | None
    fee: int = 0


class Choice(NamedTuple):
    """A payee to choose: why it cannot be paid, if so, and when it was paid last and how much, in cents."""

    payee: Counterparty
    why: str
    paid_at: datetime | None
    paid: int | None


def why_not_payable(payee: Counterparty, features: Collection[str]) -> str:
    """Return why no transfer request can pay a counterparty; empty if one can."""
    rail = PAYABLE.get(payee.type)
    if rail is None:
        return "ACH account: it receives ACH by the Partner API only and cannot be paid here."
    if payee.status not in {"LINKED", "VERIFIED"}:
        return "It waits for verification." if payee.status == "PENDING" else "It was removed."
    allowed = UNVERIFIED_WIRES_FEATURE in features
    return (
        "Its account is not verified." if is_unverified(payee.verification.type, rail, unverified_wires=allowed) else ""
    )


async def choices_of(company: Company, payees: Sequence[Counterparty]) -> list[Choice]:
    """Return payees with what helps to choose among them."""
    pool, owner = company.page.pool, company.customer_id
    features = await list_features(pool, owner)
    last = await list_last_payments(pool, owner, [each.id for each in payees])
    return [Choice(each, why_not_payable(each, features), *last.get(each.id, (None, None))) for each in payees]


async def list_choices_to_pay(company: Company, chosen: Iterable[UUID] = ()) -> list[Choice]:
    """Return the payees that can be paid: those that were paid last, those that are chosen, then the newest."""
    pool, owner = company.page.pool, company.customer_id
    ids = dict.fromkeys([*(await list_paid_last(pool, owner))[:_RECENT_MAX], *chosen])
    rows = await list_by_ids(pool, owner, list(ids))
    first = await render_counterparties(company.page.server.bank, owner, rows)
    newest = (await company.api.get(list_counterparties, limit=_SHOWN_MAX)).items
    found = await choices_of(company, [*first, *(each for each in newest if each.id not in ids)])
    return [each for each in found if not each.why]


def ways_now(bank: Bank, now: datetime) -> dict[str, Way]:
    """Return how payments go now by the kind of their payee; those within this bank are at once."""
    terms = bank.terms
    at = partial(cut_offs.send_time, now, bank.calendars, terms.wire_hours)
    return {
        "wire": Way(at(international=False), terms.wire_fee_cents),
        "international_wire": Way(at(international=True), terms.wire_fee_cents),
        "on_us": Way(None),
        "pocket": Way(None),
    }
