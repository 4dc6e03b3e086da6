"""The commands that customers of a bank under test give, however their bank carries them out."""

from abc import ABC, abstractmethod
from typing import Any
from uuid import UUID

from billfold.accounts.commands import EnrolCustomer, OpenPocket
from billfold.accounts.counterparties.commands import AddCounterparty
from billfold.payments.deposits.commands import ReceiveMoney
from billfold.payments.on_us.commands import TransferOnUs

PARTNER = UUID("8f3b6f60-0000-4000-8000-00000000aaaa")
BETA = {"type": "business", "business_name": "Beta LLC"}
ADDRESS = {"street_address": "1 Main St", "city": "Reno", "postal_code": "89501", "state": "NV", "country": "US"}
DETAILS = {
    "wire": {"routing_number": "121182904", "identifier": "5647772655", "address": ADDRESS},
    "ach": {"routing_number": "021000021", "account_number": "5647772655", "account_type": "CHECKING"},
}
"""Accounts at other banks, by the type of their counterparty."""


class Commands(ABC):
    """A pocket is a pair of its id and its first portal's id. Every method returns what `submit` returns."""

    @abstractmethod
    def submit(self, kind: Any, *customers: UUID, **fields: Any) -> Any:
        """Carry out a command of this kind; return its outcome, or what can be awaited for it."""

    def enrol(self, customer, name="Somebody", *, partner_id=PARTNER, role="customer"):
        return self.submit(
            EnrolCustomer, customer, partner_id=partner_id, role=role, type="BUSINESS", name=name, profile={}
        )

    def open_pocket(self, customer, *, weeks=4, reinvest=4, name="A pocket", partner_id=PARTNER, **fields):
        return self.submit(
            OpenPocket,
            customer,
            partner_id=partner_id,
            name=name,
            deposit_weeks=weeks,
            reinvestment_weeks=reinvest,
            **fields,
        )

    def receive_money(self, customer, pocket, cents, *, rail="WIRE", **fields):
        """Let money arrive at a portal."""
        pocket_id, portal_id = pocket
        return self.submit(
            ReceiveMoney,
            customer,
            rail=rail,
            portal_id=portal_id,
            pocket_id=pocket_id,
            amount=cents,
            description="a deposit",
            details={},
            **fields,
        )

    def transfer(self, origin, destination, cents, **fields):
        """Move money or bills; each place begins with its customer and its pocket's id."""
        customers = tuple(dict.fromkeys((origin[0], destination[0])))
        return self.submit(
            TransferOnUs,
            *customers,
            **{"transfer_id": None, **fields},
            type="INTERNAL_REALLOCATION" if len(customers) == 1 else "PEER_TO_PEER",
            from_pocket_id=origin[1],
            to_pocket_id=destination[1],
            amount=cents,
            partner_id=PARTNER,
        )

    def add_counterparty(self, customer, kind, *, details=None, verification="pre_verified", **fields):
        """Link an account at another bank."""
        return self.submit(
            AddCounterparty,
            customer,
            type=kind,
            counterparty_name=BETA,
            details=details or DETAILS[kind],
            verification=verification,
            **fields,
        )


def pocket_of(outcome):
    """Return what `open_pocket` led to as a pair of ids."""
    return UUID(outcome["pocket_id"]), UUID(outcome["portal_id"])
