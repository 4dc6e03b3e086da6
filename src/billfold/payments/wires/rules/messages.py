"""The content of outbound messages, fitted to the lengths of Fedwire; numbers and dates are set on sending.

Terms are the fields of a message of `iso20022.types` as JSON-ready values.
"""

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any

import msgspec

from billfold.accounts.counterparties.types import Payee
from billfold.payments.wires.commands import WireRow
from billfold.payments.wires.iso20022 import types
from billfold.payments.wires.rules.cut_offs import code_of
from billfold.platform.dates import iso_z
from billfold.platform.errors import InvariantError

MessageFields = dict[str, Any]

_IBAN = re.compile(r"[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}")
_UNSENDABLE = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NO_REFERENCE = "NOTPROVIDED"
PAYEE = "payee"
"""The terms of a payment that are sealed for its payee, with API field names: account, address, instructions."""


def fit_text(text: str | None, max_length: int) -> str | None:
    """Return the text restricted to the characters and length of an element; None if nothing remains."""
    if not text:
        return None
    return " ".join(_UNSENDABLE.sub(" ", text).split())[:max_length].strip() or None


def credit_transfer(wire: WireRow, payee: Payee, *, payer: str, bank: str, correspondent: str) -> MessageFields:
    """Return the terms of a pacs.008. `bank` and `correspondent` are routing numbers.

    The routing number of an international payee is a BIC, and the payment goes through the correspondent. Sealed fields
    of the payee are kept separately: `with_payee` turns them into elements once they are decrypted.
    """
    international, details = payee.type == "international_wire", payee.details
    return _without_none(
        {
            "uetr": wire.uetr,
            "end_to_end_id": fit_text(wire.end_to_end_identification, 35) or _NO_REFERENCE,
            "instruction_id": wire.wire_id.hex,
            "amount": wire.amount,
            "charges": "SHAR" if international else "SLEV",
            "sender": bank,
            "receiver": correspondent if international else details["routing_number"],
            "debtor": {"name": fit_text(payer, 140) or _NO_REFERENCE},
            "debtor_agent": {"routing_number": bank},
            "creditor": {"name": fit_text(payee.name, 140) or _NO_REFERENCE},
            "creditor_agent": _without_none(
                {
                    "bic" if international else "routing_number": details["routing_number"],
                    "name": fit_text(details.get("institution_name"), 140),
                }
            ),
            "remittance": fit_text(wire.description, 140),
            PAYEE: _without_none(
                {
                    "identifier": details["identifier"],
                    "address": details.get("address"),
                    "wire_instructions": wire.wire_instructions,
                }
            ),
        }
    )


def with_payee(terms: MessageFields, payee: Mapping[str, Any]) -> MessageFields:
    """Return terms with the payee's decrypted fields as elements; destroyed fields are omitted."""
    identifier, address = payee.get("identifier"), address_of(payee.get("address"))
    return _without_none(
        {
            **{name: value for name, value in terms.items() if name != PAYEE},
            "creditor": _without_none({**terms["creditor"], "address": address}),
            "creditor_account": identifier and account_of(identifier),
            "instructions": fit_text(payee.get("wire_instructions"), 140),
        }
    )


def account_of(identifier: str) -> MessageFields:
    """Return an account by IBAN if the number is one, else by account number."""
    compacted = identifier.replace(" ", "").upper()
    return {"iban": compacted} if _IBAN.fullmatch(compacted) else {"number": compacted[:34]}


def address_of(address: Mapping[str, Any] | None) -> MessageFields | None:
    """Return an address of the APIs as message elements."""
    if not address:
        return None
    street = fit_text(" ".join(filter(None, map(address.get, ("street_address", "street_address2")))), 70)
    town, country = fit_text(address.get("city"), 35), address.get("country")
    if not town or not country:
        return None
    return _without_none(
        {
            "street": street,
            "post_code": fit_text(address.get("postal_code"), 16),
            "town": town,
            "subdivision": fit_text(address.get("state"), 35),
            "country": country,
        }
    )


