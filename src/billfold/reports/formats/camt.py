"""camt.053, camt.052 and camt.054 in their versions 001.08: statement, report and notification of ISO 20022."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import IO, NamedTuple

from billfold.accounts.transactions.remittance import SettledDocument
from billfold.reports.entries.types import Account, AccountEntry, AccountStatement, AccountType, Security
from billfold.reports.formats.files import (
    NOTHING,
    StatementFile,
    Xml,
    codes_of,
    cut,
    decimal,
    node,
    notification_reference,
    plain,
    statement_reference,
)

_REFERENCE, _NAME, _POCKET_NAME, _REMITTANCE, _INFORMATION = 35, 140, 70, 140, 500
_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'
_DOCUMENT_TYPES = frozenset(
    (
        "MSIN", "CNFA", "DNFA", "CINV", "CREN", "DEBN", "HIRI", "SBIN",
        "CMCN", "SOAC", "DISP", "BOLD", "VCHR", "AROI", "TSUT", "PUOR",
    )
)  # fmt: skip
"""The codes of ISO 20022 for the type of a document; what is none stands as it is."""
_INFORMATION_LINES = 3
_ONE_SECOND = timedelta(seconds=1)


class _Message(NamedTuple):
    """Names of the elements of a message, and whether it shows balances."""

    version: str
    root: str
    statement: str
    has_balances: bool = True


_CAMT052 = _Message("camt.052.001.08", "BkToCstmrAcctRpt", "Rpt")
_CAMT053 = _Message("camt.053.001.08", "BkToCstmrStmt", "Stmt")
_CAMT054 = _Message("camt.054.001.08", "BkToCstmrDbtCdtNtfctn", "Ntfctn", has_balances=False)


async def write_camt052(file: StatementFile, output: IO[bytes]) -> None:
    """Write account reports: what has happened so far, whether the day is over or not."""
    await _write(_CAMT052, file, output)


async def write_camt053(file: StatementFile, output: IO[bytes]) -> None:
    """Write statements."""
    await _write(_CAMT053, file, output)


async def write_camt054(file: StatementFile, output: IO[bytes]) -> None:
    """Write notifications of credits and debits: the same entries without balances."""
    await _write(_CAMT054, file, output)


async def _write(message: _Message, file: StatementFile, output: IO[bytes]) -> None:
    def write(*parts: str) -> None:
        output.write("".join(parts).encode())

    namespace = f"urn:iso:std:iso:20022:tech:xsd:{message.version}"
    write(_DECLARATION, f'<Document xmlns="{namespace}"><{message.root}>', _group_header(file))
    for statement in file.statements:
        write(f"<{message.statement}>", *_statement_parts(message, statement))
        async for page in file.entries(statement):
            write(*(_entry(entry, statement.account.currency) for entry in page))
        write(f"</{message.statement}>")
    write(f"</{message.root}></Document>\n")


def _group_header(file: StatementFile) -> Xml:
    pages = node("MsgPgntn", node("PgNb", "1"), node("LastPgInd", "true"))
    return node("GrpHdr", node("MsgId", file.reference), node("CreDtTm", _instant(file.made_at)), pages)


def _statement_parts(message: _Message, statement: AccountStatement) -> Iterator[Xml]:
    period, totals = statement.period, statement.totals
    if message.has_balances:
        yield node("Id", statement_reference(statement))
        yield node("ElctrncSeqNb", f"{period.last_day:%j}".lstrip("0"))
    else:
        yield node("Id", notification_reference(statement))
        yield node("ElctrncSeqNb", str(statement.position.entry_no))
    yield node("CreDtTm", _instant(period.ends_at))
    last_second = period.ends_at - _ONE_SECOND if period.is_closed else period.ends_at
    yield node("FrToDt", node("FrDtTm", _instant(period.starts_at)), node("ToDtTm", _instant(last_second)))
    yield _account(statement.account)
    if message.has_balances:
        closing_code = "CLBD" if period.is_closed else "ITBD"
        yield _balance("OPBD", statement.opening.value, period.first_day)
        yield _balance(closing_code, statement.closing.value, period.last_day)
    yield node(
        "TxsSummry",
        node(
            "TtlNtries",
            node("NbOfNtries", str(totals.credits + totals.debits)),
            node("Sum", decimal(totals.credited + totals.debited)),
            node("TtlNetNtry", node("Amt", decimal(totals.net)), _sign(totals.net)),
        ),
        node("TtlCdtNtries", node("NbOfNtries", str(totals.credits)), node("Sum", decimal(totals.credited))),
        node("TtlDbtNtries", node("NbOfNtries", str(totals.debits)), node("Sum", decimal(totals.debited))),
    )


def _account(account: Account) -> Xml:
    scheme = node("SchmeNm", node("Prtry", "BBAN"))
    kind = node("Cd", "CACC") if account.type == AccountType.BANK else node("Prtry", account.type)
    member = node("ClrSysMmbId", node("ClrSysId", node("Cd", "USABA")), node("MmbId", account.routing_number))
    return node(
        "Acct",
        node("Id", node("Othr", node("Id", account.number), scheme)),
        node("Tp", kind),
        node("Ccy", account.currency),
        node("Nm", cut(account.name, _POCKET_NAME)),
        node("Ownr", node("Nm", cut(account.owner, _NAME))),
        node("Svcr", node("FinInstnId", member, node("Nm", cut(account.bank, _NAME)))),
    )


def _balance(code: str, cents: int, day: date) -> Xml:
    kind = node("Tp", node("CdOrPrtry", node("Cd", code)))
    return node("Bal", kind, _amount(cents), _sign(cents), node("Dt", node("Dt", day.isoformat())))


def _entry(entry: AccountEntry, currency: str) -> Xml:
    code = codes_of(entry).camt[entry.amount < 0]
    domain, family, sub_family = code.split("/")
    return node(
        "Ntry",
        node("NtryRef", entry.reference),
        _amount(entry.amount, currency),
        _sign(entry.amount),
        node("RvslInd", "true" if entry.is_reversal else ""),
        node("Sts", node("Cd", "BOOK")),
        node("BookgDt", node("Dt", entry.booked_on.isoformat())),
        node("ValDt", node("Dt", entry.value_on.isoformat())),
        node("AcctSvcrRef", entry.reference),
        node(
            "BkTxCd",
            node("Domn", node("Cd", domain), node("Fmly", node("Cd", family), node("SubFmlyCd", sub_family))),
            node("Prtry", node("Cd", entry.kind)),
        ),
        node("NtryDtls", _details(entry)),
        node("AddtlNtryInf", cut(": ".join(filter(None, (entry.title, entry.note))), _INFORMATION)),
    )


def _details(entry: AccountEntry) -> Xml:
    names = entry.references
    party = node("Pty", node("Nm", cut(entry.counterparty or "", _NAME)))
    return node(
        "TxDtls",
        node(
            "Refs",
            node("AcctSvcrRef", entry.transaction_id.hex if entry.transaction_id else entry.reference),
            _reference("InstrId", names.instruction),
            _reference("EndToEndId", names.end_to_end),
            node("UETR", names.uetr or ""),
            _reference("TxId", names.transaction),
            _reference("ClrSysRef", names.clearing),
        ),
        node("RltdPties", node("Dbtr" if entry.amount > 0 else "Cdtr", party)),
        node("RmtInf", *_texts("Ustrd", *entry.remittance), *map(_document, entry.documents)),
        node("RltdQties", node("Qty", node("Unit", "" if entry.units is None else str(entry.units)))),
        _security(entry.security) if entry.security else NOTHING,
    )


def _texts(name: str, *lines: str) -> list[Xml]:
    """Return lines as elements of the length that remittance has."""
    return [
        node(name, line[at : at + _REMITTANCE]) for line in map(plain, lines) for at in range(0, len(line), _REMITTANCE)
    ]


def _document(document: SettledDocument) -> Xml:
    kind = cut(document.type or "", _REFERENCE)
    named = node("CdOrPrtry", node("Cd" if kind in _DOCUMENT_TYPES else "Prtry", kind))
    amount = f'<RmtdAmt Ccy="{document.currency}">{document.amount}</RmtdAmt>' if document.amount else ""
    return node(
        "Strd",
        node("RfrdDocInf", node("Tp", named), _reference("Nb", document.number), node("RltdDt", document.date or "")),
        node("RfrdDocAmt", Xml(amount)),
        node("CdtrRefInf", _reference("Ref", document.reference)),
        *_texts("AddtlRmtInf", document.information or "")[:_INFORMATION_LINES],
    )


def _reference(name: str, text: str | None) -> Xml:
    return node(name, cut(text or "", _REFERENCE))


def _security(security: Security) -> Xml:
    other = node("OthrId", node("Id", security.cusip), node("Tp", node("Cd", "CUSP")))
    return node("FinInstrmId", node("ISIN", security.isin), other)


def _amount(cents: int, currency: str = "USD") -> Xml:
    return Xml(f'<Amt Ccy="{currency}">{decimal(cents)}</Amt>')


def _sign(cents: int) -> Xml:
    return node("CdtDbtInd", "CRDT" if cents >= 0 else "DBIT")


def _instant(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")
