"""Service users: created with a name, scopes and a public key.

They prove themselves with `private_key_jwt`, never with a secret. A key is added beside others,
put in their place, or taken out of use at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from billfold.access.oauth import clients
from billfold.access.oauth.types import CLIENT_CREDENTIALS, Client, ClientKey, NewClient
from billfold.access.team import rules
from billfold.access.team.administrator import Administrator, audited, notify_administrators
from billfold.access.team.store import get_member
from billfold.access.team.types import CreateProgram, Member
from billfold.audit.record import AuditedAction
from billfold.platform.errors import NotFound, Refused

if TYPE_CHECKING:
    from datetime import datetime

    from billfold.platform.database.pool import Connection, Pool

_KEY_OWNERS = """
WITH RECURSIVE keeper (member_id) AS (
  SELECT k.registered_by FROM client_key k WHERE k.client_id = $1
  UNION
  SELECT k.registered_by FROM keeper
    JOIN oauth_client c USING (member_id) JOIN client_key k ON k.client_id = c.client_id
)
SELECT m.user_id FROM keeper JOIN membership m USING (member_id)
"""


class ServiceUser(NamedTuple):
    """A service user as a member and as an OAuth client, with its keys in use."""

    member: Member
    client: Client
    keys: list[ClientKey]


async def create_service_user(by: Administrator, wanted: CreateProgram) -> ServiceUser:
    """Create a service user that can get a token at once.

    Raises InvalidInput with the fields' names, Refused `forbidden`.
    """
    new = NewClient(
        name=wanted.name,
        description=wanted.description,
        scopes=tuple(dict.fromkeys(wanted.scopes)),
        profile=wanted.profile,
        requires_nonce=False,
        grant_types=(CLIENT_CREDENTIALS,),
        customer_id=by.customer_id,
    )
    details = {"name": new.name, "scopes": list(new.scopes)}
    async with audited(by, "service_user.created", ("member", None), **details) as audited_action:
        rules.check_grantable(by.scopes, new.scopes)
        conn = audited_action.conn
        made, key = await clients.register_client_with_key(
            conn, new, wanted.public_key, now=by.now, wall=by.wall, by=by.origin.member_id
        )
        assert made.member_id is not None
        audited_action.resource_id = made.member_id
        description = f"{by.name} made the service user {made.name}: {' '.join(made.scopes)}."
        await notify_administrators(
            audited_action, by, "SECURITY_ALERT", title="A service user was made", description=description
        )
        member = await get_member(conn, by.customer_id, made.member_id, now=by.now)
    return ServiceUser(member, made, [key])


async def get_service_user(
    conn: Connection | Pool, customer_id: UUID, member_id: UUID, *, now: datetime, wall: datetime
) -> ServiceUser:
    """Return a service user of a team with its keys in use. Raises NotFound."""
    member = await get_member(conn, customer_id, member_id, now=now)
    client = None
    if member.client_id is not None:
        client = await clients.find_client(conn, member.client_id)
    if client is None:
        raise NotFound("There is no such service user.")
    return ServiceUser(member, client, await clients.list_client_keys(conn, client.client_id, wall))


async def list_key_owner_ids(conn: Connection | Pool, client_id: str) -> frozenset[UUID]:
    """Return the users who ever registered a key of a client, themselves or through a service user.

    Each of them can act as the client, so none of them may approve its requests.
    """
    return frozenset(row["user_id"] for row in await conn.fetch(_KEY_OWNERS, client_id))


async def add_service_user_key(by: Administrator, member_id: UUID, public_key: str) -> ClientKey:
    """Register a key beside those there are.

    Raises NotFound, InvalidInput, Refused `duplicate-id`, `member-not-active`, `forbidden`.
    """
    async with audited(by, "service_user.key_added", ("member", member_id)) as audited_action:
        service_user = await _get_active(audited_action, by, member_id)
        await clients.check_key_count(audited_action.conn, service_user.client.client_id, by.wall)
        key = await _register_key(audited_action, by, service_user, public_key=public_key)
        await _alert(audited_action, by, service_user, title="A key of a service user was added")
    return key


async def rotate_service_user_keys(by: Administrator, member_id: UUID, public_key: str) -> ClientKey:
    """Register a key in the place of all others; those are accepted for a day more."""
    async with audited(by, "service_user.key_rotated", ("member", member_id)) as audited_action:
        service_user = await _get_active(audited_action, by, member_id)
        key = await _register_key(audited_action, by, service_user, public_key=public_key, replaces=True)
        await _alert(audited_action, by, service_user, title="The key of a service user was replaced")
    return key


async def revoke_service_user_key(by: Administrator, member_id: UUID, key_id: str) -> None:
    """Take a key out of use at once; the service user's tokens end with it. Raises NotFound."""
    details = {"key_id": key_id}
    async with audited(by, "service_user.key_revoked", ("member", member_id), **details) as audited_action:
        service_user = await get_service_user(audited_action.conn, by.customer_id, member_id, now=by.now, wall=by.wall)
        await clients.revoke_client_key(audited_action.conn, service_user.client.client_id, key_id, now=by.wall)
        await _alert(audited_action, by, service_user, title="A key of a service user was revoked")


async def _get_active(audited_action: AuditedAction, by: Administrator, member_id: UUID) -> ServiceUser:
    """Return a service user that may get another key. Whoever gives one could act as it."""
    service_user = await get_service_user(audited_action.conn, by.customer_id, member_id, now=by.now, wall=by.wall)
    if service_user.member.status != "ACTIVE":
        raise Refused("member-not-active", "The service user is deactivated.")
    rules.check_grantable(by.scopes, service_user.client.scopes)
    return service_user


async def _register_key(
    audited_action: AuditedAction,
    by: Administrator,
    service_user: ServiceUser,
    public_key: str,
    *,
    replaces: bool = False,
) -> ClientKey:
    register = clients.rotate_client_key if replaces else clients.add_client_key
    key = await register(
        audited_action.conn, service_user.client.client_id, public_key, now=by.wall, by=by.origin.member_id
    )
    audited_action.details["key_id"] = key.key_id
    return key


async def _alert(audited_action: AuditedAction, by: Administrator, service_user: ServiceUser, title: str) -> None:
    description = f"{by.name} changed the keys of the service user {service_user.client.name}."
    await notify_administrators(audited_action, by, "SECURITY_ALERT", title=title, description=description)
