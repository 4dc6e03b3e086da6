"""Counts failed sign-in attempts, so that guessing takes too long. `now` is wall time.

An attempt is counted before it is checked, so that parallel guesses are slowed down as well.
Attempts are counted for unknown e-mail addresses as well.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal, NamedTuple
from uuid import UUID

from billfold.identity.users import rules
from billfold.identity.users.rules import LockoutPolicy
from billfold.platform import crypto
from billfold.platform.addresses import network_of
from billfold.platform.crypto import Vault
from billfold.platform.database.connection import Connection, Db
from billfold.platform.ids import command_id

Factor = Literal["password", "code", "address", "partner"]

_CURRENT = """
INSERT INTO login_attempt AS f (subject, factor, failures, last_failed_at) VALUES ($1, $2, 0, $3)
ON CONFLICT (subject, factor) DO UPDATE SET failures = f.failures RETURNING failures, last_failed_at
"""
_UPDATE = """
UPDATE login_attempt SET failures = $3, last_failed_at = $4 WHERE subject = $1 AND factor = $2
"""
_POLICIES: Mapping[Factor, LockoutPolicy] = {"address": rules.IP_LOCKOUT, "partner": rules.PARTNER_LOCKOUT}


class AttemptSubject(NamedTuple):
    """The subject and the factor whose attempts are counted."""

    subject: UUID
    factor: Factor

    @property
    def pace(self) -> LockoutPolicy:
        """Return the rate at which attempts may follow each other."""
        return _POLICIES.get(self.factor, rules.ACCOUNT_LOCKOUT)


class AttemptResult(NamedTuple):
    """The result of an attempt: seconds to wait (0: continue), and whether it locks."""

    wait_seconds: int
    locks: bool


def password_subject(vault: Vault, email: str, own_browser: str | None = None) -> AttemptSubject:
    """Return the subject of passwords tried for an e-mail address, however it is spelled.

    Each browser the user has signed in with is counted separately, by its lasting cookie; all others share a counter:
    strangers, who know the address, lock out each other and not the user. Nothing stored reveals whether an
    address was tried.
    """
    index = vault.blind_index(rules.normalize_email(email), "password of").hex()
    if own_browser is None:
        return AttemptSubject(command_id("password of", index), "password")
    browser = crypto.hash_token(own_browser).hex()
    return AttemptSubject(command_id("password from own browser", f"{browser} {index}"), "password")


def totp_subject(user_id: UUID) -> AttemptSubject:
    """Return the subject of codes entered for a user."""
    return AttemptSubject(command_id("code of", user_id), "code")


def partner_subject(username: str, own_network: str | None = None) -> AttemptSubject:
    """Return the subject of passwords tried for a partner's user name, whether or not it exists.

    Each network that the user has logged in from is counted separately; all others share a counter: strangers, who know
    the name, lock out each other and not the user.
    """
    if own_network is None:
        return AttemptSubject(command_id("partner password of", username), "partner")
    # Separate from the names that strangers enter: one may begin with the network of somebody else.
    return AttemptSubject(command_id("partner password from own network", f"{own_network} {username}"), "partner")


def ip_subject(address: str) -> AttemptSubject:
    """Return the subject of all attempts from an IP address; an IPv6 site counts as one."""
    return AttemptSubject(command_id("address", network_of(address)), "address")


async def begin_attempt(conn: Connection, subject: AttemptSubject, now: datetime) -> AttemptResult:
    """Count a failed attempt, or return the remaining lock time. Success resets the count."""
    async with conn.transaction():
        failures, last_failed_at = await conn.fetchrow(_CURRENT, *subject, now) or (0, now)
        wait = rules.lockout_seconds(subject.pace, failures, last_failed_at, now=now)
        if wait:
            return AttemptResult(wait, locks=False)
        failures_now = rules.count_failure(subject.pace, failures, last_failed_at, now=now)
        await conn.execute(_UPDATE, *subject, failures_now, now)
        return AttemptResult(0, locks=failures_now == subject.pace.lock_after)


async def clear_attempts(conn: Db, subject: AttemptSubject) -> None:
    """Reset the count after a success. For an address only that one attempt is forgiven."""
    if subject.factor == "address":
        await conn.execute(
            "UPDATE login_attempt SET failures = greatest(failures - 1, 0) WHERE subject = $1 AND factor = $2", *subject
        )
    else:
        await conn.execute("DELETE FROM login_attempt WHERE subject = $1 AND factor = $2", *subject)
