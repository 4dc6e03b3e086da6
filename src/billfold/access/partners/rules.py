"""How long things live, and when a login is locked. Pure; `now` is wall time."""

import re
from datetime import datetime, timedelta
from math import ceil
from uuid import UUID

from billfold.platform.errors import InvalidInput
from billfold.platform.ids import command_id

TOKEN_LIFETIME = timedelta(hours=1)
OVERLAP = timedelta(hours=24)
"""How long the former signing secret stays in force after a change."""
LOGIN_FAILURES_MAX = 5
LOCKOUT_DURATION = timedelta(minutes=15)
PASSWORD_CHARS_MIN = 12
PASSWORD_CHARS_MAX = 128
USERNAME_CHARS_MAX = 128
FEATURES = frozenset({"ccd", "customer_closure", "unverified_wires", "wires"})
"""What a partner may be given beyond what all have."""
ALGORITHMS = ("ES256", "EdDSA", "PS256", "RS256")
_SLUG = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?")
_RESERVED_SLUGS = frozenset({"auth", "api", "www", "docs", "console", "localhost"})


def lockout_seconds(locked_until: datetime | None, now: datetime) -> int:
    """Return for how many more seconds a login is locked, 0 when it is not."""
    if locked_until is None or locked_until <= now:
        return 0
    return ceil((locked_until - now).total_seconds())


def lockout_window(now: datetime) -> datetime:
    """Return the start of the quarter of an hour in which failures of an unknown user name are counted."""
    return now.replace(minute=now.minute - now.minute % 15, second=0, microsecond=0)


def unknown_user_id(name: str) -> UUID:
    """Return the id under which failures of an unknown user name are counted."""
    return command_id("user name of nobody", name)


def check_slug(slug: str) -> str:
    """Return a slug that can be a host name of its own. Raises InvalidInput."""
    if not _SLUG.fullmatch(slug) or slug in _RESERVED_SLUGS:
        raise InvalidInput.at(
            "slug",
            msg="must be 1 to 63 of a-z, 0-9 and -, begin with a letter, not end with -, and "
            f"be none of {', '.join(sorted(_RESERVED_SLUGS))}",
        )
    return slug


def check_username(username: str) -> str:
    """Return a user name of 1 to 128 printable characters. Raises InvalidInput."""
    if not 1 <= len(username) <= USERNAME_CHARS_MAX or not username.isprintable():
        raise InvalidInput.at("username", msg="must be 1 to 128 printable characters")
    return username


def check_password(password: str) -> str:
    """Return a password of 12 to 128 characters. Raises InvalidInput."""
    if not PASSWORD_CHARS_MIN <= len(password) <= PASSWORD_CHARS_MAX:
        raise InvalidInput.at("password", msg="must be 12 to 128 characters")
    return password
