"""The forms of a new counterparty: which fields each kind has, and the body they make. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from billfold.platform.errors import FieldError, InvalidInput

ADDRESS = ("street_address", "street_address2", "city", "state", "postal_code", "country")
_NAME_FIELDS = {"counterparty_name": "business_name"}


class KindForm(NamedTuple):
    """What a kind is called, its own fields, whether it has an address, and the ways of verification to choose from."""

    label: str
    fields: tuple[str, ...]
    has_address: bool
    verifications: tuple[tuple[str, str], ...]


_BY_WIRE = ("incoming_wire", "A wire from the account")
_BY_DOCUMENTS = ("supporting_documents", "Documents that show whose account it is")
FORMS: Mapping[str, KindForm] = {
    "wire": KindForm(
        "Domestic wire",
        ("routing_number", "identifier", "institution_name", "wire_instructions"),
        has_address=True,
        verifications=(_BY_WIRE, _BY_DOCUMENTS, ("unverified", "Not verified, if your agreement allows it")),
    ),
    "ach": KindForm(
        "ACH account",
        ("routing_number", "account_number", "account_type", "institution_name"),
        has_address=False,
        verifications=(("micro_deposits", "Two small deposits"), _BY_WIRE, _BY_DOCUMENTS),
    ),
    "international_wire": KindForm(
        "International wire",
        ("routing_number", "identifier", "identifier_type", "institution_name", "wire_instructions"),
        has_address=True,
        verifications=(_BY_WIRE, _BY_DOCUMENTS, ("unverified", "Not verified, if your agreement allows it")),
    ),
    "on_us": KindForm("Pocket of this bank", ("account_number",), has_address=False, verifications=()),
    "crypto_wallet_address": KindForm("USDC wallet", ("chain", "wallet_address"), has_address=False, verifications=()),
}


def body_of(kind: str, form: Mapping[str, str]) -> dict[str, Any]:
    """Return the body that adds the counterparty of a form."""
    given = {name: text for name, value in form.items() if (text := value.strip())}
    spec = FORMS[kind]
    body: dict[str, Any] = {"type": kind, "counterparty_name": _name(given)}
    body |= {name: given[name] for name in (*spec.fields, "display_name") if name in given}
    if kind == "international_wire":
        body["identifier_code"] = "SWIFT_BIC"
    if spec.has_address:
        body["address"] = {name: given[name] for name in ADDRESS if name in given}
    if spec.verifications:
        body["verification"] = {"type": given.get("verification", spec.verifications[0][0])}
        if body["verification"]["type"] == _BY_DOCUMENTS[0]:
            body["verification"]["document_ids"] = [each for each in given.get("document", "").split(",") if each]
    return body


def errors_in_form(wrong: InvalidInput) -> InvalidInput:
    """Return the mistakes of a body at the fields of the form."""
    return InvalidInput(
        FieldError((_NAME_FIELDS.get(str(each.loc[-1]), each.loc[-1]),), each.msg, each.type) for each in wrong.errors
    )


def _name(given: Mapping[str, str]) -> dict[str, str]:
    if "first_name" in given or "last_name" in given:
        names = {name: given[name] for name in ("first_name", "last_name") if name in given}
        return {"type": "individual", **names}
    return {"type": "business", "business_name": given.get("business_name", "")}
