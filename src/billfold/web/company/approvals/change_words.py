"""The fields of a change and their values in words."""

import re
from typing import Any

from billfold.platform.money import format_usd

_LABELS = {
    "business_name": "Name",
    "identifier": "Account number",
    "identifier_type": "Number is an",
    "street_address": "Street",
    "street_address2": "Second line",
    "type": "Kind",
    "verification": "Verified by",
    "actions": "Applies to",
    "transfer_types": "Kinds of payments",
    "approver_ids": "Approvers",
    "approver_roles": "Roles of approvers",
    "min_approvals": "Approvals needed",
    "required_approvals": "Approvals needed",
    "ordered": "In this order",
}
_WORDS = {
    "TRANSFER": "Transfers",
    "NEW_COUNTERPARTY": "New payees",
    "MEMBER_ROLE": "Changes of the team",
    "ON_US": "Within this bank",
    "WIRE": "Wires",
    **{role: role.title() for role in ("ADMIN", "MANAGER", "APPROVER", "INITIATOR", "VIEWER")},
}
_CODE = re.compile("[A-Z]+(_[A-Z]+)+|[a-z]+(_[a-z]+)+")


def label_of(name: str) -> str:
    """Return the label of a field, the last part of its path; that of an amount follows from its value."""
    name = name.rpartition(" ")[2]
    return _LABELS.get(name) or name.removesuffix("_usdc").replace("_", " ").capitalize()


def as_dollars(name: str, text: str) -> str:
    """Return the text of a field, cents as dollars."""
    return format_usd(int(text)) if name.endswith("_usdc") and text and text.isdigit() else text


def text_of(value: Any) -> str | None:  # noqa: ANN401 - any JSON
    """Return a value in words; None if it is empty."""
    if value is None or value == "":
        return None
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(filter(None, (text_of(each) for each in value))) or "any"
    text = str(value)
    return _WORDS.get(text) or (text.replace("_", " ").capitalize() if _CODE.fullmatch(text) else text)
