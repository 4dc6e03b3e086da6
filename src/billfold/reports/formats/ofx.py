"""OFX 2.2: bank statements, and for brokerage accounts investment statements with the bills held at the end."""

from collections.abc import Iterator
from datetime import date, datetime
from typing import IO

from billfold.platform.dates import ET, et_instant
from billfold.reports.entries.types import AccountEntry, AccountStatement, AccountType, Holding, Security
from billfold.reports.formats.files import StatementFile, Xml, codes_of, cut, decimal, node

_HEADER = """<?xml version="1.0" encoding="UTF-8" standalone="no"?>
<?OFX OFXHEADER="200" VERSION="220" SECURITY="NONE" OLDFILEUID="NONE" NEWFILEUID="NONE"?>
"""
_NAME, _REFERENCE, _MEMO, _BALANCE_NAME = 32, 32, 255, 32
_UNIT_FACE, _PRICE_MICROS = 100, 1_000_000
_NOON = 12


async def write_ofx(file: StatementFile, output: IO[bytes]) -> None:
    """Write statements. Every entry of a brokerage account is a transaction of its cash sub-account."""

    def write(*parts: str) -> None:
        output.write("".join(parts).encode())

    is_bank = file.statements[0].account.type == AccountType.BANK
    messages = "BANKMSGSRSV1" if is_bank else "INVSTMTMSGSRSV1"
    write(_HEADER, "<OFX>", _sign_on(file), f"<{messages}>")
    for statement in file.statements:
        begin, end = (_bank_parts if is_bank else _brokerage_parts)(statement)
        write(
            *begin,
            node("DTSTART", _instant(statement.period.starts_at)),
            node("DTEND", _instant(statement.period.ends_at)),
        )
        async for page in file.entries(statement):
            paid = map(_entry, page)
            write(*paid if is_bank else (node("INVBANKTRAN", each, node("SUBACCTFUND", "CASH")) for each in paid))
        write(*end)
    securities = {each.security for statement in file.statements for each in statement.closing.holdings}
    infos = [_security_info(each) for each in sorted(securities, key=lambda each: each.cusip)]
    write(f"</{messages}>", node("SECLISTMSGSRSV1", node("SECLIST", *infos)), "</OFX>\n")


def _bank_parts(statement: AccountStatement) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the elements before and after the transactions of a bank account."""
    account = statement.account
    number = node("ACCTID", account.number)
    owner = node("BANKACCTFROM", node("BANKID", account.routing_number), number, node("ACCTTYPE", "CHECKING"))
    amount = node("BALAMT", _signed(statement.closing.value))
    balance = node("LEDGERBAL", amount, node("DTASOF", _instant(statement.period.ends_at)))
    return (
        (
            "<STMTTRNRS>",
            node("TRNUID", "0"),
            _status(),
            "<STMTRS>",
            node("CURDEF", account.currency),
            owner,
            "<BANKTRANLIST>",
        ),
        ("</BANKTRANLIST>", balance, node("BALLIST", *_balances(statement)), "</STMTRS></STMTTRNRS>"),
    )


def _brokerage_parts(statement: AccountStatement) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the elements before and after the transactions of a brokerage account."""
    account, closing = statement.account, statement.closing
    as_of = _instant(statement.period.ends_at)
    owner = node("INVACCTFROM", node("BROKERID", account.routing_number), node("ACCTID", account.number))
    head = _status(), "<INVSTMTRS>", node("DTASOF", as_of), node("CURDEF", account.currency), owner, "<INVTRANLIST>"
    balances = node(
        "INVBAL",
        node("AVAILCASH", _signed(closing.cash)),
        node("MARGINBALANCE", _signed(0)),
        node("SHORTBALANCE", _signed(0)),
        node("BALLIST", *_balances(statement)),
    )
    positions = node("INVPOSLIST", *(_position(each, as_of) for each in closing.holdings))
    return (
        ("<INVSTMTTRNRS>", node("TRNUID", "0"), *head),
        ("</INVTRANLIST>", positions, balances, "</INVSTMTRS></INVSTMTTRNRS>"),
    )


