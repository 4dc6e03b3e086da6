"""Where everything stands: a table per message, from top to bottom as its schema orders it.

Sources: ISO 20022 message definitions and the Fedwire Funds Service's release of 2025.
"""

from typing import NamedTuple

from billfold.payments.wires.iso20022.xml_fields import (
    DAY,
    INSTANT,
    MONEY,
    MONEY_AS_ORDERED,
    TEXT,
    Row,
    constant,
)
from billfold.payments.wires.ports import (
    SYSTEM,
    CreditTransfer,
    Message,
    PaymentReturn,
    PaymentStatus,
    ReturnAnswer,
    ReturnRequest,
)

Table = tuple[Row, ...]
_PRACTICE = (
    "www2.swift.com/mystandards/#/group/Federal_Reserve_Financial_Services/Fedwire_Funds_Service"
)


class Layout(NamedTuple):
    """How a kind of message is laid out, and what the envelope calls it."""

    envelope: str
    element: str
    rows: Table


_ADDRESS: Table = (
    Row("StrtNm", "street", TEXT),
    Row("BldgNb", "building", TEXT),
    Row("PstCd", "post_code", TEXT),
    Row("TwnNm", "town", TEXT),
    Row("CtrySubDvsn", "subdivision", TEXT),
    Row("Ctry", "country", TEXT),
)
_PARTY: Table = (Row("Nm", "name", TEXT), Row("PstlAdr", "address", _ADDRESS))
_ACCOUNT: Table = (Row("Id/IBAN", "iban", TEXT), Row("Id/Othr/Id", "number", TEXT))


def _bank(path: str, field: str) -> Table:
    """A bank by its routing number, after the name of the clearing system."""
    return (
        Row(f"{path}/FinInstnId/ClrSysMmbId/ClrSysId/Cd", field, constant("USABA")),
        Row(f"{path}/FinInstnId/ClrSysMmbId/MmbId", field, TEXT),
    )


_AGENT: Table = (
    Row("FinInstnId/BICFI", "bic", TEXT),
    Row("FinInstnId/ClrSysMmbId/ClrSysId/Cd", "routing_number", constant("USABA")),
    Row("FinInstnId/ClrSysMmbId/MmbId", "routing_number", TEXT),
    Row("FinInstnId/Nm", "name", TEXT),
    Row("FinInstnId/PstlAdr", "address", _ADDRESS),
)
_ORIGINAL: Table = (
    Row("OrgnlGrpInf/OrgnlMsgId", "message_id", TEXT),
    Row("OrgnlGrpInf/OrgnlMsgNmId", "message_name", TEXT),
    Row("OrgnlGrpInf/OrgnlCreDtTm", "created_at", INSTANT),
    Row("OrgnlEndToEndId", "end_to_end_id", TEXT),
    Row("OrgnlUETR", "uetr", TEXT),
)
_ORIGINAL_WITHOUT_END_TO_END = tuple(row for row in _ORIGINAL if row.field != "end_to_end_id")
"""As statuses have it: the service tells of a message by its number and UETR alone."""
_GROUP: Table = (
    Row("GrpHdr/MsgId", "message_id", TEXT),
    Row("GrpHdr/CreDtTm", "created_at", INSTANT),
    Row("GrpHdr/NbOfTxs", None, constant("1")),
    Row("GrpHdr/SttlmInf/SttlmMtd", None, constant("CLRG")),
    Row("GrpHdr/SttlmInf/ClrSys/Cd", None, constant("FDW")),
)
_ASSIGNMENT: Table = (
    Row("Assgnmt/Id", "message_id", TEXT),
    *_bank("Assgnmt/Assgnr/Agt", "sender"),
    *_bank("Assgnmt/Assgne/Agt", "receiver"),
    Row("Assgnmt/CreDtTm", "created_at", INSTANT),
)

