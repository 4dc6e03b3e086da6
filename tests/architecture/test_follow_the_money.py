"""The table "Follow the money" in ARCHITECTURE.md says what the flows really do."""

import importlib
import re
from datetime import UTC, date, datetime
from pathlib import Path
from uuid import UUID

import pytest

from billfold.domain.tbills import Market
from billfold.flows import FLOWS
from billfold.flows.book import Book
from billfold.flows.command import Context, Terms
from billfold.flows.day_end import charge_fee, close_day, start_moving
from billfold.flows.due import catch_up
from billfold.flows.house import Block, CloseHouseDay, close_house_day
from billfold.flows.pockets import OpenPocket, open_pocket
from billfold.flows.receive import ReceiveMoney, receive_money
from billfold.flows.transfer_on_us import TransferOnUs, transfer_on_us
from billfold.kit.calendars import Calendars

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "ARCHITECTURE.md").read_text()
ROWS = re.findall(r"^\| (.+?) \| `(flows/\w+\.py)` `(\w+)` \| (.+?) \|$", PAGE, re.MULTILINE)
MARKET = Market.packaged(Calendars())
A, B = UUID(int=1), UUID(int=2)


def context(now):
    made = Context(
        now=now, market=MARKET, calendars=MARKET.calendars,
        terms=Terms(routing_number="061199992"), seed=b"architecture",
    )  # fmt: skip
    made.serve(UUID(int=int(now.timestamp())))
    return made


NOON = datetime(2025, 6, 2, 16, tzinfo=UTC)


def book_of(customer_id, *, role="customer"):
    return Book(
        customer_id=customer_id, version=0, journal_no=0, event_no=0, account_no=0,
        booked_at=NOON, business_date=date(2025, 6, 2), chain=b"", role=role,
    )  # fmt: skip


class Stage:
    """Two customers with a pocket each, the first funded; flows are run and their legs told."""

    def __init__(self):
        self.books = {A: book_of(A), B: book_of(B)}
        self.ctx = context(NOON)
        self.pockets, self.portals = {}, {}
        for number, customer in enumerate((A, B, A)):
            self.ctx.serve(UUID(int=100 + number))
            made = open_pocket(self.books, self._open(customer), self.ctx)
            self.pockets[number] = UUID(made["pocket_id"])
            self.portals[number] = UUID(made["portal_id"])

    def _open(self, customer):
        return OpenPocket(
            caller="t", key=UUID(int=9), customers=(customer,), partner_id=UUID(int=3),
            name="p", deposit_weeks=4, reinvestment_weeks=4,
        )  # fmt: skip

    def pocket(self, number):
        return self.books[B if number == 1 else A].pockets[self.pockets[number]]

    def deposit(self):
        self.ctx.serve(UUID(int=200))
        receive_money(
            self.books,
            ReceiveMoney(
                caller="t", key=UUID(int=8), customers=(A,), rail="WIRE",
                portal_id=self.portals[0], pocket_id=self.pockets[0], amount=10_000_000,
                description="", details={},
            ),
            self.ctx,
        )  # fmt: skip

    def pay(self, to, *, in_kind=False):
        self.ctx.serve(UUID(int=300))
        payee = B if to == 1 else A
        transfer_on_us(
            self.books,
            TransferOnUs(
                caller="t", key=UUID(int=7), customers=(A, payee), transfer_id=None,
                type="PEER_TO_PEER", from_pocket_id=self.pockets[0],
                to_pocket_id=self.pockets[to], amount=1_000_050, partner_id=UUID(int=3),
                in_kind=in_kind,
            ),
            self.ctx,
        )  # fmt: skip

    def told(self, customer=A, *, since=0):
        return told(self.books[customer], since)


def told(book, since=0):
    """The legs from a place on as `debit>credit`, rails without their name."""
    kinds = {account.no: account.kind for account in book.draft.accounts}
    return [
        "{}>{}".format(*(kinds[leg[side]].partition(":")[0] for side in (3, 4)))
        for leg in book.draft.legs[since:]
    ]


def deposited():
    stage = Stage()
    stage.deposit()
    return stage.told()


def invested():
    return deposited()[2:]


def paid():
    stage = Stage()
    stage.deposit()
    since = len(stage.books[A].draft.legs)
    stage.pay(1)
    return stage.told(since=since), stage.told(B)


def moved_in_kind():
    stage = Stage()
    stage.deposit()
    since = len(stage.books[A].draft.legs)
    stage.pay(2, in_kind=True)
    return stage.told(since=since)


def matured():
    stage = Stage()
    stage.deposit()
    since = len(stage.books[A].draft.legs)
    catch_up(stage.books[A], context(datetime(2025, 6, 24, 13, tzinfo=UTC)))
    return stage.told(since=since)


def charged():
    stage = Stage()
    stage.deposit()
    book, pocket = stage.books[A], stage.pocket(0)
    later = context(datetime(2025, 6, 20, 16, tzinfo=UTC))
    since = len(book.draft.legs)
    start_moving(book, pocket, later)
    pocket.fee_accrued += 3_650_000 * (pocket.cash.balance + 1)
    book.begin(
        "fee", command_id=UUID(int=5), now=later.now, business_date=later.business_date,
        settles_on=later.business_date,
    )  # fmt: skip
    charge_fee(book, pocket, later)
    book.close()
    return stage.told(since=since)


def day_closed():
    stage = Stage()
    stage.deposit()
    since = len(stage.books[A].draft.legs)
    close_day(stage.books[A], stage.pocket(0))
    assert stage.books[A].draft.snapshots
    return stage.told(since=since)


def settled():
    book = book_of(UUID(int=4), role="house")
    day = date(2025, 6, 2)
    block = Block(day, "912797PT8", 99_754_125, "BUY", 100, 997_541)
    command = CloseHouseDay(
        caller="t", key=UUID(int=6), customers=(book.customer_id,), day=day, blocks=(block,)
    )
    close_house_day(
        {book.customer_id: book}, command, context(datetime(2025, 6, 2, 21, tzinfo=UTC))
    )
    return told(book)


PLAYED = {
    "A wire or an ACH credit arrives": deposited,
    "Cash becomes bills": invested,
    "Bills become cash": lambda: paid()[0][:2],
    "A customer pays another": lambda: paid()[0],
    "... and the other is paid": lambda: paid()[1],
    "Bills move between own pockets": moved_in_kind,
    "A bill matures and is bought again": matured,
    "The fee is charged": charged,
    "A day of a pocket ends": day_closed,
    "The house settles with the street": settled,
}


@pytest.mark.parametrize("row", [row for row in ROWS if row[0] in PLAYED], ids=lambda row: row[0])
def test_legs_are_posted_as_the_table_says(row):
    said = [] if row[3].startswith("none") else row[3].replace("*", "").split(", ")
    assert PLAYED[row[0]]() == said


def test_every_row_names_a_function_that_exists():
    assert len(ROWS) >= len(PLAYED)
    assert set(PLAYED) <= {row[0] for row in ROWS}
    for _, path, name, _ in ROWS:
        module = importlib.import_module(f"billfold.{path[:-3].replace('/', '.')}")
        assert callable(getattr(module, name))


def test_every_flow_is_in_the_table():
    listed = {path for _, path, _, _ in ROWS}
    deciding = {f"flows/{flow.__module__.rpartition('.')[2]}.py" for flow in FLOWS.values()}
    assert deciding <= listed
