"""Registers clients and their public keys, and revokes them."""

import re
from dataclasses import astuple
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from billfold.audit import record
from billfold.audit.rules import NewEntry
from billfold.identity.members.store import require_company
from billfold.identity.users import store
from billfold.ledger.bank import Bank
from billfold.ledger.types import Origin
from billfold.oauth.grants import delete_tokens
from billfold.oauth.rules import client_metadata
from billfold.oauth.rules.public_keys import InvalidKey, PublicKeyInfo, from_jwk, from_pem, to_pem
from billfold.oauth.types import Client, ClientKey, NewClient
from billfold.platform import ids
from billfold.platform.clock import wall_now
from billfold.platform.database.connection import Connection, Db
from billfold.platform.errors import FieldError, InvalidInput, NotFound, Refused

KEYS_MAX = 10
"""Maximum number of keys of a company's client, or of a service user."""
OVERLAP = timedelta(hours=24)
"""Period in which a replaced key is still accepted."""
_COLUMNS = """name, scopes, description, profile, redirect_uris, post_logout_redirect_uris,
       grant_types, customer_id, owner_id, dpop_bound, requires_nonce, requires_signature,
       client_id, member_id, created_at, revoked_at"""
"""In the order of the fields of `Client`."""
_NEW = f"""
INSERT INTO oauth_client ({_COLUMNS})
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
"""
_FIND = f"SELECT {_COLUMNS} FROM oauth_client WHERE client_id = $1"
_LIST = f"SELECT {_COLUMNS} FROM oauth_client ORDER BY created_at, client_id"
_OF_CUSTOMER = f"""
SELECT {_COLUMNS} FROM oauth_client WHERE owner_id = $1
 ORDER BY revoked_at IS NOT NULL, created_at DESC, client_id
"""
_SERVICE_USERS = "SELECT client_id FROM oauth_client WHERE customer_id = $1 AND revoked_at IS NULL ORDER BY client_id"
_KEYS = """
SELECT client_id, key_id, algorithm, public_pem, created_at, expires_at, registered_by FROM client_key
 WHERE client_id = $1 AND (expires_at IS NULL OR expires_at > $2)
 ORDER BY created_at DESC, key_id
"""
_KEY_ID = re.compile("[!-~]{1,128}")
_NEW_KEY = """
INSERT INTO client_key (client_id, key_id, algorithm, public_pem, created_at, registered_by)
VALUES ($1, $2, $3, $4, $5, $6)
"""
# A key that was already expiring keeps its end.
_RETIRE = """
UPDATE client_key SET expires_at = $2
 WHERE client_id = $1 AND key_id <> $3 AND (expires_at IS NULL OR expires_at > $2)
"""
_RETIRE_ONE = "UPDATE client_key SET expires_at = $3 WHERE client_id = $1 AND key_id = $2"
_LOCK = "SELECT 1 FROM oauth_client WHERE client_id = $1 FOR UPDATE"


async def register_client(conn: Connection, new: NewClient, *, now: datetime, client_id: str | None = None) -> Client:
    """Register a client; one that acts for a customer is a member of its team at once.

    Raises InvalidInput with every error, NotFound, Refused `duplicate-id`, `forbidden` for the bank itself.
    """
    for each in (new.customer_id, new.owner_id):
        if each is not None:
            await require_company(conn, each)
    member_id = None if new.customer_id is None else ids.new()
    client = client_metadata.build_client(new, client_id or ids.new().hex, now, member_id=member_id)
    try:
        await conn.execute(_NEW, *astuple(client))
    except asyncpg.UniqueViolationError:
        raise Refused("duplicate-id", f"There is a client {client.client_id!r} already.") from None
    return client


async def register_client_with_key(
    conn: Connection, new: NewClient, key: str, *, now: datetime, wall: datetime, by: UUID | None = None
) -> tuple[Client, ClientKey]:
    """Register a client and its first key. Raises InvalidInput with the errors of both, like `register_client`.

    `wall` is when the key becomes valid; `by` is the member who registers it.
    """
    check_client_with_key(new, key, now=now)
    client = await register_client(conn, new, now=now)
    return client, await add_client_key(conn, client.client_id, key, now=wall, by=by)