HEADER: Table = (
    Row("Fr/FIId/FinInstnId/ClrSysMmbId/MmbId", "sender", TEXT),
    Row("To/FIId/FinInstnId/ClrSysMmbId/MmbId", "receiver", TEXT),
    Row("BizMsgIdr", "business_id", TEXT),
    Row("MsgDefIdr", "message_name", TEXT),
    Row("BizSvc", "environment", TEXT),
    Row("MktPrctc/Regy", None, constant(_PRACTICE)),
    Row("MktPrctc/Id", None, constant("frb.fedwire.01")),
    Row("CreDt", "created_at", INSTANT),
)
_CREDIT_TRANSFER: Table = (
    *_GROUP,
    Row("CdtTrfTxInf/PmtId/InstrId", "instruction_id", TEXT),
    Row("CdtTrfTxInf/PmtId/EndToEndId", "end_to_end_id", TEXT),
    Row("CdtTrfTxInf/PmtId/UETR", "uetr", TEXT),
    Row("CdtTrfTxInf/PmtTpInf/LclInstrm/Prtry", "kind", TEXT),
    Row("CdtTrfTxInf/IntrBkSttlmAmt", "amount", MONEY),
    Row("CdtTrfTxInf/IntrBkSttlmDt", "settles_on", DAY),
    Row("CdtTrfTxInf/InstdAmt", "amount", MONEY_AS_ORDERED),
    Row("CdtTrfTxInf/ChrgBr", "charges", TEXT),
    *_bank("CdtTrfTxInf/InstgAgt", "sender"),
    *_bank("CdtTrfTxInf/InstdAgt", "receiver"),
    Row("CdtTrfTxInf/IntrmyAgt1", "intermediary", _AGENT),
    Row("CdtTrfTxInf/Dbtr", "debtor", _PARTY),
    Row("CdtTrfTxInf/DbtrAcct", "debtor_account", _ACCOUNT),
    Row("CdtTrfTxInf/DbtrAgt", "debtor_agent", _AGENT),
    Row("CdtTrfTxInf/CdtrAgt", "creditor_agent", _AGENT),
    Row("CdtTrfTxInf/Cdtr", "creditor", _PARTY),
    Row("CdtTrfTxInf/CdtrAcct", "creditor_account", _ACCOUNT),
    Row("CdtTrfTxInf/InstrForCdtrAgt/InstrInf", "instructions", TEXT),
    Row("CdtTrfTxInf/RmtInf/Ustrd", "remittance", TEXT),
)
_PAYMENT_RETURN: Table = (
    *_GROUP,
    Row("TxInf/RtrId", "return_id", TEXT),
    Row("TxInf", "original", _ORIGINAL),
    Row("TxInf/OrgnlIntrBkSttlmAmt", "original_amount", MONEY),
    Row("TxInf/RtrdIntrBkSttlmAmt", "amount", MONEY),
    Row("TxInf/IntrBkSttlmDt", "settles_on", DAY),
    Row("TxInf/RtrdInstdAmt", "amount", MONEY_AS_ORDERED),
    Row("TxInf/ChrgsInf/Amt", "charges", MONEY),
    Row("TxInf/ChrgsInf/Agt", "charged_by", _AGENT),
    *_bank("TxInf/InstgAgt", "sender"),
    *_bank("TxInf/InstdAgt", "receiver"),
    Row("TxInf/RtrChain/Dbtr/Pty", "debtor", _PARTY),
    Row("TxInf/RtrChain/Cdtr/Pty", "creditor", _PARTY),
    Row("TxInf/RtrRsnInf/Rsn/Cd", "reason", TEXT),
    Row("TxInf/RtrRsnInf/AddtlInf", "information", TEXT),
    Row("TxInf/OrgnlTxRef/PmtTpInf/LclInstrm/Prtry", "kind", TEXT),
)
_PAYMENT_STATUS: Table = (
    Row("GrpHdr/MsgId", "message_id", TEXT),
    Row("GrpHdr/CreDtTm", "created_at", INSTANT),
    Row("TxInfAndSts", "original", _ORIGINAL_WITHOUT_END_TO_END),
    Row("TxInfAndSts/TxSts", "status", TEXT),
    Row("TxInfAndSts/StsRsnInf/Rsn/Prtry", "reason", TEXT),
    Row("TxInfAndSts/StsRsnInf/AddtlInf", "information", TEXT),
    Row("TxInfAndSts/InstgAgt/FinInstnId/ClrSysMmbId/ClrSysId/Cd", None, constant("USABA")),
    Row("TxInfAndSts/InstgAgt/FinInstnId/ClrSysMmbId/MmbId", None, constant(SYSTEM)),
    *_bank("TxInfAndSts/InstdAgt", "receiver"),
)
_RETURN_REQUEST: Table = (
    *_ASSIGNMENT,
    Row("Case/Id", "case_id", TEXT),
    Row("Case/Cretr/Pty", "creator", _PARTY),
    Row("Undrlyg/TxInf", "original", _ORIGINAL),
    Row("Undrlyg/TxInf/OrgnlIntrBkSttlmAmt", "amount", MONEY),
    Row("Undrlyg/TxInf/OrgnlIntrBkSttlmDt", "settled_on", DAY),
    Row("Undrlyg/TxInf/CxlRsnInf/Rsn/Cd", "reason", TEXT),
    Row("Undrlyg/TxInf/CxlRsnInf/AddtlInf", "information", TEXT),
)
_RETURN_ANSWER: Table = (
    *_ASSIGNMENT,
    Row("RslvdCase/Id", "case_id", TEXT),
    Row("RslvdCase/Cretr/Pty", "creator", _PARTY),
    Row("Sts/Conf", "verdict", TEXT),
    Row("CxlDtls/TxInfAndSts", "original", _ORIGINAL),
    Row("CxlDtls/TxInfAndSts/CxlStsRsnInf/Rsn/Cd", "reason", TEXT),
    Row("CxlDtls/TxInfAndSts/CxlStsRsnInf/AddtlInf", "information", TEXT),
)

LAYOUTS: dict[type[Message], Layout] = {
    CreditTransfer: Layout(
        "FedwireFundsCustomerCreditTransfer", "FIToFICstmrCdtTrf", _CREDIT_TRANSFER
    ),
    PaymentReturn: Layout("FedwireFundsPaymentReturn", "PmtRtr", _PAYMENT_RETURN),
    PaymentStatus: Layout("FedwireFundsPaymentStatus", "FIToFIPmtStsRpt", _PAYMENT_STATUS),
    ReturnRequest: Layout("FedwireFundsReturnRequest", "FIToFIPmtCxlReq", _RETURN_REQUEST),
    ReturnAnswer: Layout("FedwireFundsReturnRequestResponse", "RsltnOfInvstgtn", _RETURN_ANSWER),
}
