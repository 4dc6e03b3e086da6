"""The look-up of a routing number."""

import re
from datetime import date
from typing import Literal

import msgspec

from billfold.http.operations import SIGNED, get, with_scope
from billfold.ledger.bank import Bank
from billfold.payments.routing.directory import DirectoryEntry
from billfold.payments.routing.store import list_entries
from billfold.payments.routing_numbers import is_routing_number
from billfold.platform.errors import InvalidInput


class RoutingEntry(msgspec.Struct, kw_only=True):
    """A bank in the directory of a rail. `replaced_by` is the number that it has since a merger."""

    name: str
    city: str | None
    state: str | None
    takes_payments: bool
    replaced_by: str | None
    revised_on: date | None


class RoutingNumber(msgspec.Struct, kw_only=True):
    """A routing number. What the directories of this bank do not have is null."""

    routing_number: str
    is_valid: bool
    """True if the check digit is right."""
    is_this_bank: bool
    name: str | None
    ach: RoutingEntry | None
    wire: RoutingEntry | None
    object_type: Literal["RoutingNumber"] = "RoutingNumber"


@get("/api/v1/routing-numbers/{number}/", SIGNED, with_scope("transfers.read", "counterparties"), tag="routing-numbers")
async def get_routing_number(bank: Bank, number: str) -> RoutingNumber:
    """Get routing number

    Returns whether the check digit is right, and the bank's name as far as the operator has imported the directories of
    the Federal Reserve.
    """
    if not re.fullmatch(r"[0-9]{9}", number):
        raise InvalidInput.at("path", "number", msg="must have nine digits")
    found = await list_entries(bank.pool, number)
    ach, wire = (_entry_of(found.get(rail)) for rail in ("ACH", "WIRE"))
    is_own = number == bank.settings.bank_routing_number
    known = ach or wire
    return RoutingNumber(
        routing_number=number,
        is_valid=is_routing_number(number),
        is_this_bank=is_own,
        name=known.name if known else bank.settings.bank_name if is_own else None,
        ach=ach,
        wire=wire,
    )


def _entry_of(entry: DirectoryEntry | None) -> RoutingEntry | None:
    return None if entry is None else msgspec.convert(entry._asdict(), RoutingEntry)
