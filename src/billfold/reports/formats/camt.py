"""camt.053, camt.052 and camt.054, version 001.08: statement, report and notification of ISO 20022."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import IO, NamedTuple

from billfold.accounts.transactions.settlement import SettledDocument
from billfold.reports.entries.types import Account, AccountEntry, AccountStatement, AccountType, Security
from billfold.reports.formats import files

_REFERENCE, _NAME, _POCKET_NAME, _REMITTANCE, _INFORMATION = 35, 140, 70, 140, 500
_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'
_DOCUMENT_TYPES = frozenset(
    (
        "MSIN", "CNFA", "DNFA", "CINV", "CREN", "DEBN", "HIRI", "SBIN",
        "CMCN", "SOAC", "DISP", "BOLD", "VCHR", "AROI", "TSUT", "PUOR",
    )
)  # fmt: skip
"""The document type codes of ISO 20022; any other type is written as text."""
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


async def write_camt052(file: files.StatementFile, output: IO[bytes]) -> None:
    """Write account reports: everything so far, whether the day is over or not."""
    await _write(_CAMT052, file, output)


async def write_camt053(file: files.StatementFile, output: IO[bytes]) -> None:
    """Write statements."""
    await _write(_CAMT053, file, output)


async def write_camt054(file: files.StatementFile, output: IO[bytes]) -> None:
    """Write debit and credit notifications: the same entries without balances."""
    await _write(_CAMT054, file, output)


async def _write(message: _Message, file: files.StatementFile, output: IO[bytes]) -> None:
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


def _group_header(file: files.StatementFile) -> files.Xml:
    pages = files.node("MsgPgntn", files.node("PgNb", "1"), files.node("LastPgInd", "true"))
    return files.node(
        "GrpHdr", files.node("MsgId", file.reference), files.node("CreDtTm", _instant(file.made_at)), pages
    )


def _statement_parts(message: _Message, statement: AccountStatement) -> Iterator[files.Xml]:
    period, totals = statement.period, statement.totals
    if message.has_balances:
        yield files.node("Id", files.statement_reference(statement))
        yield files.node("ElctrncSeqNb", f"{period.last_day:%j}".lstrip("0"))
    else:
        yield files.node("Id", files.notification_reference(statement))
        yield files.node("ElctrncSeqNb", str(statement.position.entry_no))
    yield files.node("CreDtTm", _instant(period.ends_at))
    last_second = period.ends_at - _ONE_SECOND if period.is_closed else period.ends_at
    yield files.node(
        "FrToDt", files.node("FrDtTm", _instant(period.starts_at)), files.node("ToDtTm", _instant(last_second))
    )
    yield _account(statement.account)
    if message.has_balances:
        closing_code = "CLBD" if period.is_closed else "ITBD"
        yield _balance("OPBD", statement.opening.value, period.first_day)
        yield _balance(closing_code, statement.closing.value, period.last_day)
    yield files.node(
        "TxsSummry",
        files.node(
            "TtlNtries",
            files.node("NbOfNtries", str(totals.credits + totals.debits)),
            files.node("Sum", files.decimal(totals.credited + totals.debited)),
            files.node("TtlNetNtry", files.node("Amt", files.decimal(totals.net)), _sign(totals.net)),
        ),
        files.node(
            "TtlCdtNtries",
            files.node("NbOfNtries", str(totals.credits)),
            files.node("Sum", files.decimal(totals.credited)),
        ),
        files.node(
            "TtlDbtNtries",
            files.node("NbOfNtries", str(totals.debits)),
            files.node("Sum", files.decimal(totals.debited)),
        ),
    )


def _account(account: Account) -> files.Xml:
    scheme = files.node("SchmeNm", files.node("Prtry", "BBAN"))
    kind = files.node("Cd", "CACC") if account.type == AccountType.BANK else files.node("Prtry", account.type)
    member = files.node(
        "ClrSysMmbId", files.node("ClrSysId", files.node("Cd", "USABA")), files.node("MmbId", account.routing_number)
    )
    return files.node(
        "Acct",
        files.node("Id", files.node("Othr", files.node("Id", account.number), scheme)),
        files.node("Tp", kind),
        files.node("Ccy", account.currency),
        files.node("Nm", files.cut(account.name, _POCKET_NAME)),
        files.node("Ownr", files.node("Nm", files.cut(account.owner, _NAME))),
        files.node("Svcr", files.node("FinInstnId", member, files.node("Nm", files.cut(account.bank, _NAME)))),
    )


def _balance(code: str, cents: int, day: date) -> files.Xml:
    kind = files.node("Tp", files.node("CdOrPrtry", files.node("Cd", code)))
    return files.node("Bal", kind, _amount(cents), _sign(cents), files.node("Dt", files.node("Dt", day.isoformat())))


def _entry(entry: AccountEntry, currency: str) -> files.Xml:
    code = files.codes_of(entry).camt[entry.amount < 0]
    domain, family, sub_family = code.split("/")
    return files.node(
        "Ntry",
        files.node("NtryRef", entry.reference),
        _amount(entry.amount, currency),
        _sign(entry.amount),
        files.node("RvslInd", "true" if entry.is_reversal else ""),
        files.node("Sts", files.node("Cd", "BOOK")),
        files.node("BookgDt", files.node("Dt", entry.booked_on.isoformat())),
        files.node("ValDt", files.node("Dt", entry.value_on.isoformat())),
        files.node("AcctSvcrRef", entry.reference),
        files.node(
            "BkTxCd",
            files.node(
                "Domn",
                files.node("Cd", domain),
                files.node("Fmly", files.node("Cd", family), files.node("SubFmlyCd", sub_family)),
            ),
            files.node("Prtry", files.node("Cd", entry.kind)),
        ),
        files.node("NtryDtls", _details(entry)),
        files.node("AddtlNtryInf", files.cut(": ".join(filter(None, (entry.title, entry.note))), _INFORMATION)),
    )


def _details(entry: AccountEntry) -> files.Xml:
    names = entry.references
    party = files.node("Pty", files.node("Nm", files.cut(entry.counterparty or "", _NAME)))
    return files.node(
        "TxDtls",
        files.node(
            "Refs",
            files.node("AcctSvcrRef", entry.transaction_id.hex if entry.transaction_id else entry.reference),
            _reference("InstrId", names.instruction),
            _reference("EndToEndId", names.end_to_end),
            files.node("UETR", names.uetr or ""),
            _reference("TxId", names.transaction),
            _reference("ClrSysRef", names.clearing),
        ),
        files.node("RltdPties", files.node("Dbtr" if entry.amount > 0 else "Cdtr", party)),
        files.node("RmtInf", *_texts("Ustrd", *entry.remittance), *map(_document, entry.documents)),
        files.node("RltdQties", files.node("Qty", files.node("Unit", "" if entry.units is None else str(entry.units)))),
        _security(entry.security) if entry.security else files.NOTHING,
    )


def _texts(name: str, *lines: str) -> list[files.Xml]:
    """Return lines as elements of the maximum length of remittance."""
    return [
        files.node(name, line[at : at + _REMITTANCE])
        for line in map(files.plain, lines)
        for at in range(0, len(line), _REMITTANCE)
    ]


def _document(document: SettledDocument) -> files.Xml:
    kind = files.cut(document.type or "", _REFERENCE)
    named = files.node("CdOrPrtry", files.node("Cd" if kind in _DOCUMENT_TYPES else "Prtry", kind))
    amount = f'<RmtdAmt Ccy="{document.currency}">{document.amount}</RmtdAmt>' if document.amount else ""
    return files.node(
        "Strd",
        files.node(
            "RfrdDocInf",
            files.node("Tp", named),
            _reference("Nb", document.number),
            files.node("RltdDt", document.date or ""),
        ),
        files.node("RfrdDocAmt", files.Xml(amount)),
        files.node("CdtrRefInf", _reference("Ref", document.reference)),
        *_texts("AddtlRmtInf", document.information or "")[:_INFORMATION_LINES],
    )


def _reference(name: str, text: str | None) -> files.Xml:
    return files.node(name, files.cut(text or "", _REFERENCE))


def _security(security: Security) -> files.Xml:
    other = files.node("OthrId", files.node("Id", security.cusip), files.node("Tp", files.node("Cd", "CUSP")))
    return files.node("FinInstrmId", files.node("ISIN", security.isin), other)


def _amount(cents: int, currency: str = "USD") -> files.Xml:
    return files.Xml(f'<Amt Ccy="{currency}">{files.decimal(cents)}</Amt>')


def _sign(cents: int) -> files.Xml:
    return files.node("CdtDbtInd", "CRDT" if cents >= 0 else "DBIT")


def _instant(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")
