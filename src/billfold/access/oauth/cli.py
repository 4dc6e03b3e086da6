"""`billfold client`: which programs may ask at the authorization server, and their keys."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from billfold.access.oauth import clients, signing_keys
from billfold.access.oauth.rules.client_metadata import NewClient
from billfold.access.oauth.types import AUTHORIZATION_CODE, CLIENT_CREDENTIALS, REFRESH_TOKEN
from billfold.access.operator_audit import record_oauth_client
from billfold.cli.context import cli_context
from billfold.cli.output import console, example, key_value_table, print_success, table
from billfold.cli.resources import read_text_file, run_with_bank, run_with_connection
from billfold.platform.clock import wall_now

if TYPE_CHECKING:
    from billfold.access.oauth.types import Client, ClientKey
    from billfold.ledger.bank import Bank

_CREATE = (
    "billfold client create Books --redirect-uri https://books.example/callback "
    "--scope 'openid pockets.read' --key public.pem"
)
app = typer.Typer(
    no_args_is_help=True,
    help="Register programs that use the Customer API, and take them out of use.",
    epilog=example(_CREATE),
)
ClientId = Annotated[str, typer.Argument(help="The client_id.")]
KeyFile = Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="A public key: P-256, Ed25519 or RSA; PEM.")]


Keys = Annotated[list[Path], typer.Option(exists=True, dir_okay=False, help="A public key, PEM or JWK.")]
Redirects = Annotated[list[str] | None, typer.Option(help="Where answers go; may be given several times.")]
AfterLogout = Annotated[list[str] | None, typer.Option(help="Where people go after signing out.")]
Customer = Annotated[str, typer.Option(help="Make a service user that acts by itself for this customer (id).")]
Refreshes = Annotated[bool, typer.Option("--refresh/--no-refresh", help="Whether it gets refresh tokens.")]
Signs = Annotated[bool, typer.Option("--require-signature", help="Its requests must be signed (RFC 9421).")]


@app.command(epilog=example(_CREATE))
def create(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="What people are shown.")],
    *,
    scope: Annotated[str, typer.Option(help="Scopes between spaces.")],
    key: Keys,
    redirect_uri: Redirects = None,
    post_logout_redirect_uri: AfterLogout = None,
    profile: Annotated[str, typer.Option(help="fapi2 or documented.")] = "fapi2",
    description: Annotated[str, typer.Option(help="What it does, for the consent page.")] = "",
    customer: Customer = "",
    refreshes: Refreshes = True,
    signs: Signs = False,
    client_id: Annotated[str, typer.Option(help="Its id; one is drawn without it.")] = "",
) -> None:
    """Register a program with its public keys. It proves itself by `private_key_jwt` only."""
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

    async def work(bank: Bank) -> tuple[Client, list[ClientKey]]:
        return await _register(bank, new, client_id, [read_text_file(path) for path in key])

    ground = cli_context(ctx)
    client_row, keys = run_with_bank(ground, work)
    print_success(f"{client_row.name} is registered as a {client_row.profile} client.")
    rows = [("client_id", client_row.client_id), ("issuer", ground.settings().auth_origin)]
    console.print(key_value_table([*rows, *((f"kid ({each.algorithm})", each.key_id) for each in keys)]))


async def _register(bank: Bank, new: NewClient, client_id: str, texts: list[str]) -> tuple[Client, list[ClientKey]]:
    now = wall_now()
    async with bank.pool.acquire() as conn, conn.transaction():
        client_row = await clients.register_client(conn, new, now=now, client_id=client_id or None)
        keys = [await clients.add_client_key(conn, client_row.client_id, text, now=now) for text in texts]
        await record_oauth_client(bank, conn, client_row, "service_user.created", name=client_row.name)
    return client_row, keys


@app.command("list", epilog=example("billfold client list"))
def list_all(ctx: typer.Context) -> None:
    """List the programs, those out of use as well."""
    rows = run_with_connection(cli_context(ctx), clients.list_clients)
    console.print(
        table(
            "",
            ("client_id", "name", "profile", "works for", "grants", "scopes", "since", "in use"),
            [
                (
                    row.client_id,
                    row.name,
                    row.profile,
                    str(row.customer_id or row.owner_id or "all"),
                    " ".join(row.grant_types),
                    " ".join(row.scopes),
                    f"{row.created_at:%Y-%m-%d}",
                    "yes" if row.revoked_at is None else "no",
                )
                for row in rows
            ],
        )
    )


@app.command(epilog=example("billfold client rotate books new.pem"))
def rotate(ctx: typer.Context, client_id: ClientId, pem: KeyFile) -> None:
    """Register a key in the place of the others; those are accepted for a day more."""

    async def work(bank: Bank) -> ClientKey:
        async with bank.pool.acquire() as conn, conn.transaction():
            key = await clients.rotate_client_key(conn, client_id, read_text_file(pem), now=wall_now())
            client = await clients.find_client(conn, client_id)
            details = {"key_id": key.key_id}
            await record_oauth_client(bank, conn, client, "service_user.key_rotated", **details)
        return key

    client_row = run_with_bank(cli_context(ctx), work)
    print_success(f"The key is registered: kid = {client_row.key_id} ({client_row.algorithm})")


@app.command(epilog=example("billfold client revoke books"))
def revoke(ctx: typer.Context, client_id: ClientId) -> None:
    """Take a program out of use, with its tokens and what people granted it.

    A service user is deactivated so; an administrator of its team can activate it again.
    """

    async def work(bank: Bank) -> None:
        async with bank.pool.acquire() as conn, conn.transaction():
            await clients.revoke_client(conn, client_id, now=wall_now())
            client = await clients.find_client(conn, client_id)
            await record_oauth_client(bank, conn, client, "member.deactivated")

    run_with_bank(cli_context(ctx), work)
    print_success(f"{client_id} is out of use; its tokens have ended.")


@app.command("rotate-signing-keys", epilog=example("billfold client rotate-signing-keys"))
def rotate_signing_keys(ctx: typer.Context) -> None:
    """Replace the keys that sign ID tokens: published now, used in a quarter of an hour."""

    async def work(bank: Bank) -> list[str]:
        now = wall_now()
        async with bank.pool.acquire() as conn:
            await signing_keys.ensure_signing_keys(conn, bank.vault, now)
            return await signing_keys.rotate_signing_keys(conn, bank.vault, now)

    client_row = run_with_bank(cli_context(ctx), work)
    print_success(f"The new keys are published: {', '.join(client_row)}")
