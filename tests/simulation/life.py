"""A seeded life: what customers, partners and the calendar do to a bank, one step at a time.

`Life` draws steps looking at a bank in memory and lives them there at once. A step is a command
or an instant to walk to, so the same steps can be lived again elsewhere.
"""

from datetime import date, datetime, timedelta
from random import Random
from typing import Any
from uuid import UUID

import msgspec
from tests.simulation import banking
from tests.simulation.banking import BANKING
from tests.simulation.operating import CALLER, OPERATING, learn

from billfold.accounts.commands import (
    CloseCustomer,
    EnrolCustomer,
    OpenPocket,
    OpenPortal,
    SetPocketState,
    UpdateCustomer,
    UpdatePocket,
    UpdatePortal,
)
from billfold.accounts.counterparties.commands import AddCounterparty, UpdateCounterparty
from billfold.ledger.jobs.due_work import bank_customer_id
from billfold.payments.deposits.commands import ReceiveMoney
from billfold.payments.on_us.commands import TransferOnUs
from billfold.payments.on_us.types import TransferOrder
from billfold.platform.dates import ET, et_instant
from billfold.platform.errors import BillfoldError
from billfold.platform.ids import command_id, derive

PARTNER = UUID("8f3b6f60-0000-4000-8000-00000000bbbb")
WEEKS = (4, 13, 26, 52)
REMEMBERED = 400
"""How many earlier commands may be sent a second time."""


class WalkTo(msgspec.Struct, frozen=True):
    """The clock goes on to this instant."""

    to: datetime


