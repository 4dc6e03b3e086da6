"""The desk's figures from files of dealers, the custodian and the reserve's bank, and from customers' documents.

Nothing here calls what is under test. A file of a dealer is its own book; the custodian's are sese.025 and semt.002.
Units are bills of $100, money is cents; both are positive if the bank receives bills and pays for them.
"""

import json
import re
from collections import Counter, defaultdict
from datetime import date, datetime
from decimal import Decimal
from itertools import pairwise
from typing import NamedTuple

from lxml import etree
from tests.simulation.year.prices import ET, Prices, value_of

SIGN = {"BUY": 1, "SELL": -1, "RECE": 1, "DELI": -1, "CRDT": 1, "DBIT": -1, "CREDIT": 1, "DEBIT": -1}
PERCENT = 100


class Moved(NamedTuple):
    """Bills and money of a bill on a day."""

    day: date
    cusip: str
    units: int
    money: int


class Oracle:
    """The figures as they must be. `trades` and `wires` are customers' documents as the Partner API has them."""

    def __init__(self, state_dir, trades=(), wires=(), closed=()):
        self.folder, self.prices = state_dir, Prices(closed)
        self.customers = [
            Moved(_day(each["book_date"]), each["cusip"], sign * each["quantity"], sign * each["notional"]["value"])
            for each in trades
            if (sign := SIGN.get(each["activity"], 0))
        ]
        self.wires = [
            (datetime.fromisoformat(each["time_booked"]).astimezone(ET).date(), SIGN[each["direction"]], each["amount"])
            for each in wires
        ]
        self.by_dealer = {path.parent.name: _executions(path) for path in state_dir.glob("dealers/*/books.jsonl")}
        self.dealers = [moved for rows in self.by_dealer.values() for moved in _replayed(rows)]
        self.confirmed = [_confirmation(each) for each in self._documents("custody", "sese.025")]
        self.statements = sorted(_statement(each) for each in self._documents("statement", "camt.053"))
        self.holdings = sorted(_holdings(each) for each in self._documents("statement", "semt.002"))

    def exposure(self, until=date.max):
        """Units that customers hold and no dealer has sold to the bank; below zero its own inventory."""
        left = Counter[str]()
        for sign, rows in ((1, self.customers), (-1, self.dealers)):
            for each in rows:
                left[each.cusip] += sign * each.units * (each.day <= until)
        return {cusip: units for cusip, units in left.items() if units}

    def results(self):
        """The trading result of each day but the first."""
        days = sorted({day for day, _, _ in self.statements})
        return {day: self._worth(day) - self._worth(before) for before, day in pairwise(days)}

    def booked_late(self, booked):
        """The days of executions, by dealer and reference, that the bank booked after their day: both days of each."""
        for dealer, rows in self.by_dealer.items():
            for each in rows:
                day, theirs = booked.get((dealer, each["reference"])), _day(each["traded_on"])
                if day not in {None, theirs}:
                    yield day, theirs

    def _worth(self, day):
        paid = sum(each.money for each in self.customers if each.day <= day)
        paid -= sum(each.money for each in self.dealers if each.day <= day)
        inventory = {cusip: -units for cusip, units in self.exposure(day).items()}
        return paid + sum(value_of(units, self.prices.closing(cusip, day)) for cusip, units in inventory.items())

    def unsettled(self):
        """Units by bill that dealers have sold to the bank and the custodian has not confirmed."""
        open_units = Counter[str]()
        for each in self.dealers:
            open_units[each.cusip] += each.units
        for each in self.confirmed:
            open_units[each.cusip] -= each.units
        return {cusip: units for cusip, units in open_units.items() if units}

    def balances(self):
        """Tell whether each statement begins with the balance at which the one before it ended, and adds up."""
        return all(before[2][1] == after[2][0] for before, after in pairwise(self.statements)) and all(
            opening + sum(lines) == closing for _, lines, (opening, closing) in self.statements
        )

    def _documents(self, rail, name):
        for path in sorted(self.folder.glob(f"rails/{rail}/done/*.xml")):
            for each in etree.parse(path).iter():
                if re.search(f":{name}\\.[0-9.]+}}Document$", str(each.tag)):
                    yield each


def _executions(path):
    return [line["execution"] for line in map(json.loads, path.read_text().splitlines()) if "execution" in line]


def _replayed(rows):
    """A correction takes back what it corrects on its own day, and a bust does nothing else."""
    by_reference = {each["reference"]: each for each in rows}
    for each in rows:
        day, before = _day(each["traded_on"]), by_reference.get(each.get("corrects"))
        signed = [(1, each)] * (each["kind"] != "BUST") + [(-1, before)] * (before is not None)
        for way, row in signed:
            sign = way * SIGN[row["side"]]
            yield Moved(day, row["cusip"], sign * row["face"] // 100, sign * row["money"])


def _confirmation(document):
    movement, face, sign = _text(document, "SctiesMvmntTp"), _text(document, "FaceAmt"), _text(document, "CdtDbtInd")
    money = -SIGN[sign] * _cents(_text(document, "Amt")) if sign else 0
    day = _day(document.find(".//{*}FctvSttlmDt/{*}Dt/{*}Dt").text)
    return Moved(day, _text(document, "FinInstrmId/{*}OthrId/{*}Id"), SIGN[movement] * int(face) // 100, money)


def _statement(document):
    opening, closing = (_signed(each) for each in document.iterfind(".//{*}Bal"))
    lines = [_signed(each) for each in document.iterfind(".//{*}Ntry")]
    return _day(document.find(".//{*}Bal/{*}Dt/{*}Dt").text), lines, (opening, closing)


def _holdings(document):
    held = defaultdict[str, int](int)
    for each in document.iterfind(".//{*}BalForAcct"):
        sign = 1 if _text(each, "ShrtLngInd") == "LONG" else -1
        held[_text(each, "OthrId/{*}Id")] += sign * int(_text(each, "FaceAmt")) // 100
    return _day(document.find(".//{*}StmtDtTm/{*}Dt").text), dict(held)


def _signed(element):
    return SIGN[_text(element, "CdtDbtInd")] * _cents(_text(element, "Amt"))


def _text(element, name):
    return element.findtext(f".//{{*}}{name}")


def _cents(text):
    return int(Decimal(text) * 100)


def _day(text):
    return date.fromisoformat(text)
