"""Rails in a simulated history: wires that settle, are returned or rejected, and ACH in both directions.

Effects of files happen only in memory (`life.files`): no file is written here.
"""

from datetime import timedelta
from typing import Any
from uuid import UUID

from tests.simulation.operating import new_id, of_a_pocket

from billfold.payments.ach.commands import (
    CollectAch,
    IncomingEntry,
    MarkAchTransmitted,
    OriginateAch,
    ReceiveAch,
    ReceiveAchReturn,
    ReturnAchEntry,
    ReviewAch,
    SettleAch,
)
from billfold.payments.wires.commands import CompleteWire, ReceiveWireReturn, RejectWire, SendWire, SubmitWire

IMAD = "20250602BLFDUS33000001"


def learn(life, step, outcome):
    """Remember results for later steps."""
    customer = step.customers[0]
    if isinstance(step, SendWire):
        life.wires.append((customer, UUID(outcome["wire_id"])))
    elif isinstance(step, OriginateAch | ReceiveAch) and outcome.get("ach_id"):
        life.entries.append((customer, step.ach_id))


def _payee(life, place, rail):
    """Return a counterparty of the pocket's customer on this rail, if any."""
    known = life.bank.books[place.customer].counterparties.values()
    return next((each.counterparty_id for each in known if each.type == rail), None)


@of_a_pocket
def wire(life, place):
    payee = _payee(life, place, "wire")
    if payee is None:
        return life.add_counterparty(place.customer, "wire")
    return life.submit(
        SendWire,
        place.customer,
        wire_id=new_id(life, "rails"),
        pocket_id=place.id,
        amount=life.random.choice((None, life._payable(place), life._payable(place))),
        counterparty_id=payee,
        references=(payee,),
    )


def wire_goes_on(life):
    """Transmit, settle, reject or return a wire, not always in this order."""
    if not life.wires:
        return None
    customer, wire_id = life.random.choice(life.wires)
    seen = life.bank.seen.of(customer)[wire_id]
    kind = life.random.choice((SubmitWire, CompleteWire, CompleteWire, RejectWire, ReceiveWireReturn))
    told = {
        SubmitWire: {"wire_id": wire_id, "imad": IMAD},
        CompleteWire: {"wire_id": wire_id},
        RejectWire: {"wire_id": wire_id, "code": "AC04"},
        ReceiveWireReturn: {
            "wire_id": new_id(life, "rails"),
            "original_id": wire_id,
            "code": "AC04",
            "information": None,
            "imad": f"{IMAD[:-6]}{life.random.randrange(10**6):06}",
            "omad": None,
            "message": "{}",
            "amount": life.random.choice((seen.row.amount, max(1, seen.outstanding // 3))),
        },
    }
    return life.submit(kind, customer, references=(wire_id,), **told[kind])


@of_a_pocket
def originate(life, place):
    payee = _payee(life, place, "ach")
    if payee is None:
        return life.add_counterparty(place.customer, "ach")
    return life.submit(
        OriginateAch,
        place.customer,
        ach_id=new_id(life, "rails"),
        pocket_id=place.id,
        counterparty_id=payee,
        direction=life.random.choice(("CREDIT", "CREDIT", "DEBIT")),
        sec_code="PPD",
        description="PAYROLL",
        amount=life._payable(place),
        references=(payee,),
    )


def entry_goes_on(life):
    """Reverse an entry; with files also transmit, settle, release or return it."""
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
    return life.submit(kind, customer, references=(ach_id,), **told, **_MOVES[kind])


_MOVES: dict[type, dict[str, Any]] = {
    ReviewAch: {"decision": "CANCELLED", "reason": None},
    MarkAchTransmitted: {},
    CollectAch: {},
    SettleAch: {},
    ReceiveAchReturn: {"code": "R03"},
    ReturnAchEntry: {"code": "R10"},
}


@of_a_pocket
def entry_arrives(life, place):
    if not life.files:
        return None
    ach_id = new_id(life, "rails")
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
    return life.submit(
        ReceiveAch,
        place.customer,
        ach_id=ach_id,
        file_id=ach_id,
        pocket_id=place.id,
        portal_id=life.random.choice(life.portals[place.id]),
        entry=told,
        references=(ach_id,),
    )


BANKING = {
    "wire": wire,
    "wire_goes_on": wire_goes_on,
    "originate": originate,
    "entry_goes_on": entry_goes_on,
    "entry_arrives": entry_arrives,
}
