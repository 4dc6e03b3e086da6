"""A small bank whose money comes and goes by wire and ACH, with a bit of everything they do."""

from datetime import date, datetime, timedelta
from uuid import UUID

from tests.support.whole_bank import PARTNER, close_bank, open_bank

from billfold.accounts.commands import EnrolCustomer, OpenPocket
from billfold.accounts.counterparties.commands import AddCounterparty
from billfold.payments.ach.commands import OriginateAch, ReinitiateAch, ReturnAchEntry, ReverseAch, ReviewAch
from billfold.payments.ach.inbound.files import AchFileProcessor
from billfold.payments.ach.nacha.types import AchFile, Batch, Entry
from billfold.payments.ach.nacha.writer import write_file
from billfold.payments.deposits.commands import ReceiveMoney
from billfold.payments.wires import cases as wire_cases
from billfold.payments.wires.commands import SendWire
from billfold.platform.ids import command_id
from billfold.sandbox.ach.network import SimulatedAchNetwork
from billfold.sandbox.clock.stepper import ClockStepper
from billfold.sandbox.wires.fedwire import DestinationAccount, Sender, SimulatedFedwire

CALLER = "small rails"
OURS, THEIRS = "061199992", "09100001"
NO_SUCH_BANK = "091000019"
NAME = {"type": "business", "business_name": "Beta LLC"}
ADDRESS = {"street_address": "1 Main St", "city": "Reno", "postal_code": "89501", "state": "NV", "country": "US"}


class Customer:
    """One customer with a pocket, and what he asks for; keys come from a counter."""

    def __init__(self, bank, name):
        self.bank, self.name, self.count = bank, name, 0
        self.id = command_id(CALLER, name)

    async def do(self, kind, *references, **fields):
        self.count += 1
        key = command_id(CALLER, f"{self.name}:{self.count}")
        fields |= {"customers": (self.id,), "references": references}
        command = kind(caller=CALLER, key=key, **fields)
        return (await self.bank.engine.submit(command)).outcome

    async def settle_in(self, cents):
        await self.do(EnrolCustomer, partner_id=PARTNER, role="customer", type="BUSINESS", name=self.name, profile={})
        opened = await self.do(OpenPocket, partner_id=PARTNER, name="Reserve", deposit_weeks=4, reinvestment_weeks=4)
        self.pocket, self.portal = UUID(opened["pocket_id"]), UUID(opened["portal_id"])
        self.account = await self.bank.pool.fetchval(
            "SELECT account_number FROM portal WHERE portal_id = $1", self.portal
        )
        await self.do(
            ReceiveMoney,
            rail="WIRE",
            portal_id=self.portal,
            pocket_id=self.pocket,
            amount=cents,
            description="a deposit",
            details={},
        )
        wire = {"routing_number": "121182904", "identifier": "5647772655", "address": ADDRESS}
        self.wired = await self.link("wire", wire, "pre_verified")
        self.good = await self.payee("021000021")
        self.gone = await self.payee(NO_SUCH_BANK)

    async def link(self, type_, details, verification):
        made = await self.do(
            AddCounterparty, type=type_, counterparty_name=NAME, details=details, verification=verification
        )
        return UUID(made["counterparty_id"])

    async def payee(self, routing, verification="pre_verified"):
        details = {"routing_number": routing, "account_number": "5647772655", "account_type": "CHECKING"}
        return await self.link("ach", details, verification)

    async def wire(self, cents):
        sent = await self.do(
            SendWire, self.wired, wire_id=None, pocket_id=self.pocket, amount=cents, counterparty_id=self.wired
        )
        return UUID(sent["wire_id"])

    async def ach(self, direction, cents, payee=None):
        payee = payee or self.good
        sent = await self.do(
            OriginateAch,
            payee,
            ach_id=command_id(CALLER, f"{self.name}:ach:{self.count}"),
            pocket_id=self.pocket,
            counterparty_id=payee,
            direction=direction,
            sec_code="PPD",
            description="PAYROLL",
            amount=cents,
            lines=("INVOICE 7",),
        )
        return UUID(sent["ach_id"])

    async def move(self, kind, ach_id, **fields):
        return await self.do(kind, ach_id, ach_id=ach_id, **fields)


