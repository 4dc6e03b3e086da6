"""Reads a team: users, invitations and service users in one list. One statement."""

from collections.abc import Collection
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import asyncpg
import msgspec

from billfold.identity.members.rules import Member
from billfold.identity.users import rules
from billfold.identity.users.contact_details import COLUMNS, INVITATIONS, USERS, has_email
from billfold.identity.users.rules import Organization, Role
from billfold.platform import ids
from billfold.platform.crypto import Vault
from billfold.platform.database.connection import Connection, Db
from billfold.platform.errors import NotFound, Refused

_TEAM = """
SELECT * FROM (
  SELECT m.member_id, m.user_id, NULL::text AS client_id, p.first_name, p.last_name, p.email,
         p.phone_number, m.role,
         CASE p.status WHEN 'ACTIVE' THEN m.status ELSE 'DEACTIVATED' END AS status,
         NULL::text[] AS scopes, m.created_at, p.last_login_at,
         NULL::timestamptz AS invite_expires_at
    FROM membership m JOIN user_account p USING (user_id) WHERE m.customer_id = $1
  UNION ALL
  SELECT i.member_id, NULL, NULL, i.first_name, i.last_name, i.email, i.phone_number, i.role,
         CASE WHEN i.expires_at > $2 THEN 'PENDING' ELSE 'EXPIRED' END, NULL, i.created_at, NULL,
         i.expires_at
    FROM invitation i WHERE i.customer_id = $1
  UNION ALL
  SELECT c.member_id, NULL, c.client_id, c.name, '', NULL, NULL, 'SERVICE',
         CASE WHEN c.revoked_at IS NULL THEN 'ACTIVE' ELSE 'DEACTIVATED' END, c.scopes,
         c.created_at, NULL, NULL
    FROM oauth_client c WHERE c.customer_id = $1
) t
"""
_ALL = f"""
{_TEAM} ORDER BY client_id IS NOT NULL, lower(first_name), lower(last_name), created_at, member_id
"""
_ONE = f"{_TEAM} WHERE member_id = $3"

# What a member or an invitation was before a change, without what is read as it is now: the details of the person.
_IMAGE = """user_id uuid, client_id text, first_name text, last_name text, role text, status text, scopes text[],
  created_at timestamptz, invite_expires_at timestamptz"""
_KEEP = f"""
INSERT INTO former_row (customer_id, kind, object_id, until, row)
SELECT $1, 'member', member_id, $2, json_build_object(
         'member_id', member_id, 'user_id', user_id, 'client_id', client_id, 'first_name', first_name,
         'last_name', last_name, 'role', role, 'status', status, 'scopes', scopes, 'created_at', created_at,
         'invite_expires_at', invite_expires_at)
  FROM ({_TEAM}) t WHERE $3::uuid[] IS NULL OR member_id = ANY($3) OR user_id = ANY($3)
    ON CONFLICT DO NOTHING
"""
_FORMER = """
SELECT json_agg(row)::text FROM (
  SELECT DISTINCT ON (object_id) row FROM former_row
   WHERE customer_id = $1 AND kind = 'member' AND until > $2 AND ($3::uuid IS NULL OR object_id = $3)
   ORDER BY object_id, until) f
"""
# Names of users and the contact details are those of now; of an invitation that is gone there are none.
_THEN = f"""
SELECT * FROM (
  SELECT member_id, t.user_id AS found_user_id, t.email, t.phone_number, NULL::timestamptz AS last_login_at,
         CASE WHEN f.role IS NULL THEN t.user_id ELSE f.user_id END AS user_id,
         coalesce(f.client_id, t.client_id) AS client_id,
         CASE WHEN f.invite_expires_at IS NULL THEN coalesce(t.first_name, f.first_name) ELSE f.first_name END
           AS first_name,
         CASE WHEN f.invite_expires_at IS NULL THEN coalesce(t.last_name, f.last_name) ELSE f.last_name END
           AS last_name,
         coalesce(f.role, t.role) AS role, coalesce(f.scopes, t.scopes) AS scopes,
         CASE WHEN f.role IS NULL THEN t.status WHEN f.invite_expires_at > $2 THEN 'PENDING'
              WHEN f.invite_expires_at IS NOT NULL THEN 'EXPIRED' ELSE f.status END AS status,
         CASE WHEN f.role IS NULL THEN t.created_at ELSE f.created_at END AS created_at,
         CASE WHEN f.role IS NULL THEN t.invite_expires_at ELSE f.invite_expires_at END AS invite_expires_at
    FROM ({_TEAM}) t
    FULL JOIN json_to_recordset(coalesce($3::json, '[]')) AS f(member_id uuid, {_IMAGE}) USING (member_id)
) found WHERE created_at <= $2 AND ($4::uuid IS NULL OR member_id = $4)
 ORDER BY client_id IS NOT NULL, lower(first_name), lower(last_name), created_at, member_id
"""

