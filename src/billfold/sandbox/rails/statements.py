"""Statements of the sandbox's outside world, after each close: camt.053, semt.002, and the recaps of its dealers.

Each is written from the books of the simulated rails, custodian and dealers, so that it can disagree with the ledger; a
behavior that was chosen makes the next statement wrong. Stablecoins are bought as a payer sends them, and sold as the
signer signs for them, at par.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Final

import msgspec
from lxml.builder import ElementMaker
from lxml.etree import _Element, tostring

from billfold.ledger import scheduler
from billfold.ledger.bank import Bank
from billfold.ledger.types import ScheduledJob
from billfold.payments.crypto.chains import cents_of
from billfold.payments.files.exchange import ExchangeFolders, RailExchanges
from billfold.platform.dates import ET, et_date, et_instant
from billfold.platform.ids import command_id
from billfold.platform.money import format_price
from billfold.reconciliation.types import Trade
from billfold.sandbox.chain.crypto_signer import SIGNER_FOLDER, list_signed
from billfold.sandbox.chain.faucet import DECIMALS
from billfold.sandbox.custodian import FOLDER as CUSTODIAN
from billfold.sandbox.custodian import SimulatedCustodian
from billfold.sandbox.dealers.books import DealerExecution, read_executions
from billfold.sandbox.dealers.launch import folder_of
from billfold.sandbox.rails.correspondent import BookLine, Correspondent, LastStatement, write_atomically
from billfold.trading.blotter import COLUMNS
from billfold.trading.types import Side

_ISO = "urn:iso:std:iso:20022:tech:xsd:"
_OPEN_DAY = "SELECT business_date FROM ledger_head WHERE customer_id = $1"
_ONE_DAY = timedelta(days=1)
_UNKNOWN_CENTS = 123_45
_NOON, _SENT_AT = 12, 23
STATEMENTS: Final = "sandbox-statements"
"""The scheduled job in which the statements of a day are sent."""


class StatementBehavior(StrEnum):
    """An error of the next statements."""

    NO_STATEMENT = "NO_STATEMENT"
    UNKNOWN_LINE = "UNKNOWN_LINE"
    MISSING_LINE = "MISSING_LINE"
    CENT_OFF = "CENT_OFF"
    HOLDINGS_SHORT = "HOLDINGS_SHORT"
    TRADE_OFF = "TRADE_OFF"


# -- files -------------------------------------------------------------------------------


def write_camt053(account: str, day: date, opening: int, lines: Sequence[BookLine]) -> bytes:
    """Return the statement of an account: camt.053.001.08."""
    make = ElementMaker(namespace=f"{_ISO}camt.053.001.08", nsmap={None: f"{_ISO}camt.053.001.08"})
    at = f"{day}T23:00:00Z"

    def amount(cents: int) -> list[_Element]:
        text = f"{abs(cents) // 100}.{abs(cents) % 100:02}"
        return [make.Amt(text, Ccy="USD"), make.CdtDbtInd("CRDT" if cents >= 0 else "DBIT")]

    def on(name: str) -> _Element:
        return make(name, make.Dt(day.isoformat()))

    balances = [
        make.Bal(make.Tp(make.CdOrPrtry(make.Cd(code))), *amount(cents), on("Dt"))
        for code, cents in (("OPBD", opening), ("CLBD", opening + sum(each.amount for each in lines)))
    ]
    entries = [
        make.Ntry(
            make.NtryRef(each.reference[:35]),
            *amount(each.amount),
            make.Sts(make.Cd("BOOK")),
            on("BookgDt"),
            on("ValDt"),
            make.AcctSvcrRef(each.key[-35:]),
            make.BkTxCd(make.Prtry(make.Cd(each.code))),
        )
        for each in lines
    ]
    statement = make.Stmt(
        make.Id(f"{day}"), make.CreDtTm(at), make.Acct(make.Id(make.Othr(make.Id(account)))), *balances, *entries
    )
    header = make.GrpHdr(make.MsgId(f"STMT-{day}"), make.CreDtTm(at))
    return tostring(make.Document(make.BkToCstmrStmt(header, statement)), xml_declaration=True, encoding="UTF-8")


def write_semt002(account: str, day: date, units: Mapping[str, int]) -> bytes:
    """Return what a custodian holds, in bills of $100 face by CUSIP: semt.002.001.11."""
    make = ElementMaker(namespace=f"{_ISO}semt.002.001.11", nsmap={None: f"{_ISO}semt.002.001.11"})
    held = [
        make.BalForAcct(
            make.FinInstrmId(make.OthrId(make.Id(cusip), make.Tp(make.Cd("CUSP")))),
            make.AggtBal(
                make.ShrtLngInd("LONG" if count >= 0 else "SHOR"),
                make.Qty(make.Qty(make.Qty(make.FaceAmt(str(abs(count) * 100))))),
            ),
        )
        for cusip, count in sorted(units.items())
    ]
    general = make.StmtGnlDtls(
        make.RptNb(make.Lng(f"{day:%j}".lstrip("0"))),
        make.StmtId(f"HOLD-{day}"),
        make.StmtDtTm(make.Dt(day.isoformat())),
        make.Frqcy(make.Cd("DAIL")),
        make.UpdTp(make.Cd("COMP")),
        make.StmtBsis(make.Cd("SETT")),
        make.ActvtyInd("true" if held else "false"),
        make.SubAcctInd("false"),
    )
    pages = make.Pgntn(make.PgNb("1"), make.LastPgInd("true"))
    report = make.SctiesBalCtdyRpt(pages, general, make.SfkpgAcct(make.Id(account)), *held)
    return tostring(make.Document(report), xml_declaration=True, encoding="UTF-8")


def write_recap(dealer: str, day: date, trades: Iterable[Trade]) -> bytes:
    """Return a dealer's trades of a day, with the columns of a blotter but that of our order."""
    at = f"{et_instant(day, _NOON).astimezone(ET):%Y-%m-%d %H:%M}"
    lines = [
        (
            *(dealer, each.reference, each.side, each.cusip, each.units * 100, format_price(each.price_micros)),
            *(f"{each.money // 100}.{each.money % 100:02}", at, each.settles_on),
        )
        for each in trades
    ]
    return "".join(",".join(map(str, line)) + "\n" for line in (COLUMNS[:-1], *lines)).encode()


