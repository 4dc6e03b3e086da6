"""The commands that customers of a bank under test give, however their bank carries them out."""

from typing import Any, NamedTuple
from uuid import UUID

from typing_extensions import override

from billfold.accounts.counterparties.commands import AddCounterparty
from billfold.accounts.counterparties.types import format_name
from billfold.accounts.customers.commands import EnrolCustomer
from billfold.accounts.pockets.commands import OpenPocket
from billfold.payments.deposits.rules import ReceiveMoney
from billfold.payments.on_us.commands import TransferOnUs
from billfold.platform.ids import command_id, derive, new

PARTNER = UUID("8f3b6f60-0000-4000-8000-00000000aaaa")
BETA = {"type": "business", "business_name": "Beta LLC"}
ADDRESS = {"street_address": "1 Main St", "city": "Reno", "postal_code": "89501", "state": "NV", "country": "US"}
DETAILS: dict[str, dict[str, Any]] = {
    "wire": {"routing_number": "121182904", "identifier": "5647772655", "address": ADDRESS},
    "ach": {"routing_number": "021000021", "account_number": "5647772655", "account_type": "CHECKING"},
}
"""Accounts at other banks, by the type of their counterparty."""


class Place(NamedTuple):
    """A pocket: its customer, its id and the id of its first portal."""

    customer: UUID
    id: UUID
    portal: UUID


class Commands:
    """Every method returns what `submit` returns."""

    def submit(self, kind: Any, *customers: UUID, **fields: Any) -> Any:
        """Carry out a command of this kind; return its outcome, or what can be awaited for it."""
        raise NotImplementedError

    def enrol(self, customer, name="Somebody", *, partner_id=PARTNER, role="customer"):
        return self.submit(
            EnrolCustomer, customer, partner_id=partner_id, role=role, type="BUSINESS", name=name, profile=None
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

    def receive_money(self, place, cents, *, rail="WIRE", **fields):
        """Let money arrive at a portal."""
        return self.submit(
            ReceiveMoney,
            place.customer,
            rail=rail,
            portal_id=place.portal,
            pocket_id=place.id,
            amount=cents,
            description="a deposit",
            details={},
            **fields,
        )

    def transfer(self, origin, destination, cents, **fields):
        """Move money or bills between two places."""
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

    def add_counterparty(self, customer, kind, *, name=BETA, details=None, verification="pre_verified", **fields):
        """Link an account at another bank, or a Pocket of this one by its owner's name."""
        if kind == "on_us":
            fields.setdefault("holder", format_name(name))
        return self.submit(
            AddCounterparty,
            customer,
            type=kind,
            counterparty_name=name,
            details=details or DETAILS[kind],
            verification=verification,
            is_screened=True,
            **fields,
        )


def opened(customer, outcome):
    """Return the place that `open_pocket` led to."""
    return Place(customer, UUID(outcome["pocket_id"]), UUID(outcome["portal_id"]))


class EngineCommands(Commands):
    """Awaits the engine of a bank. A caller that is named has the same keys in every run."""

    def __init__(self, bank, caller=None):
        self.bank, self.count = bank, 0
        self.caller, self._names = (caller or "test"), (caller or str(new()))

    @override
    async def submit(self, kind, *customers, **fields):
        self.count += 1
        key = command_id(self._names, str(self.count))
        command = kind(caller=self.caller, key=key, customers=customers, request_hash=key.bytes, **fields)
        return (await self.bank.engine.submit(command)).outcome

    def id_of(self, name):
        return derive(self.bank.seed, command_id(self._names, name), 0)

    async def new_customer(self, name="Somebody", **fields):
        """Enrol a customer; return the id."""
        customer = self.id_of(name)
        await self.enrol(customer, name, **fields)
        return customer

    async def new_pocket(self, customer, **fields):
        """Open a pocket; return the place."""
        return opened(customer, await self.open_pocket(customer, **fields))
