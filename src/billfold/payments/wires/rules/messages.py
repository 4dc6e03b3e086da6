"""What our messages say, fitted to the lengths of Fedwire; numbers and dates come when they go.

Terms are the fields of a message of `ports/fedwire` as JSON-ready values.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from billfold.payments.wires.ports import (
    CreditTransfer,
    Message,
    PaymentReturn,
    ReturnAnswer,
    ReturnRequest,
)
from billfold.payments.wires.rules.cut_offs import code_of
from billfold.platform.dates import iso_z
from billfold.platform.errors import Broken

if TYPE_CHECKING:
    from uuid import UUID

    from billfold.payments.wires.types import WireRow

Terms = dict[str, Any]

_IBAN = re.compile(r"[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}")
_UNSENDABLE = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NO_REFERENCE = "NOTPROVIDED"


def fitted(text: str | None, most: int) -> str | None:
    """Return the text as an element can hold it, None when nothing is left."""
    if not text:
        return None
    return " ".join(_UNSENDABLE.sub(" ", text).split())[:most].strip() or None


def credit_transfer(
    *,
    wire_id: UUID,
    uetr: str,
    amount: int,
    bank: str,
    correspondent: str,
    payer: str,
    payee: str,
    details: dict[str, Any],
    international: bool,
    description: str | None,
    instructions: str | None,
    end_to_end: str | None,
) -> Terms:
    """The terms of a pacs.008. `bank` and `correspondent` are routing numbers.

    `details` are those of the counterparty: abroad its `routing_number` is a BIC, and the payment
    goes by way of the correspondent.
    """
    return _without_none(
        {
            "uetr": uetr,
            "end_to_end_id": fitted(end_to_end, 35) or _NO_REFERENCE,
            "instruction_id": wire_id.hex,
            "amount": amount,
            "charges": "SHAR" if international else "SLEV",
            "sender": bank,
            "receiver": correspondent if international else details["routing_number"],
            "debtor": {"name": fitted(payer, 140) or _NO_REFERENCE},
            "debtor_agent": {"routing_number": bank},
            **_creditor(payee, details, "bic" if international else "routing_number"),
            "instructions": fitted(instructions, 140),
            "remittance": fitted(description, 140),
        }
    )


def _creditor(payee: str, details: dict[str, Any], scheme: str) -> Terms:
    """Whoever is paid, his account and his bank, which is named by BIC or routing number."""
    party = {"name": fitted(payee, 140) or _NO_REFERENCE}
    address = address_of(details.get("address"))
    bank = fitted(details.get("institution_name"), 140)
    return {
        "creditor": _without_none({**party, "address": address}),
        "creditor_account": account_of(str(details["identifier"])),
        "creditor_agent": _without_none({scheme: details["routing_number"], "name": bank}),
    }


def account_of(identifier: str) -> Terms:
    """Return an account by IBAN when it looks like one, else by its bank's own number."""
    plain = identifier.replace(" ", "").upper()
    return {"iban": plain} if _IBAN.fullmatch(plain) else {"number": plain[:34]}


def address_of(address: dict[str, Any] | None) -> Terms | None:
    """Return an address of the APIs in the elements of a message."""
    if not address:
        return None
    street = fitted(" ".join(filter(None, _lines(address))), 70)
    town, country = fitted(address.get("city"), 35), address.get("country")
    if not town or not country:
        return None
    return _without_none(
        {
            "street": street,
            "post_code": fitted(address.get("postal_code"), 16),
            "town": town,
            "subdivision": fitted(address.get("state"), 35),
            "country": country,
        }
    )


def _lines(address: dict[str, Any]) -> tuple[str | None, str | None]:
    return address.get("street_address"), address.get("street_address2")


def _without_none(fields: Terms) -> Terms:
    return {name: value for name, value in fields.items() if value is not None}


_decode_payment = msgspec.json.Decoder(CreditTransfer).decode


def paid_by(wire: WireRow) -> CreditTransfer:
    """Return the payment that brought an incoming wire. Raises Broken when no message did."""
    if wire.message is None:
        raise Broken("No message brought this wire.", wire_id=str(wire.wire_id))
    return _decode_payment(wire.message)


def payment_return(paid: CreditTransfer, *, bank: str, reason: str, information: str) -> Terms:
    """The terms of a pacs.004 by which a payment that arrived goes back whole."""
    return _without_none(
        {
            "original": original_of(paid),
            "amount": paid.amount,
            "sender": bank,
            "receiver": paid.sender,
            "debtor": {"name": paid.creditor.name},
            "creditor": {"name": paid.debtor.name},
            "reason": code_of(reason),
            "information": fitted(information, 105),
            "kind": paid.kind,
        }
    )


def original_of(paid: CreditTransfer) -> Terms:
    """What another message says of the payment it is about."""
    return {
        "message_id": paid.message_id,
        "message_name": "pacs.008.001.08",
        "created_at": iso_z(paid.created_at),
        "uetr": paid.uetr,
        "end_to_end_id": paid.end_to_end_id,
    }


def return_request(paid: CreditTransfer, *, case_id: str, creator: str, reason: str) -> Terms:
    """The terms of a camt.056 by which we ask for a payment of ours back."""
    return {
        "case_id": case_id,
        "sender": paid.sender,
        "receiver": paid.receiver,
        "creator": {"name": creator},
        "original": original_of(paid),
        "amount": paid.amount,
        "settled_on": paid.settles_on.isoformat(),
        "reason": reason,
    }


def return_answer(
    asked: ReturnRequest, *, bank: str, creator: str, verdict: str, reason: str | None
) -> Terms:
    """The terms of a camt.029: CNCL the payment comes back, RJCR it does not."""
    return _without_none(
        {
            "case_id": asked.case_id,
            "sender": bank,
            "receiver": asked.sender,
            "creator": {"name": creator},
            "verdict": verdict,
            "original": msgspec.to_builtins(asked.original),
            "reason": reason,
        }
    )


_KINDS: dict[str, type[Message]] = {
    "pacs.008": CreditTransfer,
    "pacs.004": PaymentReturn,
    "camt.056": ReturnRequest,
    "camt.029": ReturnAnswer,
}
_DATED = frozenset({"pacs.008", "pacs.004"})
_SOME_IMAD, _SOME_DAY = "20000101AAAAAAAA000000", date(2000, 1, 1)
_SOME_TIME = datetime(2000, 1, 1, tzinfo=UTC)


def message_of(kind: str, terms: Terms, imad: str, at: datetime, day: date) -> Message:
    """Return the message that says these terms, with its number, instant and day of settlement.

    Raises ValueError when it cannot be sent as it is.
    """
    dated = {"settles_on": day} if kind in _DATED else {}
    shape = _KINDS[kind]
    told = {"type": shape.__struct_config__.tag, **terms, "message_id": imad, "created_at": at}
    return msgspec.convert({**told, **dated}, shape)


def expect_sendable(kind: str, terms: Terms) -> None:
    """Raise Broken when no message can say these terms: a bug, and better now than later."""
    try:
        message_of(kind, terms, _SOME_IMAD, _SOME_TIME, _SOME_DAY)
    except ValueError as error:
        raise Broken(f"A {kind} cannot say that: {error}") from None
