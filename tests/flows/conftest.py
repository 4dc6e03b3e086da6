"""A bank in memory with one customer and his pockets, for tests of single decisions."""

from datetime import UTC, datetime
from uuid import UUID

import pytest
from tests.simulation.life import PARTNER
from tests.simulation.memory_bank import MemoryBank

from billfold.adapters.simulated_screening import SimulatedScreening
from billfold.domain.tbills import Market
from billfold.flows.account_commands import EnrolCustomer, OpenPocket
from billfold.flows.command import Terms
from billfold.flows.deposit_commands import ReceiveMoney
from billfold.flows.transfer_commands import TransferOnUs
from billfold.kit.calendars import Calendars
from billfold.kit.ids import command_id, derive

START = datetime(2025, 6, 2, 13, tzinfo=UTC)


class Teller:
    """Says what one customer wants, with keys from a counter."""

    def __init__(self, calendars=None, **terms):
        calendars = calendars or Calendars()
        agreed = Terms(
            **{"routing_number": "091000019", "screening": SimulatedScreening(), **terms}
        )
        self.bank = MemoryBank(Market.packaged(calendars), calendars, agreed, b"teller", START)
        self.customer = derive(b"teller", command_id("teller", "customer"), 0)
        self.count = 0
        self.portals = {}
        self.do(
            EnrolCustomer, partner_id=PARTNER, role="customer", type="BUSINESS", name="A",
            profile={},
        )  # fmt: skip

    @property
    def book(self):
        return self.bank.books[self.customer]

    def do(self, kind, *others, **fields):
        self.count += 1
        command = kind(
            caller="teller", key=command_id("teller", str(self.count)),
            customers=(self.customer, *others), **fields,
        )  # fmt: skip
        return self.bank.submit(command).outcome

    def pocket(self, weeks=4, reinvest=4):
        opened = self.do(
            OpenPocket, partner_id=PARTNER, name="A pocket", deposit_weeks=weeks,
            reinvestment_weeks=reinvest,
        )  # fmt: skip
        pocket_id = UUID(opened["pocket_id"])
        self.portals[pocket_id] = UUID(opened["portal_id"])
        return self.book.pockets[pocket_id]

    def deposit(self, pocket, cents, rail="WIRE"):
        return self.do(
            ReceiveMoney, rail=rail, portal_id=self.portals[pocket.pocket_id],
            pocket_id=pocket.pocket_id, amount=cents, description="a deposit", details={},
        )  # fmt: skip

    def move(self, origin, there, cents, **fields):
        return self.do(
            TransferOnUs, transfer_id=None, type="INTERNAL_REALLOCATION",
            from_pocket_id=origin.pocket_id, to_pocket_id=there.pocket_id, amount=cents,
            partner_id=PARTNER, **fields,
        )  # fmt: skip


@pytest.fixture
def teller():
    """A customer at 2025-06-02 09:00 ET, the market open."""
    return Teller()
