"""Unclaimed money is held in suspense until it is returned or assigned to its owner, once."""

from datetime import date
from uuid import UUID

import pytest
from tests.fixtures.teller import Teller
from tests.simulation.life import Life

from billfold.accounts.portals.commands import UpdatePortal
from billfold.ledger.book.postings import TransactionEntry
from billfold.ledger.scheduler import bank_customer_id
from billfold.ledger.types import ScheduledJob
from billfold.payments.suspense.rules import AssignFromSuspense, HoldInSuspense, ReturnFromSuspense
from billfold.platform.dates import et_instant
from billfold.platform.errors import NotFound, Refused

ITEM = UUID("7c0de000-0000-4000-8000-000000000001")


class House(Teller):
    """A teller that also submits the bank's own commands."""

    def __init__(self):
        super().__init__()
        self.bank.submit(Life(self.bank, 0).found())
        self.house = bank_customer_id(self.bank.seed)

    def hold(self, *, rail="WIRE", direction="CREDIT", settles_on=None, **details):
        return self.of_house(
            HoldInSuspense,
            item_id=ITEM,
            rail=rail,
            direction=direction,
            amount=1_000_00,
            reason="NO_ACCOUNT",
            details={"description": "an invoice", **details},
            settles_on=settles_on,
        )

    def give_back(self):
        return self.of_house(ReturnFromSuspense, item_id=ITEM, reason="NO_ACCOUNT", references=(ITEM,))

    def assign(self, pocket):
        return self.of_house(
            AssignFromSuspense,
            self.customer,
            item_id=ITEM,
            pocket_id=pocket.pocket_id,
            portal_id=self.portals[pocket.pocket_id],
            references=(ITEM,),
        )

    def of_house(self, kind, *others, **fields):
        customer, self.customer = self.customer, self.house
        try:
            return self.do(kind, *others, **fields)
        finally:
            self.customer = customer

    def total(self, kind):
        return self.bank.totals[kind, "USD"]


@pytest.fixture
def house():
    return House()


def test_a_debit_in_suspense_is_posted_in_the_opposite_direction(house):
    house.hold(rail="ACH", direction="DEBIT")
    assert (house.total("rail:ach"), house.total("suspense")) == (1_000_00, -1_000_00)
    house.give_back()
    assert (house.total("rail:ach"), house.total("suspense")) == (0, 0)


def test_a_suspense_item_is_returned_once_by_its_rail(house):
    assert house.hold()["status"] == "HELD"
    assert (house.total("rail:wire"), house.total("suspense")) == (-1_000_00, 1_000_00)
    assert house.give_back()["status"] == "RETURNED"
    assert (house.total("rail:wire"), house.total("suspense")) == (0, 0)
    assert [row[:2] for row in house.bank.tables[ScheduledJob]] == [("wire.suspense_return", ITEM)]
    with pytest.raises(Refused, match="RETURNED already"):
        house.give_back()


def test_returning_an_unknown_suspense_item_raises_not_found(house):
    with pytest.raises(NotFound):
        house.give_back()


def test_a_suspense_item_is_assigned_to_its_owner(house):
    pocket = house.pocket()
    house.hold()
    assigned = house.assign(pocket)
    assert assigned["status"] == "ASSIGNED"
    assert pocket.inflow == 1_000_00
    assert (house.total("rail:wire"), house.total("suspense")) == (-1_000_00, 0)
    with pytest.raises(Refused, match="ASSIGNED already"):
        house.give_back()


def test_a_held_fee_is_assigned_with_its_wire(house):
    pocket = house.pocket()
    house.hold(fee=15_00)
    assert (house.total("rail:wire"), house.total("promotions")) == (-985_00, -15_00)
    assert house.total("suspense") == 1_000_00
    house.assign(pocket)
    assert pocket.inflow == 1_000_00
    told = [(row.type, row.amount) for row in house.bank.tables[TransactionEntry]]
    assert told == [("WIRE", 985_00), ("CREDIT", 15_00)]
    assert (house.total("rail:wire"), house.total("promotions")) == (-985_00, -15_00)
    assert house.total("suspense") == 0


def test_a_held_fee_is_kept_by_the_bank_when_its_wire_is_returned(house):
    house.hold(fee=15_00)
    house.give_back()
    assert (house.total("suspense"), house.total("promotions")) == (0, 0)


def test_assigning_a_suspense_item_to_a_closed_portal_is_refused(house):
    pocket = house.pocket()
    house.hold()
    house.do(UpdatePortal, portal_id=house.portals[pocket.pocket_id], close=True)
    with pytest.raises(Refused) as refused:
        house.assign(pocket)
    assert refused.value.code == "no-open-portal"
    assert house.total("suspense") == 1_000_00
    assert house.give_back()["status"] == "RETURNED"


def test_the_bank_closes_its_day_with_an_item_held_in_the_evening(house):
    house.bank.advance(et_instant(date(2025, 6, 2), 20))
    house.hold()
    house.bank.advance(et_instant(date(2025, 6, 4), 17))
    assert house.bank.books[house.house].business_date == date(2025, 6, 5)
    assert house.total("rail:wire") == 0
