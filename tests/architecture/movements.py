"""Every movement of money, played on books in memory: which legs it posts, which tables it fills.

No database and no engine: a flow is called as the engine calls it, and the draft it leaves is
read. `MOVEMENTS` names each movement as ARCHITECTURE.md does.
"""

from datetime import UTC, date, datetime
from typing import NamedTuple
from uuid import UUID

from billfold.domain.tbills import Market
from billfold.engine.write import COLUMNS
from billfold.flows import FLOWS
from billfold.flows.book import Book
from billfold.flows.command import Context, Terms
from billfold.flows.counterparties import AddOnUsCounterparty, UpdateCounterparty
from billfold.flows.customers import CloseCustomer, UpdateCustomer
from billfold.flows.due import CatchUp, catch_up, refresh_due
from billfold.flows.enrol import EnrolCustomer
from billfold.flows.house import Block, CloseHouseDay
from billfold.flows.pockets import OpenPocket, SetPocketState, UpdatePocket
from billfold.flows.portals import OpenPortal, UpdatePortal
from billfold.flows.receive import ReceiveMoney
from billfold.flows.transfer_on_us import TransferOnUs
from billfold.kit.calendars import Calendars
from billfold.kit.dates import et_instant
from billfold.kit.ids import command_id, derive

CALENDARS = Calendars()
MARKET = Market.packaged(CALENDARS)
SEED = b"seed of the architecture tests"
PARTNER = UUID("8f3b6f60-0000-4000-8000-00000000aaaa")
OPENING = datetime(2025, 6, 2, 13, tzinfo=UTC)

# Lists of a draft that `engine.write.COLUMNS` does not name, and the tables they go to.
_TABLES = {name: table for name, (table, _) in COLUMNS.items()} | {
    "accounts": "account", "journals": "journal", "legs": "leg", "retired": "account",
}  # fmt: skip
_OF_EVERY_COMMIT = frozenset({"commands"})


class Moved(NamedTuple):
    """What one movement left in the draft: legs as `debit>credit`, tables in alphabet order."""

    legs: list[str]
    tables: list[str]


class World:
    """Two customers and the house, their books in memory, and a clock that is set."""

    def __init__(self, *, haven_days: int = 0) -> None:
        self.terms = Terms(ach_credit_lien_days=haven_days, routing_number="061199992")
        self.now = OPENING
        self.books: dict[UUID, Book] = {}
        self._names: dict[tuple[UUID, int], str] = {}
        self._count = 0

    # -- what happens -------------------------------------------------------------------

    def do(self, kind, *customers, **fields):
        """Carry out one command and return its outcome."""
        self._count += 1
        key = command_id("architecture", str(self._count))
        command = kind(caller="architecture", key=key, customers=customers, **fields)
        ctx = self.moment()
        for customer in customers:
            book = self.books.setdefault(customer, _empty_book(customer, ctx))
            catch_up(book, ctx)
            book.mark()
        ctx.serve(command.command_id)
        return FLOWS[kind](self.books, command, ctx)

    def at(self, day, hour=10):
        """Set the clock; what is due on the way is done by the next command."""
        self.now = et_instant(day, hour)

    def moment(self):
        """The context of now."""
        return Context(
            now=self.now, market=MARKET, calendars=CALENDARS, terms=self.terms, seed=SEED
        )

    def customer(self, name, **fields):
        """Enrol a customer and return his id."""
        customer = derive(SEED, command_id("architecture", name), 0)
        self.do(
            EnrolCustomer, customer, partner_id=PARTNER, role="customer", type="BUSINESS",
            name=name, profile={}, **fields,
        )  # fmt: skip
        return customer

    def pocket(self, customer, *, reinvest=4):
        """Open a pocket; return its id and that of its portal."""
        opened = self.do(
            OpenPocket, customer, partner_id=PARTNER, name="A pocket", deposit_weeks=4,
            reinvestment_weeks=reinvest,
        )  # fmt: skip
        return UUID(opened["pocket_id"]), UUID(opened["portal_id"])

    def receive(self, customer, pocket, cents, rail="WIRE"):
        """Let money arrive."""
        return self.do(
            ReceiveMoney, customer, rail=rail, portal_id=pocket[1], pocket_id=pocket[0],
            amount=cents, description="a deposit", details={},
        )  # fmt: skip

    def pay(self, payer, origin, payee, destination, cents, **fields):
        """Move money or bills between two pockets."""
        within = payer == payee
        return self.do(
            TransferOnUs, *((payer,) if within else (payer, payee)), transfer_id=None,
            type="INTERNAL_REALLOCATION" if within else "PEER_TO_PEER",
            from_pocket_id=origin[0], to_pocket_id=destination[0], amount=cents,
            partner_id=PARTNER, **fields,
        )  # fmt: skip

    def catch_up(self, customer):
        """Do what is due."""
        self.do(CatchUp, customer)

    # -- what it left --------------------------------------------------------------------

    def forget(self):
        """What was drafted so far is written: only what comes now is looked at."""
        for book in self.books.values():
            self._note_names(book)
            refresh_due(book, CALENDARS)
            book.settle()

    def moved(self, *customers):
        """Return what the books of these customers, or of all, have drafted."""
        legs, tables = [], set()
        for customer in customers or self.books:
            book = self.books[customer]
            self._note_names(book)
            for row in book.draft.legs:
                debit, credit = (self._names[customer, row[n]] for n in (3, 4))
                legs.append(f"{debit}>{credit}")
            tables |= _tables_of(book)
        return Moved(legs, sorted(tables))

    def _note_names(self, book):
        for account in book.draft.accounts:
            self._names[book.customer_id, account.no] = account.kind


