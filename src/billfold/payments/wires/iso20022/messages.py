"""XML layouts: a table per message, in the order of its schema.

Sources: ISO 20022 message definitions, Fedwire Funds Service release of 2025.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import date
from typing import NamedTuple

from lxml import etree

from billfold.accounts.transactions.settlement import SettledDocument
from billfold.payments.wires.iso20022 import types
from billfold.payments.wires.iso20022.xml_fields import (
    CHARGES,
    CLEARING_MEMBER,
    CLEARING_SYSTEM,
    DAY,
    INSTANT,
    INSTRUCTED_AMOUNT,
    MONEY,
    TEXT,
    Element,
    ElementCodec,
    ElementMapping,
    constant,
    write_rows,
)

_AMOUNT = re.compile(r"[0-9]{1,13}(?:\.[0-9]{1,5})?")
_CURRENCY = re.compile(r"[A-Z]{3}")
_NUMBER = 35
_DOCUMENT = (
    ElementMapping("RfrdDocInf/Tp/CdOrPrtry/Cd", "type", TEXT),
    ElementMapping("RfrdDocInf/Nb", "number", TEXT),
    ElementMapping("RfrdDocInf/RltdDt", "date", TEXT),
    ElementMapping("RfrdDocAmt/RmtdAmt", "amount", TEXT),
    ElementMapping("CdtrRefInf/Ref", "reference", TEXT),
    ElementMapping("AddtlRmtInf", "information", TEXT),
)


def _read_lines(first: Element) -> str | None:
    """Return all lines after the first one; None if there are none."""
    return "\n".join(filter(None, map(_text, _siblings(first)))) or None


def _write_lines(first: Element, text: str) -> None:
    for element, line in zip(_repeat(first, len(lines := text.splitlines())), lines, strict=True):
        element.text = line


def _read_documents(first: Element) -> tuple[SettledDocument, ...] | None:
    found = (document for block in _siblings(first) for document in _documents_in(block))
    return tuple(each for each in found if each != SettledDocument()) or None


def _documents_in(block: Element) -> Iterator[SettledDocument]:
    """Yield the documents of a block. Fields for the whole block are in the first document."""
    amount = block.find("{*}RfrdDocAmt/{*}RmtdAmt")
    value, currency = ("", "") if amount is None else (_text(amount), amount.get("Ccy", ""))
    is_amount = _AMOUNT.fullmatch(value) and _CURRENCY.fullmatch(currency)
    first = {
        "amount": value if is_amount else None,
        "currency": currency if is_amount else None,
        "reference": _text(block.find("{*}CdtrRefInf/{*}Ref"))[:_NUMBER] or None,
        "information": " ".join(filter(None, map(_text, block.findall("{*}AddtlRmtInf")))) or None,
    }
    for named in block.findall("{*}RfrdDocInf") or [block]:
        kind = named.find("{*}Tp/{*}CdOrPrtry/{*}Cd")
        yield SettledDocument(
            type=_text(named.find("{*}Tp/{*}CdOrPrtry/{*}Prtry") if kind is None else kind)[:_NUMBER] or None,
            number=_text(named.find("{*}Nb"))[:_NUMBER] or None,
            date=_day(_text(named.find("{*}RltdDt"))),
            **first,
        )
        first = {}


def _write_documents(first: Element, documents: Sequence[SettledDocument]) -> None:
    for block, document in zip(_repeat(first, len(documents)), documents, strict=True):
        write_rows(block, _DOCUMENT, document)
        amount = block.find("{*}RfrdDocAmt/{*}RmtdAmt")
        if amount is not None:
            amount.set("Ccy", document.currency or "USD")


def _repeat(first: Element, count: int) -> list[Element]:
    """Return an element and further ones of the same name, `count` in total."""
    parent = first.getparent()
    assert parent is not None
    return [first, *(etree.SubElement(parent, first.tag) for _ in range(count - 1))]


def _siblings(first: Element) -> list[Element]:
    parent = first.getparent()
    return [first] if parent is None else parent.findall(str(first.tag))


def _text(element: Element | None) -> str:
    return "" if element is None else (element.text or "").strip()


def _day(text: str) -> str | None:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        return None


LINES = ElementCodec(_write_lines, _read_lines)
DOCUMENTS = ElementCodec(_write_documents, _read_documents)


Table = tuple[ElementMapping, ...]
_MARKET_PRACTICE = "www2.swift.com/mystandards/#/group/Federal_Reserve_Financial_Services/Fedwire_Funds_Service"


class Layout(NamedTuple):
    """The layout of a message type, and its element in the envelope."""

    envelope: str
    element: str
    rows: Table


_ADDRESS: Table = (
    ElementMapping("StrtNm", "street", TEXT),
    ElementMapping("BldgNb", "building", TEXT),
    ElementMapping("PstCd", "post_code", TEXT),
    ElementMapping("TwnNm", "town", TEXT),
    ElementMapping("CtrySubDvsn", "subdivision", TEXT),
    ElementMapping("Ctry", "country", TEXT),
)
_PARTY: Table = (ElementMapping("Nm", "name", TEXT), ElementMapping("PstlAdr", "address", _ADDRESS))
_ACCOUNT: Table = (ElementMapping("Id/IBAN", "iban", TEXT), ElementMapping("Id/Othr/Id", "number", TEXT))


def _bank(path: str, field: str) -> Table:
    """Return the table for a bank by routing number, after the code of the clearing system."""
    return (
        ElementMapping(f"{path}/FinInstnId/ClrSysMmbId/ClrSysId/Cd", field, constant("USABA")),
        ElementMapping(f"{path}/FinInstnId/ClrSysMmbId/MmbId", field, TEXT),
    )


_AGENT: Table = (
    ElementMapping("FinInstnId/BICFI", "bic", TEXT),
    ElementMapping("FinInstnId/ClrSysMmbId/ClrSysId/Cd", "routing_number", CLEARING_SYSTEM),
    ElementMapping("FinInstnId/ClrSysMmbId/MmbId", "routing_number", CLEARING_MEMBER),
    ElementMapping("FinInstnId/Nm", "name", TEXT),
    ElementMapping("FinInstnId/PstlAdr", "address", _ADDRESS),
)
_ORIGINAL: Table = (
    ElementMapping("OrgnlGrpInf/OrgnlMsgId", "message_id", TEXT),
    ElementMapping("OrgnlGrpInf/OrgnlMsgNmId", "message_name", TEXT),
    ElementMapping("OrgnlGrpInf/OrgnlCreDtTm", "created_at", INSTANT),
    ElementMapping("OrgnlEndToEndId", "end_to_end_id", TEXT),
    ElementMapping("OrgnlUETR", "uetr", TEXT),
)
_ORIGINAL_WITHOUT_END_TO_END = tuple(row for row in _ORIGINAL if row.field != "end_to_end_id")
"""The original of a status: the service names it by message id and UETR only."""
_GROUP: Table = (
    ElementMapping("GrpHdr/MsgId", "message_id", TEXT),
    ElementMapping("GrpHdr/CreDtTm", "created_at", INSTANT),
    ElementMapping("GrpHdr/NbOfTxs", None, constant("1")),
    ElementMapping("GrpHdr/SttlmInf/SttlmMtd", None, constant("CLRG")),
    ElementMapping("GrpHdr/SttlmInf/ClrSys/Cd", None, constant("FDW")),
)
_ASSIGNMENT: Table = (
    ElementMapping("Assgnmt/Id", "message_id", TEXT),
    *_bank("Assgnmt/Assgnr/Agt", "sender"),
    *_bank("Assgnmt/Assgne/Agt", "receiver"),
    ElementMapping("Assgnmt/CreDtTm", "created_at", INSTANT),
)

HEADER: Table = (
    ElementMapping("Fr/FIId/FinInstnId/ClrSysMmbId/MmbId", "sender", TEXT),
    ElementMapping("To/FIId/FinInstnId/ClrSysMmbId/MmbId", "receiver", TEXT),
    ElementMapping("BizMsgIdr", "business_id", TEXT),
    ElementMapping("MsgDefIdr", "message_name", TEXT),
    ElementMapping("BizSvc", "environment", TEXT),
    ElementMapping("MktPrctc/Regy", None, constant(_MARKET_PRACTICE)),
    ElementMapping("MktPrctc/Id", None, constant("frb.fedwire.01")),
    ElementMapping("CreDt", "created_at", INSTANT),
)
_CREDIT_TRANSFER: Table = (
    *_GROUP,
    ElementMapping("CdtTrfTxInf/PmtId/InstrId", "instruction_id", TEXT),
    ElementMapping("CdtTrfTxInf/PmtId/EndToEndId", "end_to_end_id", TEXT),
    ElementMapping("CdtTrfTxInf/PmtId/UETR", "uetr", TEXT),
    ElementMapping("CdtTrfTxInf/PmtTpInf/LclInstrm/Prtry", "kind", TEXT),
    ElementMapping("CdtTrfTxInf/IntrBkSttlmAmt", "amount", MONEY),
    ElementMapping("CdtTrfTxInf/IntrBkSttlmDt", "settles_on", DAY),
    ElementMapping("CdtTrfTxInf/InstdAmt", "amount", INSTRUCTED_AMOUNT),
    ElementMapping("CdtTrfTxInf/ChrgBr", "charges", TEXT),
    *_bank("CdtTrfTxInf/InstgAgt", "sender"),
    *_bank("CdtTrfTxInf/InstdAgt", "receiver"),
    ElementMapping("CdtTrfTxInf/IntrmyAgt1", "intermediary", _AGENT),
    ElementMapping("CdtTrfTxInf/Dbtr", "debtor", _PARTY),
    ElementMapping("CdtTrfTxInf/DbtrAcct", "debtor_account", _ACCOUNT),
    ElementMapping("CdtTrfTxInf/DbtrAgt", "debtor_agent", _AGENT),
    ElementMapping("CdtTrfTxInf/CdtrAgt", "creditor_agent", _AGENT),
    ElementMapping("CdtTrfTxInf/Cdtr", "creditor", _PARTY),
    ElementMapping("CdtTrfTxInf/CdtrAcct", "creditor_account", _ACCOUNT),
    ElementMapping("CdtTrfTxInf/InstrForCdtrAgt/InstrInf", "instructions", TEXT),
    ElementMapping("CdtTrfTxInf/RmtInf/Ustrd", "remittance", LINES),
    ElementMapping("CdtTrfTxInf/RmtInf/Strd", "documents", DOCUMENTS),
)
_PAYMENT_RETURN: Table = (
    *_GROUP,
    ElementMapping("TxInf/RtrId", "return_id", TEXT),
    ElementMapping("TxInf", "original", _ORIGINAL),
    ElementMapping("TxInf/OrgnlIntrBkSttlmAmt", "original_amount", MONEY),
    ElementMapping("TxInf/RtrdIntrBkSttlmAmt", "amount", MONEY),
    ElementMapping("TxInf/IntrBkSttlmDt", "settles_on", DAY),
    ElementMapping("TxInf/RtrdInstdAmt", "amount", INSTRUCTED_AMOUNT),
    ElementMapping("TxInf/ChrgsInf/Amt", "charges", CHARGES),
    ElementMapping("TxInf/ChrgsInf/Agt", "charged_by", _AGENT),
    *_bank("TxInf/InstgAgt", "sender"),
    *_bank("TxInf/InstdAgt", "receiver"),
    ElementMapping("TxInf/RtrChain/Dbtr/Pty", "debtor", _PARTY),
    ElementMapping("TxInf/RtrChain/Cdtr/Pty", "creditor", _PARTY),
    ElementMapping("TxInf/RtrRsnInf/Rsn/Cd", "reason", TEXT),
    ElementMapping("TxInf/RtrRsnInf/AddtlInf", "information", TEXT),
    ElementMapping("TxInf/OrgnlTxRef/PmtTpInf/LclInstrm/Prtry", "kind", TEXT),
)
_PAYMENT_STATUS: Table = (
    ElementMapping("GrpHdr/MsgId", "message_id", TEXT),
    ElementMapping("GrpHdr/CreDtTm", "created_at", INSTANT),
    ElementMapping("TxInfAndSts", "original", _ORIGINAL_WITHOUT_END_TO_END),
    ElementMapping("TxInfAndSts/TxSts", "status", TEXT),
    ElementMapping("TxInfAndSts/StsRsnInf/Rsn/Prtry", "reason", TEXT),
    ElementMapping("TxInfAndSts/StsRsnInf/AddtlInf", "information", TEXT),
    ElementMapping("TxInfAndSts/InstgAgt/FinInstnId/ClrSysMmbId/ClrSysId/Cd", None, constant("USABA")),
    ElementMapping("TxInfAndSts/InstgAgt/FinInstnId/ClrSysMmbId/MmbId", None, constant(types.FEDWIRE_ROUTING_NUMBER)),
    *_bank("TxInfAndSts/InstdAgt", "receiver"),
)
_RETURN_REQUEST: Table = (
    *_ASSIGNMENT,
    ElementMapping("Case/Id", "case_id", TEXT),
    ElementMapping("Case/Cretr/Pty", "creator", _PARTY),
    ElementMapping("Undrlyg/TxInf", "original", _ORIGINAL),
    ElementMapping("Undrlyg/TxInf/OrgnlIntrBkSttlmAmt", "amount", MONEY),
    ElementMapping("Undrlyg/TxInf/OrgnlIntrBkSttlmDt", "settled_on", DAY),
    ElementMapping("Undrlyg/TxInf/CxlRsnInf/Rsn/Cd", "reason", TEXT),
    ElementMapping("Undrlyg/TxInf/CxlRsnInf/AddtlInf", "information", TEXT),
)
_RETURN_ANSWER: Table = (
    *_ASSIGNMENT,
    ElementMapping("RslvdCase/Id", "case_id", TEXT),
    ElementMapping("RslvdCase/Cretr/Pty", "creator", _PARTY),
    ElementMapping("Sts/Conf", "verdict", TEXT),
    ElementMapping("CxlDtls/TxInfAndSts", "original", _ORIGINAL),
    ElementMapping("CxlDtls/TxInfAndSts/CxlStsRsnInf/Rsn/Cd", "reason", TEXT),
    ElementMapping("CxlDtls/TxInfAndSts/CxlStsRsnInf/AddtlInf", "information", TEXT),
)

LAYOUTS: dict[type[types.Message], Layout] = {
    types.CreditTransfer: Layout("FedwireFundsCustomerCreditTransfer", "FIToFICstmrCdtTrf", _CREDIT_TRANSFER),
    types.PaymentReturn: Layout("FedwireFundsPaymentReturn", "PmtRtr", _PAYMENT_RETURN),
    types.PaymentStatus: Layout("FedwireFundsPaymentStatus", "FIToFIPmtStsRpt", _PAYMENT_STATUS),
    types.ReturnRequest: Layout("FedwireFundsReturnRequest", "FIToFIPmtCxlReq", _RETURN_REQUEST),
    types.ReturnRequestResponse: Layout("FedwireFundsReturnRequestResponse", "RsltnOfInvstgtn", _RETURN_ANSWER),
}
