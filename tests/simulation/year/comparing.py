"""Compares the documents of a simulated year with the ledger, to the cent."""

import io
from collections import Counter, defaultdict
from datetime import date, timedelta
from typing import Any
from uuid import UUID

from tests.simulation.year import documents
from tests.simulation.year.ledger import Ledger, worth
from tests.simulation.year.prices import ET, Prices, instant, value_of

from billfold.reports.entries.types import AccountType
from billfold.reports.tax.worker import write_irs_file

ONE_DAY = timedelta(days=1)
STATEMENTS = """
SELECT s.* FROM statement s JOIN customer c USING (customer_id)
 WHERE c.role = 'customer' AND s.type IN ('BANK', 'BROKERAGE')
"""
FORMS = "SELECT * FROM statement WHERE type LIKE '1099%' AND key = $1"
CLOSING_PRICES = "SELECT business_date, cusip::text, mark_micros FROM closing_price"
MINIMUM = 10_00
CONFIRMED, READ, FOLLOWED = 40, 10, 50
"""Of so many trades one is confirmed; of so many Pockets the pages of one are read, and one is followed day by day."""


def usd(cents):
    """Cents as documents print them."""
    return f"{'-' if cents < 0 else ''}${abs(cents) // 100:,}.{abs(cents) % 100:02}"


def months_between(first_day, year):
    """The first and the last day of each month from that of a day to the end of a year."""
    months, first = [], first_day.replace(day=1)
    while first.year <= year:
        following = (first + timedelta(days=31)).replace(day=1)
        months.append((first, following - ONE_DAY))
        first = following
    return months