def _tables_of(book):
    draft = book.draft
    filled = {name for name in _TABLES if getattr(draft, name)} - _OF_EVERY_COMMIT
    tables = {_TABLES[name] for name in filled} | {table for table, _, _ in draft.updates}
    if draft.legs:
        tables.add("account")
    return tables | ({"pocket"} if book.touched_pockets else set())


def _empty_book(customer, ctx):
    return Book(
        customer_id=customer, version=0, journal_no=0, event_no=0, account_no=0,
        booked_at=ctx.now, business_date=ctx.business_date, chain=b"",
    )  # fmt: skip


def _two_lots(world, customer, pocket):
    """Buy the same bill on two days, so that it is sold out of two lots."""
    world.receive(customer, pocket, 50_000_00)
    world.at(date(2025, 6, 3))
    world.receive(customer, pocket, 50_000_00)
    assert len(world.books[customer].pockets[pocket[0]].lots) == 2


def _one(**terms):
    world = World(**terms)
    anna = world.customer("Anna")
    return world, anna, world.pocket(anna)


# -- money in ---------------------------------------------------------------------------


def a_wire_arrives():
    world, anna, pocket = _one()
    world.forget()
    world.receive(anna, pocket, 50_000_00)
    return world.moved()


def an_ach_credit_arrives():
    world, anna, pocket = _one(haven_days=2)
    world.forget()
    world.receive(anna, pocket, 50_000_00, "ACH")
    return world.moved()


def money_arrives_after_hours():
    world, anna, pocket = _one()
    world.at(date(2025, 6, 2), 20)
    world.forget()
    world.receive(anna, pocket, 50_000_00)
    return world.moved()


def waiting_cash_is_invested():
    world, anna, pocket = _one()
    world.at(date(2025, 6, 2), 20)
    world.receive(anna, pocket, 50_000_00)
    world.forget()
    world.at(date(2025, 6, 3), 9)
    world.catch_up(anna)
    return world.moved()


def money_for_a_closed_portal_goes_back():
    world, anna, pocket = _one()
    world.do(UpdatePortal, anna, portal_id=pocket[1], close=True)
    world.forget()
    assert world.receive(anna, pocket, 50_000_00)["status"] == "REJECTED"
    return world.moved()


