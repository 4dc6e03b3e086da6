"""Contact details of persons in authorization requests, sealed with the key of the bank: an invitation that waits."""

from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

import msgspec

from billfold.approvals.types import AuthorizationRequestRow
from billfold.platform.crypto import Vault, associated_data, is_sealed_text

_CONTACT = ("email", "phone_number")


def seal_contacts(vault: Vault, customer_id: UUID, request_id: UUID, *, change: dict[str, Any]) -> dict[str, Any]:
    """Return a change, ready for JSON, with the contact details of whom it invites sealed."""
    return _each_contact(change, partial(_seal, vault, customer_id, request_id))


def open_contacts(vault: Vault, row: AuthorizationRequestRow) -> AuthorizationRequestRow:
    """Return a request with the contact details in its content as they were given."""
    content = msgspec.json.decode(row.content)
    change = _each_contact(content["change"], partial(_open, vault, row.customer_id, row.request_id))
    return msgspec.structs.replace(row, content=msgspec.json.encode(content | {"change": change}).decode())


def _each_contact(change: dict[str, Any], convert: Callable[[str, str], str]) -> dict[str, Any]:
    """Return a change with its contact details converted, given (field, value)."""
    found: dict[str, Any] = {name: convert(name, change[name]) for name in _CONTACT if change.get(name) is not None}
    if "invited" in change:
        found["invited"] = _each_contact(change["invited"], convert)
    return change | found


def _seal(vault: Vault, customer_id: UUID, request_id: UUID, /, field: str, value: str) -> str:
    return vault.seal_text(value, _place(customer_id, request_id, field))


def _open(vault: Vault, customer_id: UUID, request_id: UUID, /, field: str, value: str) -> str:
    return vault.open_text(value, _place(customer_id, request_id, field)) if is_sealed_text(value) else value


def _place(customer_id: UUID, request_id: UUID, field: str) -> bytes:
    return associated_data("authorization_request", f"content.{field}", request_id, tenant_id=customer_id)
