"""What fields of forms stand for where an operation takes something else than their text."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from billfold.platform.dates import iso_z
from billfold.platform.errors import InvalidInput


def instant_in_zone(name: str, text: str, zone: str) -> str:
    """Return the instant at which a clock in a zone shows a date and time. Raises InvalidInput at body.`name`."""
    try:
        local = datetime.fromisoformat(text)
        return iso_z((local if local.tzinfo else local.replace(tzinfo=ZoneInfo(zone))).astimezone(UTC))
    except ValueError:
        raise InvalidInput.at("body", name, msg="must be a date and a time") from None
    except OverflowError:
        raise InvalidInput.at("body", name, msg="is too far away") from None