def _sign_on(file: StatementFile) -> Xml:
    account = file.statements[0].account
    bank = node("FI", node("ORG", cut(account.bank, _NAME)), node("FID", account.routing_number))
    answer = node("SONRS", _status(), node("DTSERVER", _instant(file.made_at)), node("LANGUAGE", "ENG"), bank)
    return node("SIGNONMSGSRSV1", answer)


def _status() -> Xml:
    return node("STATUS", node("CODE", "0"), node("SEVERITY", "INFO"))


def _balances(statement: AccountStatement) -> Iterator[Xml]:
    period = statement.period
    for name, balance, at in (
        ("Opening balance", statement.opening, period.starts_at),
        ("Closing balance", statement.closing, period.ends_at),
    ):
        value = node("VALUE", _signed(balance.value))
        yield node(
            "BAL",
            node("NAME", name),
            node("DESC", name),
            node("BALTYPE", "DOLLAR"),
            value,
            node("DTASOF", _instant(at)),
        )


def _position(held: Holding, as_of: str) -> Xml:
    """Return a position: for debt the units are dollars of face value, and the price is per 100 of them."""
    dollars, micros = divmod(held.price_micros, _PRICE_MICROS)
    position = node(
        "INVPOS",
        _security_id(held.security),
        node("HELDINACCT", "CASH"),
        node("POSTYPE", "LONG"),
        node("UNITS", str(held.units * _UNIT_FACE)),
        node("UNITPRICE", f"{dollars}.{micros:06d}"),
        node("MKTVAL", _signed(held.value)),
        node("DTPRICEASOF", as_of),
    )
    return node("POSDEBT", position)


def _security_id(security: Security) -> Xml:
    return node("SECID", node("UNIQUEID", security.cusip), node("UNIQUEIDTYPE", "CUSIP"))


def _security_info(security: Security) -> Xml:
    name = f"US Treasury Bill {security.maturity:%Y-%m-%d}"
    return node(
        "DEBTINFO",
        node("SECINFO", _security_id(security), node("SECNAME", name)),
        node("PARVALUE", "100"),
        node("DEBTTYPE", "ZERO"),
        node("DEBTCLASS", "TREASURY"),
        node("DTMAT", _day(security.maturity)),
    )


def _entry(entry: AccountEntry) -> Xml:
    texts = (entry.title, *entry.purpose, f"CUSIP {entry.security.cusip}" if entry.security else None)
    return node(
        "STMTTRN",
        node("TRNTYPE", codes_of(entry).ofx[entry.amount < 0]),
        node("DTPOSTED", _instant(entry.booked_at)),
        node("DTAVAIL", _day(entry.value_on)),
        node("TRNAMT", _signed(entry.amount)),
        node("FITID", entry.reference),
        node("REFNUM", cut(entry.own_reference(_REFERENCE), _REFERENCE)),
        node("NAME", cut(entry.counterparty or entry.title, _NAME) or entry.kind.value),
        node("MEMO", cut(f"{entry.kind}: {' '.join(filter(None, texts))}", _MEMO)),
    )


def _signed(cents: int) -> str:
    return f"{'-' if cents < 0 else ''}{decimal(cents)}"


def _day(day: date) -> str:
    """Return a day as its noon, which is the same day in every time zone of a reader."""
    return _instant(et_instant(day, _NOON))


def _instant(at: datetime) -> str:
    """Return an instant in Eastern time, so that readers that drop the offset still see the bank's day."""
    at = at.astimezone(ET)
    hours = int(at.strftime("%z")[:3])
    return f"{at:%Y%m%d%H%M%S}.{at.microsecond // 1000:03d}[{hours}:{at:%Z}]"
