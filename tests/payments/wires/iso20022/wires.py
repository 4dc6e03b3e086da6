"""Wires to write and read: one of every kind."""

from datetime import date, datetime, timedelta, timezone
from typing import Any

import msgspec

from billfold.accounts.transactions.settlement import SettledDocument
from billfold.payments.wires.iso20022.types import (
    Account,
    Agent,
    CreditTransfer,
    FedwireMessage,
    Header,
    Message,
    OriginalMessage,
    Party,
    PaymentReturn,
    PaymentStatus,
    PostalAddress,
    ReturnRequest,
    ReturnRequestResponse,
)

OURS, THEIRS = "021000021", "121182904"
EASTERN = timezone(-timedelta(hours=5))
AT = datetime(2026, 11, 20, 10, 15, tzinfo=EASTERN)
DAY = date(2026, 11, 20)
IMAD = "20261120MMQFMP0A000123"
UETR = "8a562c67-ca16-48ba-b074-65581be6f011"
NEW_YORK = PostalAddress(
    street="Main St", building="1", post_code="10001", town="New York", subdivision="NY", country="US"
)
ACME, BETA = Party(name="Acme Inc", address=NEW_YORK), Party(name="Beta LLC")
ORIGINAL = OriginalMessage(
    message_id=IMAD, message_name="pacs.008.001.08", created_at=AT, uetr=UETR, end_to_end_id="E2E-0001"
)


def a_credit_transfer(**changes: Any) -> CreditTransfer:
    fields: dict[str, Any] = {
        "message_id": IMAD,
        "created_at": AT,
        "uetr": UETR,
        "end_to_end_id": "E2E-0001",
        "instruction_id": "INSTR0001",
        "amount": 151_000_000,
        "settles_on": DAY,
        "sender": OURS,
        "receiver": THEIRS,
        "debtor": ACME,
        "debtor_account": Account(number="9876543210"),
        "debtor_agent": Agent(routing_number=OURS, name="Example Bank"),
        "creditor_agent": Agent(routing_number=THEIRS),
        "creditor": BETA,
        "creditor_account": Account(number="5647772655"),
        "remittance": "Invoice 77",
    }
    return CreditTransfer(**fields | changes)


def abroad() -> CreditTransfer:
    frankfurt = PostalAddress(post_code="60311", town="Frankfurt", country="DE")
    return a_credit_transfer(
        intermediary=Agent(bic="CHASUS33XXX"),
        creditor_agent=Agent(bic="COBADEFFXXX", name="Commerzbank", address=frankfurt),
        creditor=Party(name="Müller & Söhne <GmbH>", address=frankfurt),
        creditor_account=Account(iban="DE89370400440532013000"),
        charges="SHAR",
    )


RETURN = PaymentReturn(
    message_id="20261123MMQFMP0A000001",
    created_at=AT,
    return_id="RTR-1",
    original=ORIGINAL,
    amount=151_000_000,
    settles_on=date(2026, 11, 23),
    sender=THEIRS,
    receiver=OURS,
    debtor=BETA,
    creditor=ACME,
    reason="AC04",
    information="Account closed",
)
MESSAGES: dict[str, Message] = {
    "credit transfer": a_credit_transfer(),
    "credit transfer abroad": abroad(),
    "credit transfer with documents": a_credit_transfer(
        remittance="Rent\nand more",
        documents=(
            SettledDocument(type="CINV", number="INV-1", date="2026-11-01", amount="12.34", currency="EUR"),
            SettledDocument(reference="RF18539007547034", information="Less discount"),
        ),
    ),
    "least credit transfer": a_credit_transfer(
        instruction_id=None, debtor_account=None, creditor_account=None, remittance=None
    ),
    "payment return": RETURN,
    "payment return less charges": msgspec.structs.replace(
        RETURN,
        return_id=None,
        original_amount=151_000_000,
        amount=150_997_500,
        charges=2_500,
        charged_by=Agent(bic="COBADEFFXXX"),
        information=None,
    ),
    "payment status": PaymentStatus(
        message_id="20261120ABCD00000000000001",
        created_at=AT,
        original=msgspec.structs.replace(ORIGINAL, end_to_end_id=None),
        status="RJCT",
        reason="E433",
        information="No such participant",
        receiver=OURS,
    ),
    "return request": ReturnRequest(
        message_id="20261123MMQFMP0A000002",
        created_at=AT,
        case_id="CASE-1",
        sender=OURS,
        receiver=THEIRS,
        creator=ACME,
        original=ORIGINAL,
        amount=151_000_000,
        settled_on=DAY,
        reason="DUPL",
        information="Sent twice",
    ),
    "return answer": ReturnRequestResponse(
        message_id="20261123QFMP00000000000003",
        created_at=AT,
        case_id="CASE-1",
        sender=THEIRS,
        receiver=OURS,
        creator=ACME,
        verdict="RJCR",
        original=ORIGINAL,
        reason="CUST",
        information="The customer does not agree",
    ),
}


def a_wire(message: Message | None = None, **changes: Any) -> FedwireMessage:
    message = message or a_credit_transfer()
    fields: dict[str, Any] = {
        "sender": OURS,
        "receiver": "021151080",
        "business_id": "20261120MMQFMP0A000123",
        "message_name": type(message).__struct_config__.tag,
        "environment": "TEST",
        "created_at": AT,
    }
    return FedwireMessage(header=Header(**fields | changes), message=message)
