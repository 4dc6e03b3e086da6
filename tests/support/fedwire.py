"""The other side of Fedwire: banks that pay, respond and request returns."""

import json
from datetime import UTC, date, datetime, timedelta
from uuid import UUID

from msgspec.structs import replace
from tests.support.whole_bank import EngineCommands, Holder

from billfold.accounts.pockets.commands import UpdatePocket
from billfold.accounts.portals.commands import UpdatePortal
from billfold.ledger.scheduler import bank_customer_id
from billfold.ledger.types import Origin
from billfold.payments.files import retries
from billfold.payments.suspense import store as suspense_store
from billfold.payments.suspense.rules import AssignFromSuspense, ReturnFromSuspense, SuspenseStatus
from billfold.payments.wires import cases
from billfold.payments.wires import store as wire_store
from billfold.payments.wires.commands import ReturnWire, SendWire
from billfold.payments.wires.iso20022.envelope import write_messages
from billfold.payments.wires.messages import fedwire_day, message_sent
from billfold.payments.wires.store import LISTS, get_wire
from billfold.platform import ids
from billfold.sandbox.control.clock_stepper import ClockStepper
from billfold.sandbox.rails.fedwire import SimulatedFed, SimulatedFedwire
from billfold.verify.runner import verify_bank
from billfold.wiring.providers import rail_files_folder

SENT = ["pacs.008", "pacs.004"]
_ACCOUNT = "SELECT account_number FROM portal WHERE portal_id = $1"


def changed(wire, **fields):
    """The same message, saying something else."""
    return replace(wire, message=replace(wire.message, **fields)) if fields else wire


async def link(bank, customer_id):
    """Give a customer a verified counterparty; return its id."""
    return UUID((await EngineCommands(bank).add_counterparty(customer_id, "wire"))["counterparty_id"])


async def send(holder, cents, wire_id=None):
    """Send a wire to the holder's counterparty; return the outcome."""
    return await holder.submit(
        SendWire,
        holder.customer_id,
        references=(holder.counterparty_id,),
        wire_id=wire_id,
        pocket_id=holder.pocket_id,
        amount=cents,
        counterparty_id=holder.counterparty_id,
    )