def check_client_with_key(new: NewClient, key: str, *, now: datetime) -> None:
    """Raise InvalidInput with every error of a new client and of its first key."""
    mistakes: list[FieldError] = []
    for check in (lambda: client_metadata.build_client(new, ids.new().hex, now), lambda: read_key(key)):
        try:
            check()
        except InvalidInput as error:
            mistakes.extend(error.errors)
    if mistakes:
        raise InvalidInput(mistakes)


async def find_client(conn: Db, client_id: str) -> Client | None:
    """Return a client, active or revoked, or None."""
    row = await conn.fetchrow(_FIND, client_id)
    return None if row is None else _client(row)


async def list_clients(conn: Db) -> list[Client]:
    """Return every client in the order of registration."""
    return [_client(row) for row in await conn.fetch(_LIST)]


async def list_customer_clients(conn: Db, owner_id: UUID) -> list[Client]:
    """Return the clients that a company has registered, the newest first and revoked ones at the end."""
    return [_client(row) for row in await conn.fetch(_OF_CUSTOMER, owner_id)]


async def get_customer_client(conn: Db, owner_id: UUID, client_id: str) -> Client:
    """Return a client that this company has registered. Raises NotFound for all others."""
    found = await find_client(conn, client_id)
    if found is None or found.owner_id != owner_id:
        raise NotFound("There is no such OAuth client.")
    return found


async def list_service_user_ids(conn: Db, customer_id: UUID) -> list[str]:
    """Return the active service users of a customer."""
    return [row["client_id"] for row in await conn.fetch(_SERVICE_USERS, customer_id)]


async def revoke_client(conn: Connection, client_id: str, *, now: datetime) -> None:
    """Revoke a client with all its tokens and grants. Raises NotFound."""
    async with conn.transaction():
        done = await conn.fetchval(
            "UPDATE oauth_client SET revoked_at = $2 WHERE client_id = $1 AND revoked_at IS NULL RETURNING true",
            client_id,
            now,
        )
        if done is None:
            raise NotFound("There is no such client in use.")
        await delete_tokens(conn, client_id=client_id)
        await conn.execute(
            "UPDATE oauth_grant SET revoked_at = $2 WHERE client_id = $1 AND revoked_at IS NULL", client_id, now
        )


async def reactivate_client(conn: Connection, client_id: str) -> None:
    """Reactivate a client with its keys; its former tokens do not come back."""
    await conn.execute("UPDATE oauth_client SET revoked_at = NULL WHERE client_id = $1", client_id)


async def add_client_key(
    conn: Db,
    client_id: str,
    key: str,
    *,
    now: datetime,
    key_id: str | None = None,
    by: UUID | None = None,
) -> ClientKey:
    """Register a public key, PEM or JWK as text, under `key_id`, the `kid` of the JWK, or its thumbprint.

    `by` is the member who registers it, None for the operator.

    The kind of key decides the algorithm: P-256 is ES256, RSA PS256, Ed25519 EdDSA. Raises InvalidInput,
    Refused `duplicate-id`, NotFound.
    """
    parsed = read_key(key)
    key_id = key_id or _declared_key_id(key) or parsed.thumbprint
    pem = to_pem(parsed.key)
    try:
        await conn.execute(_NEW_KEY, client_id, key_id, parsed.algorithm, pem, now, by)
    except asyncpg.UniqueViolationError:
        raise Refused("duplicate-id", f"The key {key_id} is registered already.") from None
    except asyncpg.ForeignKeyViolationError:
        raise NotFound("There is no such client.") from None
    return ClientKey(
        client_id, key_id, parsed.algorithm, public_pem=pem, created_at=now, expires_at=None, registered_by=by
    )


async def check_key_count(conn: Connection, client_id: str, now: datetime) -> None:
    """Refuse a key above the limit of a client. Raises InvalidInput at `public_key`."""
    if len(await list_client_keys(conn, client_id, now)) >= KEYS_MAX:
        raise InvalidInput.at("public_key", msg=f"would be one more than {KEYS_MAX} keys")


async def rotate_client_key(
    conn: Connection, client_id: str, key: str, *, now: datetime, by: UUID | None = None
) -> ClientKey:
    """Register a key in place of all others; those are accepted for another day."""
    async with conn.transaction():
        added = await add_client_key(conn, client_id, key, now=now, by=by)
        await conn.execute(_RETIRE, client_id, now + OVERLAP, added.key_id)
    return added


