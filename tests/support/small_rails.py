"""A small bank with every kind of wire and ACH payment."""

from datetime import date, datetime, timedelta
from uuid import UUID

from tests.support.fedwire import pay_back
from tests.support.whole_bank import DETAILS, EngineCommands, close_bank, open_bank

from billfold.payments.ach.commands import OriginateAch, ReinitiateAch, ReturnAchEntry, ReverseAch, ReviewAch
from billfold.payments.ach.inbound_files import AchFileProcessor
from billfold.payments.ach.nacha.records import AchFile, Batch, Entry
from billfold.payments.ach.nacha.writer import write_file
from billfold.payments.files.exchange import RailExchanges
from billfold.payments.wires import cases
from billfold.payments.wires.commands import SendWire
from billfold.platform.ids import command_id
from billfold.sandbox.control.clock_stepper import ClockStepper
from billfold.sandbox.rails.ach_network import SimulatedAchNetwork
from billfold.sandbox.rails.fedwire import DestinationAccount, Returned, Sender, SimulatedFedwire

CALLER = "small rails"
OURS, THEIRS = "061199992", "09100001"
NO_SUCH_BANK = "091000019"


class Customer(EngineCommands):
    """One customer with a pocket, and what it asks for."""

    def __init__(self, bank, name):
        super().__init__(bank, f"{CALLER}:{name}")
        self.name = name
        self.id = self.id_of(name)

    async def do(self, kind, *references, **fields):
        return await self.submit(kind, self.id, references=references, **fields)

    async def settle_in(self, cents):
        await self.new_customer(self.name)
        self.place = await self.new_pocket(self.id)
        self.pocket, self.portal = self.place.id, self.place.portal
        self.account = await self.bank.pool.fetchval(
            "SELECT account_number FROM portal WHERE portal_id = $1", self.portal
        )
        await self.receive_money(self.place, cents)
        self.wired = UUID((await self.add_counterparty(self.id, "wire"))["counterparty_id"])
        self.good = await self.payee("021000021")
        self.gone = await self.payee(NO_SUCH_BANK)

    async def payee(self, routing, verification="pre_verified"):
        details = DETAILS["ach"] | {"routing_number": routing}
        made = await self.add_counterparty(self.id, "ach", details=details, verification=verification)
        return UUID(made["counterparty_id"])

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
            ach_id=command_id(self.caller, f"ach:{self.count}"),
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
    await pay_back(bank, rows[0][0], key=rows[0][0])
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
    # Above the limit of payments without review.
    waiting = await bert.ach("DEBIT", 90_000_000_00)
    await bert.move(ReviewAch, waiting, decision="REJECTED", reason="Too much.")
    await bert.ach("DEBIT", 90_000_000_00)
    return made


def ach_file(entries, *, on, first_trace=1):
    """Return a file of another bank with these (transaction code, account, cents)."""
    batch = Batch(
        batch_number=1,
        company_name="ACME",
        company_identification="9000000001",
        standard_entry_class_code="PPD",
        company_entry_description="PAYMENT",
        effective_entry_date=on,
        originating_dfi_identification=THEIRS,
        entries=tuple(
            Entry(
                transaction_code=code,
                routing_number=OURS,
                dfi_account_number=account,
                amount=cents,
                individual_name="SOMEBODY",
                trace_number=f"{THEIRS}{trace:07}",
                individual_identification_number="7",
            )
            for trace, (code, account, cents) in enumerate(entries, start=first_trace)
        ),
    )
    return write_file(
        AchFile(
            immediate_destination=OURS,
            immediate_origin="061000146",
            file_id_modifier="A",
            batches=(batch,),
            created_at=datetime(2025, 6, 2, 9),
        )
    )


async def _receive(bank, anna, bert):
    entries = (
        ("22", anna.account, 100_00),
        ("27", anna.account, 50_00),
        ("27", bert.account, 9_000_000_00),
        ("22", "100000000001", 60_00),
        ("22", bert.account, 65_00),
    )
    await bank.ports[RailExchanges].ach.network_side().transmit("ENTRIES.ach", ach_file(entries, on=date(2025, 6, 2)))
    await AchFileProcessor().process_all(bank)
    for customer, cents in ((bert, 65_00), (anna, 50_00)):
        ach_id = await bank.pool.fetchval("SELECT ach_id FROM ach_entry WHERE way = 'RECEIVING' AND amount = $1", cents)
        if customer is bert:
            await bert.move(ReturnAchEntry, ach_id, code="R23")


async def _bounce(bank, anna, wires, entries):
    room, world = SimulatedFedwire(), SimulatedAchNetwork()
    told = {"reason": "AC04", "information": "Account closed", "returned": Returned(), "key": wires["paid"]}
    await room.give_back(bank, anna.id, wires["paid"], **told)
    await cases.recall(bank, wires["lost"], "DUPL")
    bert_wrote = command_id(CALLER, "change")
    await world.change_entry(bank, bert_wrote, entries["other"], code="C01", corrected="998877")
    await ClockStepper(bank).advance(timedelta(hours=3))
    broke = Customer(bank, "Bert")
    broke.count = 100
    await broke.move(ReinitiateAch, entries["broke"])
