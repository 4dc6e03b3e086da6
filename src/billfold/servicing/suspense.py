"""Money in suspense as operators see it: the payment, and its likely owners with the reasons."""

import re
from collections.abc import Iterator, Mapping
from string import digits
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
from asyncpg import Record

from billfold.data_keys.keys import PartyField, PaymentKeys
from billfold.ledger.bank import Bank
from billfold.ledger.types import Direction, Rail
from billfold.payments.suspense.rules import SuspenseItem
from billfold.payments.wires.messages import open_message
from billfold.platform.database.connection import Db

_ACCOUNT = re.compile(r"\d{4,17}")
_WORDS_MAX, _CUSTOMERS_MAX, _SHOWN_MAX = 6, 10, 5
_LEGAL_FORMS = frozenset({"inc", "llc", "ltd", "corp", "corporation", "company", "the", "lp", "llp"})
_BY_NUMBER = "SELECT customer_id, object_id, value FROM directory WHERE kind = 'account' AND value = ANY($1::text[])"
_BY_NAME = """
SELECT customer_id FROM customer
 WHERE role <> 'house' AND to_tsvector('simple', name) @@ to_tsquery('simple', $1) LIMIT $2
"""
_PORTALS = """
SELECT o.customer_id, o.portal_id, o.routing_number, o.account_number, p.name AS pocket, c.name AS customer
  FROM portal o JOIN pocket p ON p.customer_id = o.customer_id AND p.pocket_id = o.pocket_id
  JOIN customer c ON c.customer_id = o.customer_id
 WHERE o.customer_id = ANY($1::uuid[]) AND o.account_number IS NOT NULL AND o.status = 'OPEN' AND p.status <> 'CLOSED'
   AND c.account_status <> 'CLOSED'
 ORDER BY o.created_at LIMIT 200
"""


class Arrival(NamedTuple):
    """The fields of a payment in suspense; empty if it has none."""

    sender: str
    payee: str
    account_number: str
    memo: str
    references: Mapping[str, str]
    customer_id: UUID | None = None


class Owner(NamedTuple):
    """A portal whose payment it may be, and why."""

    customer_id: UUID
    customer: str
    pocket: str
    routing_number: str
    account_number: str
    reasons: tuple[str, ...]


async def read_arrival(bank: Bank, item: SuspenseItem) -> Arrival:
    """Return what an item says, opened; what was destroyed with its key is left out."""
    details: dict[str, Any] = msgspec.json.decode(item.details)
    known = details.get("customer_id")
    owner = UUID(known) if known else None
    keys = await PaymentKeys.load(bank, {item.customer_id} | ({owner} if owner else set()))
    memo = keys.open(PartyField.TEXT, owner or item.customer_id, details.get("description") or "") or ""
    if "message" in details:
        message = open_message(keys, owner or item.customer_id, details["message"])
        account = message.get("creditor_account") or {}
        references = {"IMAD": message.get("message_id"), "OMAD": details.get("omad"), "UETR": message.get("uetr")}
        return Arrival(
            sender=_name(message, "debtor"),
            payee=_name(message, "creditor"),
            account_number=account.get("number") or account.get("iban") or "",
            memo=message.get("remittance") or message.get("information") or memo,
            references=_given(references),
            customer_id=owner,
        )
    references = {"Trace number": details.get("trace_number"), "Network": details.get("network_reference")}
    return Arrival(
        sender=details.get("company_name") or "",
        payee="",
        account_number=details.get("account_number") or "",
        memo=memo,
        references=_given(references),
        customer_id=owner,
    )


async def list_owners(bank: Bank, item: SuspenseItem, arrival: Arrival) -> list[Owner]:
    """Return the portals whose payment an item may be, those with most reasons first."""
    if item.direction != Direction.CREDIT or item.rail not in {Rail.ACH, Rail.WIRE}:
        return []
    pool, number = bank.pool, re.sub(r"[\s-]", "", arrival.account_number)
    near = await _near_accounts(pool, bank.settings.bank_routing_number, number)
    words = [each for each in re.findall(r"[^\W_]{2,}", arrival.payee.lower()) if each not in _LEGAL_FORMS]
    named = set[UUID]()
    if words:
        query = " & ".join(f"{each}:*" for each in words[:_WORDS_MAX])
        named = {row[0] for row in await pool.fetch(_BY_NAME, query, _CUSTOMERS_MAX)}
    known = set() if arrival.customer_id is None else {arrival.customer_id}
    rows = await pool.fetch(_PORTALS, list(named | known | {owner for owner, _ in near}))
    closed = near.keys() - {(row["customer_id"], row["portal_id"]) for row in rows}
    signs = _Signs(near, {owner for owner, _ in closed}, named, known, number)
    found = [
        Owner(
            customer_id=row["customer_id"],
            customer=row["customer"],
            pocket=row["pocket"],
            routing_number=row["routing_number"],
            account_number=row["account_number"],
            reasons=reasons,
        )
        for row in rows
        if (reasons := tuple(_reasons(row, signs)))
    ]
    return sorted(found, key=lambda each: -len(each.reasons))[:_SHOWN_MAX]


class _Signs(NamedTuple):
    """The accounts near the number of a payment, and the customers to whom something else points."""

    near: Mapping[tuple[UUID, UUID], str]
    closed: set[UUID]
    named: set[UUID]
    known: set[UUID]
    number: str


def _reasons(row: Record, signs: _Signs) -> Iterator[str]:
    owner = row["customer_id"]
    if owner in signs.known:
        yield "It is the returned money of this customer."
    if (owner, row["portal_id"]) in signs.near:
        yield f"Its account number is {row['account_number']}, the payment says {signs.number}."
    elif owner in signs.closed:
        yield "A closed account of this customer has this number, or nearly."
    if owner in signs.named:
        yield "The payment names this customer."


async def _near_accounts(pool: Db, routing_number: str, number: str) -> dict[tuple[UUID, UUID], str]:
    """Return the accounts whose number is this one, or becomes it by one slip, with their owners."""
    if not _ACCOUNT.fullmatch(number):
        return {}
    values = [f"{routing_number}:{each}" for each in {number, *_slips(number)}]
    return {(row[0], row[1]): row[2] for row in await pool.fetch(_BY_NUMBER, values)}


def _slips(number: str) -> Iterator[str]:
    """Yield the numbers that become this one by a digit wrong, left out, too many, or two exchanged."""
    for at in range(len(number) + 1):
        head, tail = number[:at], number[at:]
        yield from (head + each + tail for each in digits)
        if tail:
            yield head + tail[1:]
            yield from (head + each + tail[1:] for each in digits)
        if len(tail) > 1:
            yield head + tail[1] + tail[0] + tail[2:]


def _name(message: Mapping[str, Any], party: str) -> str:
    return str((message.get(party) or {}).get("name") or "")


def _given(references: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in references.items() if value}
