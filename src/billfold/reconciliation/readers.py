"""Reads statements: camt.053 and camt.052 of the reserve account, semt.002 of the custodian, and trade recaps.

The versions of the ISO 20022 messages do not matter: only elements that all of them have are read. A file is refused
(`InvalidFile`) if its account, day or balances cannot be read; a single odd line is returned with its reason.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal
from typing import TypeVar
from uuid import UUID

from lxml import etree
from typing_extensions import override

from billfold.bills.types import is_valid_cusip
from billfold.payments.files.types import InvalidFile
from billfold.payments.wires.iso20022.envelope import parse_xml
from billfold.payments.wires.iso20022.types import FedwireMistake
from billfold.platform.calendars import Calendars
from billfold.platform.dates import et_date
from billfold.platform.errors import InvalidInput
from billfold.reconciliation.types import OddLine, Source, StatedLine, Statement, Trade
from billfold.trading.blotter import OpenOrders, read_blotter
from billfold.trading.types import Side

LINES_MAX = 50_000
_MESSAGE = re.compile(r"urn:iso:std:iso:20022:tech:xsd:(camt\.05[23]|semt\.002)\.00\d\.\d\d")
_AMOUNT = re.compile(r"\d{1,12}(\.\d{1,5})?", re.ASCII)
_REFERENCE_CHARS_MAX = 64
_CENTS, _UNIT_DOLLARS = 100, 100
_SHOWN = ("ClrSysRef", "UETR", "AcctSvcrRef", "NtryRef", "TxId", "InstrId")
"""References that are shown, the most telling first; payers choose the others, which are only compared."""
_COMPARED = (*_SHOWN, "EndToEndId", "MsgId")
_ONE_PAGE = {"PgNb": {"1"}, "LastPgInd": {"true", "1"}}
_NO_REFERENCE = frozenset({"", "NOTPROVIDED", "NONREF"})
_SECURITIES = "SECURITIES"
_Line = TypeVar("_Line")
_Element = etree._Element  # noqa: SLF001 - its only name


def read_statements(content: bytes, calendars: Calendars) -> list[Statement]:
    """Return the statements of a file, in order of their days. Raises InvalidFile."""
    text = content.lstrip(b"\xef\xbb\xbf \t\r\n")
    statements = list(_read_message(content) if text.startswith(b"<") else _read_recap(content, calendars))
    if not statements:
        raise _refused("file", "contains no statement")
    if sum(each.length for each in statements) > LINES_MAX:
        raise _refused("file", f"has more than {LINES_MAX} lines")
    if len({(each.account, each.day) for each in statements}) < len(statements):
        raise _refused("file", "contains two statements of one account and day")
    return sorted(statements, key=lambda each: each.day)


def _read_message(content: bytes) -> Iterator[Statement]:
    root = parse_xml(content)
    document = root if etree.QName(root).localname == "Document" else root.find(".//{*}Document")
    named = None if document is None else _MESSAGE.fullmatch(etree.QName(document).namespace or "")
    if document is None or named is None:
        raise _refused("Document", "is no camt.053, camt.052 or semt.002")
    for name, whole in _ONE_PAGE.items():
        if {(each.text or "").strip() for each in document.iter(f"{{*}}{name}")} - whole:
            raise _refused(name, "is of one page of several: a statement comes in one file, with all of them")
    if named[1] == "semt.002":
        yield from map(_read_holdings, document.iterfind("{*}SctiesBalCtdyRpt"))
        return
    for name in ("Stmt", "Rpt"):
        for element in document.iterfind(f"*/{{*}}{name}"):
            yield _read_account(element, is_final=name == "Stmt")


# -- the reserve account -----------------------------------------------------------------


def _read_account(element: _Element, *, is_final: bool) -> Statement:
    account = _text(element, "Acct/Id/Othr/Id") or _text(element, "Acct/Id/IBAN")
    balances = {_text(each, "Tp/CdOrPrtry/Cd"): each for each in element.iterfind("{*}Bal")}
    opening, closing = (
        next((balances[code] for code in codes if code in balances), None)
        for codes in (("OPBD", "PRCD"), ("CLBD", "ITBD", "CLAV"))
    )
    if is_final and (opening is None or closing is None):
        raise _refused("Bal", "lacks the opening (OPBD) or the closing (CLBD) booked balance")
    lines, odd = _read_each(element.iterfind("{*}Ntry"), _read_entry)
    dated = element if closing is None else closing
    return Statement(
        source=Source.RESERVE,
        account=account or "",
        day=_day(dated, "Dt") or _day(element, "CreDtTm", is_own=True) or _refuse("Bal/Dt", "is no date"),
        is_final=is_final,
        opening=None if opening is None else _whole(_signed, opening),
        closing=None if closing is None else _whole(_signed, closing),
        lines=tuple(lines),
        odd=tuple(odd),
    )


def _read_entry(element: _Element, line_no: int) -> StatedLine:
    status = _text(element, "Sts/Cd") or _text(element, "Sts")
    if status not in {None, "BOOK"}:
        raise ValueError(f"its status is {status[:35]}: only booked entries are reconciled" if status else "")
    found = {each: _references(element, each) for each in _COMPARED}
    shown = next((found[name][0] for name in _SHOWN if found[name]), None)
    names = frozenset(text for texts in found.values() for text in texts)
    return StatedLine(line_no, _signed(element), names, _rail_of(element), shown)


def _references(element: _Element, name: str) -> list[str]:
    own = element.iterfind(f"{{*}}{name}")
    details = element.iterfind(f"{{*}}NtryDtls/{{*}}TxDtls/{{*}}Refs/{{*}}{name}")
    texts = [(each.text or "").strip() for each in (*own, *details)]
    return [text for text in texts if text not in _NO_REFERENCE and len(text) <= _REFERENCE_CHARS_MAX]


def _rail_of(element: _Element) -> str | None:
    """Return the rail that the code of an entry names: by its domain, family and sub-family, or the bank's own code."""
    codes = [_text(element, f"BkTxCd/{path}") or "" for path in ("Domn/Cd", "Domn/Fmly/Cd", "Domn/Fmly/SubFmlyCd")]
    domain, family, sub_family = codes
    own = (_text(element, "BkTxCd/Prtry/Cd") or "").upper()
    for rail in ("ACH", "WIRE", "CARD", "CRYPTO"):
        if rail in own:
            return rail
    if domain == "SECU":
        return _SECURITIES
    if family in {"CCRD", "MCRD"}:
        return "CARD"
    if family in {"IDDT", "RDDT"} or sub_family in {"ACDT", "ADBT", "ACCD", "ACOR", "ATXN"}:
        return "ACH"
    return "WIRE" if domain == "PMNT" and family in {"RCDT", "ICDT"} and sub_family in {"DMCT", "FDWR"} else None