# -- money between customers ------------------------------------------------------------


def _a_payment(cents):
    world, anna, pocket = _one()
    bert = world.customer("Bert")
    berts = world.pocket(bert)
    _two_lots(world, anna, pocket)
    world.forget()
    world.pay(anna, pocket, bert, berts, cents)
    return world, anna, bert


def a_customer_pays_another():
    world, anna, _ = _a_payment(70_000_00)
    return world.moved(anna)


def the_other_is_paid():
    world, _, bert = _a_payment(70_000_00)
    return world.moved(bert)


def everything_leaves():
    world, anna, pocket = _one()
    bert = world.customer("Bert")
    berts = world.pocket(bert)
    _two_lots(world, anna, pocket)
    world.at(date(2025, 6, 10))
    world.forget()
    world.pay(anna, pocket, bert, berts, None)
    return world.moved(anna)


def a_transfer_is_rejected():
    world, anna, _ = _a_payment(999_999_00)
    return world.moved(anna)


def a_transfer_waits():
    world, anna, pocket = _one()
    bert = world.customer("Bert")
    berts = world.pocket(bert)
    world.forget()
    world.pay(anna, pocket, bert, berts, 1_00, later=True)
    return world.moved()


# -- money within one customer ----------------------------------------------------------


def _within(cents, **fields):
    world, anna, pocket = _one()
    other = world.pocket(anna)
    _two_lots(world, anna, pocket)
    world.forget()
    world.pay(anna, pocket, anna, other, cents, **fields)
    return world.moved()


def money_moves_between_own_pockets():
    return _within(70_000_00)


def bills_move_between_own_pockets():
    return _within(70_000_00, in_kind=True)


# -- what is due ------------------------------------------------------------------------


def _matured(reinvest):
    world = World()
    anna = world.customer("Anna")
    pocket = world.pocket(anna, reinvest=reinvest)
    _two_lots(world, anna, pocket)
    world.at(date(2025, 6, 23), 18)
    world.catch_up(anna)
    world.forget()
    world.at(date(2025, 6, 24))
    world.catch_up(anna)
    return world.moved()


def a_bill_matures_and_is_bought_again():
    return _matured(4)


def a_bill_matures_and_the_money_stays():
    return _matured(None)


def a_day_of_a_pocket_ends():
    world, anna, pocket = _one()
    world.receive(anna, pocket, 50_000_00)
    world.forget()
    world.at(date(2025, 6, 2), 18)
    world.catch_up(anna)
    return world.moved()


def _fee(cents):
    world = World()
    anna = world.customer("Anna")
    pocket = world.pocket(anna)
    world.receive(anna, pocket, cents)
    world.at(date(2025, 6, 30), 18)
    world.catch_up(anna)
    world.forget()
    world.at(date(2025, 7, 1), 8)
    world.catch_up(anna)
    return world.moved()


def the_fee_is_charged():
    return _fee(1_000_000_00)


# -- the house ---------------------------------------------------------------------------


def _settled(side):
    world = World()
    house = derive(SEED, command_id("architecture", "the house"), 0)
    world.do(
        EnrolCustomer, house, partner_id=None, role="house", type="BUSINESS", name="House",
        profile={},
    )  # fmt: skip
    world.forget()
    block = Block(date(2025, 6, 2), "912797PT8", 99_754_125, side, 2506, 2506 * 9975 + 1050)
    world.do(CloseHouseDay, house, day=date(2025, 6, 2), blocks=(block,))
    return world.moved()


def the_house_settles_what_was_bought():
    return _settled("BUY")


def the_house_settles_what_was_sold():
    return _settled("SELL")


def the_house_settles_what_matured():
    return _settled("MATURITY")


# -- what moves no money -----------------------------------------------------------------


def _enrolled():
    world = World()
    return world, world.customer("Anna")


def a_customer_is_enrolled():
    world, _ = _enrolled()
    return world.moved()


