"""Looks up users, their memberships, factors and sessions. One indexed query each."""

from collections.abc import Collection
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

import msgspec

from billfold.identity.users.contact_details import USERS, check_found, has_email
from billfold.identity.users.rules import IDLE_TIMEOUT, Factors, Membership, Passkey, Session, User, normalize_email
from billfold.platform.crypto import Vault
from billfold.platform.database.connection import Db

_T = TypeVar("_T")


_PERSON = """p.user_id, p.email, p.email_verified_at, p.first_name, p.last_name, p.phone_number,
       p.phone_verified_at, p.time_zone, p.created_at, p.last_login_at"""
_BY_ID = f"SELECT {_PERSON} FROM user_account p WHERE user_id = $1 AND status = 'ACTIVE'"
_BY_EMAIL = f"SELECT {_PERSON} FROM user_account p WHERE {has_email('$1', '$2')} AND status = 'ACTIVE'"
_ALL = f"SELECT {_PERSON} FROM user_account p WHERE status = 'ACTIVE'"
_SESSION = f"""
SELECT {_PERSON}, s.session_id, s.auth_methods, s.complete, s.authenticated_at, s.started_at,
       s.last_seen_at, s.ends_at, s.address, s.device
  FROM session s JOIN user_account p USING (user_id)
 WHERE p.status = 'ACTIVE' AND s.ends_at > $2 AND s.last_seen_at > $3 AND
"""
_ONE_SESSION = f"{_SESSION} s.session_hash = $1"
_SESSIONS_OF = f"{_SESSION} s.user_id = $1 AND s.complete ORDER BY s.last_seen_at DESC"
_MEMBERSHIPS = """
SELECT m.member_id, m.customer_id, c.name AS customer_name, m.role, m.status, c.role AS organization,
       p.slug AS partner_slug
  FROM membership m JOIN customer c USING (customer_id) LEFT JOIN partner p ON p.own_customer_id = m.customer_id
 WHERE m.user_id = $1 ORDER BY c.name, m.customer_id
"""
_IS_MEMBER = """
SELECT EXISTS (SELECT 1 FROM membership WHERE customer_id = $1 AND member_id = $2)
    OR EXISTS (SELECT 1 FROM oauth_client WHERE customer_id = $1 AND member_id = $2)
"""
_FACTORS = """
SELECT (SELECT changed_at FROM user_password WHERE user_id = $1) AS password_changed_at,
       (SELECT confirmed_at FROM authenticator WHERE user_id = $1) AS authenticator_since,
       (SELECT count(*) FROM passkey WHERE user_id = $1) AS passkeys
"""
_PASSKEY = """
SELECT passkey_id, credential_id, user_id, public_key, sign_count, name, created_at, used_at
  FROM passkey WHERE
"""
_CLAIMS = """
SELECT p.user_id, p.first_name, p.last_name, p.email, p.email_verified_at, p.phone_number,
       p.phone_verified_at, m.member_id, m.customer_id, k.partner_id
  FROM user_account p JOIN membership m USING (user_id) JOIN customer k USING (customer_id)
 WHERE p.user_id = $1 AND m.customer_id = $2
"""


async def find_user(conn: Db, vault: Vault, user_id: UUID) -> User | None:
    """Return the user of an id, or None: unknown or deactivated."""
    row = await conn.fetchrow(_BY_ID, user_id)
    return None if row is None else _user(row, vault)


async def find_user_by_email(conn: Db, vault: Vault, email: str) -> User | None:
    """Return the user of an address in any spelling, or None: unknown or deactivated.

    Raises InvariantError if the row found belongs to another address.
    """
    row = await conn.fetchrow(_BY_EMAIL, USERS.indexes(vault, email), normalize_email(email))
    if row is None:
        return None
    user = _user(row, vault)
    check_found(user.email, email)
    return user


