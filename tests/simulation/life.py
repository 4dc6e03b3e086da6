"""A seeded history: actions of customers, partners and the calendar on a bank, one step at a time.

`Life` draws steps from the state of an in-memory bank and executes them there at once. A step is a command or an
instant to advance to, so the same steps can be executed again on another bank.
"""

from datetime import date, datetime, timedelta
from random import Random
from typing import Any
from uuid import UUID

import msgspec
from tests.simulation import banking, on_chains, paying_by_card
from tests.simulation.banking import BANKING
from tests.simulation.linking import LINKING
from tests.simulation.on_chains import ON_CHAINS
from tests.simulation.operating import CALLER, OPERATING, learn, of_a_pocket
from tests.simulation.paying_by_card import PAYING_BY_CARD
from tests.support.whole_bank import Commands, Place, opened
from typing_extensions import override

from billfold.accounts.counterparties.commands import AddCounterparty
from billfold.accounts.customers.commands import CloseCustomer, EnrolCustomer, UpdateCustomer
from billfold.accounts.pockets.commands import OpenPocket, SetPocketState, UpdatePocket
from billfold.accounts.portals.commands import OpenPortal, UpdatePortal
from billfold.ledger.scheduler import bank_customer_id
from billfold.payments.on_us.commands import TransferOnUs, TransferOrder
from billfold.platform.dates import ET, et_instant
from billfold.platform.errors import BillfoldError
from billfold.platform.ids import command_id, derive

WEEKS = (4, 13, 26, 52)
REMEMBERED = 400
"""How many earlier commands may be sent a second time."""


class WalkTo(msgspec.Struct, frozen=True):
    """Advance the clock to this instant."""

    to: datetime


