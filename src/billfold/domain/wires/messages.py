"""What our messages say, fitted to the lengths of Fedwire; numbers and dates come when they go.

Terms are the fields of a message of `ports/fedwire` as JSON-ready values.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uuid import UUID

Terms = dict[str, Any]

_IBAN = re.compile(r"[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}")
_UNSENDABLE = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NO_REFERENCE = "NOTPROVIDED"


def fitted(text: str | None, most: int) -> str | None:
    """Return the text as an element can hold it, None when nothing is left."""
    if text is None:
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
