"""How long things live, and how partners and their users are called. Pure."""

import re
from datetime import timedelta

from billfold.platform.errors import InvalidInput

TOKEN_LIFETIME = timedelta(hours=1)
OVERLAP = timedelta(hours=24)
"""How long the former signing secret stays in force after a change."""
PASSWORD_CHARS_MIN = 12
PASSWORD_CHARS_MAX = 128
USERNAME_CHARS_MAX = 128
FEATURES = frozenset({"ccd", "customer_closure", "unverified_wires", "wires"})
"""What a partner may be given beyond what all have."""
ALGORITHMS = ("ES256", "EdDSA", "PS256", "RS256")
_SLUG = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?")
_RESERVED_SLUGS = frozenset({"auth", "api", "www", "docs", "console", "localhost"})


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
