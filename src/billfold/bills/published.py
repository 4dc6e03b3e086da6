"""Recognizes a file of market data by its contents: rates as CSV or the Treasury's XML, auctions, dealers' quotes."""

import csv
import re
from typing import Final, NamedTuple

from lxml import etree

from billfold.bills import market_data
from billfold.bills.types import Auction, DailyRates, TwoSidedQuote
from billfold.platform.errors import FieldError, InvalidInput

_TERM: Final = re.compile(r"ROUND_B1_(CLOSE|YIELD)_(\d{1,3})WK_2")
_COLUMNS: Final = {"CLOSE": "BANK DISCOUNT", "YIELD": "COUPON EQUIVALENT"}
_DAY: Final = "INDEX_DATE"
_PAR_YIELD: Final = "1 Mo"


class Published(NamedTuple):
    """The contents of a file, and the lines of it that are refused."""

    rates: tuple[DailyRates, ...] = ()
    auctions: tuple[Auction, ...] = ()
    quotes: tuple[TwoSidedQuote, ...] = ()
    refused: tuple[FieldError, ...] = ()


def read_published(content: bytes) -> Published:
    """Return what a file contains. Raises InvalidInput if nothing of it can be read."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInput.at("file", msg="is not UTF-8") from None
    refused: market_data.Refused = []
    if text.lstrip().startswith("<"):
        text = _csv_of_xml(text.encode())
    header = {cell.strip() for cell in next(csv.reader(text.splitlines()[:1]), [])}
    if "quoted_at" in header:
        return Published(quotes=market_data.parse_quotes(text, refused), refused=tuple(refused))
    if "cusip" in header:
        return Published(auctions=market_data.parse_auctions(text, refused), refused=tuple(refused))
    if _PAR_YIELD in header:
        raise InvalidInput.at("file", msg="has par yields, not bill rates: fetch daily_treasury_bill_rates")
    return Published(market_data.parse_daily_rates(text, refused), refused=tuple(refused))


def _csv_of_xml(content: bytes) -> str:
    """Return the Treasury's feed `daily_treasury_bill_rates` as its CSV file. No entity is expanded."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    try:
        root = etree.fromstring(content, parser)
    except etree.XMLSyntaxError as wrong:
        raise InvalidInput.at("line", wrong.lineno or 1, msg=f"is not well-formed XML: {wrong.msg}") from None
    if root.getroottree().docinfo.internalDTD is not None:
        raise InvalidInput.at("file", msg="has a document type declaration")
    entries = [
        {str(etree.QName(each).localname): each.text or "" for each in properties}
        for properties in root.iterfind(".//{*}properties")
    ]
    entries = [each for each in entries if any(value and _TERM.fullmatch(name) for name, value in each.items())]
    terms = sorted({name for each in entries for name in each if _TERM.fullmatch(name)})
    lines = [["Date", *(f"{match[2]} WEEKS {_COLUMNS[match[1]]}" for match in map(_TERM.fullmatch, terms) if match)]]
    lines += [[each.get(_DAY, ""), *(each.get(name, "") for name in terms)] for each in entries]
    return "\n".join(",".join(cell.replace(",", " ").strip() for cell in line) for line in lines)
