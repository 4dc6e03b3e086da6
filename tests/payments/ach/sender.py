"""A customer who has sent a payment and a collection by ACH, and the folder in which other banks answer."""

from datetime import timedelta

from tests.payments.ach.test_inbound_files import Room
from tests.support.raw_ach import batch, entry, header, raw_file
from tests.support.small_rails import Customer

from billfold.accounts.counterparties.store import find_payees, open_details
from billfold.data_keys.keys import DataKeys
from billfold.ledger.types import ScheduledJob
from billfold.payments.ach.nacha.reader import read_file
from billfold.payments.ach.rules.entries import ACH_WINDOW
from billfold.payments.ach.store import get_entry
from billfold.platform import ids
from billfold.sandbox.control.clock_stepper import ClockStepper


class Sender(Room):
    """A bank that has sent a payment and a collection, and the folder for the answers of other banks."""

    def __init__(self, bank, known=()):
        super().__init__(bank)
        self.anna = Customer(bank, "Anna")
        for owner, fields in zip((self, self.anna), known, strict=False):
            vars(owner).update(fields)

    @property
    def known(self):
        """The state that can be reused for another bank with the same database."""
        gone = {"bank", "gate", "other", "folder", "anna"}
        return [{name: value for name, value in vars(each).items() if name not in gone} for each in (self, self.anna)]

    async def send(self):
        await self.anna.settle_in(500_000_00)
        self.paid, self.collected = [await self.anna.ach(way, 200_15) for way in ("CREDIT", "DEBIT")]
        at = await self.bank.now() + timedelta(days=9)
        await self.bank.job_runners[ACH_WINDOW](self.bank, ScheduledJob(ACH_WINDOW, ids.new(), None, at=at))
        self.trace = (await get_entry(self.bank.pool, self.paid)).trace_number
        self.debit_trace = (await get_entry(self.bank.pool, self.collected)).trace_number

    def deposit(self, number=9000, cents=43_21, *, head=None, **changes):
        line = entry("22", self.anna.account, cents, number, **changes)
        return batch(head or header("PPD", 2, service="220"), line)

    async def arrive(self, *lines, head=None, name="odd.ach", **file):
        """Let lines arrive together with a deposit of another batch; return the report."""
        odd = batch(head or header("CCD", 1), *lines)
        await self.put(name, raw_file(odd, self.deposit(), **file))
        assert await self.deposits() == [43_21]
        return self.report(name)

    async def sent_entries(self):
        """Return every entry of the transmitted files."""
        paths = sorted((self.folder / "sent").glob("*.ach"))
        return [each for path in paths for batch in read_file(path.read_bytes()).batches for each in batch.entries]

    async def deposits(self):
        rows = await self.bank.pool.fetch(
            "SELECT amount FROM ach_entry WHERE way = 'RECEIVING' AND status = 'PROCESSED' ORDER BY created_at, amount"
        )
        return [row[0] for row in rows]

    async def status(self, ach_id):
        sent = await get_entry(self.bank.pool, ach_id)
        return (sent.status, sent.return_code)

    async def suspense(self):
        rows = await self.bank.pool.fetch("SELECT direction, amount, status, reason FROM suspense_item")
        return [tuple(row) for row in rows]

    async def account(self):
        """The account that the next entry to the counterparty goes to."""
        async with self.bank.pool.acquire() as conn:
            (_, _, payee), *_ = await find_payees(conn, [self.anna.id], [self.anna.good])
        keys = await self.bank.ports[DataKeys].load(self.bank.pool, (self.anna.id,))
        details = open_details(keys.get(self.anna.id), payee.details)
        return details["routing_number"], details["account_number"], details["account_type"]

    async def noted(self):
        """The responses of the counterparty's bank about the payment."""
        sent = await get_entry(self.bank.pool, self.paid)
        return sent.change_code

    async def days(self, number=3):
        """Let banking days pass, so that everything returnable is returned, and verify the bank."""
        await ClockStepper(self.bank).advance_business_days(number)
        await self.prove()


def outcomes(report):
    return [(each["outcome"], each["code"]) for each in report["lines"]]