class Comparison:
    """Counts what agreed and keeps what did not."""

    def __init__(self, desk, ledger, prices, *, months):
        self.desk, self.bank, self.ledger, self.prices = desk, desk.bank, ledger, prices
        self.months, self.year = months, months[-1][0].year
        self.agreed: Counter[str] = Counter()
        self.differences: list[tuple[Any, ...]] = []

    @classmethod
    async def begin(cls, desk, *, first_day, year, closed_on):
        prices, months = Prices(closed={closed_on}), months_between(first_day, year)
        return cls(desk, await Ledger.read(desk.bank.pool), prices, months=months)

    def same(self, kind, found, expected, *where):
        if found == expected:
            self.agreed[kind] += 1
        else:
            self.differences.append((kind, *map(str, where), found, expected))

    def says(self, kind, text, expected, *where):
        self.same(kind, expected if expected in text else text, expected, *where)

    async def parts(self):
        """Compare part by part; yield the name of each as it is done."""
        for part in (
            self.closing_prices, self.trades, self.accounts, self.days, self.statements, self.earnings,
            self.trade_reports, self.confirmations, self.tax_forms, self.irs_file,
        ):  # fmt: skip
            await part()
            yield part.__name__

    # -- values -----------------------------------------------------------------------------

    def value_after(self, pocket, day):
        """The value of a Pocket on a statement, at the prices of the last close."""
        state = pocket.before(instant(day + ONE_DAY))
        return worth(state, lambda cusip: self.prices.closing(cusip, day))

    def was_open(self, pocket, first_day, last_day):
        opened = pocket.opened_at < instant(last_day + ONE_DAY)
        return opened and (pocket.closed_at is None or pocket.closed_at >= instant(first_day))

    def pockets(self, first_day, last_day):
        return [each for each in self.ledger.pockets.values() if self.was_open(each, first_day, last_day)]

    async def closing_prices(self):
        for day, cusip, mark in await self.bank.pool.fetch(CLOSING_PRICES):
            self.same("closing prices", mark, self.prices.closing(cusip, day), day, cusip)

    # -- trades and accounts ------------------------------------------------------------------

    async def trades(self):
        """Each trade is at a price that the Treasury's rates give, and is what its postings moved."""
        for pocket in self.ledger.pockets.values():
            for at, trade in pocket.trades:
                self.same("prices of trades", trade["price_micros"] in self._prices_of(at, trade), True, trade)
                value = value_of(trade["units"], trade["price_micros"])
                self.same("amounts of trades", trade["notional"], value, trade)
            paid = sum(
                -trade["notional"] if trade["incoming"] else trade["notional"]
                for _, trade in pocket.trades
                if trade["activity"] in {"BUY", "SELL", "MATURITY"}
            )
            moved = sum(cents for _, cents in pocket.payments)
            self.same("cash", pocket.state.cash, moved + paid, pocket.pocket_id)

    def _prices_of(self, at, trade):
        cusip, prices = trade["cusip"], self.prices
        if trade["activity"] == "MATURITY":
            return {100_000_000}
        if trade["activity"] not in {"BUY", "SELL"}:
            return {prices.mark(cusip, at)}
        day = prices.open_day_at(at)
        if trade["activity"] == "BUY":
            return {prices.ask(cusip, day, trade["settles_on"])}
        return {prices.bid(cusip, day, day), prices.bid(cusip, day, trade["settles_on"])}

    def _account(self, pocket, first_day, last_day):
        """The expected bank and brokerage statement, as `documents.Account`."""
        payments = [cents for _, cents in pocket.within(pocket.payments, first_day, last_day)]
        bank = documents.Account(0, 0, sorted(each for cents in payments for each in (cents, -cents)), {})
        amounts = list(payments)
        gains: Counter[str] = Counter()
        for _, trade in pocket.within(pocket.trades, first_day, last_day):
            cents = trade["notional"] if trade["incoming"] else -trade["notional"]
            gains[trade["cusip"]] -= cents
            if trade["activity"] not in {"BUY", "SELL", "MATURITY"}:
                amounts.append(cents)
        for day, sign in ((first_day - ONE_DAY, -1), (last_day, 1)):
            for cusip, units in pocket.before(instant(day + ONE_DAY)).units.items():
                gains[cusip] += sign * value_of(units, self.prices.closing(cusip, day))
        brokerage = documents.Account(
            self.value_after(pocket, first_day - ONE_DAY),
            self.value_after(pocket, last_day),
            sorted(amounts),
            {cusip: cents for cusip, cents in gains.items() if cents},
        )
        assert brokerage.opening + sum(amounts) + sum(gains.values()) == brokerage.closing
        return bank, brokerage

    async def _compare_accounts(self, kind, pocket, periods):
        expected = [self._account(pocket, *period) for period in periods]
        for nth, account in enumerate((AccountType.BANK, AccountType.BROKERAGE)):
            found = await documents.read_camt053(self.bank, pocket, account, periods)
            for period, said, own in zip(periods, found, expected, strict=True):
                self.same(f"{kind}, {account.lower()}", said, own[nth], pocket.pocket_id, period[0])

    async def accounts(self):
        """The camt.053 of each month."""
        for pocket in self.ledger.pockets.values():
            await self._compare_accounts(
                "camt.053 of months", pocket, [m for m in self.months if self.was_open(pocket, *m)]
            )

    async def days(self):
        """The camt.053 of each day, of some Pockets."""
        start, end = self.months[0][0], self.months[-1][1]
        days = [(day, day) for n in range((end - start).days + 1) if (day := start + n * ONE_DAY)]
        for pocket in list(self.ledger.pockets.values())[::FOLLOWED]:
            await self._compare_accounts("camt.053 of days", pocket, [d for d in days if self.was_open(pocket, *d)])

    # -- documents ----------------------------------------------------------------------------

    async def statements(self):
        """Every statement there must be, its balances, and what its pages say."""
        rows = {(row["pocket_id"], row["type"], row["key"]): row for row in await self.bank.pool.fetch(STATEMENTS)}
        wanted = {
            (pocket.pocket_id, kind, f"{first:%Y-%m}"): (pocket, first, last)
            for first, last in self.months
            for pocket in self.pockets(first, last)
            for kind in ("BANK", "BROKERAGE")
        }
        self.same("statements there are", set(rows) ^ set(wanted), set())
        read = set(list(self.ledger.pockets)[::READ])
        for key, (pocket, first, last) in wanted.items():
            bank, brokerage = self._account(pocket, first, last)
            account = bank if key[1] == "BANK" else brokerage
            row = rows[key]
            self.same(f"balances of statements, {key[1].lower()}", (row["opening"], row["closing"]), account[:2], *key)
            text = await documents.read_statement(self.bank, row) if pocket.pocket_id in read else None
            for line in self._lines(pocket, account, first, last, is_bank=key[1] == "BANK") if text else ():
                self.says(f"lines of statements, {key[1].lower()}", text, line, *key)

    def _lines(self, pocket, account, first, last, *, is_bank):
        name = lambda day: f"{day:%b} {day.day}"  # noqa: E731
        yield f"{name(first)} {usd(account.opening)}"
        yield f"{name(last)} {usd(account.closing)}"
        if is_bank:
            by_day: Counter[date] = Counter()
            for at, cents in pocket.within(pocket.payments, first, last):
                yield usd(cents)
                by_day[at.astimezone(ET).date()] += cents
            for day, cents in by_day.items():
                yield f"{name(day)} Sweep"
                yield f"{usd(-cents)} $0.00"
            return
        yield f"Additions {usd(sum(each for each in account.amounts if each > 0))}"
        yield f"Gain or loss of bills {usd(sum(account.gains.values()))}"
        states = [pocket.before(instant(day)) for day in (first.replace(month=1), first, last + ONE_DAY)]
        realised = [states[2].realised - states[n].realised for n in (1, 0)]
        yield f"Realized on sales and maturities {usd(realised[0])} {usd(realised[1])}"
        yield f"Fees {usd(states[1].fees - states[2].fees)} {usd(states[0].fees - states[2].fees)}"
        for cusip, units in states[2].units.items():
            value, cost = value_of(units, self.prices.closing(cusip, last)), states[2].costs[cusip]
            yield f"{usd(value)} {usd(cost)} {usd(value - cost)}"
            yield usd(units * 100_00)
        for _, trade in pocket.within(pocket.trades, first, last):
            yield usd(trade["notional"])

    async def earnings(self):
        """The earnings of each Pocket, by month and for the year."""
        for period in (*self.months, (date(self.year, 1, 1), self.months[-1][1])):
            for pocket in self.pockets(*period):
                found = await documents.read_earnings(self.desk, pocket, *period)
                self.same("earnings", found, self._earnings(pocket, *period), pocket.pocket_id, *period)

    def _earnings(self, pocket, first, last):
        ends = []
        for day in (first - ONE_DAY, last):
            state = pocket.before(instant(day + ONE_DAY))
            value = worth(state, lambda cusip, day=day: self.prices.mark(cusip, instant(day + ONE_DAY)))
            ends.append((state, value, value - state.cash - sum(state.bases.values())))
        (start, start_value, start_gain), (end, end_value, end_gain) = ends
        contributions, withdrawals = end.inflow - start.inflow, end.outflow - start.outflow
        net, fees = end_value - start_value - contributions + withdrawals, end.fees - start.fees
        realised = end.realised - start.realised
        assert net + fees == realised + end_gain - start_gain
        return {
            "earnings": net + fees,
            "earnings_net": net,
            "fees": fees,
            "realised": realised,
            "unrealised_change": end_gain - start_gain,
            "contributions": contributions,
            "withdrawals": withdrawals,
            "start_value": start_value,
            "end_value": end_value,
        }

    async def trade_reports(self):
        """The trades of each customer and month, and their sum."""
        by_customer = defaultdict(list)
        for pocket in self.ledger.pockets.values():
            by_customer[pocket.customer_id].append(pocket)
        for customer_id, pockets in by_customer.items():
            trades = [each for pocket in pockets for _, each in pocket.trades if each["activity"] in {"BUY", "SELL"}]
            for first, last in self.months:
                expected = {
                    str(each["trade_id"]): self._row(each) for each in trades if first <= each["book_date"] <= last
                }
                rows = await documents.read_trades(self.desk, customer_id, first, last)
                names = ("cusip", "side", "quantity_par", "gross_amount", "cost_amount", "realised_gain")
                found = {each["trade_id"]: tuple(each[name] for name in names) for each in rows}
                self.same("trade reports", found, expected, customer_id, first)
                self.agreed["trades in reports"] += len(found)

    @staticmethod
    def _row(trade):
        gain = 0 if trade["incoming"] else trade["notional"] - trade["tax_basis"]
        amounts = (trade["notional"], trade["tax_basis"], gain)
        return (
            trade["cusip"],
            trade["activity"],
            str(trade["units"] * 100),
            *(usd(each).replace("$", "").replace(",", "") for each in amounts),
        )

    async def confirmations(self):
        """The confirmations of some trades."""
        trades = [trade for pocket in self.ledger.pockets.values() for _, trade in pocket.trades]
        for trade in [each for each in trades if each["activity"] in {"BUY", "SELL"}][::CONFIRMED]:
            text = await documents.read_confirmation(self.desk, trade)
            micros = trade["price_micros"]
            for line in (
                f"par amount {usd(trade['units'] * 100_00)}",
                f"Price per $100 {micros // 1_000_000}.{micros % 1_000_000:06}",
                f"Principal {usd(trade['notional'])}",
                f"CUSIP {trade['cusip']}",
            ):
                self.says("lines of confirmations", text, line, trade["trade_id"])

    # -- taxes --------------------------------------------------------------------------------

    def _taxed(self, pocket):
        """Return interest, and each sale as disposal, proceeds and basis, of the year."""
        disposed = [each for each in pocket.disposed if each.day.year == self.year]
        interest = [each.interest(self.prices.maturities[each.lot.cusip]) for each in disposed]
        sales = [
            (each, each.proceeds, each.cost + part)
            for each, part in zip(disposed, interest, strict=True)
            if each.trade["activity"] == "SELL" or each.proceeds < each.cost
        ]
        return sum(interest), sales

    async def tax_forms(self):
        """Every form there must be, and its boxes."""
        rows = {(row["pocket_id"], row["type"]): row for row in await self.bank.pool.fetch(FORMS, str(self.year))}
        wanted = {}
        for pocket in self.ledger.pockets.values():
            interest, sales = self._taxed(pocket)
            proceeds, basis = (sum(each[nth] for each in sales) for nth in (1, 2))
            if interest:
                wanted[pocket.pocket_id, "1099-INT"] = [f"Treasury obligations {usd(interest)}"]
            if sales:
                boxes = [f"Box 1d Proceeds {usd(proceeds)}", f"Box 1e Cost or other basis {usd(basis)}"]
                wanted[pocket.pocket_id, "1099-B"] = [*boxes, f"Short-term gain or loss {usd(proceeds - basis)}"]
        self.same("forms there are", set(rows) ^ set(wanted), set())
        for key, lines in wanted.items():
            text = await documents.read_statement(self.bank, rows[key])
            for line in lines:
                self.says(f"boxes of {key[1]}", text, line, *key)

    async def irs_file(self):
        """The returns that are filed, one by one, and their totals."""
        out = io.BytesIO()
        await write_irs_file(self.bank, self.year, out)
        found = documents.read_irs_file(out.getvalue().decode("ascii"))
        interest, sales = {}, {}
        of_customer: Counter[UUID] = Counter()
        for pocket in self.ledger.pockets.values():
            own, sold = self._taxed(pocket)
            of_customer[pocket.customer_id] += own
            if own:
                interest[pocket.pocket_id.hex[-20:].upper()] = pocket.customer_id, own
            for each, proceeds, basis in sold:
                age = (each.day - each.lot.acquired_on).days
                sales[f"{each.trade['trade_id'].hex[-16:].upper()}{age:04}"] = proceeds, basis
        filed = {account: own for account, (whose, own) in interest.items() if of_customer[whose] >= MINIMUM}
        self.same("interest filed", found.interest, filed)
        self.same("sales filed", dict(found.sales), sales)
        totals = [(0, sum(filed.values())), tuple(sum(each[nth] for each in sales.values()) for nth in (0, 1))]
        self.same("totals filed", found.totals, totals)
        self.agreed["returns"] += len(filed) + len(sales)