class Fedwire:
    """Files in, reports out; `fed` makes the messages of the other banks."""

    def __init__(self, bank):
        self.bank, self.room, self.clock = bank, SimulatedFedwire(), ClockStepper(bank)
        self.fed = SimulatedFed(bank.settings.bank_routing_number)
        self.folder = rail_files_folder(bank.settings) / "wire"

    # -- files ----------------------------------------------------------------------------

    async def drop(self, name, *wires):
        """Put a file into the inbox, raw or of these messages, and let it be taken."""
        raw = wires[0] if isinstance(wires[0], bytes) else write_messages(wires, "incoming")
        inbox = self.folder / "inbox"
        inbox.mkdir(parents=True, exist_ok=True)
        (inbox / name).write_bytes(raw)
        await self.room.gate.process_all(self.bank)
        return raw

    def taken(self, name):
        """The outcome of each message of a file."""
        report = json.loads((self.folder / "done" / f"{name}.report.json").read_text())
        return [each["outcome"] for each in report["items"]]

    def refused(self, name):
        """The errors of a refused file: (line, element, reason)."""
        assert (self.folder / "refused" / name).exists()
        report = json.loads((self.folder / "refused" / f"{name}.report.json").read_text())
        return [(each["line"], each["element"], each["reason"]) for each in report["mistakes"]]

    async def stuck(self):
        """The messages of all files that need review: (line, error) of each."""
        states = [retries.retry_state_of(each) for each in await retries.list_failing(self.bank.pool)]
        return [(each.line, each.error) for state in states if state for each in state.stuck]

    def last_out(self):
        """The content of our last file."""
        return max((self.folder / "outbox").iterdir()).read_text()

    # -- messages -------------------------------------------------------------------------

    async def payment(self, named, account_number, cents=5_00):
        now = await self.bank.now()
        return self.fed.payment(
            named,
            now,
            fedwire_day(self.bank, now),
            account_number=account_number,
            amount=cents,
            sender_name="Acme",
            sender_account_number="77",
            sender_routing_number=None,
        )

    async def status(self, wire_id, code=None):
        message = await self.message(wire_id)
        return self.fed.status(message, await self.bank.now(), code)

    async def payment_return(self, wire_id, **changes):
        message, now = await self.message(wire_id), await self.bank.now()
        wire = self.fed.payment_return(
            message, now, fedwire_day(self.bank, now), reason="AC04", information="Account closed"
        )
        return changed(wire, **changes)

    async def message(self, wire_id):
        """The last message of ours about a wire, or about what is held."""
        sent = await wire_store.find_last_sent(self.bank.pool, wire_id, SENT)
        assert sent is not None
        return await message_sent(self.bank, sent)

    # -- the bank -------------------------------------------------------------------------

    async def send_wire(self, holder, cents=1_000_00):
        """Send a wire (None: everything) and let our files go; return its id."""
        holder.counterparty_id = await link(self.bank, holder.customer_id)
        wire_id = UUID((await send(holder, cents))["wire_id"])
        await self.room.sender.send(self.bank)
        return wire_id

    async def settled(self, holder, cents=1_000_00):
        """Send a wire and let it settle; return its id."""
        wire_id = await self.send_wire(holder, cents)
        await self.drop(f"settled-{wire_id}.xml", await self.status(wire_id))
        return wire_id

    async def account_of(self, holder):
        return await self.bank.pool.fetchval(_ACCOUNT, holder.portal_id)

    async def wire(self, holder, wire_id):
        return await get_wire(self.bank.pool, holder.customer_id, wire_id)

    async def second_pocket(self, holder):
        """Another Pocket of the same customer; return it as a holder of its own."""
        return Holder(self.bank, *await holder.new_pocket(holder.customer_id, name="Second"))

    async def close(self, holder):
        await holder.submit(UpdatePocket, holder.customer_id, pocket_id=holder.pocket_id, close_for="NO_LONGER_USED")

    async def close_portal(self, holder):
        await holder.submit(UpdatePortal, holder.customer_id, portal_id=holder.portal_id, close=True)

    async def assign(self, item_id, holder):
        await holder.submit(
            AssignFromSuspense,
            bank_customer_id(self.bank.seed),
            holder.customer_id,
            item_id=item_id,
            portal_id=holder.portal_id,
            pocket_id=holder.pocket_id,
            references=(item_id,),
        )

    async def return_payment(self, item_id):
        """Return the held payments, as the operator does, and write our files."""
        await EngineCommands(self.bank).submit(
            ReturnFromSuspense, bank_customer_id(self.bank.seed), item_id=item_id, reason="AC04", references=(item_id,)
        )
        await self.clock.advance(timedelta(0))

    async def wires(self, holder):
        return await LISTS["customer_id"].rows(self.bank.pool, holder.customer_id, *(None,) * 9, limit=100)

    async def held(self):
        return await suspense_store.list_items(self.bank.pool, status=SuspenseStatus.HELD)

    async def legs(self):
        return await self.bank.pool.fetchval("SELECT count(*) FROM posting")

    async def prove(self):
        async with self.bank.pool.acquire() as conn:
            report = await verify_bank(conn, market=self.bank.market, vault=self.bank.vault)
        assert report.is_clean, report.findings[:3]


def file_of_a_payment(named, account_number, cents=5_00):
    """The content of a file with one payment to a bank with default settings."""
    wire = SimulatedFed("061199992").payment(
        named,
        datetime(2025, 6, 2, 13, tzinfo=UTC),
        date(2025, 6, 2),
        account_number=account_number,
        amount=cents,
        sender_name="Acme",
        sender_account_number=None,
        sender_routing_number=None,
    )
    return write_messages([wire], "incoming")


async def pay_back(bank, wire_id, *, key=None):
    """Return a wire, and accept its recall; return the id of the return."""
    wire = await cases.get_wire(bank, wire_id)
    command = ReturnWire(
        caller="operator",
        key=key or ids.new(),
        customers=(wire.customer_id,),
        references=(wire_id,),
        origin=Origin.operator(),
        original_id=wire_id,
        code="FOCR",
    )
    return UUID((await cases.carry_out_return(bank, command))["wire_id"])
