"""Reads of a team: users, invitations and service users in one list. One statement."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec

from billfold.identity.members.types import Member
from billfold.identity.users.contact_details import INVITATIONS, USERS
from billfold.platform.errors import NotFound

if TYPE_CHECKING:
    from billfold.platform.crypto import Vault
    from billfold.platform.database.connection import (Connection, Pool)

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

_KEY_OWNERS = """
WITH RECURSIVE keeper (member_id) AS (
  SELECT k.registered_by FROM client_key k WHERE k.client_id = $1
  UNION
  SELECT k.registered_by FROM keeper
    JOIN oauth_client c USING (member_id) JOIN client_key k ON k.client_id = c.client_id
)
SELECT m.user_id FROM keeper JOIN membership m USING (member_id)
"""


async def list_team(conn: Connection | Pool, vault: Vault, customer_id: UUID, *, now: datetime) -> list[Member]:
    """Return all members of a team and invitations into it, by name, service users last.

    `now` is the bank's time.
    """
    return [_member(row, vault) for row in await conn.fetch(_ALL, customer_id, now)]


async def get_member(
    conn: Connection | Pool, vault: Vault, customer_id: UUID, *, member_id: UUID, now: datetime
) -> Member:
    """Return one of a team. Raises NotFound, for members of other teams as well."""
    row = await conn.fetchrow(_ONE, customer_id, now, member_id)
    if row is None:
        raise NotFound("There is no such member.")
    return _member(row, vault)


async def list_key_owner_ids(conn: Connection | Pool, client_id: str) -> frozenset[UUID]:
    """Return the users who ever registered a key of a client, themselves or through a service user.

    Each of them can act as the client, so none of them may approve its requests.
    """
    return frozenset(row["user_id"] for row in await conn.fetch(_KEY_OWNERS, client_id))


def _member(row: Any, vault: Vault) -> Member:  # noqa: ANN401 - a record of asyncpg
    table, row_id = (INVITATIONS, row["member_id"]) if row["user_id"] is None else (USERS, row["user_id"])
    return msgspec.convert(table.open(vault, row_id, row), Member)
