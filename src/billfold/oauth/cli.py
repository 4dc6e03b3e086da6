"""`billfold oauth-client`: clients of the authorization server, and their keys."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated
from uuid import UUID

import typer

from billfold.cli.command import CommandGroup, Row, console, key_value_table, print_success
from billfold.cli.context import read_text_file
from billfold.identity.members.store import keep_former
from billfold.ledger.bank import Bank
from billfold.oauth import clients, signing_keys
from billfold.oauth.clients import record_oauth_client
from billfold.oauth.types import AUTHORIZATION_CODE, CLIENT_CREDENTIALS, REFRESH_TOKEN, NewClient
from billfold.platform.clock import wall_now
from billfold.platform.database.connection import Connection

_CREATE = "create Books --redirect-uri https://books.example/callback --scope 'openid pockets.read' --key public.pem"
group = CommandGroup("oauth-client", "Register clients of the Customer API, and revoke them.", example=_CREATE)

ClientId = Annotated[str, typer.Argument(help="The client_id.")]
KeyFile = Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="A public key: P-256, Ed25519 or RSA; PEM.")]
Keys = Annotated[list[Path], typer.Option(exists=True, dir_okay=False, help="A public key, PEM or JWK.")]
Redirects = Annotated[list[str] | None, typer.Option(help="A redirect URI; may be repeated.")]
AfterLogout = Annotated[list[str] | None, typer.Option(help="Where users go after signing out.")]
Customer = Annotated[str, typer.Option(help="Create a service user that acts for this customer (id).")]
Refreshes = Annotated[bool, typer.Option("--refresh/--no-refresh", help="Issue refresh tokens or not.")]
Signs = Annotated[bool, typer.Option("--require-signature", help="Its requests must be signed (RFC 9421).")]


@group.command(_CREATE)
async def create(
    bank: Bank,
    name: Annotated[str, typer.Argument(help="The name that users see.")],
    *,
    scope: Annotated[str, typer.Option(help="Scopes, separated by spaces.")],
    key: Keys,
    redirect_uri: Redirects = None,
    post_logout_redirect_uri: AfterLogout = None,
    profile: Annotated[str, typer.Option(help="fapi2 or documented.")] = "fapi2",
    description: Annotated[str, typer.Option(help="What it does, for the consent page.")] = "",
    customer: Customer = "",
    refreshes: Refreshes = True,
    signs: Signs = False,
    client_id: Annotated[str, typer.Option(help="Its id; generated if omitted.")] = "",
) -> None:
    """Register a client with its public keys. It authenticates by `private_key_jwt` only."""
    user_grants = (AUTHORIZATION_CODE, REFRESH_TOKEN) if refreshes else (AUTHORIZATION_CODE,)
    new = NewClient(
        name=name,
        description=description,
        profile=profile,
        scopes=tuple(scope.split()),
        redirect_uris=tuple(redirect_uri or ()),
        post_logout_redirect_uris=tuple(post_logout_redirect_uri or ()),
        grant_types=(CLIENT_CREDENTIALS,) if customer else user_grants,
        customer_id=UUID(customer) if customer else None,
        requires_signature=signs,
    )
    texts, now = [read_text_file(path) for path in key], wall_now()
    async with bank.pool.acquire() as conn, conn.transaction():
        client = await clients.register_client(conn, new, now=now, client_id=client_id or None)
        keys = [await clients.add_client_key(conn, client.client_id, text, now=now) for text in texts]
        await record_oauth_client(bank, conn, client, action="service_user.created", name=client.name)
    print_success(f"{client.name} is registered as a {client.profile} client.")
    rows = [("client_id", client.client_id), ("issuer", bank.settings.auth_origin)]
    console.print(key_value_table([*rows, *((f"kid ({each.algorithm})", each.key_id) for each in keys)]))


@group.table("list", columns=("client_id", "name", "profile", "works for", "grants", "scopes", "since", "in use"))
async def list_all(conn: Connection) -> Iterable[Row]:
    """List the clients, including revoked ones."""
    return [
        (
            row.client_id,
            row.name,
            row.profile,
            row.customer_id or row.owner_id or "all",
            " ".join(row.grant_types),
            " ".join(row.scopes),
            f"{row.created_at:%Y-%m-%d}",
            "yes" if row.revoked_at is None else "no",
        )
        for row in await clients.list_clients(conn)
    ]


@group.command("rotate-key books new.pem")
async def rotate_key(bank: Bank, client_id: ClientId, pem: KeyFile) -> str:
    """Register a new key; the previous keys are accepted for one more day."""
    async with bank.pool.acquire() as conn, conn.transaction():
        key = await clients.rotate_client_key(conn, client_id, read_text_file(pem), now=wall_now())
        client = await clients.find_client(conn, client_id)
        await record_oauth_client(bank, conn, client, action="service_user.key_rotated", key_id=key.key_id)
    return f"The key is registered: kid = {key.key_id} ({key.algorithm})"


@group.command("revoke books")
async def revoke(bank: Bank, client_id: ClientId) -> str:
    """Revoke a client, with its tokens and the consents that users gave it.

    This deactivates a service user; an administrator of its team can activate it again.
    """
    async with bank.pool.acquire() as conn, conn.transaction():
        client = await clients.find_client(conn, client_id)
        if client is not None and client.customer_id is not None and client.member_id is not None:
            await keep_former(conn, client.customer_id, [client.member_id], now=await bank.now(conn))
        await clients.revoke_client(conn, client_id, now=wall_now())
        await record_oauth_client(bank, conn, client, action="member.deactivated")
    return f"{client_id} is revoked; its tokens have ended."


@group.command("rotate-signing-keys")
async def rotate_signing_keys(bank: Bank) -> str:
    """Replace the keys that sign ID tokens: published now, used in 15 minutes."""
    now = wall_now()
    async with bank.pool.acquire() as conn:
        await signing_keys.ensure_signing_keys(conn, bank.vault, now)
        key_ids = await signing_keys.rotate_signing_keys(conn, bank.vault, now)
    return f"The new keys are published: {', '.join(key_ids)}"
