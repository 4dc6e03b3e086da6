"""Service users: created with a name, scopes and a public key.

They prove themselves with `private_key_jwt`, never with a secret. A key is added to others,
put in their place, or taken out of use at once.
"""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import msgspec

from billfold.approvals.authorization_requests import request_change
from billfold.approvals.types import AuthorizationRequestRow
from billfold.audit.record import AuditedAction
from billfold.identity.members import rules
from billfold.identity.members.rules import CreateProgram, Member
from billfold.identity.members.store import get_member
from billfold.oauth import clients
from billfold.oauth.types import CLIENT_CREDENTIALS, Client, ClientKey, NewClient
from billfold.platform.crypto import Vault
from billfold.platform.database.connection import Db
from billfold.platform.errors import NotFound, Refused
from billfold.team.administrator import Administrator, audited, check_grant, notify_administrators
from billfold.team.members import notifying_of_effects


class ServiceUser(NamedTuple):
    """A service user as a member and as an OAuth client, with its keys in use."""

    member: Member
    client: Client
    keys: list[ClientKey]


async def create_service_user(
    by: Administrator, wanted: CreateProgram, *, client_id: str | None = None
) -> ServiceUser | AuthorizationRequestRow:
    """Create a service user that can get a token at once, or request it if a rule requires approvals.

    `client_id` is generated if omitted. Raises InvalidInput with the fields' names, Refused `forbidden`.
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
    clients.check_client_with_key(new, wanted.public_key, now=by.now)
    details = {"name": new.name, "scopes": list(new.scopes)}
    async with audited(by, "service_user.created", ("member", None), **details) as audited_action:
        terms = await check_grant(audited_action, by, rules.permissions_of("SERVICE", new.scopes))
        if terms is None:
            return await _create_service_user(
                audited_action, by, new, public_key=wanted.public_key, client_id=client_id
            )
        audited_action.skip()
    change = msgspec.to_builtins(wanted)
    return await request_change(
        by, "service_user.create", ("member", None), change={"service_user": change}, terms=terms
    )


async def get_service_user(
    conn: Db, vault: Vault, customer_id: UUID, *, member_id: UUID, now: datetime, wall: datetime
) -> ServiceUser:
    """Return a service user of a team with its keys in use. Raises NotFound."""
    member = await get_member(conn, vault, customer_id, member_id=member_id, now=now)
    client = None
    if member.client_id is not None:
        client = await clients.find_client(conn, member.client_id)
    if client is None:
        raise NotFound("There is no such service user.")
    return ServiceUser(member, client, await clients.list_client_keys(conn, client.client_id, wall))


async def add_service_user_key(
    by: Administrator, member_id: UUID, public_key: str, *, replaces: bool = False
) -> ClientKey | AuthorizationRequestRow:
    """Register a key in addition to the others, or in the place of all others; those are accepted for a day more.

    It is requested where a rule requires approvals: anyone who has the private key acts as the service user.

    Raises NotFound, InvalidInput, Refused `duplicate-id`, `member-not-active`, `forbidden`.
    """
    clients.read_key(public_key)
    verb = "key_rotated" if replaces else "key_added"
    async with audited(by, f"service_user.{verb}", ("member", member_id)) as audited_action:
        conn = audited_action.conn
        service_user = await get_service_user(
            conn, by.vault, by.customer_id, member_id=member_id, now=by.now, wall=by.wall
        )
        if service_user.member.status != "ACTIVE":
            raise Refused("member-not-active", "The service user is deactivated.")
        terms = await check_grant(audited_action, by, rules.permissions_of("SERVICE", service_user.client.scopes))
        if terms is None:
            return await _register_key(audited_action, by, service_user, public_key=public_key, replaces=replaces)
        audited_action.skip()
    change = {"public_key": public_key, "replaces": replaces}
    return await request_change(by, "service_user.add_key", ("member", member_id), change=change, terms=terms)


async def revoke_service_user_key(by: Administrator, member_id: UUID, key_id: str) -> None:
    """Revoke a key at once; the service user's tokens end with it. Raises NotFound."""
    details = {"key_id": key_id}
    async with audited(by, "service_user.key_revoked", ("member", member_id), **details) as audited_action:
        service_user = await get_service_user(
            audited_action.conn, by.vault, by.customer_id, member_id=member_id, now=by.now, wall=by.wall
        )
        await clients.revoke_client_key(audited_action.conn, service_user.client.client_id, key_id, now=by.wall)
        await _alert_administrators(audited_action, by, service_user, title="A key of a service user was revoked")


async def _create_service_user(
    audited_action: AuditedAction, by: Administrator, new: NewClient, *, public_key: str, client_id: str | None
) -> ServiceUser:
    conn = audited_action.conn
    made = await clients.register_client(conn, new, now=by.now, client_id=client_id)
    key = await clients.add_client_key(conn, made.client_id, public_key, now=by.wall, by=by.member_id)
    assert made.member_id is not None
    audited_action.resource_id = made.member_id
    description = f"{by.name} made the service user {made.name}: {' '.join(made.scopes)}."
    await notify_administrators(
        audited_action, by, "SECURITY_ALERT", title="A service user was made", description=description
    )
    return ServiceUser(
        await get_member(conn, by.vault, by.customer_id, member_id=made.member_id, now=by.now), made, [key]
    )


async def _register_key(
    audited_action: AuditedAction, by: Administrator, service_user: ServiceUser, *, public_key: str, replaces: bool
) -> ClientKey:
    conn, client_id = audited_action.conn, service_user.client.client_id
    if not replaces:
        await clients.check_key_count(conn, client_id, by.wall)
    register = clients.rotate_client_key if replaces else clients.add_client_key
    async with notifying_of_effects(conn, by.vault, by.customer_id, now=by.now, wall=by.wall):
        key = await register(conn, client_id, public_key, now=by.wall, by=by.member_id)
    audited_action.details["key_id"] = key.key_id
    title = "The key of a service user was replaced" if replaces else "A key of a service user was added"
    await _alert_administrators(audited_action, by, service_user, title=title)
    return key


async def _alert_administrators(
    audited_action: AuditedAction, by: Administrator, service_user: ServiceUser, title: str
) -> None:
    description = f"{by.name} changed the keys of the service user {service_user.client.name}."
    await notify_administrators(audited_action, by, "SECURITY_ALERT", title=title, description=description)