def _signed(element: _Element) -> int:
    amount = element.find("{*}Amt")
    currency = None if amount is None else amount.get("Ccy")
    sign = {"CRDT": 1, "DBIT": -1}.get(_text(element, "CdtDbtInd") or "")
    if amount is None or sign is None:
        raise ValueError("it has no amount, or no direction")
    if currency != "USD":
        raise ValueError(f"its currency is {(currency or 'missing')[:10]}")
    return sign * _scaled(amount.text, _CENTS)


def _scaled(text: str | None, scale: int) -> int:
    text = (text or "").strip()
    scaled = Decimal(text) * scale if _AMOUNT.fullmatch(text) else Decimal("0.5")
    if scaled != int(scaled):
        raise ValueError(f"{text[:35]!r} is no amount")
    return int(scaled)


# -- the custodian -----------------------------------------------------------------------


def _read_holdings(element: _Element) -> Statement:
    general = element.find("{*}StmtGnlDtls")
    day = None if general is None else _day(general, "StmtDtTm")
    read, odd = _read_each(element.iter("{*}BalForAcct", "{*}BalForSubAcct"), _read_balance)
    units = defaultdict[str, int](int)
    for cusip, held in read:
        units[cusip] += held
    return Statement(
        source=Source.CUSTODIAN,
        account=_text(element, "SfkpgAcct/Id") or "",
        day=day or _refuse("StmtGnlDtls/StmtDtTm", "is no date"),
        units=dict(units),
        odd=tuple(odd),
    )


