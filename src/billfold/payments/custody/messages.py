"""Messages to and from the custodian (ISO 20022, settlement and reconciliation), one document per file or many.

Written: sese.023.001.11, sese.020.001.07. Read in every version of 001: sese.024, sese.025, sese.027. Elements that
are not in a layout are not read.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import msgspec
from lxml import etree

from billfold.payments.files.types import InvalidFile
from billfold.payments.wires.iso20022.envelope import parse_xml
from billfold.payments.wires.iso20022.types import FedwireMistake
from billfold.payments.wires.iso20022.xml_fields import (
    DAY,
    INSTANT,
    MONEY,
    TEXT,
    Element,
    ElementCodec,
    ElementMapping,
    constant,
    mistake_at,
    read_rows,
    repeated_in,
    write_rows,
)
from billfold.platform.dates import et_date

_ISO = "urn:iso:std:iso:20022:tech:xsd:"
_HEADER = "head.001.001.02"
_FACE_OF_A_UNIT = 100
_FACE = re.compile(r"(\d{1,15})(\.0+)?", re.ASCII)
_ISIN = re.compile(r"US([0-9A-Z]{9})[0-9]", re.ASCII)
FEDWIRE_SECURITIES: Final = "FRNYUS33"
"""The place of settlement of Treasury bills: the Fedwire Securities Service."""


class CancellationRequest(msgspec.Struct, frozen=True, kw_only=True, tag="sese.020.001.07"):
    """A request to cancel an instruction: deliver (DELI) or receive (RECE), against payment (APMT) or free (FREE)."""

    tx_id: str
    movement: str
    payment: str
    account: str


class Instruction(CancellationRequest, frozen=True, kw_only=True, tag="sese.023.001.11"):
    """A settlement instruction."""

    trade_id: str | None = None
    traded_on: date | None = None
    settles_on: date
    cusip: str
    units: int
    kind: str
    delivering: "Party | None" = None
    receiving: "Party | None" = None
    money: int | None = None
    credit_or_debit: str | None = None


class Party(msgspec.Struct, frozen=True, kw_only=True):
    """The other side of a settlement: its name, and its account if it is known."""

    depository: str = FEDWIRE_SECURITIES
    name: str
    account: str | None = None


class StatusAdvice(msgspec.Struct, frozen=True, kw_only=True, tag="sese.024.001.12"):
    """The state of an instruction: the field that is there is the state, its text the reason. Others change none."""

    tx_id: str
    rejected: str | None = None
    in_repair: str | None = None
    cancelled: str | None = None
    matched: str | None = None
    unmatched: str | None = None
    pending: str | None = None
    failing: str | None = None
    account: str | None = None


class Confirmation(msgspec.Struct, frozen=True, kw_only=True, tag="sese.025.001.11"):
    """A settlement as it happened. A redemption has no `tx_id`, and the kind CORP or REDM."""

    tx_id: str | None = None
    custodian_id: str | None = None
    movement: str
    payment: str
    pre_confirmation: str | None = None
    settled_on: date | None = None
    settled_at: datetime | None = None
    isin: str | None = None
    cusip: str | None = None
    units: int
    account: str | None = None
    kind: str | None = None
    money: int | None = None
    credit_or_debit: str | None = None

    @property
    def day(self) -> date | None:
        """The effective settlement date, Eastern time."""
        return self.settled_on or (self.settled_at and et_date(self.settled_at))

    @property
    def bill(self) -> str:
        """The CUSIP, also of an ISIN."""
        found = _ISIN.fullmatch(self.isin or "")
        return self.cusip or (found.group(1) if found else self.isin or "")


class CancellationStatus(msgspec.Struct, frozen=True, kw_only=True, tag="sese.027.001.06"):
    """The answer to a cancellation request: the field that is there is the state, its text the reason."""

    tx_id: str
    movement: str | None = None
    payment: str | None = None
    rejected: str | None = None
    denied: str | None = None
    cancelled: str | None = None
    account: str | None = None


Message = Instruction | CancellationRequest | StatusAdvice | Confirmation | CancellationStatus


def _write_status(element: Element, reason: str) -> None:
    """Write a reason: a code and words, nothing for a matching, or that none is given."""
    name, namespace = etree.QName(element).localname, etree.QName(element).namespace
    if reason:
        code, _, words = reason.partition(" ")
        parent = etree.SubElement(element, f"{{{namespace}}}Rsn")
        etree.SubElement(etree.SubElement(parent, f"{{{namespace}}}Cd"), f"{{{namespace}}}Cd").text = code
        if words:
            etree.SubElement(parent, f"{{{namespace}}}AddtlRsnInf").text = words
    elif name != "Mtchd":
        etree.SubElement(element, f"{{{namespace}}}NoSpcfdRsn").text = "NORE"


def _read_status(element: Element) -> str:
    return " ".join(" ".join(str(each) for each in element.itertext()).split())


def _read_face(element: Element) -> int:
    found = _FACE.fullmatch((element.text or "").strip())
    units, rest = divmod(int(found.group(1)), _FACE_OF_A_UNIT) if found else (0, 1)
    if rest:
        reason = f"{(element.text or '').strip()!r} is not a face value in whole bills of ${_FACE_OF_A_UNIT}"
        raise ValueError(reason)
    return units


def _write_face(element: Element, units: int) -> None:
    element.text = str(units * _FACE_OF_A_UNIT)


_STATUS, _UNITS = ElementCodec(_write_status, _read_status), ElementCodec(_write_face, _read_face)
_Rows = tuple[ElementMapping, ...]


def _rows(*rows: tuple[str, str | None, ElementCodec | _Rows]) -> _Rows:
    return tuple(ElementMapping(*each) for each in rows)


_PARTY = _rows(
    ("Dpstry/Id/AnyBIC", "depository", TEXT),
    ("Pty1/Id/NmAndAdr/Nm", "name", TEXT),
    ("Pty1/SfkpgAcct/Id", "account", TEXT),
)
_HEADER_ROWS = _rows(
    ("Fr/FIId/FinInstnId/BICFI", "sender", TEXT),
    ("To/FIId/FinInstnId/BICFI", "receiver", TEXT),
    ("BizMsgIdr", "number", TEXT),
    ("MsgDefIdr", "name", TEXT),
    ("CreDt", "at", INSTANT),
)
_OURS = "AcctOwnrTxId/SctiesSttlmTxId"
_TRANSACTION = (("TxId", "tx_id"), ("SctiesMvmntTp", "movement"), ("Pmt", "payment"))


class Layout(NamedTuple):
    """The element of a message below its document, and its rows in the order of the schema."""

    element: str
    rows: _Rows


LAYOUTS: Final[Mapping[type[msgspec.Struct], Layout]] = {
    Instruction: Layout(
        "SctiesSttlmTxInstr",
        _rows(
            ("TxId", "tx_id", TEXT),
            ("SttlmTpAndAddtlParams/SctiesMvmntTp", "movement", TEXT),
            ("SttlmTpAndAddtlParams/Pmt", "payment", TEXT),
            ("TradDtls/TradId", "trade_id", TEXT),
            ("TradDtls/TradDt/Dt/Dt", "traded_on", DAY),
            ("TradDtls/SttlmDt/Dt/Dt", "settles_on", DAY),
            ("FinInstrmId/OthrId/Id", "cusip", TEXT),
            ("FinInstrmId/OthrId/Tp/Cd", None, constant("CUSP")),
            ("QtyAndAcctDtls/SttlmQty/Qty/FaceAmt", "units", _UNITS),
            ("QtyAndAcctDtls/SfkpgAcct/Id", "account", TEXT),
            ("SttlmParams/SctiesTxTp/Cd", "kind", TEXT),
            ("DlvrgSttlmPties", "delivering", _PARTY),
            ("RcvgSttlmPties", "receiving", _PARTY),
            ("SttlmAmt/Amt", "money", MONEY),
            ("SttlmAmt/CdtDbtInd", "credit_or_debit", TEXT),
        ),
    ),
    CancellationRequest: Layout(
        "SctiesTxCxlReq",
        _rows(*((f"{_OURS}/{path}", name, TEXT) for path, name in _TRANSACTION), ("SfkpgAcct/Id", "account", TEXT)),
    ),
    StatusAdvice: Layout(
        "SctiesSttlmTxStsAdvc",
        _rows(
            ("TxId/AcctOwnrTxId", "tx_id", TEXT),
            ("PrcgSts/Rjctd", "rejected", _STATUS),
            ("PrcgSts/Rpr", "in_repair", _STATUS),
            ("PrcgSts/Canc", "cancelled", _STATUS),
            ("MtchgSts/Mtchd", "matched", _STATUS),
            ("MtchgSts/Umtchd", "unmatched", _STATUS),
            ("SttlmSts/Pdg", "pending", _STATUS),
            ("SttlmSts/Flng", "failing", _STATUS),
            ("TxDtls/SfkpgAcct/Id", "account", TEXT),
        ),
    ),
    Confirmation: Layout(
        "SctiesSttlmTxConf",
        _rows(
            ("TxIdDtls/AcctOwnrTxId", "tx_id", TEXT),
            ("TxIdDtls/AcctSvcrTxId", "custodian_id", TEXT),
            ("TxIdDtls/SctiesMvmntTp", "movement", TEXT),
            ("TxIdDtls/Pmt", "payment", TEXT),
            ("AddtlParams/PreConf", "pre_confirmation", TEXT),
            ("TradDtls/FctvSttlmDt/Dt/Dt", "settled_on", DAY),
            ("TradDtls/FctvSttlmDt/Dt/DtTm", "settled_at", INSTANT),
            ("FinInstrmId/ISIN", "isin", TEXT),
            ("FinInstrmId/OthrId/Id", "cusip", TEXT),
            ("QtyAndAcctDtls/SttldQty/Qty/FaceAmt", "units", _UNITS),
            ("QtyAndAcctDtls/SfkpgAcct/Id", "account", TEXT),
            ("SttlmParams/SctiesTxTp/Cd", "kind", TEXT),
            ("SttldAmt/Amt", "money", MONEY),
            ("SttldAmt/CdtDbtInd", "credit_or_debit", TEXT),
        ),
    ),
    CancellationStatus: Layout(
        "SctiesTxCxlReqStsAdvc",
        _rows(
            *((f"TxId/{_OURS}/{path}", name, TEXT) for path, name in _TRANSACTION),
            ("PrcgSts/Rjctd", "rejected", _STATUS),
            ("PrcgSts/Dnd", "denied", _STATUS),
            ("PrcgSts/Canc", "cancelled", _STATUS),
            ("TxDtls/SfkpgAcct/Id", "account", TEXT),
        ),
    ),
}
_KINDS = {str(kind.__struct_config__.tag)[:12]: kind for kind in LAYOUTS}  # without the version: "sese.025.001"


class ReadMessage(NamedTuple):
    """A message of a file: its line, its number, which derives from its content without a header, and a digest.

    Without a message it has mistakes.
    """

    line: int
    name: str
    number: str
    digest: bytes
    message: Message | None
    mistakes: tuple[FedwireMistake, ...] = ()


class MessageEnds(NamedTuple):
    """The two ends of a message, by BIC, the instant at which it was made, and its number and name."""

    sender: str
    receiver: str
    at: datetime
    number: str = ""
    name: str = ""


def write_messages(messages: Iterable[Message], ends: MessageEnds) -> bytes:
    """Return a file of messages, each with its business application header. Their numbers derive from their content."""
    root = etree.Element("Messages")
    root.text = "\n"
    for message in messages:
        name, layout = str(type(message).__struct_config__.tag), LAYOUTS[type(message)]
        each = etree.SubElement(root, "Message")
        each.tail = "\n"  # one message per line, so that a line identifies a message
        head, document = _in_namespace(each, _HEADER, "AppHdr"), _in_namespace(each, name, "Document")
        write_rows(etree.SubElement(document, f"{{{_ISO}{name}}}{layout.element}"), layout.rows, message)
        write_rows(head, _HEADER_ROWS, ends._replace(number=_digest(document).hex(), name=name))
    return etree.tostring(root, xml_declaration=True, encoding="UTF-8")


def read_messages(raw: bytes) -> list[ReadMessage]:
    """Return the messages of a file: every `Document`, alone or in any wrapper, with the header before it.

    Raises InvalidFile if it is not XML, has a document type, or holds no document.
    """
    root = parse_xml(raw)
    found = list(_read_documents(root))
    if not found:
        raise InvalidFile([mistake_at(root, "holds no ISO 20022 document")])
    return found


def _read_documents(root: Element) -> Iterator[ReadMessage]:
    number = ""
    for element in root.iter("{*}AppHdr", "{*}Document"):
        if etree.QName(element).localname == "AppHdr":
            number = (element.findtext("{*}BizMsgIdr") or "").strip()
            continue
        digest = _digest(element)
        name = (etree.QName(element).namespace or "").removeprefix(_ISO)
        message, mistakes = _read_message(element, name)
        yield ReadMessage(element.sourceline or 0, name, number or digest.hex(), digest, message, tuple(mistakes))
        number = ""


def _read_message(document: Element, name: str) -> tuple[Message | None, list[FedwireMistake]]:
    kind: type[Any] | None = _KINDS.get(name[:12])
    if kind is None:
        return None, [mistake_at(document, f"{name or 'it'} is not read here")]
    layout = LAYOUTS[kind]
    body = document.find(f"{{*}}{layout.element}")
    if body is None or len(document) != 1:
        return None, [mistake_at(document, f"holds not exactly one {layout.element}")]
    fields, mistakes = read_rows(body, layout.rows)
    mistakes += repeated_in(body, layout.rows)
    if not mistakes:
        try:
            return msgspec.convert({"type": str(kind.__struct_config__.tag), **fields}, kind), []
        except msgspec.ValidationError as error:
            mistakes = [mistake_at(body, str(error))]
    return None, mistakes


def _digest(document: Element) -> bytes:
    return blake2b(etree.tostring(document, method="c14n"), digest_size=16).digest()


def _in_namespace(parent: Element, name: str, element: str) -> Element:
    namespace = f"{_ISO}{name}"
    made: Element = etree.SubElement(parent, f"{{{namespace}}}{element}", nsmap={None: namespace})
    return made
