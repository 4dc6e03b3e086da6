"""Every movement of money and its related rows, played in a bank in memory.

`play_all` names each as the tables of docs/domain/movements.md do.
"""

import sys
from contextlib import contextmanager
from datetime import date
from typing import NamedTuple
from uuid import UUID

from tests.fixtures.teller import Customers
from tests.simulation.memory_bank import MemoryBank
from typing_extensions import override

from billfold.ledger.book.postings import RELEASED, RESERVED, Posting, RetiredLot, Update
from billfold.ledger.scheduler import CatchUp, bank_customer_id
from billfold.ledger.types import ScheduledJob
from billfold.platform.database.rows import Row
from billfold.platform.dates import et_instant

LATER = date(2025, 6, 10)

_PHASES = {0: "", RESERVED: "+", RELEASED: "-"}
# What a draft holds besides rows, and the tables it goes to.
_TABLES = {RetiredLot: "account", ScheduledJob: "scheduled_job"}


class Moved(NamedTuple):
    """The traces of one movement: postings as `debit>credit`, tables in alphabet order, functions called.

    A posting with `+` reserves, one with `-` releases.
    """

    postings: list[str]
    tables: list[str]
    functions: set[tuple[str, str]]


class WatchedBank(MemoryBank):
    """Records the writes of each commit: (customer, postings, tables)."""

    def __init__(self, *args, **fields):
        super().__init__(*args, **fields)
        self.written = []

    @override
    def _write(self, book):
        draft = book.draft
        tables = {change.row.table for change in draft.rows_of(Update)}
        tables |= {kind.table for kind, _ in draft if issubclass(kind, Row)}
        tables |= {_TABLES[kind] for kind, _ in draft if kind in _TABLES}
        tables |= {"account"} if draft.rows_of(Posting) else set()
        tables |= {"pocket"} if draft.touched_pockets else set()
        postings = list(draft.rows_of(Posting))
        super()._write(book)
        moved = [self._shown(book.customer_id, row) for row in postings]
        self.written.append((book.customer_id, moved, tables - {"command"}))

    def _shown(self, customer_id, row):
        sides = (self.balances[customer_id, no].kind for no in (row.debit, row.credit))
        return _PHASES[row.phase] + ">".join(sides)


class Stage(Customers):
    """Customers whose commands are movements; `row` records the traces of one under a title."""

    def __init__(self, rows, calls, **terms):
        super().__init__(bank=WatchedBank, **terms)
        self.rows, self.calls = rows, calls

    @contextmanager
    def row(self, title, customer=None):
        """Record the traces of the block, of this customer or of all."""
        first_call, first_commit = len(self.calls), len(self.bank.written)
        yield
        written = [each for each in self.bank.written[first_commit:] if customer in {None, each[0]}]
        self.rows[title] = Moved(
            [posting for _, postings, _ in written for posting in postings],
            sorted(set().union(*(tables for _, _, tables in written))),
            set(self.calls[first_call:]),
        )

    def house(self):
        """Enrol the bank's own customer; return its id."""
        house = bank_customer_id(self.bank.seed)
        self.enrol(house, "House", partner_id=None, role="house")
        return house

    def catch_up(self, customer, day, hour):
        """Run the work due at an instant."""
        self.bank.now = et_instant(day, hour)
        self.submit(CatchUp, customer)

    def about(self, kind, customer, named, **fields):
        """Execute a command about an existing object; `named` is the field and its id."""
        ((name, object_id),) = named.items()
        return self.submit(kind, customer, references=(object_id,), **{name: object_id}, **fields)

    def number(self):
        """Return an unused id."""
        return UUID(int=1000 + self.count)


@contextmanager
def noted_calls(functions):
    """Yield a list that grows by (module, name) with each call of one of these functions."""
    calls: list[tuple[str, str]] = []

    def note(frame, event, _):
        if event == "call":
            called = frame.f_globals.get("__name__"), frame.f_code.co_name
            if called in functions:
                calls.append(called)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(before)