def _without_none(fields: MessageFields) -> MessageFields:
    return {name: value for name, value in fields.items() if value is not None}


_decode_payment = msgspec.json.Decoder(types.CreditTransfer).decode


def payment_message_of(wire: WireRow) -> types.CreditTransfer:
    """Return the payment message of an incoming wire. Raises InvariantError if it has none."""
    if wire.message is None:
        raise InvariantError("This wire has no message.", wire_id=str(wire.wire_id))
    return _decode_payment(wire.message)


def payment_return(payment: types.CreditTransfer, *, bank: str, reason: str, information: str) -> MessageFields:
    """Return the terms of a pacs.004 that returns a received payment in full."""
    return _without_none(
        {
            "original": original_of(payment),
            "amount": payment.amount,
            "sender": bank,
            "receiver": payment.sender,
            "debtor": {"name": payment.creditor.name},
            "creditor": {"name": payment.debtor.name},
            "reason": code_of(reason),
            "information": fit_text(information, 105),
            "kind": payment.kind,
        }
    )


def original_of(payment: types.CreditTransfer) -> MessageFields:
    """Return the reference to the original payment."""
    return {
        "message_id": payment.message_id,
        "message_name": "pacs.008.001.08",
        "created_at": iso_z(payment.created_at),
        "uetr": payment.uetr,
        "end_to_end_id": payment.end_to_end_id,
    }


def return_request(payment: types.CreditTransfer, *, case_id: str, creator: str, reason: str) -> MessageFields:
    """Return the terms of a camt.056 that requests the return of a payment we sent."""
    return {
        "case_id": case_id,
        "sender": payment.sender,
        "receiver": payment.receiver,
        "creator": {"name": creator},
        "original": original_of(payment),
        "amount": payment.amount,
        "settled_on": payment.settles_on.isoformat(),
        "reason": reason,
    }


def return_request_response(
    request: types.ReturnRequest, *, bank: str, creator: str, verdict: str, reason: str | None
) -> MessageFields:
    """Return the terms of a camt.029: CNCL if the payment is returned, RJCR if it is not."""
    return _without_none(
        {
            "case_id": request.case_id,
            "sender": bank,
            "receiver": request.sender,
            "creator": {"name": creator},
            "verdict": verdict,
            "original": msgspec.to_builtins(request.original),
            "reason": reason,
        }
    )


_MESSAGE_TYPES: dict[str, type[types.Message]] = {
    "pacs.008": types.CreditTransfer,
    "pacs.004": types.PaymentReturn,
    "camt.056": types.ReturnRequest,
    "camt.029": types.ReturnRequestResponse,
}
_WITH_SETTLEMENT_DATE = frozenset({"pacs.008", "pacs.004"})
_SAMPLE_IMAD, _SAMPLE_DAY = "20000101AAAAAAAA000000", date(2000, 1, 1)
_SAMPLE_TIME = datetime(2000, 1, 1, tzinfo=UTC)


def message_of(kind: str, terms: MessageFields, imad: str, at: datetime, day: date) -> types.Message:
    """Return the message with these terms, its number, instant and settlement date.

    Raises ValueError if a field does not match its pattern or length.
    """
    settlement = {"settles_on": day} if kind in _WITH_SETTLEMENT_DATE else {}
    shape = _MESSAGE_TYPES[kind]
    values = {"type": shape.__struct_config__.tag, **terms, "message_id": imad, "created_at": at}
    return msgspec.convert({**values, **settlement}, shape)


def expect_sendable(kind: str, terms: MessageFields) -> None:
    """Raise InvariantError if the terms make an invalid message: fail before the booking, not on sending."""
    try:
        message_of(kind, terms, _SAMPLE_IMAD, at=_SAMPLE_TIME, day=_SAMPLE_DAY)
    except ValueError as error:
        raise InvariantError(f"A {kind} cannot hold these terms: {error}") from None
