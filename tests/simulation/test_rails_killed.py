"""Wires and ACH while the worker dies at any step: everything happens exactly once.

Before each death there is work of every kind: wires and entries to send, incoming files of messages
and entries, returns by other banks, and an approved request.
"""

import asyncio
import os
from collections import Counter
from datetime import date, timedelta
from pathlib import Path
from random import Random
from uuid import UUID

from tests.simulation.dying_workers import dying_workers
from tests.support.approvals import REQUESTS, decide, wire
from tests.support.apps import lend_customer_app, take_back
from tests.support.cards import Program, fee, presentment, refund
from tests.support.small_rails import OURS, Customer, ach_file
from tests.support.whole_bank import close_bank, open_bank
from tests.support.world import MemberDesk, Opened, join, token_for

from billfold.ledger.scheduler import bank_customer_id, run_scheduled_jobs
from billfold.payments.ach.nacha.reader import read_file
from billfold.payments.cards.settlement.store import reconcile
from billfold.payments.clearing.worker import close_bank_days
from billfold.payments.files.exchange import RailExchanges
from billfold.payments.wires.iso20022.envelope import read_messages, write_messages
from billfold.payments.wires.iso20022.types import CreditTransfer
from billfold.payments.wires.messages import fedwire_day
from billfold.platform import ids
from billfold.platform.clock import wall_now
from billfold.platform.database.business_clock import read_clock, write_clock
from billfold.sandbox.control.clock_stepper import ClockStepper
from billfold.sandbox.rails.fedwire import SimulatedFed
from billfold.verify.runner import verify_bank
from billfold.wiring.cli_context import Wiring

KILLS = int(os.environ.get("BILLFOLD_RAIL_KILLS", "8"))
SEED = int(os.environ.get("BILLFOLD_KILLS_SEED", "7"))
STEPS = (1, 1_000)
"""Of how many steps a round with all that work is, about."""
IN_A_FILE = 4
FRIDAY = date(2025, 6, 6)
_STATUS = "SELECT status FROM transfer_request WHERE request_id = $1::text::uuid"


