"""A fork as it is kept and shown, and the names that forks have."""

import re
from datetime import datetime
from typing import Annotated, Final

import msgspec

OPENING: Final = "opening"
"""The fork that a reset returns to: the bank as its first start left it."""
FORKS_MAX: Final = 20

NAME_PATTERN: Final = r"^[a-z][a-z0-9]*(-[a-z0-9]+)*\Z"
_NAME_CHARACTERS: Final = 30

ForkName = Annotated[
    str,
    msgspec.Meta(
        pattern=NAME_PATTERN,
        max_length=_NAME_CHARACTERS,
        description="lower-case letters and digits in groups joined by hyphens, with a letter first",
    ),
]


def is_fork_name(text: str) -> bool:
    """Tell whether a fork may have this name."""
    return len(text) <= _NAME_CHARACTERS and re.match(NAME_PATTERN, text) is not None


class Fork(msgspec.Struct, frozen=True, kw_only=True):
    """A copy of the bank. `now` is what its clock showed, `created_at` the wall time; `size` is in bytes."""

    name: str
    created_at: datetime
    now: datetime
    size: int
