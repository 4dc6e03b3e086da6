"""`billfold partner`: who may call, and with what. Secrets are shown once, when they are made."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from billfold.access.partners import credentials
from billfold.access.partners import rules as partner_rules
from billfold.access.partners import store as partner_store
from billfold.access.partners.rules import FEATURES
from billfold.cli.context import CliContext, CliError, cli_context
from billfold.cli.output import console, example, key_value_table, print_line, print_success, table
from billfold.cli.resources import read_text_file, run_with_bank, run_with_connection
from billfold.platform.clock import wall_now
from billfold.wiring.initialize import PartnerIds, create_partner_customers, partner_ids

if TYPE_CHECKING:
    from billfold.access.partners.types import PartnerRow
    from billfold.ledger.bank import Bank
    from billfold.platform.database.pool import Connection

app = typer.Typer(
    no_args_is_help=True,
    help="Make partners and their credentials, and take them out of use.",
    epilog=example("billfold partner create acme --name 'Acme Inc.'"),
)

PASSWORD_BYTES = 24
Feature = Annotated[str, typer.Argument(help=f"One of {', '.join(sorted(FEATURES))}.")]
Limit = Annotated[int | None, typer.Option(min=1, max=1_000_000)]
Slug = Annotated[str, typer.Argument(help="The first label of the partner's host name.")]
_SHOWN_ONCE = "[yellow]Write it down: it is shown this once.[/]"


@app.command(epilog=example("billfold partner create acme --name 'Acme Inc.'"))
def create(
    ctx: typer.Context,
    slug: Slug,
    name: Annotated[str, typer.Option(help="The partner's name; the slug without it.")] = "",
    username: Annotated[str, typer.Option(help="Who logs in; the slug without it.")] = "",
) -> None:
    """Make a partner: its own customer with a facilitation Pocket, a signing secret and a user."""

    async def work(bank: Bank) -> NewCredentials:
        return await make_partner(bank, slug, name or slug, username or slug)

    ground = cli_context(ctx)
    created = run_with_bank(ground, work)
    print_success(f"Partner {slug} is made; its host is {slug}.{ground.settings().domain}.")
    rows = [
        ("username", created.username),
        ("password", created.password),
        ("shared secret", created.shared_secret),
        ("facilitation pocket", created.places.facilitation_pocket_id),
    ]
    console.print(key_value_table(rows))
    print_line("[dim]A running server takes the host into its certificate when it is restarted.[/]")
    print_line(_SHOWN_ONCE)


@app.command("list", epilog=example("billfold partner list"))
def list_all(ctx: typer.Context) -> None:
    """List the partners with their features and limits."""
    rows = run_with_connection(cli_context(ctx), partner_store.list_partners)
    console.print(
        table(
            "",
            ("slug", "name", "features", "requests a minute>", "of which money>"),
            [
                (row.slug, row.name, " ".join(sorted(row.features)) or "-", row.rate_per_minute, row.money_per_minute)
                for row in rows
            ],
        )
    )


@app.command("add-user", epilog=example("billfold partner add-user acme anna"))
def add_user(ctx: typer.Context, slug: Slug, username: str) -> None:
    """Make a user who may log in for a partner."""
    password = new_password()

    async def work(conn: Connection) -> None:
        partner = await _partner(conn, slug)
        await credentials.create_partner_user(
            conn, partner.partner_id, username=username, password=password, now=wall_now()
        )

    run_with_connection(cli_context(ctx), work)
    print_success(f"{username} may log in for {slug} with the password {password}")
    print_line(_SHOWN_ONCE)


@app.command("add-key", epilog=example("billfold partner add-key anna key.pem --algorithm ES256"))
def add_key(
    ctx: typer.Context,
    username: str,
    pem: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="A public key, PEM.")],
    algorithm: Annotated[str, typer.Option(help="ES256, EdDSA, PS256 or RS256.")] = "ES256",
) -> None:
    """Register a public key with which a user signs assertions for /token/."""

    async def work(conn: Connection) -> str:
        user = await partner_store.find_partner_user(conn, username)
        if user is None:
            raise CliError(f"There is no user {username!r}.", "See `billfold partner add-user`.")
        return await credentials.register_partner_key(
            conn, user.user_id, algorithm=algorithm, public_pem=read_text_file(pem), now=wall_now()
        )

    key_id = run_with_connection(cli_context(ctx), work)
    print_success(f"The key is registered. Assertions name it in their header: kid = {key_id}")


@app.command("rotate-secret", epilog=example("billfold partner rotate-secret acme"))
def rotate_secret(ctx: typer.Context, slug: Slug) -> None:
    """Give a partner a new signing secret; the former one stays in force for a day."""

    async def work(bank: Bank) -> str:
        async with bank.pool.acquire() as conn:
            partner = await _partner(conn, slug)
            return await credentials.rotate_secret(conn, bank.vault, partner.partner_id, now=wall_now())

    secret = run_with_bank(cli_context(ctx), work)
    print_success(f"The new signing secret of {slug} is {secret}")
    print_line(_SHOWN_ONCE)


@app.command(epilog=example("billfold partner enable acme customer_closure"))
def enable(ctx: typer.Context, slug: Slug, feature: Feature) -> None:
    """Switch a feature on for a partner."""
    _set_feature(cli_context(ctx), slug, feature, on=True)


@app.command(epilog=example("billfold partner disable acme customer_closure"))
def disable(ctx: typer.Context, slug: Slug, feature: Feature) -> None:
    """Switch a feature off for a partner."""
    _set_feature(cli_context(ctx), slug, feature, on=False)


@app.command(epilog=example("billfold partner limit acme --requests 1200 --of-which-money 300"))
def limit(ctx: typer.Context, slug: Slug, *, requests: Limit = None, of_which_money: Limit = None) -> None:
    """Say how many requests a minute each token of a partner may send."""
    if requests is None and of_which_money is None:
        raise CliError("There is no limit to set.", "Give --requests or --of-which-money.")

    async def work(conn: Connection) -> tuple[int, int]:
        partner = await _partner(conn, slug)
        limits = (requests or partner.rate_per_minute, of_which_money or partner.money_per_minute)
        await credentials.set_limits(conn, partner.partner_id, rate_per_minute=limits[0], money_per_minute=limits[1])
        return limits

    per_minute, money_per_minute_limit = run_with_connection(cli_context(ctx), work)
    print_success(f"{slug} may send {per_minute} requests a minute, of which {money_per_minute_limit} may move money.")


class NewCredentials(NamedTuple):
    """What a new partner is told once, and where its things are."""

    username: str
    password: str
    shared_secret: str
    places: PartnerIds


async def make_partner(bank: Bank, slug: str, name: str, username: str, features: Iterable[str] = ()) -> NewCredentials:
    """Make a partner with one user. Raises InvalidInput, Refused `duplicate-id`."""
    partner_rules.check_slug(slug)
    places = partner_ids(bank.seed, slug)
    password = new_password()
    # Enrolled first: what a crash leaves behind is found again, and nobody can call yet.
    async with bank.pool.acquire() as conn:
        if await partner_store.find_partner(conn, slug) is None:
            await create_partner_customers(bank, slug, name)
        async with conn.transaction():
            created = await credentials.create_partner(
                conn,
                bank.vault,
                slug=slug,
                name=name,
                partner_id=places.partner_id,
                own_customer_id=places.own_customer_id,
                rate_per_minute=bank.settings.rate_limit_per_minute,
                money_per_minute=bank.settings.money_rate_limit_per_minute,
                now=wall_now(),
                features=features,
            )
            await credentials.create_partner_user(
                conn, created.partner_id, username=username, password=password, now=wall_now(), user_id=places.user_id
            )
    return NewCredentials(username, password, created.shared_secret, places)


def new_password() -> str:
    """Return a password nobody can guess."""
    return secrets.token_urlsafe(PASSWORD_BYTES)


def _set_feature(ground: CliContext, slug: str, feature: str, *, on: bool) -> None:
    feature = feature.replace("-", "_")
    if feature not in FEATURES:
        raise CliError(f"There is no feature {feature!r}.", f"Say one of {', '.join(sorted(FEATURES))}.")
    change = credentials.enable_feature if on else credentials.disable_feature

    async def work(conn: Connection) -> None:
        partner = await _partner(conn, slug)
        await change(conn, partner.partner_id, feature)

    run_with_connection(ground, work)
    print_success(f"{feature} is {'on' if on else 'off'} for {slug}.")


async def _partner(conn: Connection, slug: str) -> PartnerRow:
    partner = await partner_store.find_partner(conn, slug)
    if partner is None:
        raise CliError(f"There is no partner {slug!r}.", "See `billfold partner list`.")
    return partner
