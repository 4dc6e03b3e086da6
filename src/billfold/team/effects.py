"""What a change of a team leaves behind: requests nobody can approve any more, keys whose maker has left."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from billfold.identity.users.rules import PERMISSIONS
from billfold.approvals.store.requests import AUTHORIZATION_REQUESTS, TRANSFER_REQUESTS
from billfold.approvals.store.reviews import find_blockers
from billfold.events.notifications import notify as notification_notify

if TYPE_CHECKING:
    from datetime import datetime

    from billfold.platform.crypto import Vault
    from billfold.platform.database.connection import (Connection)

# Whoever registered a key, or a key of the service user that did, may have the private one.
_WITHOUT_MAKER = """
WITH RECURSIVE maker (client_id, member_id) AS (
  SELECT c.client_id, k.registered_by FROM oauth_client c JOIN client_key k USING (client_id)
   WHERE $1 IN (c.customer_id, c.owner_id) AND c.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > $2)
  UNION
  SELECT r.client_id, k.registered_by FROM maker r
    JOIN oauth_client c ON c.member_id = r.member_id JOIN client_key k ON k.client_id = c.client_id
)
SELECT c.client_id, c.member_id, c.name, r.member_id AS maker_id,
       coalesce(p.first_name || ' ' || p.last_name, s.name) AS maker
  FROM maker r JOIN oauth_client c USING (client_id)
  LEFT JOIN membership m ON m.member_id = r.member_id
  LEFT JOIN user_account p ON p.user_id = m.user_id
  LEFT JOIN oauth_client s ON s.member_id = r.member_id
 WHERE s.revoked_at IS NOT NULL OR m.status <> 'ACTIVE' OR p.status <> 'ACTIVE' OR m.role <> ALL($3)
 ORDER BY c.name, c.client_id, r.member_id
"""
_MAKERS = [role for role, permissions in PERMISSIONS.items() if "team.write" in permissions]


class _Effect(NamedTuple):
    """A notification: its type and texts, the name and value of what it is about, and the member who is the cause."""

    kind: str
    title: str
    description: str
    about: tuple[str, UUID | str]
    cause: UUID | None = None


@asynccontextmanager
async def notifying_of_effects(
    conn: Connection, vault: Vault, customer_id: UUID, *, now: datetime, wall: datetime
) -> AsyncIterator[None]:
    """Notify of what a change of the team, made inside, leaves behind. `now` is the bank's time, `wall` wall time."""
    before = {(each.about, each.cause) async for each in _list_effects(conn, customer_id, now, wall=wall)}
    yield
    async for effect in _list_effects(conn, customer_id, now, wall=wall):
        if (effect.about, effect.cause) not in before:
            await notification_notify.notify(
                conn,
                vault,
                customer_id,
                kind=effect.kind,
                title=effect.title,
                description=effect.description,
                metadata=dict([effect.about]),
                now=wall,
            )


async def _list_effects(
    conn: Connection, customer_id: UUID, now: datetime, *, wall: datetime
) -> AsyncIterator[_Effect]:
    transfers = await TRANSFER_REQUESTS.list_pending(conn, customer_id, now=now)
    for request_id, blocker in (await find_blockers(conn, customer_id, transfers, kind=TRANSFER_REQUESTS)).items():
        title, about = "A transfer can no longer be approved", ("transfer_request_id", request_id)
        yield _Effect("TRANSFER_REQUEST_BLOCKED", title, blocker, about)
    changes = await AUTHORIZATION_REQUESTS.list_pending(conn, customer_id, now=now)
    for request_id, blocker in (await find_blockers(conn, customer_id, changes, kind=AUTHORIZATION_REQUESTS)).items():
        title, about = "A sensitive change can no longer be approved", ("authorization_request_id", request_id)
        yield _Effect("SECURITY_ALERT", title, blocker, about)
    for row in await conn.fetch(_WITHOUT_MAKER, customer_id, wall, _MAKERS):
        of_team = row["member_id"] is not None
        noun = "service user" if of_team else "application"
        description = (
            f"{row['maker']} registered a key of the {noun} {row['name']} and no longer administers the team. "
            "Whoever has the private key can still act as it: replace its keys, or take it out of use."
        )
        about = ("member_id", row["member_id"]) if of_team else ("client_id", row["client_id"])
        yield _Effect(
            "SECURITY_ALERT", f"The maker of a key of {row['name']} has left", description, about, row["maker_id"]
        )