async def live(dsn):
    """Found the bank in a database with a market, and let two weeks go by."""
    bank = await open_bank(dsn)
    clock = ClockStepper(bank)
    anna, bert = Customer(bank, "Anna"), Customer(bank, "Bert")
    for each in (anna, bert):
        await each.settle_in(500_000_00)
    await anna.payee("021000021", "micro_deposits")
    wires = await _send_wires(bank, anna, bert)
    entries = await _originate(anna, bert)
    await _receive(bank, anna, bert)
    await clock.advance_business_days(2)
    await _bounce(bank, anna, wires, entries=entries)
    await clock.advance_business_days(4)
    await anna.move(ReverseAch, entries["paid"])
    await clock.advance_business_days(3)
    for each in (anna, bert):
        await each.ach("CREDIT", 70_00)
        await each.ach("DEBIT", 80_00)
        await each.wire(90_00)
    await close_bank(bank)


async def _send_wires(bank, anna, bert):
    room = SimulatedFedwire()
    sent = {"paid": await anna.wire(1_000_00), "lost": await bert.wire(2_000_00)}
    await anna.wire(3_000_01)
    await anna.wire(4_000_02)
    paid_in = command_id(CALLER, "paid in")
    for key, cents in ((paid_in, 500_00), (command_id(CALLER, "kept"), 600_00)):
        await room.pay(bank, key, DestinationAccount(OURS, bert.account), cents, Sender("Acme"))
    rows = await bank.pool.fetch("SELECT wire_id FROM wire WHERE direction = 'INCOMING' ORDER BY amount")
    await room.ask_for(bank, bert.id, rows[0][0], reason="DUPL")
    await wire_cases.pay_back(bank, rows[0][0], "FOCR")
    await room.pay(bank, command_id(CALLER, "nobody"), DestinationAccount(OURS, "999999999999"), 5_00, Sender("Acme"))
    return sent


async def _originate(anna, bert):
    made = {
        "paid": await anna.ach("CREDIT", 1_510_00),
        "shut": await anna.ach("CREDIT", 1_330_03),
        "gone": await anna.ach("CREDIT", 1_420_00, anna.gone),
        "large": await anna.ach("CREDIT", 30_000_00),
        "taken": await bert.ach("DEBIT", 700_00),
        "broke": await bert.ach("DEBIT", 710_03),
        "other": await bert.ach("CREDIT", 720_00),
    }
    await anna.move(ReviewAch, await anna.ach("CREDIT", 90_00), decision="CANCELLED")
    # Above what goes without being looked at.
    waiting = await bert.ach("DEBIT", 90_000_000_00)
    await bert.move(ReviewAch, waiting, decision="REJECTED", reason="Too much.")
    await bert.ach("DEBIT", 90_000_000_00)
    return made


async def _receive(bank, anna, bert):
    entries = [
        Entry(
            transaction_code=code,
            routing_number=OURS,
            dfi_account_number=account,
            amount=cents,
            individual_name="SOMEBODY",
            trace_number=f"{THEIRS}{number:07}",
            individual_identification_number="7",
        )
        for number, (code, account, cents) in enumerate(
            (
                ("22", anna.account, 100_00),
                ("27", anna.account, 50_00),
                ("27", bert.account, 9_000_000_00),
                ("22", "100000000001", 60_00),
                ("22", bert.account, 65_00),
            ),
            start=1,
        )
    ]
    batch = Batch(
        batch_number=1,
        company_name="ACME",
        company_identification="9000000001",
        standard_entry_class_code="PPD",
        company_entry_description="PAYMENT",
        effective_entry_date=date(2025, 6, 2),
        originating_dfi_identification=THEIRS,
        entries=tuple(entries),
    )
    file = AchFile(
        immediate_destination=OURS,
        immediate_origin="061000146",
        file_id_modifier="A",
        batches=(batch,),
        created_at=datetime(2025, 6, 2, 9),
    )
    await bank.rails.ach.network_side().transmit("ENTRIES.ach", write_file(file))
    await AchFileProcessor().process_all(bank)
    for customer, cents in ((bert, 65_00), (anna, 50_00)):
        ach_id = await bank.pool.fetchval("SELECT ach_id FROM ach_entry WHERE way = 'RECEIVING' AND amount = $1", cents)
        if customer is bert:
            await bert.move(ReturnAchEntry, ach_id, code="R23")


async def _bounce(bank, anna, wires, entries):
    room, world = SimulatedFedwire(), SimulatedAchNetwork()
    await room.give_back(bank, anna.id, wires["paid"], reason="AC04", information="Account closed")
    await wire_cases.recall(bank, wires["lost"], "DUPL")
    bert_wrote = command_id(CALLER, "change")
    await world.change_entry(bank, bert_wrote, entries["other"], code="C01", corrected="998877")
    await ClockStepper(bank).advance(timedelta(hours=3))
    broke = Customer(bank, "Bert")
    broke.count = 100
    await broke.move(ReinitiateAch, entries["broke"])