class Life:
    """Draws one step after the other; `outcomes` counts what became of them."""

    def __init__(self, bank, seed, *, customers=60, files=True):
        self.bank = bank
        self.random = Random(seed)
        self.wanted = customers
        self.people = []
        self.pockets = []
        self.portals = {}
        self.waiting = []
        self.linked = []
        self.sent = []
        self.held = []
        self.given = []
        self.doomed = []
        self.leaving = []
        self.wires = []
        self.entries = []
        self.files = files
        self.count = 0
        self.outcomes = {}
        self._kinds, self._weights = zip(*_KINDS, strict=True)

    # -- steps ----------------------------------------------------------------------------

    def found(self):
        """The first step of all: the house."""
        return EnrolCustomer(
            caller="founding",
            key=command_id("founding", "house"),
            customers=(bank_customer_id(self.bank.seed),),
            partner_id=None,
            role="house",
            type="BUSINESS",
            name="House",
            profile={},
        )

    def step(self):
        """Draw a step and live it. Returns it with what became of it."""
        step = self.draw()
        return step, self.live(step)

    def draw(self):
        """Draw a step that may make sense now."""
        if len(self.people) < self.wanted and self.random.random() < 0.2:
            return self._enrol()
        while True:
            (kind,) = self.random.choices(self._kinds, self._weights)
            step = ASIDE[kind](self) if kind in ASIDE else getattr(self, kind)()
            if step is not None:
                return step

    def live(self, step):
        """Let it happen in memory; return the answer, the refusal, or None for time."""
        if isinstance(step, WalkTo):
            self.bank.advance(step.to)
            return None
        try:
            answer = self.bank.submit(step)
        except BillfoldError as refused:
            self._count(refused.code)
            return refused
        self._count("replayed" if answer.replayed else answer.outcome.get("status") or "done")
        if not answer.replayed:
            self._learn(step, answer.outcome)
        return answer

    def _count(self, what):
        self.outcomes[what] = self.outcomes.get(what, 0) + 1

    def _learn(self, step, outcome):
        if isinstance(step, EnrolCustomer):
            self.people.append(step.customers[0])
        elif isinstance(step, OpenPocket):
            pocket = UUID(outcome["pocket_id"])
            self.pockets.append((step.customers[0], pocket))
            self.portals[pocket] = [UUID(outcome["portal_id"])]
        elif isinstance(step, OpenPortal):
            self.portals[step.pocket_id].append(UUID(outcome["portal_id"]))
        elif isinstance(step, AddCounterparty):
            self.linked.append((step.customers[0], UUID(outcome["counterparty_id"])))
        elif isinstance(step, TransferOnUs) and outcome["status"] == "PENDING":
            self.waiting.append((step, UUID(outcome["transfer_id"])))
        else:
            learn(self, step, outcome)
            banking.learn(self, step, outcome)

    # -- commands -------------------------------------------------------------------------

    def _make(self, kind, customers, **fields):
        self.count += 1
        key = command_id(CALLER, str(self.count))
        command = kind(caller=CALLER, key=key, customers=customers, request_hash=key.bytes, **fields)
        if len(self.sent) < REMEMBERED:
            self.sent.append(command)
        else:
            self.sent[self.random.randrange(REMEMBERED)] = command
        return command

    def _enrol(self):
        customer_id = derive(b"life", command_id(CALLER, f"customer:{self.count}"), 0)
        return self._make(
            EnrolCustomer,
            (customer_id,),
            partner_id=PARTNER,
            role="customer",
            type="BUSINESS",
            name=f"Customer {self.count}",
            profile={},
        )

    def open_pocket(self):
        if not self.people or len(self.pockets) > 3 * self.wanted:
            return None
        customer = self.random.choice(self.people)
        return self._make(
            OpenPocket,
            (customer,),
            partner_id=PARTNER,
            name="A pocket",
            deposit_weeks=self.random.choice(WEEKS),
            reinvestment_weeks=self.random.choice((*WEEKS, None)),
            type=self.random.choice(("STANDARD", "STANDARD", "NETWORK")),
        )

    def deposit(self):
        place = self._pocket()
        if place is None:
            return None
        customer, pocket = place
        return self._make(
            ReceiveMoney,
            (customer,),
            rail=self.random.choice(("WIRE", "ACH")),
            portal_id=self.random.choice(self.portals[pocket]),
            pocket_id=pocket,
            amount=self._cents(),
            description="a deposit",
            details={},
        )

    def pay(self):
        return self._transfer(self._pocket(), self._pocket())

    def pay_from_small(self):
        """Two payments that together are more than the pocket has."""
        return self._transfer(self._pocket(), self._pocket(), amount=self._half_of)

    def move(self):
        return self._within()

    def move_bills(self):
        return self._within(in_kind=True)

    def withdraw(self):
        if self.random.random() < 0.5:
            return self._within(amount=lambda _: None, in_kind=self.random.random() < 0.3)
        return self._transfer(self._pocket(), self._pocket(), amount=lambda _: None)

    def pay_later(self):
        return self._transfer(self._pocket(), self._pocket(), later=True)

    def carry_out(self):
        if not self.waiting:
            return None
        step, transfer_id = self.waiting.pop(self.random.randrange(len(self.waiting)))
        fields = {name: getattr(step, name) for name in step.__struct_fields__}
        for name in ("caller", "key", "customers", "request_hash"):
            del fields[name]
        fields |= {"transfer_id": transfer_id, "later": True, "accepted": True}
        return self._make(TransferOnUs, step.customers, **fields)

    def _within(self, **fields):
        origin = self._pocket()
        if origin is None:
            return None
        own = [place for place in self.pockets if place[0] == origin[0]]
        return self._transfer(origin, self.random.choice(own), **fields)

    def _transfer(self, origin, destination, *, amount=None, in_kind=False, **fields):
        if origin is None or destination is None:
            return None
        within = origin[0] == destination[0]
        return self._make(
            TransferOnUs,
            (origin[0],) if within else (origin[0], destination[0]),
            transfer_id=None,
            type="INTERNAL_REALLOCATION" if within else "PEER_TO_PEER",
            from_pocket_id=origin[1],
            to_pocket_id=destination[1],
            amount=(amount or self._payable)(origin),
            partner_id=PARTNER,
            order=TransferOrder(
                description=self.random.choice(("", "rent")),
                transfer_type="SECURITY_TRANSFER" if within and in_kind else None,
            ),
            **fields,
        )

    def change_pocket(self):
        place = self._pocket()
        if place is None:
            return None
        fields: dict[str, Any] = {"name": "Renamed"}
        if self.random.random() < 0.5:
            fields |= {"deposit_weeks": self.random.choice(WEEKS)}
        if self.random.random() < 0.5:
            weeks = self.random.choice((*WEEKS, None))
            fields |= {"reinvestment_weeks": weeks, "keep_reinvestment": False}
        return self._make(UpdatePocket, place[:1], pocket_id=place[1], **fields)

    def close_pocket(self):
        place = self._pocket()
        if place is None:
            return None
        return self._make(UpdatePocket, place[:1], pocket_id=place[1], close_for="not needed", references=place[1:2])

    def close_customer(self):
        if not self.people:
            return None
        whom = (self.random.choice(self.people),)
        return self._make(CloseCustomer, whom, reason="moved away", references=whom)

    def freeze(self):
        place = self._pocket()
        if place is None:
            return None
        # Most thaw again soon, or nothing would ever happen.
        status = "OPEN" if self._status(place) == "FROZEN" else "FROZEN"
        return self._make(SetPocketState, place[:1], pocket_id=place[1], status=status)

    def thaw(self):
        frozen = [place for place in self.pockets if self._status(place) == "FROZEN"]
        if not frozen:
            return None
        place = self.random.choice(frozen)
        return self._make(SetPocketState, place[:1], pocket_id=place[1], status="OPEN")

    def open_portal(self):
        place = self._pocket()
        if place is None or len(self.portals[place[1]]) > 3:
            return None
        return self._make(OpenPortal, place[:1], pocket_id=place[1], name="Another")

    def close_portal(self):
        place = self._pocket()
        if place is None or len(self.portals[place[1]]) < 2:
            return None
        portal = self.random.choice(self.portals[place[1]])
        return self._make(UpdatePortal, place[:1], portal_id=portal, name="Old", close=True)

    def profile(self):
        if not self.people:
            return None
        return self._make(UpdateCustomer, (self.random.choice(self.people),), profile={"n": 1})

    def link(self):
        place, target = self._pocket(), self._pocket()
        if place is None or target is None or len(self.linked) > self.wanted:
            return None
        book = self.bank.books[target[0]]
        portal = book.portals[self.portals[target[1]][0]]
        return self._make(
            AddCounterparty,
            place[:1],
            counterparty_name={"name": "Somebody"},
            display_name=None,
            type="on_us",
            details={"account_number": portal.network_address},
            target_customer_id=target[0],
            target_pocket_id=target[1],
        )

    def unlink(self):
        if not self.linked:
            return None
        customer, counterparty = self.random.choice(self.linked)
        return self._make(
            UpdateCounterparty,
            (customer,),
            counterparty_id=counterparty,
            unlink=self.random.random() < 0.5,
            rename=True,
            display_name="X",
        )

    # -- the same again ------------------------------------------------------------------------

    def repeat(self):
        return self.random.choice(self.sent) if self.sent else None

    def reuse_key(self):
        if not self.sent:
            return None
        return msgspec.structs.replace(self.random.choice(self.sent), request_hash=b"another")

    # -- time ------------------------------------------------------------------------------

    def minutes(self):
        return WalkTo(self.bank.now + timedelta(minutes=self.random.randint(1, 90)))

    def to_morning(self):
        day = self.bank.now.astimezone(ET).date() + timedelta(days=1)
        return WalkTo(et_instant(day, self.random.choice((7, 8, 9, 10, 16, 20))))

    def week(self):
        if self.bank.now > LATEST:
            return None
        return WalkTo(self.bank.now + timedelta(days=self.random.randint(2, 9)))

    # -- choosing ---------------------------------------------------------------------------

    def _pocket(self):
        """A pocket, mostly one that can still move."""
        if not self.pockets:
            return None
        place = self.random.choice(self.pockets)
        for _ in range(4):
            if self._status(place) == "OPEN":
                return place
            place = self.random.choice(self.pockets)
        return place

    def _status(self, place):
        return self.bank.books[place[0]].pockets[place[1]].status

    def _cents(self):
        return self.random.choice(
            (
                self.random.randint(1, 20_000),
                self.random.randint(10_000, 2_000_000),
                self.random.randint(1_000_000, 500_000_000),
            )
        )

    def _worth(self, place):
        pocket = self.bank.books[place[0]].pockets[place[1]]
        return pocket.cash.balance + sum(units * 9_900 for _, units in pocket.positions())

    def _payable(self, place):
        most = max(1, self._worth(place) // self.random.choice((1, 3, 10, 50)))
        cents = self.random.randint(1, most)
        return cents if self.random.random() < 0.3 else max(1, cents // 100 * 100)

    def _half_of(self, place):
        return max(1, self._worth(place) * self.random.randint(50, 105) // 100)


ASIDE = OPERATING | BANKING
LATEST = et_instant(date(2026, 5, 1), 0)
_KINDS = (
    ("deposit", 22),
    ("pay", 34),
    ("pay_from_small", 5),
    ("move", 8),
    ("move_bills", 6),
    ("withdraw", 2),
    ("pay_later", 2),
    ("carry_out", 2),
    ("open_pocket", 3),
    ("change_pocket", 2),
    ("close_pocket", 1.5),
    ("close_customer", 0.1),
    ("freeze", 0.7),
    ("thaw", 0.8),
    ("open_portal", 0.5),
    ("close_portal", 0.3),
    ("profile", 0.5),
    ("link", 0.5),
    ("unlink", 0.5),
    ("hold", 0.8),
    ("give_back", 0.6),
    ("give", 1),
    ("correct", 0.6),
    ("bills_come", 0.4),
    ("bills_go", 0.8),
    ("wire", 1.5),
    ("wire_goes_on", 2),
    ("originate", 1.5),
    ("entry_goes_on", 3),
    ("entry_arrives", 1),
    ("repeat", 4),
    ("reuse_key", 1.5),
    ("minutes", 3),
    ("to_morning", 0.7),
    ("week", 0.06),
)
