"""A holder's card, and the processor's settlement files about it."""

import json
from datetime import UTC, date, datetime
from types import SimpleNamespace
from typing import Any

from tests.support.commands import PARTNER
from tests.support.whole_bank import expect_clean

from billfold.payments.cards.authorizations.types import Merchant
from billfold.payments.cards.cash_back.rule_versions import set_rule
from billfold.payments.cards.cash_back.store import list_given
from billfold.payments.cards.commands import CreateVirtualCard
from billfold.payments.cards.settlement.file_format import write_file
from billfold.payments.cards.settlement.inbound import CardSettlementFiles
from billfold.payments.cards.settlement.types import (
    FORMAT,
    VERSION,
    Chargeback,
    Fee,
    Header,
    Presentment,
    Refund,
    Representment,
)
from billfold.payments.files.ports import RailExchanges
from billfold.platform import ids
from billfold.sandbox.control.clock_stepper import ClockStepper
from billfold.wiring.providers import rail_files_folder

BANK = "061199992"
SHOP = Merchant(name="Corner Shop", category_code="5411", city="Reno", state="NV", country="US")
TUESDAY = date(2025, 6, 3)


class Processor:
    """The card processor of a bank, as far as it sends settlement files."""

    def __init__(self, bank):
        self.bank, self.clock = bank, ClockStepper(bank)
        self.folder = rail_files_folder(bank.settings) / "card"
        self.files = CardSettlementFiles()
        self.count = 0

    async def card(self, commands, place=None):
        """Return the id of a new card of this holder, or of a place that these commands are about."""
        card_id, place = ids.new(), place or commands.place
        await commands.submit(
            CreateVirtualCard,
            place.customer,
            card_id=card_id,
            pocket_id=place.id,
            name="Ada Marsh",
            last_four="4242",
            expires_on=date(2029, 6, 30),
        )
        return card_id

    def file(self, *records, **header):
        self.count += 1
        fields: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "reference": f"CYCLE-{self.count}",
            "bank": BANK,
            "settles_on": TUESDAY,
            "created_at": datetime(2025, 6, 2, 22, tzinfo=UTC),
            "currency": "USD",
        }
        return write_file(Header(**fields | header), records)

    async def put(self, content, name=None):
        """Let a file arrive; return its report."""
        name = name or f"cycle-{self.count}.jsonl"
        await self.bank.ports[RailExchanges].card.network_side().transmit(name, content)
        await self.files.process_all(self.bank)
        (report,) = self.folder.glob(f"*/{name}.report.json")
        found = json.loads(report.read_bytes())
        report.unlink()
        return found

    async def send(self, *records, **header):
        report = await self.put(self.file(*records, **header))
        assert report["state"] == "PROCESSED", report
        return report

    async def clean(self):
        await expect_clean(self.bank)

    async def balances(self, *kinds):
        """Return the bank's balances of these kinds of accounts, credits less debits."""
        rows = await self.bank.pool.fetch(
            "SELECT kind, sum(credits - debits)::bigint AS cents FROM account WHERE asset = 'USD' GROUP BY kind"
        )
        held = {row["kind"]: row["cents"] for row in rows}
        return tuple(held.get(kind, 0) for kind in kinds)


class Program(Processor):
    """A partner with a rule of cash back, and the cards of its customers."""

    async def rule(self, **fields):
        own = await self.bank.pool.fetchval("SELECT bank_customer_id FROM bank")
        partner: Any = SimpleNamespace(partner_id=PARTNER, own_customer_id=own)
        return await set_rule(self.bank, partner, **fields)

    async def on(self, day):
        await self.clock.set_to(datetime.combine(day, datetime.min.time(), UTC).replace(hour=15))

    async def given(self, period):
        """Return the cash back of a month by card, in cents."""
        return {each.card_id: each.amount for each in await list_given(self.bank.pool, period)}

    async def credits(self, customer_id):
        return [
            (row["amount"], row["period"])
            for row in await self.bank.pool.fetch(
                "SELECT amount, details->>'period' AS period FROM transaction"
                " WHERE customer_id = $1 AND type = 'CREDIT' ORDER BY booked_at",
                customer_id,
            )
        ]


def presentment(card_id, amount, **fields):
    own: dict[str, Any] = {"record_id": ids.new(), "merchant": SHOP, "interchange": amount // 100}
    return Presentment(card_id=card_id, amount=amount, **own | fields)


def refund(card_id, amount, **fields):
    own: dict[str, Any] = {"record_id": ids.new(), "merchant": SHOP, "interchange": -(amount // 100)}
    return Refund(card_id=card_id, amount=amount, **own | fields)


def chargeback(of, amount=None, **fields):
    own: dict[str, Any] = {"record_id": ids.new(), "reason_code": "10-4", "card_id": of.card_id}
    return Chargeback(original_record_id=of.record_id, amount=amount or of.amount, **own | fields)


def representment(of, amount=None, **fields):
    own: dict[str, Any] = {"record_id": ids.new(), "card_id": of.card_id}
    return Representment(original_record_id=of.record_id, amount=amount or of.amount, **own | fields)


def fee(amount, kind="NETWORK"):
    return Fee(record_id=ids.new(), kind=kind, amount=amount, description="Assessments")