# -- days --------------------------------------------------------------------------------


class SimulatedStatements:
    """Writes the statements of every day that the bank has closed, and puts them into the inbox."""

    async def choose(self, bank: Bank, behavior: StatementBehavior | None) -> None:
        """Make the next statements wrong in this way, or right."""
        if behavior is None:
            _chosen(bank).unlink(missing_ok=True)
        else:
            await asyncio.to_thread(write_atomically, _chosen(bank), behavior.encode())

    async def schedule(self, bank: Bank, close: ScheduledJob) -> None:
        """Have the statements of a day sent when Fedwire is over, too, if the bank names its account."""
        if bank.settings.reserve_account is None:
            return
        day = et_date(close.at)
        job = ScheduledJob(STATEMENTS, command_id(STATEMENTS, day.isoformat()), None, at=et_instant(day, _SENT_AT))
        await scheduler.schedule(bank.pool, [job])

    async def send(self, bank: Bank, _: ScheduledJob) -> None:
        """Send the statements of the days closed since the last ones: a scheduled job."""
        account, bank_id = bank.settings.reserve_account, bank.own_id
        if account is None:
            return
        book = Correspondent(bank)
        custodian = SimulatedCustodian(bank.settings.state_dir / CUSTODIAN)
        closed = bank.calendars.settlement_on_or_before(await bank.pool.fetchval(_OPEN_DAY, bank_id) - _ONE_DAY)
        last = book.last() or LastStatement(bank.calendars.settlement_on_or_before(closed - _ONE_DAY))
        while (day := bank.calendars.next_settlement_day(last.day)) <= closed:
            behavior = _read_chosen(bank)
            days = [last.day + timedelta(days=nth) for nth in range(1, (day - last.day).days + 1)]
            cash = custodian.cash(after=last.cash_no, until=day)
            settled = [BookLine(f"custody-{no}", cents, "SECURITIES", name) for no, name, cents in cash]
            signed = list_signed(bank.settings.state_dir / SIGNER_FOLDER, after=last.signed_no)
            sold = [
                BookLine(f"USDC-{no}", -cents_of(units, DECIMALS).cents, "CRYPTO", "USDC sold") for no, units in signed
            ]
            lines = [*book.lines_of(days), *settled, *sold]
            wrong = _wrong_lines(lines, behavior)
            if behavior != StatementBehavior.NO_STATEMENT:
                await _deliver(bank, f"camt053-{day}.xml", write_camt053(account, day, last.closing, wrong))
                await _send_others(bank, custodian.holdings(), day, behavior)
            _chosen(bank).unlink(missing_ok=True)
            cash_no = max((no for no, _, _ in cash), default=last.cash_no)
            signed_no = max((no for no, _ in signed), default=last.signed_no)
            last = LastStatement(day, last.closing + sum(each.amount for each in wrong), cash_no, signed_no)
            book.keep(last)