async def revoke_client_key(conn: Connection, client_id: str, key_id: str, *, now: datetime) -> None:
    """Revoke a key at once, with every token of its client. Raises like `retire_client_key`.

    It is unknown which tokens were issued for a key that may have leaked.
    """
    async with conn.transaction():
        await retire_client_key(conn, client_id, key_id, now=now)
        await delete_tokens(conn, client_id=client_id)


async def retire_client_key(conn: Connection, client_id: str, key_id: str, *, now: datetime) -> None:
    """Stop accepting a key. Raises NotFound, Refused `last-key` for the last one that stays in use."""
    async with conn.transaction():
        await conn.execute(_LOCK, client_id)
        active = await list_client_keys(conn, client_id, now)
        if all(each.key_id != key_id for each in active):
            raise NotFound("There is no such key in use.")
        # Two keys retired at once each have their own `now`: a key with any end does not count as staying.
        if all(each.key_id == key_id or each.expires_at is not None for each in active):
            raise Refused("last-key", "This is the only key. Add another one first, or deactivate what uses it.")
        await conn.execute(_RETIRE_ONE, client_id, key_id, now)


async def list_client_keys(conn: Db, client_id: str, now: datetime) -> list[ClientKey]:
    """Return the keys of a client that are accepted at wall time `now`, the newest first."""
    return [ClientKey(*row) for row in await conn.fetch(_KEYS, client_id, now)]


def _declared_key_id(text: str) -> str | None:
    """Return the `kid` of a JWK, if readable. Raises InvalidInput at `public_key` if it is not a short text."""
    declared = msgspec.json.decode(text.encode()).get("kid") if text.lstrip().startswith("{") else None
    if declared is None:
        return None
    if not isinstance(declared, str) or not _KEY_ID.fullmatch(declared):
        raise InvalidInput.at("public_key", msg="has a kid that is not 1 to 128 visible ASCII characters")
    return declared


def read_key(text: str) -> PublicKeyInfo:
    """Return the public key of a PEM or a JWK. Raises InvalidInput at `public_key`."""
    try:
        if not text.lstrip().startswith("{"):
            return from_pem(text)
        jwk = msgspec.json.decode(text.encode())
        return from_jwk(jwk)
    except (msgspec.DecodeError, RecursionError):
        raise InvalidInput.at("public_key", msg="must be a public key as PEM or JWK") from None
    except InvalidKey as error:
        raise InvalidInput.at("public_key", msg=f"cannot be used: {error}") from None


def _client(row: Any) -> Client:  # noqa: ANN401 - a record of asyncpg
    return msgspec.convert(dict(row), Client)


_OWNED_CLIENT_ACTIONS = {
    "service_user.created": "program.created",
    "service_user.key_rotated": "program.key_rotated",
    "member.deactivated": "program.revoked",
}
"""Actions on a company's own client, which is not a member of a team, by their action names for members."""


async def record_member(
    bank: Bank, conn: Connection, customer_id: UUID, *, member_id: UUID, action: str, **details: object
) -> None:
    """Record an action on a member, in its transaction."""
    await _record(bank, conn, _entry(customer_id, "member", member_id, action=action, **details))


async def record_user(bank: Bank, conn: Connection, user_id: UUID, *, action: str) -> None:
    """Record an action on a user in the log of each team they are in."""
    teams = await store.list_user_memberships(conn, user_id, only_active=True)
    await _record(bank, conn, *(_entry(each.customer_id, "member", each.member_id, action=action) for each in teams))


async def record_oauth_client(
    bank: Bank, conn: Connection, client: Client | None, *, action: str, **details: object
) -> None:
    """Record an action on a client that is a member of a team, or a company's own."""
    if client is None:
        return
    if client.customer_id is not None and client.member_id is not None:
        await record_member(bank, conn, client.customer_id, member_id=client.member_id, action=action, **details)
    elif client.owner_id is not None:
        own_action = _OWNED_CLIENT_ACTIONS[action]
        await _record(bank, conn, _entry(client.owner_id, "program", client.client_id, action=own_action, **details))


def _entry(customer_id: UUID, kind: str, resource_id: UUID | str, *, action: str, **details: object) -> NewEntry:
    return NewEntry(
        customer_id=customer_id,
        origin=Origin.operator(),
        action=action,
        resource_type=kind,
        resource_id=resource_id,
        details=details,
    )


async def _record(bank: Bank, conn: Connection, *entries: NewEntry) -> None:
    await record.record_all(conn, bank.vault, entries, now=wall_now())
