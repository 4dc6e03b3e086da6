"""Contents of documents, read back from their files: camt, CSV, PDF, API responses and the IRS file."""

import csv
import io
from collections import Counter
from typing import Any, NamedTuple

from lxml import etree
from pypdf import PdfReader
from tests.reports.formats.readers import cents, schema_of

from billfold.reports.downloads import get_file, open_file
from billfold.reports.entries.reader import StatementRange
from billfold.reports.formats.camt import write_camt053
from billfold.reports.requests.renderers import read_file
from billfold.reports.requests.worker import make_reports

SIGNS = {"CRDT": 1, "DBIT": -1}
FORMS = ("1099-INT", "1099-B")


class Account(NamedTuple):
    """A statement of a camt.053: amounts of its entries but gains, the smallest first, and gains by CUSIP."""

    opening: int
    closing: int
    amounts: list[int]
    gains: dict[str, int]


async def read_camt053(bank, pocket, account, periods):
    """Return what the statements of an account say, in the order of their periods; the official schema accepts them."""
    now, found = await bank.now(), []
    for first_day, last_day in periods:
        output = io.BytesIO()
        wanted = StatementRange(pocket.customer_id, pocket.pocket_id, account, first_day, last_day, now)
        await write_camt053(await read_file(bank, [wanted]), output)
        document: Any = etree.fromstring(output.getvalue())
        schema_of("camt.053.001.08").assertValid(document)
        found.append(_account(document.find("{*}BkToCstmrStmt/{*}Stmt")))
    return found


def _account(statement):
    balances = {each.findtext("{*}Tp//{*}Cd"): _amount(each) for each in statement.iterfind("{*}Bal")}
    amounts = []
    gains: Counter[str] = Counter()
    for entry in statement.iterfind("{*}Ntry"):
        if entry.findtext("{*}BkTxCd/{*}Prtry/{*}Cd") == "GAIN_LOSS":
            gains[entry.findtext(".//{*}FinInstrmId/{*}OthrId/{*}Id")] += _amount(entry)
        else:
            amounts.append(_amount(entry))
    return Account(balances["OPBD"], balances["CLBD"], sorted(amounts), dict(gains))


def _amount(element):
    return SIGNS[element.findtext("{*}CdtDbtInd")] * cents(element.findtext("{*}Amt"))


async def read_trades(desk, customer_id, first_day, last_day):
    """Request the trade report of a customer, have it made, download it and return its rows."""
    days = {"date_from": first_day.isoformat(), "date_to": last_day.isoformat()}
    body = {
        "type": "TRADE_REPORT",
        "parameters": {"customer_id": str(customer_id), **days},
        "output_formats": ["CSV"],
    }
    request = await desk.post("/api/v1/report-requests/", body, status=202)
    assert await make_reports(desk.bank) == 1
    shown = await desk.get(f"/api/v1/report-requests/{request['id']}/")
    link = await desk.post(f"/api/v1/reports/{shown['report_id']}/download/", {})
    answer = await desk.client.http.get(link["url"])
    return list(csv.DictReader(io.StringIO(answer.text)))


async def read_confirmation(desk, trade):
    """Return the text of a trade confirmation."""
    path = f"/api/v1/service-accounts/{trade['pocket_id']}/trades/{trade['trade_id']}/confirmation/"
    answer = await desk.client.http.get((await desk.get(path))["url"])
    return text_of(answer.content)


async def read_statement(bank, row):
    """Return the text of a statement or a form as it was stored."""
    file = await get_file(bank.pool, row["customer_id"], row["statement_id"])
    return text_of(b"".join([part async for part in await open_file(bank, file)]))


def text_of(pdf):
    return " ".join(" ".join(page.extract_text() for page in PdfReader(io.BytesIO(pdf)).pages).split())


async def read_earnings(desk, pocket, first_day, last_day):
    """Return the figures of an earnings entry in cents."""
    period = {"period": "range", "date_from": first_day.isoformat(), "date_to": last_day.isoformat()}
    shown = await desk.get(f"/api/v2/pockets/{pocket.pocket_id}/earnings/", period)
    return {name: each["value"] for name, each in shown.items() if isinstance(each, dict)}


class IrsReturns(NamedTuple):
    """The B records of a file for the IRS: amounts by account number; and the totals of its C records."""

    interest: dict[str, int]
    sales: dict[str, tuple[int, int]]
    totals: list[tuple[int, int]]


def read_irs_file(content):
    """Read records by the positions that Publication 1220 prints."""
    records = [content[at : at + 750] for at in range(0, len(content), 750)]
    found, form = IrsReturns({}, {}, []), ""
    for each in records:
        if each[0] == "A":
            form = each[25]
        elif each[0] == "B":
            account, amounts = each[20:40].strip(), (int(each[66:78]), int(each[78:90]))
            assert account not in (found.interest if form == "6" else found.sales)
            if form == "6":
                found.interest[account] = amounts[1]
            else:
                found.sales[account] = amounts
        elif each[0] == "C":
            found.totals.append((int(each[33:51]), int(each[51:69])))
    return found
