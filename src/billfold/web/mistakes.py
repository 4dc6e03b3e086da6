"""What a form says beside each field that is wrong."""

from __future__ import annotations

from billfold.platform.errors import FieldError, InvalidInput

_LABELS = {
    "again": "password",
    "amount_from": "smallest amount",
    "amount_to": "largest amount",
    "current": "current password",
    "email": "email address",
    "from": "first day",
    "post_logout_redirect_uris": "redirect addresses after signing out",
    "redirect_uris": "redirect addresses",
    "settled_from": "first day",
    "subject_id": "id",
    "settled_to": "last day",
    "to": "last day",
}
"""What a form calls a field whose name does not say it."""


def mistakes_of(mistake: object) -> dict[str, str]:
    """Return the first mistake of each field, a sentence."""
    if not isinstance(mistake, InvalidInput):
        return {}
    named = [(_field_of(each), each.msg) for each in reversed(mistake.errors)]
    return {field: f"The {_label(field)} {message}." for field, message in named}


def _field_of(error: FieldError) -> str:
    """Return the name of a field, of an entry in a list that of the list."""
    return str(next((each for each in reversed(error.loc) if isinstance(each, str)), error.loc[-1]))


def _label(field: str) -> str:
    return _LABELS.get(field, field.replace("_", " "))
