"""The fields of a change and their values in words."""

from typing import Any

from billfold.platform.money import format_usd

_LABELS = {
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


def label_of(name: str) -> str:
    """Return the label of a field; that of an amount follows from its value."""
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
    return _WORDS.get(text) or (text.replace("_", " ").capitalize() if "_" in text and text.isupper() else text)
