"""Fields of forms: their mistakes in words, and the values that their texts stand for."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from billfold.platform.dates import iso_z
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


def instant_in_zone(name: str, text: str, zone: str) -> str:
    """Return the instant at which a clock in a zone shows a date and time. Raises InvalidInput at body.`name`."""
    try:
        local = datetime.fromisoformat(text)
        return iso_z((local if local.tzinfo else local.replace(tzinfo=ZoneInfo(zone))).astimezone(UTC))
    except ValueError:
        raise InvalidInput.at("body", name, msg="must be a date and a time") from None
    except OverflowError:
        raise InvalidInput.at("body", name, msg="is too far away") from None