async def list_users(conn: Db, vault: Vault) -> list[User]:
    """Return everybody who may sign in, by address. For the operator's screen."""
    return sorted([_user(row, vault) for row in await conn.fetch(_ALL)], key=lambda each: each.email)


async def find_session(conn: Db, vault: Vault, session_hash: bytes, *, now: datetime) -> Session | None:
    """Return the session of a cookie, complete or not; None if it ended or was idle too long."""
    row = await conn.fetchrow(_ONE_SESSION, session_hash, now, now - IDLE_TIMEOUT)
    return None if row is None else _session(row, vault)


async def list_sessions(conn: Db, vault: Vault, user_id: UUID, *, now: datetime) -> list[Session]:
    """Return the sessions of a user, the last seen first."""
    rows = await conn.fetch(_SESSIONS_OF, user_id, now, now - IDLE_TIMEOUT)
    return [_session(row, vault) for row in rows]


async def list_user_memberships(conn: Db, user_id: UUID, *, only_active: bool = False) -> list[Membership]:
    """Return the memberships of a user, by the customers' names; their status says which are active."""
    rows = await conn.fetch(_MEMBERSHIPS, user_id)
    return [_read_row(row, Membership) for row in rows if row["status"] == "ACTIVE" or not only_active]


async def is_member(conn: Db, customer_id: UUID, member_id: UUID) -> bool:
    """Return whether a user or service user is or was a member of a customer's team."""
    return await conn.fetchval(_IS_MEMBER, customer_id, member_id) is True


async def get_factors(conn: Db, user_id: UUID) -> Factors:
    """Return the authentication factors of a user."""
    return _read_row(await conn.fetchrow(_FACTORS, user_id), Factors)


async def list_passkeys(conn: Db, user_id: UUID) -> list[Passkey]:
    """Return a user's passkeys, oldest first."""
    rows = await conn.fetch(f"{_PASSKEY} user_id = $1 ORDER BY created_at", user_id)
    return [_read_row(row, Passkey) for row in rows]


async def find_passkey(conn: Db, credential_id: bytes) -> Passkey | None:
    """Return the passkey a device names, or None."""
    row = await conn.fetchrow(f"{_PASSKEY} credential_id = $1", credential_id)
    return None if row is None else _read_row(row, Passkey)


async def user_claims(
    conn: Db, vault: Vault, user_id: UUID, *, customer_id: UUID, scopes: Collection[str]
) -> dict[str, Any]:
    """Return `sub` and the claims that the scopes `profile`, `email` and `phone` give a client."""
    row = await conn.fetchrow(_CLAIMS, user_id, customer_id)
    user_info: dict[str, Any] = {"sub": str(user_id)}
    if row is None:
        return user_info
    claims = USERS.open(vault, user_id, row)
    if "profile" in scopes:
        user_info |= {
            "name": f"{claims['first_name']} {claims['last_name']}",
            "given_name": claims["first_name"],
            "family_name": claims["last_name"],
            "member_id": str(claims["member_id"]),
            "customer_id": str(claims["customer_id"]),
            "partner_id": None if claims["partner_id"] is None else str(claims["partner_id"]),
        }
    if "email" in scopes:
        user_info |= {"email": claims["email"], "email_verified": claims["email_verified_at"] is not None}
    if "phone" in scopes and claims["phone_number"] is not None:
        user_info |= {
            "phone_number": claims["phone_number"],
            "phone_number_verified": claims["phone_verified_at"] is not None,
        }
    return user_info


def _session(row: Any, vault: Vault) -> Session:  # noqa: ANN401 - a record of asyncpg
    return _read_row({**row, "user": _user(row, vault)}, Session)


def _user(row: Any, vault: Vault) -> User:  # noqa: ANN401 - as above
    return _read_row(USERS.open(vault, row["user_id"], row), User)


def _read_row(row: Any, kind: type[_T]) -> _T:  # noqa: ANN401 - as above
    return msgspec.convert(dict(row), kind)