async def _send_others(bank: Bank, units: dict[str, int], day: date, behavior: StatementBehavior | None) -> None:
    if bank.settings.custodian_account is not None and bank.settings.custodian is None:
        if behavior == StatementBehavior.HOLDINGS_SHORT and units:
            units[min(units)] -= 1
        await _deliver(bank, f"semt002-{day}.xml", write_semt002(bank.settings.custodian_account, day, units))
    for dealer in bank.settings.dealers:
        trades = _trades_of(read_executions(folder_of(bank.settings.state_dir, dealer)), day)
        if trades and behavior == StatementBehavior.TRADE_OFF:
            trades[0] = trades[0]._replace(money=trades[0].money + 1)
        if trades:
            await _deliver(bank, f"recap-{dealer}-{day}.csv", write_recap(dealer, day, trades))


def _trades_of(executions: Sequence[DealerExecution], day: date) -> list[Trade]:
    """Return the trades of a day that stand in a dealer's own books."""
    replaced = {each.corrects for each in executions}
    return [
        Trade(
            reference=each.reference,
            side=Side(each.side),
            cusip=each.cusip,
            units=each.face // 100,
            price_micros=each.price_micros,
            money=each.money,
            settles_on=date.fromisoformat(f"{each.settles_on[:4]}-{each.settles_on[4:6]}-{each.settles_on[6:]}"),
        )
        for each in executions
        if each.traded_on == day.isoformat() and each.kind != "BUST" and each.reference not in replaced
    ]


def _wrong_lines(lines: list[BookLine], behavior: StatementBehavior | None) -> list[BookLine]:
    match behavior:
        case StatementBehavior.UNKNOWN_LINE:
            return [*lines, BookLine("unknown", _UNKNOWN_CENTS, "WIRE", "UNKNOWN-1")]
        case StatementBehavior.MISSING_LINE:
            return lines[1:]
        case StatementBehavior.CENT_OFF if lines:
            return [msgspec.structs.replace(lines[0], amount=lines[0].amount + 1), *lines[1:]]
        case _:
            return lines


def _chosen(bank: Bank) -> Path:
    return bank.settings.state_dir / "rails" / "statement" / "behavior"


def _read_chosen(bank: Bank) -> StatementBehavior | None:
    path = _chosen(bank)
    return StatementBehavior(path.read_text()) if path.exists() else None


async def _deliver(bank: Bank, name: str, content: bytes) -> None:
    exchange = bank.ports[RailExchanges].statement
    assert isinstance(exchange, ExchangeFolders)
    await exchange.network_side().transmit(name, content)
