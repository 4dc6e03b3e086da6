"""The ledger rows of each Pocket (postings, trades, lots), added up in integers.

Nothing here calls what is under test: figures of documents are compared with these.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import date, timedelta
from fractions import Fraction
from itertools import groupby
from typing import Any

from tests.simulation.year.prices import ET, half_up, instant, value_of

POSTINGS = """
SELECT p.customer_id, p.entry_no, j.booked_at, p.debit, p.credit, p.asset, p.amount FROM posting p
  JOIN journal_entry j USING (customer_id, entry_no) WHERE p.phase = 0
 ORDER BY p.customer_id, p.entry_no, p.posting_no
"""
TRADES = "SELECT * FROM trade ORDER BY customer_id, entry_no, trade_no"
ACCOUNTS = "SELECT customer_id, account_no, kind, asset, pocket_id, acquired_on FROM account"
POCKETS = """
SELECT customer_id, p.pocket_id, p.opened_at, p.closed_at FROM pocket p JOIN customer c USING (customer_id)
 WHERE c.role = 'customer' ORDER BY opened_at, pocket_id
"""
PAID = {"BUY", "SELL", "MATURITY"}


@dataclass
class Lot:
    """Bills of one purchase day, what they cost for tax, and what they were taken in at."""

    cusip: str
    acquired_on: date
    units: int = 0
    tax: int = 0
    earnings: int = 0

    def take(self, units):
        """Take out bills with their shares of both bases, rounded half up; the last take all."""
        tax, earnings = (half_up(Fraction(basis * units, self.units)) for basis in (self.tax, self.earnings))
        self.units, self.tax, self.earnings = self.units - units, self.tax - tax, self.earnings - earnings
        return tax, earnings

    def add(self, units, tax, earnings):
        self.units, self.tax, self.earnings = self.units + units, self.tax + tax, self.earnings + earnings


@dataclass
class State:
    """A Pocket after a journal entry."""

    cash: int = 0
    units: Counter[str] = field(default_factory=Counter)
    costs: Counter[str] = field(default_factory=Counter)
    bases: Counter[str] = field(default_factory=Counter)
    inflow: int = 0
    outflow: int = 0
    fees: int = 0
    realised: int = 0

    def move(self, cusip, units, tax, earnings):
        for counter, count in ((self.units, units), (self.costs, tax), (self.bases, earnings)):
            counter[cusip] += count
            if not counter[cusip]:
                del counter[cusip]


@dataclass
class Disposed:
    """A part of a lot that was sold or redeemed, by the day in New York."""

    trade: Any
    day: date
    lot: Lot
    units: int
    proceeds: int
    cost: int

    def interest(self, maturity):
        """Par less cost at maturity; before that the gain, at most the share of the days held (IRC 1271(a)(3))."""
        gain = self.proceeds - self.cost
        if self.trade["activity"] == "MATURITY":
            return max(gain, 0)
        term = max((maturity - self.lot.acquired_on).days, 1)
        held = min((self.day - self.lot.acquired_on).days, term)
        return max(min(gain, half_up(Fraction((self.units * 100_00 - self.cost) * held, term))), 0)


class Pocket:
    """One Pocket's history: its state after every journal entry that touched it, its payments and its trades."""

    def __init__(self, row):
        self.customer_id, self.pocket_id, self.opened_at, self.closed_at = row
        self.state = State()
        self.instants, self.states = [], []
        self.payments, self.trades, self.disposed = [], [], []

    def before(self, at):
        """Its state before an instant."""
        index = bisect_left(self.instants, at)
        return self.states[index - 1] if index else State()

    def within(self, events, first_day, last_day):
        """Of (instant, ...) those on these days."""
        start, end = instant(first_day), instant(last_day + timedelta(days=1))
        return [each for each in events if start <= each[0] < end]

    def keep(self, at):
        self.instants.append(at)
        self.states.append(deepcopy(self.state))


