"""A customer with bills who sends ACH entries to a counterparty, and to whom entries are sent."""

from datetime import date
from uuid import UUID

import msgspec
from tests.fixtures.teller import Customers

from billfold.ledger.book.postings import Posting
from billfold.payments.ach.commands import (
    AchEntry,
    CollectAch,
    IncomingEntry,
    OriginateAch,
    PendingReturn,
    ReceiveAch,
    ReceiveAchReturn,
    ReturnEntry,
)

FILE_ID = UUID("ac000000-0000-4000-8000-00000000f11e")
INCOMING = IncomingEntry(
    code="22",
    amount=700_00,
    account_number="100000000001",
    name="ANNA",
    identification="7",
    trace="091000010000007",
    bank="09100001",
    entry_class="PPD",
    company="ACME",
    company_id="9000000001",
    purpose="PAYMENT",
    effective_on=date(2025, 6, 3),
)


class Entries:
    """Three lots, a counterparty, and the latest entry, which the commands are about."""

    def __init__(self, customers=None, **terms):
        self.customers = customers or Customers(**terms)
        self.bank = self.customers.bank
        self.anna, self.pocket = self.customers.rich()
        self.payee_id = UUID(self.customers.add_counterparty(self.anna, "ach")["counterparty_id"])
        self.ach_id = UUID(int=0)
        self._posted = len(self.bank.tables[Posting])

    @property
    def book(self):
        return self.bank.books[self.anna]

    @property
    def held(self):
        """The pocket in its current state."""
        return self.book.pockets[self.pocket.id]

    @property
    def entry(self):
        """The current row of the entry."""
        return self.bank.seen.of(self.anna)[self.ach_id]

    @property
    def made(self):
        """The entry written last."""
        return self.bank.tables[AchEntry][-1]

    @property
    def owed_by_rail(self):
        return self.book.house["rail:achUSD"].balance

    @property
    def answer(self):
        """The return written last."""
        return msgspec.json.decode(self.bank.tables[PendingReturn][-1].payload, type=ReturnEntry)

    def last(self, kind):
        return self.bank.tables[kind][-1]

    def posted(self):
        """Return the number of postings since the first entry."""
        return len(self.bank.tables[Posting]) - self._posted

    def see(self, **changes):
        """Show the entry with other fields to later commands."""
        self.bank.seen.put(self.anna, self.ach_id, msgspec.structs.replace(self.entry, **changes))

    def originate(self, direction, cents=70_000_00, *, payee_id=None):
        payee_id = payee_id or self.payee_id
        self.ach_id = UUID(int=1000 + self.customers.count)
        return self.customers.submit(
            OriginateAch,
            self.anna,
            ach_id=self.ach_id,
            pocket_id=self.pocket.id,
            counterparty_id=payee_id,
            direction=direction,
            sec_code="PPD",
            description="PAYROLL",
            amount=cents,
            references=(payee_id,),
        )

    def receive(self, *, ach_id=None, **changes):
        """Receive an entry that differs from the default in these fields."""
        self.ach_id = ach_id or UUID(int=1000 + self.customers.count)
        return self.move(
            ReceiveAch,
            file_id=FILE_ID,
            portal_id=self.pocket.portal,
            pocket_id=self.pocket.id,
            entry=msgspec.structs.replace(INCOMING, **changes),
        )

    def move(self, kind, **fields):
        """Execute a command about the entry."""
        about = {"ach_ids": (self.ach_id,)} if "ach_ids" in kind.__struct_fields__ else {"ach_id": self.ach_id}
        return self.customers.submit(kind, self.anna, references=(self.ach_id,), **about, **fields)

    def come_back(self, code, cents=None, *, direction=None):
        """Return the entry, as the receiving bank would."""
        return self.move(
            ReceiveAchReturn,
            code=code,
            direction=direction or self.entry.direction,
            amount=cents or self.entry.amount,
            trace="021000020000001",
            arrived_at=self.bank.now,
        )


def sent(direction, status="IN_TRANSIT", **fields):
    """Return entries with one that is in a file."""
    entries = Entries(**fields)
    entries.originate(direction)
    entries.see(status=status, file_id=FILE_ID)
    return entries


def collected(**fields):
    """Return entries with a debit that has settled and is held."""
    entries = sent("DEBIT", **fields)
    entries.move(CollectAch)
    return entries
