"""How often something may be done that costs the bank or a stranger: letters, deposits, questions to providers. Pure.

A limit is named `<what>.<whose>`: whose it is, is a customer, a partner, an account at any bank (routing and account
number, whichever counterparty carries it), or the recipient or sender of an e-mail. The wall clock counts.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Final

USAGE_LIMITS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "counterparties.customer": 200,
        "counterparties.partner": 5_000,
        "micro_deposits.account": 3,
        "micro_deposits.customer": 10,
        "micro_deposits.partner": 500,
        "verification_tries.account": 3,
        "verification_tries.customer": 30,
        "verification_tries.partner": 1_500,
        "account_links.customer": 50,
        "account_links.partner": 2_000,
        "application_checks.customer": 20,
        "application_checks.partner": 1_000,
        "cards.customer": 30,
        "cards.partner": 1_000,
        "invitations.recipient": 3,
        "invitations.application": 50,
        "invitations.sender": 200,
        "password_resets.recipient": 10,
        "emails.recipient": 200,
    }
)
"""How often each is done on a day (UTC). Settings change them (`BILLFOLD_USAGE_LIMITS`)."""
_CLOSED_FOR: Final = MappingProxyType(
    {"micro_deposits.account": timedelta(days=7), "verification_tries.account": timedelta(days=7)}
)
"""Limits that last longer than the day: for so long after what was counted last."""


def parse_limit(text: str) -> tuple[str, int]:
    """Return the name and the number of `cards.customer=5`. Raises ValueError."""
    name, _, number = (part.strip() for part in text.partition("="))
    if name not in USAGE_LIMITS or not (number.isascii() and number.isdigit()):
        raise ValueError(text)
    return name, int(number)


def forgotten_at(name: str, wall: datetime) -> datetime:
    """Return when what is counted now no longer counts, unless more is counted before."""
    if name in _CLOSED_FOR:
        return wall + _CLOSED_FOR[name]
    return wall.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
