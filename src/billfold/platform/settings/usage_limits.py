"""Limits on actions that cost the bank or a third party: e-mails, deposits, requests to providers. Pure.

A limit is named `<what>.<whose>`: the subject is a customer, a member of its team, a partner, an account at any bank
(routing and account number, whichever counterparty has it), or the recipient or sender of an e-mail. The wall clock
counts.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

USAGE_LIMITS: Final[Mapping[str, int]] = {
    "counterparties.customer": 200,
    "counterparties.partner": 5_000,
    "pockets.customer": 2_000,
    "pockets.partner": 50_000,
    "portals.customer": 2_000,
    "portals.partner": 50_000,
    "documents.customer": 500,
    "documents.partner": 10_000,
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
    "disputes.customer": 50,
    "disputes.partner": 2_000,
    "backtests.member": 2_000,
    "backtests.customer": 6_000,
    "invitations.recipient": 3,
    "invitations.application": 50,
    "invitations.sender": 200,
    "password_resets.recipient": 10,
    "emails.recipient": 200,
}
"""Maximum number of each per day (UTC). Settings change them (`BILLFOLD_USAGE_LIMITS`)."""
_CLOSED_FOR: Final = {"micro_deposits.account": timedelta(days=7), "verification_tries.account": timedelta(days=7)}
"""Limits that last longer than a day: this long after the last use."""


def parse_limit(text: str) -> tuple[str, int]:
    """Return the name and the number in `cards.customer=5`. Raises ValueError."""
    name, _, number = (part.strip() for part in text.partition("="))
    if name not in USAGE_LIMITS or not (number.isascii() and number.isdigit()):
        raise ValueError(text)
    return name, int(number)


def forgotten_at(name: str, wall: datetime) -> datetime:
    """Return when a use counted now expires, unless there is another before."""
    if name in _CLOSED_FOR:
        return wall + _CLOSED_FOR[name]
    return wall.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