_KEY_OWNERS = """
WITH RECURSIVE keeper (member_id) AS (
  SELECT k.registered_by FROM client_key k WHERE k.client_id = $1
  UNION
  SELECT k.registered_by FROM keeper
    JOIN oauth_client c USING (member_id) JOIN client_key k ON k.client_id = c.client_id
)
SELECT m.user_id FROM keeper JOIN membership m USING (member_id)
"""

_SECURITY = """
SELECT m.member_id, EXISTS (SELECT 1 FROM authenticator a WHERE a.user_id = m.user_id AND a.confirmed_at IS NOT NULL)
         AS authenticator,
       (SELECT count(*) FROM passkey k WHERE k.user_id = m.user_id) AS passkeys,
       (SELECT max(s.last_seen_at) FROM session s WHERE s.user_id = m.user_id AND s.complete) AS seen_at, 0 AS keys
  FROM membership m WHERE m.customer_id = $1
 UNION ALL
SELECT c.member_id, false, 0, NULL,
       (SELECT count(*) FROM client_key k
         WHERE k.client_id = c.client_id AND (k.expires_at IS NULL OR k.expires_at > $2))
  FROM oauth_client c WHERE c.customer_id = $1
"""
_KEYS_BY = """
SELECT c.client_id, c.name, c.member_id IS NOT NULL AS is_service_user, k.key_id, k.algorithm, k.created_at
  FROM oauth_client c JOIN client_key k USING (client_id)
 WHERE $1 IN (c.customer_id, c.owner_id) AND k.registered_by = $2 AND c.revoked_at IS NULL
   AND (k.expires_at IS NULL OR k.expires_at > $3)
 ORDER BY k.created_at DESC
"""


class MemberSecurity(NamedTuple):
    """The second factors of a member, when they were last seen in an open session, and a service user's keys."""

    authenticator: bool
    passkeys: int
    seen_at: datetime | None
    keys: int


class RegisteredKey(NamedTuple):
    """A valid key that a member has registered, and its service user or application."""

    client_id: str
    name: str
    is_service_user: bool
    key_id: str
    algorithm: str
    created_at: datetime


async def list_security(conn: Db, customer_id: UUID, *, wall: datetime) -> dict[UUID, MemberSecurity]:
    """Return how the members of a team sign in, by their ids."""
    rows = await conn.fetch(_SECURITY, customer_id, wall)
    return {member_id: MemberSecurity(*rest) for member_id, *rest in rows}


async def list_keys_registered_by(
    conn: Db, customer_id: UUID, member_id: UUID, *, wall: datetime
) -> list[RegisteredKey]:
    """Return the valid keys that a member has registered, the newest first: they may have the private ones."""
    return [RegisteredKey(*row) for row in await conn.fetch(_KEYS_BY, customer_id, member_id, wall)]


async def list_team(
    conn: Db, vault: Vault, customer_id: UUID, *, now: datetime, as_of: datetime | None = None
) -> list[Member]:
    """Return all members of a team and invitations into it, by name, service users last.

    `now` is the bank's time. As of an instant, last sign-ins are left out.
    """
    if as_of is not None:
        return await _list_as_of(conn, vault, customer_id, as_of=as_of)
    return [_member(row, vault, user_id=row["user_id"]) for row in await conn.fetch(_ALL, customer_id, now)]


async def get_member(
    conn: Db,
    vault: Vault,
    customer_id: UUID,
    *,
    member_id: UUID,
    now: datetime,
    as_of: datetime | None = None,
) -> Member:
    """Return a member of a team. Raises NotFound, for members of other teams as well."""
    if as_of is not None:
        if found := await _list_as_of(conn, vault, customer_id, as_of=as_of, member_id=member_id):
            return found[0]
        raise NotFound("There is no such member.")
    row = await conn.fetchrow(_ONE, customer_id, now, member_id)
    if row is None:
        raise NotFound("There is no such member.")
    return _member(row, vault, user_id=row["user_id"])


async def list_key_owner_ids(conn: Db, client_id: str) -> frozenset[UUID]:
    """Return the users who ever registered a key of a client, themselves or through a service user.

    Each of them can act as the client, so all are excluded from approving its requests.
    """
    return frozenset(row["user_id"] for row in await conn.fetch(_KEY_OWNERS, client_id))


async def keep_former(conn: Db, customer_id: UUID, ids: Collection[UUID] | None, *, now: datetime) -> None:
    """Keep members and invitations as they are before a change, for reads as of an instant.

    They are named by the id of the member or of the user; None are all. `now` is the bank's time.
    """
    await conn.execute(_KEEP, customer_id, now, ids)


async def _list_as_of(
    conn: Db, vault: Vault, customer_id: UUID, *, as_of: datetime, member_id: UUID | None = None
) -> list[Member]:
    # Two statements: on a cluster the former rows are on another node than the team.
    former = await conn.fetchval(_FORMER, customer_id, as_of, member_id)
    rows = await conn.fetch(_THEN, customer_id, as_of, former, member_id)
    return [_member(row, vault, user_id=row["found_user_id"]) for row in rows]


def _member(row: Any, vault: Vault, *, user_id: UUID | None) -> Member:  # noqa: ANN401 - a record of asyncpg
    table, row_id = (INVITATIONS, row["member_id"]) if user_id is None else (USERS, user_id)
    return msgspec.convert(table.open(vault, row_id, row), Member)