class Life(Commands):
    """Draws one step after another; `outcomes` counts their results."""

    def __init__(self, bank, seed, *, customers=60, files=True, kinds=None):
        self.bank = bank
        self.random = Random(seed)
        self.wanted = customers
        self.people = []
        self.pockets = []
        self.portals = {}
        self.waiting, self.linked, self.sent = [], [], []
        self.held, self.given, self.doomed, self.leaving = [], [], [], []
        self.wires, self.entries = [], []
        self.cards, self.cleared = [], []
        self.wallets, self.arrived, self.usdc, self.following = [], [], [], []
        self.files = files
        self.count = 0
        self.outcomes = {}
        self._kinds, self._weights = zip(*(kinds or KINDS), strict=True)

    # -- steps ----------------------------------------------------------------------------

    def found(self):
        """Return the first step: enrolling the bank's own customer."""
        return EnrolCustomer(
            caller="founding",
            key=command_id("founding", "house"),
            customers=(bank_customer_id(self.bank.seed),),
            partner_id=None,
            role="house",
            type="BUSINESS",
            name="House",
            profile=None,
        )

    def step(self):
        """Draw and execute a step; return it with its result."""
        step = self.draw()
        return step, self.live(step)

    def draw(self):
        """Draw a step that can succeed now."""
        if len(self.people) < self.wanted and self.random.random() < 0.2:
            return self._enrol()
        while True:
            (kind,) = self.random.choices(self._kinds, self._weights)
            step = ASIDE[kind](self) if kind in ASIDE else getattr(self, kind)()
            if step is not None:
                return step

    def live(self, step):
        """Execute a step in memory; return the outcome, the refusal, or None for a clock step."""
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
            place = opened(step.customers[0], outcome)
            self.pockets.append(place)
            self.portals[place.id] = [place.portal]
        elif isinstance(step, OpenPortal):
            portal = Place(step.customers[0], step.pocket_id, UUID(outcome["portal_id"]))
            self.portals[step.pocket_id].append(portal.portal)
            if step.wallet is not None:
                self.wallets.append((portal, step.wallet.address))
        elif isinstance(step, AddCounterparty):
            self.linked.append((step.customers[0], UUID(outcome["counterparty_id"])))
        elif isinstance(step, TransferOnUs) and outcome["status"] == "PENDING":
            self.waiting.append((step, UUID(outcome["transfer_id"])))
        else:
            learn(self, step, outcome)
            banking.learn(self, step, outcome)
            paying_by_card.learn(self, step, outcome)
            on_chains.learn(self, step, outcome)

    # -- commands -------------------------------------------------------------------------

    @override
    def submit(self, kind, *customers, **fields):
        """Return the command without executing it."""
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
        return self.enrol(customer_id, f"Customer {self.count}")

    def another_pocket(self):
        if not self.people or len(self.pockets) > 3 * self.wanted:
            return None
        return self.open_pocket(
            self.random.choice(self.people),
            weeks=self.random.choice(WEEKS),
            reinvest=self.random.choice((*WEEKS, None)),
            type=self.random.choice(("STANDARD", "STANDARD", "NETWORK")),
        )

    @of_a_pocket
    def deposit(self, place):
        rail = self.random.choice(("WIRE", "ACH"))
        return self.receive_money(self.at_a_portal(place), self._cents(), rail=rail)

    def pay(self):
        return self._transfer(self._pocket(), self._pocket())

    def pay_from_small(self):
        """Return two payments that together exceed the balance."""
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
        return self.submit(TransferOnUs, *step.customers, **fields)

    @of_a_pocket
    def _within(self, origin, **fields):
        own = [place for place in self.pockets if place.customer == origin.customer]
        return self._transfer(origin, self.random.choice(own), **fields)

    def _transfer(self, origin, destination, *, amount=None, in_kind=False, **fields):
        if origin is None or destination is None:
            return None
        within = origin.customer == destination.customer
        cents = (amount or self._payable)(origin)
        order = TransferOrder(
            description=self.random.choice(("", "rent")),
            transfer_type="SECURITY_TRANSFER" if within and in_kind else None,
        )
        return self.transfer(origin, destination, cents, order=order, **fields)

    @of_a_pocket
    def change_pocket(self, place):
        fields: dict[str, Any] = {"name": "Renamed"}
        if self.random.random() < 0.5:
            fields |= {"deposit_weeks": self.random.choice(WEEKS)}
        if self.random.random() < 0.5:
            weeks = self.random.choice((*WEEKS, None))
            fields |= {"reinvestment_weeks": weeks, "keep_reinvestment": False}
        return self.submit(UpdatePocket, place.customer, pocket_id=place.id, **fields)

    @of_a_pocket
    def close_pocket(self, place):
        fields = {"pocket_id": place.id, "close_for": "not needed", "references": (place.id,)}
        return self.submit(UpdatePocket, place.customer, **fields)

    def close_customer(self):
        if not self.people:
            return None
        whom = self.random.choice(self.people)
        return self.submit(CloseCustomer, whom, reason="moved away", references=(whom,))

    @of_a_pocket
    def freeze(self, place):
        # Most thaw again soon, or nothing would ever happen.
        status = "OPEN" if self._status(place) == "FROZEN" else "FROZEN"
        return self.submit(SetPocketState, place.customer, pocket_id=place.id, status=status)

    def thaw(self):
        frozen = [place for place in self.pockets if self._status(place) == "FROZEN"]
        if not frozen:
            return None
        place = self.random.choice(frozen)
        return self.submit(SetPocketState, place.customer, pocket_id=place.id, status="OPEN")

    @of_a_pocket
    def open_portal(self, place):
        if len(self.portals[place.id]) > 3:
            return None
        return self.submit(OpenPortal, place.customer, pocket_id=place.id, name="Another")

    @of_a_pocket
    def close_portal(self, place):
        if len(self.portals[place.id]) < 2:
            return None
        portal = self.random.choice(self.portals[place.id])
        return self.submit(UpdatePortal, place.customer, portal_id=portal, name="Old", close=True)

    def profile(self):
        if not self.people:
            return None
        return self.submit(UpdateCustomer, self.random.choice(self.people), profile=None)

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
        """Draw a pocket, mostly an open one."""
        if not self.pockets:
            return None
        place = self.random.choice(self.pockets)
        for _ in range(4):
            if self._status(place) == "OPEN":
                return place
            place = self.random.choice(self.pockets)
        return place

    def _status(self, place):
        return self.bank.books[place.customer].pockets[place.id].status

    def at_a_portal(self, place):
        """Return the pocket with one of its portals."""
        return place._replace(portal=self.random.choice(self.portals[place.id]))

    def _cents(self):
        return self.random.choice(
            (
                self.random.randint(1, 20_000),
                self.random.randint(10_000, 2_000_000),
                self.random.randint(1_000_000, 500_000_000),
            )
        )

    def _worth(self, place):
        pocket = self.bank.books[place.customer].pockets[place.id]
        return pocket.cash.balance + sum(units * 9_900 for _, units in pocket.positions())

    def _payable(self, place):
        most = max(1, self._worth(place) // self.random.choice((1, 3, 10, 50)))
        cents = self.random.randint(1, most)
        return cents if self.random.random() < 0.3 else max(1, cents // 100 * 100)

    def _half_of(self, place):
        return max(1, self._worth(place) * self.random.randint(50, 105) // 100)


ASIDE = LINKING | OPERATING | BANKING | PAYING_BY_CARD | ON_CHAINS
LATEST = et_instant(date(2026, 5, 1), 0)
KINDS = (
    ("deposit", 22),
    ("pay", 34),
    ("pay_from_small", 5),
    ("move", 8),
    ("move_bills", 6),
    ("withdraw", 2),
    ("pay_later", 2),
    ("carry_out", 2),
    ("another_pocket", 3),
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
    ("card", 0.5),
    ("card_message", 6),
    ("card_record", 3),
    ("wallet", 0.5),
    ("deposit_on_chain", 3),
    ("deposit_goes_on", 2),
    ("usdc", 1.5),
    ("usdc_goes_on", 2),
    ("repeat", 4),
    ("reuse_key", 1.5),
    ("minutes", 3),
    ("to_morning", 0.7),
    ("week", 0.06),
)