def _read_balance(element: _Element, line_no: int) -> tuple[str, int]:
    del line_no
    isin = _text(element, "FinInstrmId/ISIN") or ""
    other = [
        _text(each, "Id") or ""
        for each in element.iterfind("{*}FinInstrmId/{*}OthrId")
        if _text(each, "Tp/Cd") in {"CUSP", None}
    ]
    cusip = next(filter(is_valid_cusip, [isin[2:11], *other]), None)
    if cusip is None:
        raise ValueError("it names no CUSIP")
    balance = element.find("{*}AggtBal")
    quantity = None if balance is None else balance.find("{*}Qty")
    if balance is None or quantity is None:
        raise ValueError(f"{cusip} has no balance")
    face, unit = (next(quantity.iterfind(f".//{{*}}{name}"), None) for name in ("FaceAmt", "Unit"))
    held, rest = (
        (_scaled(unit.text if unit is not None else None, 1), 0)
        if face is None
        else divmod(_scaled(face.text, 1), _UNIT_DOLLARS)
    )
    if rest:
        raise ValueError(f"the face amount of {cusip} is no multiple of ${_UNIT_DOLLARS}")
    return cusip, -held if _text(balance, "ShrtLngInd") == "SHOR" else held


# -- dealers -----------------------------------------------------------------------------


class _AnyOrder(OpenOrders):
    """A dealer's recap names no orders of ours."""

    @override
    def find(self, side: Side, cusip: str, units: int) -> UUID:
        return UUID(int=0)


def _read_recap(content: bytes, calendars: Calendars) -> Iterator[Statement]:
    """Return a statement per dealer and trade date. Its columns are those of a blotter."""
    try:
        read = read_blotter(content.decode("utf-8"), calendars, _AnyOrder(()))
    except (UnicodeDecodeError, InvalidInput) as wrong:
        reason = "; ".join(each.msg for each in wrong.errors) if isinstance(wrong, InvalidInput) else "is not UTF-8"
        raise _refused("file", reason) from None
    odd = tuple(OddLine(each.line_no, each.problem) for each in read if each.execution is None)
    trades = defaultdict[tuple[str, date], list[tuple[int, Trade]]](list)
    for line_no, new, _ in read:
        if new is not None:
            trade = Trade(new.reference, new.side, new.cusip, new.units, new.price_micros, new.money, new.settles_on)
            trades[new.dealer, et_date(new.executed_at)].append((line_no, trade))
    for nth, ((dealer, day), found) in enumerate(trades.items()):
        # A line that cannot be read names no dealer: it is a break of the first one.
        yield Statement(source=Source.DEALER, account=dealer, day=day, trades=tuple(found), odd=odd if nth == 0 else ())


# -- elements ----------------------------------------------------------------------------


def _read_each(
    elements: Iterator[_Element], read: Callable[[_Element, int], _Line]
) -> tuple[list[_Line], list[OddLine]]:
    lines, odd = list[_Line](), list[OddLine]()
    for line_no, element in enumerate(elements, start=1):
        try:
            lines.append(read(element, line_no))
        except ValueError as wrong:
            odd.append(OddLine(line_no, str(wrong)))
    return lines, odd


def _path(names: str) -> str:
    return "/".join(f"{{*}}{name}" for name in names.split("/"))


def _text(element: _Element, names: str) -> str | None:
    text = element.findtext(_path(names))
    return text.strip() or None if text else None


def _day(element: _Element, name: str, *, is_own: bool = False) -> date | None:
    """Return the date in an element that has a date, or a date and time."""
    text = (_text(element, name) if is_own else _text(element, f"{name}/Dt") or _text(element, f"{name}/DtTm")) or ""
    try:
        day = date.fromisoformat(text[:10])
    except ValueError:
        return None
    return day if 2000 <= day.year < 2100 else None  # noqa: PLR2004 - no calendar is asked about other years


def _whole(read: Callable[[_Element], int], element: _Element) -> int:
    try:
        return read(element)
    except ValueError as wrong:
        raise _refused("Bal", str(wrong)) from None


def _refused(element: str, reason: str) -> InvalidFile:
    return InvalidFile([FedwireMistake(0, element, reason)])


def _refuse(element: str, reason: str) -> date:
    raise _refused(element, reason)
