"""A person made whole in one step, for a sandbox: password and authenticator already in force."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

import pyotp

from billfold.access.users import totp as codes
from billfold.access.users.members import add_member, create_user
from billfold.access.users.passwords import set_password
from billfold.access.users.types import Role
from billfold.platform.crypto import Vault

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection

_CONFIRMED_EARLIER = timedelta(minutes=2)
"""The code that confirms is an old one, so that every code from now on is still unused."""


async def create_verified_user(
    conn: Connection,
    vault: Vault,
    customer_id: UUID,
    *,
    email: str,
    first_name: str,
    last_name: str,
    role: Role,
    password_hash: str,
    secret: str,
    now: datetime,
) -> UUID:
    """Make a member who can sign in at once; `secret` is what his authenticator app is told.

    Raises as `enrol_person` and `add_member` do.
    """
    async with conn.transaction():
        user_id = await create_user(conn, email=email, first_name=first_name, last_name=last_name, now=now)
        await conn.execute("UPDATE user_account SET email_verified_at = $2 WHERE user_id = $1", user_id, now)
        await add_member(conn, customer_id, user_id, role=role, now=now)
        await reset_credentials(conn, vault, user_id, password_hash=password_hash, secret=secret, now=now)
    return user_id


async def reset_credentials(
    conn: Connection, vault: Vault, user_id: UUID, *, password_hash: str, secret: str, now: datetime
) -> None:
    """Give a person other credentials, in force at once."""
    async with conn.transaction():
        await set_password(conn, user_id, password_hash, now=now)
        await codes.remove_authenticator(conn, user_id)
        await codes.store_pending_authenticator(conn, vault, user_id, secret=secret, now=now)
        confirmed_at = now - _CONFIRMED_EARLIER
        code = pyotp.TOTP(secret).at(confirmed_at)
        await codes.consume_code(conn, vault, user_id, code=code, now=confirmed_at, pending=True)
