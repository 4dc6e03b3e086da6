"""What the rails do in a seeded life: wires that settle, bounce or are rejected, and ACH both ways.

What only files bring about happens in memory alone (`life.files`): no file is written here.
"""

from datetime import timedelta
from typing import Any
from uuid import UUID

from billfold.accounts.counterparties.commands import AddCounterparty
from billfold.payments.ach.commands import (
    CollectAch,
    MarkAchTransmitted,
    OriginateAch,
    ReceiveAch,
    ReceiveAchReturn,
    ReturnAchEntry,
    ReviewAch,
    SettleAch,
)
from billfold.payments.ach.types import IncomingEntry
from billfold.payments.wires.commands import CompleteWire, ReceiveWireReturn, RejectWire, SendWire, SubmitWire
from billfold.platform.ids import command_id, derive

CALLER = "life"
IMAD = "20250602BLFDUS33000001"
DETAILS = {
    "wire": {
        "routing_number": "121182904",
        "identifier": "5647772655",
        "address": {
            "street_address": "1 Main St",
            "city": "Reno",
            "postal_code": "89501",
            "state": "NV",
            "country": "US",
        },
    },
    "ach": {"routing_number": "021000021", "account_number": "77", "account_type": "CHECKING"},
}


def learn(life, step, outcome):
    """Remember what later steps may ask for."""
    customer = step.customers[0]
    if isinstance(step, SendWire):
        life.wires.append((customer, UUID(outcome["wire_id"])))
    elif isinstance(step, OriginateAch | ReceiveAch) and outcome.get("ach_id"):
        life.entries.append((customer, step.ach_id))


def _payee(life, rail):
    """A pocket, and its customer's counterparty of this rail; None while it is being linked."""
    place = life._pocket()
    if place is None:
        return None, None
    book = life.bank.books[place[0]]
    known = [each for each in book.counterparties.values() if each.type == rail]
    return place, known[0].counterparty_id if known else None


def _link(life, customer, rail):
    return life._make(
        AddCounterparty,
        (customer,),
        type=rail,
        details=DETAILS[rail],
        counterparty_name={"type": "business", "business_name": "Beta LLC"},
        verification="pre_verified",
    )


def wire(life):
    place, payee = _payee(life, "wire")
    if place is None:
        return None
    if payee is None:
        return _link(life, place[0], "wire")
    return life._make(
        SendWire,
        place[:1],
        wire_id=_new(life),
        pocket_id=place[1],
        amount=life.random.choice((None, life._payable(place), life._payable(place))),
        counterparty_id=payee,
        references=(payee,),
    )


def wire_goes_on(life):
    """It leaves, settles, is rejected or comes back; not always in this order."""
    if not life.wires:
        return None
    customer, wire_id = life.random.choice(life.wires)
    kind = life.random.choice((SubmitWire, CompleteWire, CompleteWire, RejectWire, ReceiveWireReturn))
    told = {
        SubmitWire: {"wire_id": wire_id, "imad": IMAD},
        CompleteWire: {"wire_id": wire_id},
        RejectWire: {"wire_id": wire_id, "code": "AC04"},
        ReceiveWireReturn: {
            "wire_id": _new(life),
            "original_id": wire_id,
            "code": "AC04",
            "information": None,
            "imad": IMAD,
            "omad": None,
            "message": "{}",
            "amount": life.bank.seen.of(customer)[wire_id].row.amount,
        },
    }
    return life._make(kind, (customer,), references=(wire_id,), **told[kind])


def originate(life):
    place, payee = _payee(life, "ach")
    if place is None:
        return None
    if payee is None:
        return _link(life, place[0], "ach")
    return life._make(
        OriginateAch,
        place[:1],
        ach_id=_new(life),
        pocket_id=place[1],
        counterparty_id=payee,
        direction=life.random.choice(("CREDIT", "CREDIT", "DEBIT")),
        sec_code="PPD",
        description="PAYROLL",
        amount=life._payable(place),
        references=(payee,),
    )


def entry_goes_on(life):
    """It is called back; and where there are files it leaves, settles, counts, or comes back."""
    if not life.entries:
        return None
    customer, ach_id = life.random.choice(life.entries)
    entry = life.bank.seen.of(customer)[ach_id]
    kind = ReviewAch if not life.files else life.random.choice(tuple(_MOVES))
    told = {"ach_ids": (ach_id,)} if kind in {MarkAchTransmitted, SettleAch} else {"ach_id": ach_id}
    if kind is ReceiveAchReturn:
        told |= {
            "direction": entry.direction,
            "amount": entry.amount,
            "trace": "061199990000001",
            "arrived_at": life.bank.now + timedelta(seconds=1),
        }
    if kind in {CollectAch, SettleAch, MarkAchTransmitted} and entry.way == "RECEIVING":
        return None
    return life._make(kind, (customer,), references=(ach_id,), **told, **_MOVES[kind])


_MOVES: dict[type, dict[str, Any]] = {
    ReviewAch: {"decision": "CANCELLED", "reason": None},
    MarkAchTransmitted: {},
    CollectAch: {},
    SettleAch: {},
    ReceiveAchReturn: {"code": "R03"},
    ReturnAchEntry: {"code": "R10"},
}


def entry_arrives(life):
    place = life._pocket()
    if place is None or not life.files:
        return None
    ach_id = _new(life)
    told = IncomingEntry(
        code=life.random.choice(("22", "27")),
        amount=life._payable(place),
        account_number="1",
        name="SOMEBODY",
        identification="",
        trace=f"09100001{life.count % 10_000_000:07}",
        bank="09100001",
        entry_class="PPD",
        company="ACME",
        company_id="9000000001",
        purpose="PAYMENT",
    )
    return life._make(
        ReceiveAch,
        place[:1],
        ach_id=ach_id,
        file_id=ach_id,
        pocket_id=place[1],
        portal_id=life.random.choice(life.portals[place[1]]),
        entry=told,
        references=(ach_id,),
    )


def _new(life):
    life.count += 1
    return derive(b"life", command_id(CALLER, f"rails:{life.count}"), 0)


BANKING = {
    "wire": wire,
    "wire_goes_on": wire_goes_on,
    "originate": originate,
    "entry_goes_on": entry_goes_on,
    "entry_arrives": entry_arrives,
}