def a_customer_changes():
    world, anna = _enrolled()
    world.forget()
    world.do(UpdateCustomer, anna, profile={"email": "anna@example.org"})
    return world.moved()


def a_customer_leaves():
    world, anna, _ = _one()
    world.forget()
    world.do(CloseCustomer, anna, reason="moved away")
    return world.moved()


def a_pocket_opens():
    world, anna = _enrolled()
    world.forget()
    world.pocket(anna)
    return world.moved()


def a_pocket_changes_or_closes():
    world, anna, pocket = _one()
    world.pocket(anna)
    world.forget()
    world.do(UpdatePocket, anna, pocket_id=pocket[0], name="Another", close_for="not needed")
    return world.moved()


def the_operator_freezes_a_pocket():
    world, anna, pocket = _one()
    world.forget()
    world.do(SetPocketState, anna, pocket_id=pocket[0], status="FROZEN")
    return world.moved()


def a_portal_opens():
    world, anna, pocket = _one()
    world.forget()
    world.do(OpenPortal, anna, pocket_id=pocket[0], name="Another")
    return world.moved()


def a_portal_changes_or_closes():
    world, anna, pocket = _one()
    world.forget()
    world.do(UpdatePortal, anna, portal_id=pocket[1], close=True)
    return world.moved()


def _linked():
    world, anna, _ = _one()
    bert = world.customer("Bert")
    berts = world.pocket(bert)
    world.forget()
    added = world.do(
        AddOnUsCounterparty, anna, counterparty_name={"name": "Bert"}, display_name=None,
        account_number="700000000001", target_customer_id=bert, target_pocket_id=berts[0],
    )  # fmt: skip
    return world, anna, UUID(added["counterparty_id"])


def a_counterparty_is_linked():
    world, _, _ = _linked()
    return world.moved()


def a_counterparty_changes_or_is_unlinked():
    world, anna, counterparty = _linked()
    world.forget()
    world.do(UpdateCounterparty, anna, counterparty_id=counterparty, unlink=True)
    return world.moved()


def nothing_is_due():
    world, anna, _ = _one()
    world.forget()
    world.catch_up(anna)
    return world.moved()


MOVEMENTS = {
    "A wire arrives": a_wire_arrives,
    "An ACH credit arrives": an_ach_credit_arrives,
    "Money arrives after hours": money_arrives_after_hours,
    "Waiting cash is invested": waiting_cash_is_invested,
    "Money for a closed portal goes back": money_for_a_closed_portal_goes_back,
    "A customer pays another": a_customer_pays_another,
    "The other is paid": the_other_is_paid,
    "Everything leaves": everything_leaves,
    "Money moves between own pockets": money_moves_between_own_pockets,
    "Bills move between own pockets": bills_move_between_own_pockets,
    "A transfer is accepted for later": a_transfer_waits,
    "A transfer is rejected": a_transfer_is_rejected,
    "A bill matures and is bought again": a_bill_matures_and_is_bought_again,
    "A bill matures and the money stays": a_bill_matures_and_the_money_stays,
    "The fee is charged": the_fee_is_charged,
    "A day of a pocket ends": a_day_of_a_pocket_ends,
    "The house settles what was bought": the_house_settles_what_was_bought,
    "The house settles what was sold": the_house_settles_what_was_sold,
    "The house settles what matured": the_house_settles_what_matured,
    "A customer is enrolled": a_customer_is_enrolled,
    "A customer changes": a_customer_changes,
    "A customer leaves": a_customer_leaves,
    "A pocket opens": a_pocket_opens,
    "A pocket changes or closes": a_pocket_changes_or_closes,
    "The operator freezes a pocket": the_operator_freezes_a_pocket,
    "A portal opens": a_portal_opens,
    "A portal changes or closes": a_portal_changes_or_closes,
    "A counterparty is linked": a_counterparty_is_linked,
    "A counterparty changes or is unlinked": a_counterparty_changes_or_is_unlinked,
    "Nothing is due": nothing_is_due,
}