# The address may be in a row without the unique index: one of an earlier release or under a former key.
_ENROL = f"""
INSERT INTO user_account (user_id, first_name, last_name, created_at, {COLUMNS})
SELECT $1, $2, $3, $4, $5, $6, $7 WHERE NOT EXISTS (SELECT 1 FROM user_account WHERE {has_email("$8", "$9")})
RETURNING true
"""
_ADD = """
INSERT INTO membership AS m (customer_id, user_id, member_id, role, status, created_at, changed_at)
VALUES ($1, $2, $3, $4, 'ACTIVE', $5, $5)
ON CONFLICT (customer_id, user_id) DO UPDATE
   SET role = excluded.role, status = 'ACTIVE', changed_at = excluded.changed_at
RETURNING m.member_id
"""
_DEACTIVATE = """
UPDATE membership SET status = 'DEACTIVATED', changed_at = $3
 WHERE customer_id = $1 AND user_id = $2 AND status <> 'DEACTIVATED' RETURNING member_id
"""
_IS_ACTIVE = """
SELECT true FROM membership m JOIN user_account p USING (user_id)
 WHERE m.customer_id = $1 AND m.user_id = $2 AND m.status = 'ACTIVE' AND p.status = 'ACTIVE'
"""


async def create_user(
    conn: Db,
    vault: Vault,
    *,
    email: str,
    first_name: str,
    last_name: str,
    now: datetime,
    phone_number: str | None = None,
) -> UUID:
    """Create a user, without a password yet. Raises InvalidInput, Refused `duplicate-id`."""
    user_id = ids.new()
    phone = None if phone_number is None else rules.check_phone_number(phone_number)
    address = rules.check_email(email)
    row = (
        user_id,
        rules.check_name(first_name, "first_name"),
        rules.check_name(last_name, "last_name"),
        now,
        *USERS.seal(vault, user_id, address, phone_number=phone),
    )
    try:
        is_new = await conn.fetchval(_ENROL, *row, USERS.indexes(vault, address), address)
    except asyncpg.UniqueViolationError:
        is_new = False
    if not is_new:
        raise Refused("duplicate-id", f"There is a user {email!r} already.")
    return user_id


async def add_member(
    conn: Db,
    customer_id: UUID,
    user_id: UUID,
    *,
    role: Role,
    now: datetime,
    member_id: UUID | None = None,
) -> UUID:
    """Make a user an active member of a customer and return the member's id.

    An existing member gets the role, keeps their id, and is active again. Raises NotFound.
    """
    await _role_of(conn, customer_id)
    await keep_former(conn, customer_id, [user_id], now=now)
    found: UUID = await conn.fetchval(_ADD, customer_id, user_id, member_id or ids.new(), role, now)
    return found


async def require_company(conn: Db, customer_id: UUID) -> None:
    """Refuse the bank itself and partners: applications never act for them. Raises NotFound, Refused `forbidden`."""
    Organization(await _role_of(conn, customer_id)).require_company()


async def _role_of(conn: Db, customer_id: UUID) -> str:
    # A cluster has no foreign keys to customers.
    role: str | None = await conn.fetchval("SELECT role FROM customer WHERE customer_id = $1", customer_id)
    if role is None:
        raise NotFound("There is no such customer.")
    return role


async def is_active_member(conn: Db, customer_id: UUID, user_id: UUID, *, lock: bool = False) -> bool:
    """Return whether an active user is an active member of a customer's team.

    With `lock` the membership cannot change until the transaction ends.
    """
    return await conn.fetchval(_IS_ACTIVE + ("FOR SHARE OF m" if lock else ""), customer_id, user_id) is True


async def deactivate_member(conn: Db, customer_id: UUID, user_id: UUID, *, now: datetime) -> None:
    """End a membership at once. Raises NotFound if there is no active one."""
    if await conn.fetchval(_DEACTIVATE, customer_id, user_id, now) is None:
        raise NotFound("There is no such member.")


async def deactivate_user(conn: Connection, user_id: UUID) -> None:
    """Deactivate a user: their sessions and links end. Raises NotFound."""
    async with conn.transaction():
        done = await conn.fetchval(
            "UPDATE user_account SET status = 'DEACTIVATED' WHERE user_id = $1 RETURNING user_id", user_id
        )
        if done is None:
            raise NotFound("There is no such user.")
        await conn.execute("DELETE FROM session WHERE user_id = $1", user_id)
        await conn.execute("DELETE FROM email_link WHERE user_id = $1", user_id)


async def reset_second_factors(conn: Connection, user_id: UUID) -> None:
    """Delete all second factors and sessions of a user; the next sign-in asks for a new one."""
    async with conn.transaction():
        await conn.execute("DELETE FROM authenticator WHERE user_id = $1", user_id)
        await conn.execute("DELETE FROM passkey WHERE user_id = $1", user_id)
        await conn.execute("DELETE FROM session WHERE user_id = $1", user_id)