class Street:
    """Requests to the bank and messages of the rails; counts their expected results."""

    def __init__(self, bank, app, folder):
        self.bank, self.app, self.folder = bank, app, folder
        self.anna, self.bert = Customer(bank, "Anna"), Customer(bank, "Bert")
        self.nth = 0
        self.wires, self.entries, self.paid_in, self.requests = [], [], [], []
        self.handed = {}
        self.processor = Program(bank)

    async def settle_in(self):
        """Fund both customers, and give Anna a card with cash back."""
        for each in (self.anna, self.bert):
            await each.settle_in(3_000_000_00)
        self.card = await self.processor.card(self.anna, self.anna.place)
        await self.processor.rule(basis_points=100)
        # The card processor takes longer to start than a worker lives.
        await run_scheduled_jobs(self.bank, await self.bank.now())

    async def ask(self):
        """Submit something of each kind to the bank."""
        self.nth += 1
        cents = 10_000_00 + self.nth * 100
        self.wires += [await self.anna.wire(cents), await self.bert.wire(cents + 1)]
        self.entries += [
            await self.anna.ach("CREDIT", 100_00 + self.nth * 100),
            await self.anna.ach("CREDIT", 100_03 + self.nth * 100),
            await self.bert.ach("DEBIT", 100_00 + self.nth * 100),
            await self.bert.ach("DEBIT", 100_03 + self.nth * 100),
        ]
        await self._approve(5_000_00 + self.nth * 100)
        await self._wires_arrive()
        await self._entries_arrive()
        await self._card_records_arrive()

    async def _approve(self, cents):
        """Request and approve a transfer; the server dies before it executes it."""
        asker, approver = [await self._member() for _ in range(2)]
        anna = Opened(str(self.anna.id), str(self.anna.pocket), str(self.anna.portal))
        body = wire(anna, cents, str(self.anna.wired), description=f"nr {self.nth}")
        made = await asker.post(REQUESTS, body)
        deciding = asyncio.create_task(decide(approver, made))
        while await self.bank.pool.fetchval(_STATUS, made["id"]) != "APPROVED":
            assert not deciding.done(), deciding.result()
            await asyncio.sleep(0.01)
        deciding.cancel()
        for each in (asker, approver):
            await each.close()
        self.requests.append(UUID(made["id"]))

    async def _member(self):
        """Return a new member, because of the rate limit of one request per second."""
        team = await join(self.bank, str(self.anna.id))
        return MemberDesk(self.bank, self.app, team, token=await token_for(self.bank, team))

    async def _wires_arrive(self):
        now = await self.bank.now()
        fed, day = SimulatedFed(OURS), fedwire_day(self.bank, now)
        file = [
            fed.payment(
                f"{self.nth}:{n}",
                now,
                day,
                account_number=account,
                amount=1_00 + n,
                sender_name="Acme",
                sender_account_number=None,
                sender_routing_number=None,
            )
            for n, account in enumerate([self.anna.account] * (IN_A_FILE - 1) + ["999999999999"])
        ]
        self.paid_in += [each.message.uetr for each in file if isinstance(each.message, CreditTransfer)]
        content = write_messages(file, "incoming")
        await self.bank.ports[RailExchanges].wire.network_side().transmit(f"in-{self.nth}.xml", content)

    async def _entries_arrive(self):
        entries = (
            ("22", self.bert.account, 50_00),
            ("27", self.bert.account, 9_000_000_00),
            ("27", self.anna.account, 20_00),
            ("22", "100000000001", 30_00),
        )
        file = ach_file(entries, on=FRIDAY, first_trace=self.nth * 10)
        await self.bank.ports[RailExchanges].ach.network_side().transmit(f"in-{self.nth}.ach", file)

    async def _card_records_arrive(self):
        """Deliver a file of the card processor, with one record of an unknown card."""
        records = (presentment(self.card, 70_00), refund(self.card, 5_00), presentment(ids.new(), 3_00), fee(1_00))
        content = self.processor.file(*records, settles_on=FRIDAY)
        await self.bank.ports[RailExchanges].card.network_side().transmit(f"in-{self.nth}.jsonl", content)

    async def pass_time(self, by):
        """Advance the clock without doing the due work."""
        async with self.bank.pool.acquire() as conn:
            state = await read_clock(conn)
            assert state is not None
            await write_clock(conn, state.advance(by, wall_now()))

    def carry(self):
        """Record every transmitted file; a name must always have the same content."""
        for place in ("outbox", "sent"):
            for path in Path(self.folder).glob(f"rails/*/{place}/[!.]*"):
                content = path.read_bytes()
                assert self.handed.setdefault(path.name, content) == content, path.name

    def messages(self):
        """Return the number of transmissions of each wire, by UETR and kind."""
        files = [raw for name, raw in self.handed.items() if name.endswith(".xml")]
        sent = [wire.message for raw in files for _, wire in read_messages(raw, "outgoing")]
        return Counter(each.uetr if isinstance(each, CreditTransfer) else each.original.uetr for each in sent)

    def traces(self):
        """Return the number of occurrences of each trace number in transmitted files."""
        files = [raw for name, raw in self.handed.items() if name.endswith(".ach")]
        batches = [batch for raw in files for batch in read_file(raw).batches]
        return Counter(entry.trace_number for batch in batches for entry in batch.entries)


async def test_every_rail_payment_is_executed_once_when_the_worker_dies_at_any_step(bank_dsn, tmp_path):
    print(f"BILLFOLD_KILLS_SEED={SEED}")
    draw = Random(SEED)
    bank = await open_bank(bank_dsn, rails_dir=tmp_path / "rails", files_dir=tmp_path / "files")
    # A door whose engine has ended: it takes the approval, and never carries it out.
    door = await open_bank(bank_dsn)
    await door.engine.stop()
    app = lend_customer_app(door)
    street = Street(bank, app, tmp_path)
    await street.settle_in()
    workers = dying_workers(bank_dsn, tmp_path)
    try:
        for nth in range(KILLS):
            await street.ask()
            # Once a day goes by: what was bought settles.
            hours = 24 if nth == KILLS // 2 else draw.choice((0, 1, 2, 4))
            await street.pass_time(timedelta(hours=hours))
            workers.start(draw.randint(*STEPS))
            workers.wait()
            street.carry()
        assert len(street.handed) > KILLS / 4, "the workers die before they have done anything"
        await Wiring({}).ingest_files(bank)
        await ClockStepper(bank).advance(timedelta(days=12))
        await let_mature(street, workers, draw)
    finally:
        workers.close()
        await take_back(app)
        await close_bank(door)
    street.carry()
    await must_have_happened_once(bank, street)
    await close_bank(bank)


