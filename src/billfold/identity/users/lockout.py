"""Failed sign-in attempts are counted, so that guessing takes too long. `now` is wall time.

An attempt is counted before it is checked, so parallel guesses are slowed down as well.
Attempts are counted for unknown e-mail addresses as well.
"""

from datetime import datetime
from types import MappingProxyType
from typing import Literal, NamedTuple
from uuid import UUID

from billfold.identity.users import rules
from billfold.identity.users.rules import LockoutPolicy
from billfold.platform import crypto
from billfold.platform.addresses import network_of
from billfold.platform.crypto import Vault
from billfold.platform.database.connection import Connection, Pool
from billfold.platform.ids import command_id

Factor = Literal["password", "code", "address", "partner"]

_CURRENT = """
INSERT INTO login_attempt AS f (subject, factor, failures, last_failed_at) VALUES ($1, $2, 0, $3)
ON CONFLICT (subject, factor) DO UPDATE SET failures = f.failures RETURNING failures, last_failed_at
"""
_UPDATE = """
UPDATE login_attempt SET failures = $3, last_failed_at = $4 WHERE subject = $1 AND factor = $2
"""
_POLICIES = MappingProxyType[Factor, LockoutPolicy]({"address": rules.IP_LOCKOUT, "partner": rules.PARTNER_LOCKOUT})


class AttemptSubject(NamedTuple):
    """Whose attempts are counted, with which factor."""

    subject: UUID
    factor: Factor

    @property
    def pace(self) -> LockoutPolicy:
        """How fast attempts may follow each other."""
        return _POLICIES.get(self.factor, rules.ACCOUNT_LOCKOUT)


class AttemptResult(NamedTuple):
    """The result of an attempt: seconds to wait (0: continue), and whether it locks."""

    wait_seconds: int
    locks: bool


def password_subject(vault: Vault, email: str, own_browser: str | None = None) -> AttemptSubject:
    """Return the subject of passwords given for an address of mail, however it is spelled.

    Each browser that the user has signed in with counts for itself, by its lasting cookie, all others count together:
    strangers, who know the address, lock each other out and not the user. Nothing that is stored tells whether an
    address was tried.
    """
    index = vault.blind_index(rules.normalize_email(email), "password of").hex()
    if own_browser is None:
        return AttemptSubject(command_id("password of", index), "password")
    browser = crypto.hash_token(own_browser).hex()
    return AttemptSubject(command_id("password from own browser", f"{browser} {index}"), "password")


def totp_subject(user_id: UUID) -> AttemptSubject:
    """Return the subject of codes given for a user."""
    return AttemptSubject(command_id("code of", user_id), "code")


def partner_subject(username: str, own_network: str | None = None) -> AttemptSubject:
    """Return the subject of passwords given for a user name of a partner, whether anybody has it or not.

    Each network that the user has logged in from counts for itself, all others count together: strangers, who know the
    name, lock each other out and not the user.
    """
    if own_network is None:
        return AttemptSubject(command_id("partner password of", username), "partner")
    # Apart from the names that strangers give: one may begin with the network of somebody else.
    return AttemptSubject(command_id("partner password from own network", f"{own_network} {username}"), "partner")


def ip_subject(address: str) -> AttemptSubject:
    """Return the subject of everything tried from an address on the net, an IPv6 site being one."""
    return AttemptSubject(command_id("address", network_of(address)), "address")


async def begin_attempt(conn: Connection, subject: AttemptSubject, now: datetime) -> AttemptResult:
    """Count a failed attempt, or return how long attempts are locked. Success resets the count."""
    async with conn.transaction():
        failures, last_failed_at = await conn.fetchrow(_CURRENT, *subject, now) or (0, now)
        wait = rules.lockout_seconds(subject.pace, failures, last_failed_at, now=now)
        if wait:
            return AttemptResult(wait, locks=False)
        failures_now = rules.count_failure(subject.pace, failures, last_failed_at, now=now)
        await conn.execute(_UPDATE, *subject, failures_now, now)
        return AttemptResult(0, locks=failures_now == subject.pace.lock_after)


async def clear_attempts(conn: Connection | Pool, subject: AttemptSubject) -> None:
    """Start again after a success. An address is forgiven the one try only."""
    if subject.factor == "address":
        await conn.execute(
            "UPDATE login_attempt SET failures = greatest(failures - 1, 0) WHERE subject = $1 AND factor = $2", *subject
        )
    else:
        await conn.execute("DELETE FROM login_attempt WHERE subject = $1 AND factor = $2", *subject)