class Ledger:
    """Every Pocket of every customer."""

    def __init__(self, rows):
        self.pockets = {row["pocket_id"]: Pocket(row) for row in rows["pockets"]}
        self._accounts = {(row["customer_id"], row["account_no"]): row for row in rows["accounts"]}
        self._lots = {}
        self._trades = defaultdict(list)
        for row in rows["trades"]:
            self._trades[row["customer_id"], row["entry_no"]].append(row)
        for key, legs in groupby(rows["postings"], key=lambda row: row[:2]):
            self._play(key, list(legs))

    @classmethod
    async def read(cls, pool):
        queries = {"pockets": POCKETS, "accounts": ACCOUNTS, "trades": TRADES, "postings": POSTINGS}
        return cls({name: await pool.fetch(query) for name, query in queries.items()})

    def _play(self, key, legs):
        at = legs[0]["booked_at"]
        touched = set()
        trades = [_Trade(row) for row in self._trades[key]]
        for leg in legs:
            debit, credit = (self._accounts[key[0], leg[side]] for side in ("debit", "credit"))
            if "lot" in (debit["kind"], credit["kind"]):
                self._move_bills(leg, debit, credit, trades)
            elif leg["asset"] == "USD":
                self._move_money(at, debit, credit, leg["amount"])
            touched |= {debit["pocket_id"], credit["pocket_id"]}
        for trade in trades:
            assert not trade.units, "a trade moved other bills than its postings"
            pocket = self.pockets.get(trade.row["pocket_id"])
            if pocket is not None:
                pocket.trades.append((at, trade.row))
        for pocket_id in touched & self.pockets.keys():
            self.pockets[pocket_id].keep(at)

    def _move_money(self, at, debit, credit, cents):
        for account, other, sign in ((credit, debit, 1), (debit, credit, -1)):
            pocket = self.pockets.get(account["pocket_id"])
            if pocket is None:
                continue
            if account["kind"] == "cash":
                pocket.state.cash += sign * cents
            elif account["kind"] == "bank" and other["kind"] != "cash":
                pocket.payments.append((at, sign * cents))
                if other["kind"] == "fees":
                    pocket.state.fees -= sign * cents
                elif sign > 0:
                    pocket.state.inflow += cents
                else:
                    pocket.state.outflow += cents

    def _move_bills(self, leg, debit, credit, trades):
        units, cusip = leg["amount"], leg["asset"]
        out = _trade_of(trades, debit["pocket_id"], cusip, incoming=False)
        into = _trade_of(trades, credit["pocket_id"], cusip, incoming=True)
        tax = earnings = 0
        if debit["kind"] == "lot":
            lot = self._lots[debit["customer_id"], debit["account_no"]]
            tax, earnings = lot.take(units)
            money = out.take(units)
            self._leave(out, lot, units, money=money, tax=tax, earnings=earnings)
        if credit["kind"] == "lot":
            key = credit["customer_id"], credit["account_no"]
            lot = self._lots.setdefault(key, Lot(cusip, credit["acquired_on"]))
            money = into.take(units)
            if debit["kind"] != "lot":
                tax = into.take_basis(units)
            self._arrive(into, lot, units, money=money, tax=tax)

    def _leave(self, trade, lot, units, *, money, tax, earnings):
        row = trade.row
        pocket = self.pockets.get(row["pocket_id"])
        if pocket is None:
            return
        pocket.state.move(lot.cusip, -units, -tax, -earnings)
        pocket.state.realised += money - earnings
        if row["activity"] in PAID:
            day = row["traded_at"].astimezone(ET).date()
            pocket.disposed.append(Disposed(row, day, lot, units, money, tax))
        else:
            pocket.state.outflow += money

    def _arrive(self, trade, lot, units, *, money, tax):
        lot.add(units, tax, money)
        pocket = self.pockets.get(trade.row["pocket_id"])
        if pocket is None:
            return
        pocket.state.move(lot.cusip, units, tax, money)
        if trade.row["activity"] not in PAID:
            pocket.state.inflow += money


class _Trade:
    """A trade whose postings come one by one: each takes its share of what is left of the money."""

    def __init__(self, row):
        self.row, self.units, self.money = row, row["units"], row["notional"]
        self.basis_units, self.basis = row["units"], row["tax_basis"]

    def take(self, units):
        part = half_up(Fraction(self.money * units, self.units))
        self.units, self.money = self.units - units, self.money - part
        return part

    def take_basis(self, units):
        part = half_up(Fraction(self.basis * units, self.basis_units))
        self.basis_units, self.basis = self.basis_units - units, self.basis - part
        return part


def _trade_of(trades, pocket_id, cusip, *, incoming):
    found = (
        each
        for each in trades
        if each.units
        and (each.row["pocket_id"], each.row["cusip"], each.row["incoming"]) == (pocket_id, cusip, incoming)
    )
    return next(found, None)


def worth(state, price_of):
    """Cash and bills at the prices that a function of the CUSIP gives."""
    return state.cash + sum(value_of(units, price_of(cusip)) for cusip, units in state.units.items())