async def let_mature(street, workers, draw):
    """Let a month pass while workers die, so that all bills mature."""
    for _ in range(3):
        await street.pass_time(timedelta(days=10))
        workers.start(draw.randint(*STEPS))
        workers.wait()
    await ClockStepper(street.bank).advance(timedelta(hours=1))
    matured = "SELECT count(*) FROM settlement WHERE side = 'MATURITY'"
    assert await street.bank.pool.fetchval(matured)


async def must_have_happened_once(bank, street):
    """Compare the requests, the files and the books."""
    await close_bank_days(bank, await bank.now())
    async with bank.pool.acquire() as conn:
        report = await verify_bank(conn, market=bank.market, vault=bank.vault)
    assert report.is_clean, report.findings
    rows = await bank.pool.fetch("SELECT * FROM wire")
    wires = {row["wire_id"]: row for row in rows}
    assert [wires[each]["status"] for each in street.wires] == ["COMPLETED", "REJECTED"] * KILLS
    assert {wires[each]["status"] for each in street.requests} == {"COMPLETED"}
    arrived = [row["uetr"] for row in rows if row["direction"] == "INCOMING"]
    to_anna = [each for n, each in enumerate(street.paid_in, start=1) if n % IN_A_FILE]
    assert sorted(arrived) == sorted(to_anna)
    told = street.messages()
    assert set(told.values()) == {1}
    nobodys = set(street.paid_in) - set(to_anna)
    assert told.keys() == {row["uetr"] for row in rows if row["direction"] == "OUTGOING"} | nobodys
    await entries_must_have_happened_once(bank, street)
    await card_records_must_have_happened_once(bank, street)
    assert not list(Path(street.folder).glob("rails/*/inbox/[!.]*"))
    waiting = await bank.pool.fetchval("SELECT count(*) FROM rail_file WHERE done_at IS NULL")
    assert waiting == 0


async def entries_must_have_happened_once(bank, street):
    rows = await bank.pool.fetch("SELECT * FROM ach_entry ORDER BY created_at")
    states = {row["ach_id"]: row["status"] for row in rows}
    assert [states[each] for each in street.entries] == ["PROCESSED", "FAILED"] * 2 * KILLS
    came = Counter(row["status"] for row in rows if row["way"] == "RECEIVING")
    assert came == {"PROCESSED": 2 * KILLS, "REJECTED": KILLS}
    traces = street.traces()
    assert set(traces.values()) == {1}
    answers = await bank.pool.fetch("SELECT trace_number FROM ach_return_entry")
    ours = [row["trace_number"] for row in rows if row["way"] == "ORIGINATION"]
    assert sorted(traces) == sorted([*ours, *(row[0] for row in answers)])
    # One debit of a file is not covered, and one entry is for nobody.
    assert len(answers) == 2 * KILLS


async def card_records_must_have_happened_once(bank, street):
    kinds = Counter(row["kind"] for row in await bank.pool.fetch("SELECT kind FROM card_payment"))
    assert kinds == {"PURCHASE": KILLS, "REFUND": KILLS}
    (friday,) = await reconcile(bank.pool, bank_customer_id(bank.seed))
    assert (friday.difference, friday.unsettled, friday.held) == (0, 0, 3_00 * KILLS)
    assert await street.processor.given("2025-06") == {street.card: 65 * KILLS}
    assert await street.processor.credits(street.anna.id) == [(65 * KILLS, "2025-06")]
