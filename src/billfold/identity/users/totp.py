"""Six digits from an authenticator app (TOTP, RFC 6238). Each is valid once. `now` is wall time."""

import hmac
from datetime import datetime
from uuid import UUID

import pyotp

from billfold.platform.crypto import Vault, associated_data
from billfold.platform.database.connection import Db

STEP_SECONDS = 30
_SKEW_STEPS = 1
"""Tolerated skew of a phone's clock, in steps before and after."""
_SLOWEST_STEPS = 4
"""Maximum duration of a request, from reading its code to recording it, in steps."""

_STORE_PENDING = """
INSERT INTO authenticator AS a (user_id, sealed, created_at) VALUES ($1, $2, $3)
ON CONFLICT (user_id) DO UPDATE
   SET sealed = excluded.sealed, last_step = 0, created_at = excluded.created_at
 WHERE a.confirmed_at IS NULL
RETURNING true
"""
_SECRET = "SELECT sealed, confirmed_at FROM authenticator WHERE user_id = $1"  # noqa: S105 - a query
_USE = """
UPDATE authenticator SET last_step = $2, confirmed_at = coalesce(confirmed_at, $3)
 WHERE user_id = $1 AND last_step < $2 AND (confirmed_at IS NULL) = $4 RETURNING true
"""


def new_secret() -> str:
    """Return a new secret of 160 random bits in base32."""
    return pyotp.random_base32()


def totp_uri(secret: str, email: str, *, issuer: str) -> str:
    """Return the `otpauth:` address that an app reads from a QR code."""
    return pyotp.TOTP(secret).provisioning_uri(name=email, issuer_name=issuer)


def was_in_force(step: int, at: datetime) -> bool:
    """Tell whether the code of a time step could have been entered for a record made at some instant. Pure."""
    recorded = int(at.timestamp()) // STEP_SECONDS
    return recorded - _SKEW_STEPS - _SLOWEST_STEPS <= step <= recorded + _SKEW_STEPS


def matching_totp_step(secret: str, code: str, now: datetime) -> int | None:
    """Return the time step a code belongs to, or None when it is wrong. Pure."""
    current = int(now.timestamp()) // STEP_SECONDS
    totp = pyotp.TOTP(secret)
    entered = code.replace(" ", "").encode()
    for step in range(current - _SKEW_STEPS, current + _SKEW_STEPS + 1):
        if hmac.compare_digest(totp.generate_otp(step).encode(), entered):
            return step
    return None


async def store_pending_authenticator(conn: Db, vault: Vault, user_id: UUID, *, secret: str, now: datetime) -> bool:
    """Store a secret that takes effect once a code has confirmed it; False if one is already active."""
    sealed = vault.seal(secret.encode(), secret_place(user_id))
    return await conn.fetchval(_STORE_PENDING, user_id, sealed, now) is True


async def find_pending_secret(conn: Db, vault: Vault, user_id: UUID) -> str | None:
    """Return the secret that waits for confirmation, or None."""
    row = await conn.fetchrow(_SECRET, user_id)
    if row is None or row["confirmed_at"] is not None:
        return None
    return vault.open(row["sealed"], secret_place(user_id)).decode()


async def consume_code(
    conn: Db, vault: Vault, user_id: UUID, *, code: str, now: datetime, pending: bool = False
) -> int | None:
    """Return the time step of a correct, unused code and mark it as used, else None.

    With `pending` the code is one of the proposed secret, which becomes active.
    """
    row = await conn.fetchrow(_SECRET, user_id)
    if row is None or (row["confirmed_at"] is None) != pending:
        return None
    step = matching_totp_step(vault.open(row["sealed"], secret_place(user_id)).decode(), code, now)
    is_new = step is not None and await conn.fetchval(_USE, user_id, step, now, pending) is True
    return step if is_new else None


async def seconds_to_next(conn: Db, vault: Vault, user_id: UUID, *, code: str, now: datetime) -> int | None:
    """Return after how many seconds the app shows a code that was not used, if this correct one was; else None."""
    row = await conn.fetchrow("SELECT sealed, last_step FROM authenticator WHERE user_id = $1", user_id)
    if row is None:
        return None
    step = matching_totp_step(vault.open(row["sealed"], secret_place(user_id)).decode(), code, now)
    if step is None or step > row["last_step"]:
        return None
    next_step: int = row["last_step"] + 1
    # The app shows the code of a step from its beginning on.
    return max(0, next_step * STEP_SECONDS - int(now.timestamp()))


async def remove_authenticator(conn: Db, user_id: UUID) -> bool:
    """Delete a user's authenticator; return whether there was an active one."""
    found = await conn.fetchval("DELETE FROM authenticator WHERE user_id = $1 RETURNING confirmed_at", user_id)
    return found is not None


def secret_place(user_id: UUID) -> bytes:
    """Return the only place where the secret of an authenticator opens."""
    return associated_data("authenticator", "sealed", user_id, tenant_id=user_id)
