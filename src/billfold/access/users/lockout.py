"""Counting tries to prove who one is, so that guessing takes too long. `now` is wall time.

A try is counted before it is looked at: those who guess side by side are slowed down as well.
An address of mail is counted whether or not anybody has it.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Literal, NamedTuple
from uuid import UUID

from billfold.access.users import rules
from billfold.access.users.rules import Pace
from billfold.platform.ids import command_id

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection, Pool

Factor = Literal["password", "code", "address"]

_SEEN = """
INSERT INTO proof_failure AS f (subject, factor, failures, failed_at) VALUES ($1, $2, 0, $3)
ON CONFLICT (subject, factor) DO UPDATE SET failures = f.failures RETURNING failures, failed_at
"""
_COUNTED = """
UPDATE proof_failure SET failures = $3, failed_at = $4 WHERE subject = $1 AND factor = $2
"""


class Subject(NamedTuple):
    """Whose tries are counted, with which factor."""

    subject: UUID
    factor: Factor

    @property
    def pace(self) -> Pace:
        """How fast he may try."""
        return rules.ADDRESS_PACE if self.factor == "address" else rules.ACCOUNT_PACE


class Tried(NamedTuple):
    """What came of asking for a try: seconds to wait (0: go on), and whether this one locks."""

    wait_seconds: int
    locks: bool


def password_of(email: str) -> Subject:
    """Return the subject of passwords given for an address of mail."""
    return Subject(command_id("password of", email), "password")


def code_of(user_id: UUID) -> Subject:
    """Return the subject of codes given for a person."""
    return Subject(command_id("code of", user_id), "code")


def address_of(address: str) -> Subject:
    """Return the subject of everything tried from an address on the net."""
    return Subject(command_id("address", address), "address")


async def begin_try(conn: Connection, subject: Subject, now: datetime) -> Tried:
    """Count a try as failed, or tell for how long there is none. Success takes it back."""
    async with conn.transaction():
        failures, failed_at = await conn.fetchrow(_SEEN, *subject, now) or (0, now)
        wait = rules.locked_for(subject.pace, failures, failed_at, now)
        if wait:
            return Tried(wait, locks=False)
        counted = rules.failures_after(subject.pace, failures, failed_at, now)
        await conn.execute(_COUNTED, *subject, counted, now)
        return Tried(0, locks=counted == subject.pace.locks_at)


async def forget_tries(conn: Connection | Pool, subject: Subject) -> None:
    """Start anew after a success. An address is forgiven the one try only."""
    if subject.factor == "address":
        await conn.execute(
            "UPDATE proof_failure SET failures = greatest(failures - 1, 0) "
            "WHERE subject = $1 AND factor = $2",
            *subject,
        )
    else:
        await conn.execute("DELETE FROM proof_failure WHERE subject = $1 AND factor = $2", *subject)
