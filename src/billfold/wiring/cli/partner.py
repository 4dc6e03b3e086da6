"""`billfold partner`: partners of the bank and their credentials. Secrets are shown once."""

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Annotated

import typer

from billfold.accounts.customers.partner_customers import (
    make_partner,
    new_password,
)
from billfold.cli.command import CommandGroup, Row, console, key_value_table, print_line, print_success
from billfold.cli.context import CliError, read_text_file
from billfold.identity.partners import administration, credentials, rules, store
from billfold.identity.partners.rules import FEATURES, PartnerRow, PartnerUser
from billfold.ledger.bank import Bank
from billfold.platform.clock import wall_now
from billfold.platform.database.connection import Connection

group = CommandGroup(
    "partner", "Create partners and their credentials, and revoke them.", example="create acme --name 'Acme Inc.'"
)

keys = group.subgroup("keys", "List the keys of a partner's users, and revoke one.", example="list acme")
users = group.subgroup("user", "Disable a user of a partner.", example="disable anna")

Feature = Annotated[str, typer.Argument(help=f"One of {', '.join(sorted(FEATURES))}.")]
Network = Annotated[str, typer.Argument(help="An address or a network as CIDR, IPv4 or IPv6.")]
Limit = Annotated[int | None, typer.Option(min=1, max=1_000_000)]
Slug = Annotated[str, typer.Argument(help="The first label of the partner's host name.")]
_SHOWN_ONCE = "[yellow]Write it down: it is not shown again.[/]"


@group.command("create acme --name 'Acme Inc.'")
async def create(
    bank: Bank,
    slug: Slug,
    name: Annotated[str, typer.Option(help="The partner's name; the slug if omitted.")] = "",
    username: Annotated[str, typer.Option(help="Its first user; the slug if omitted.")] = "",
) -> None:
    """Create a partner: its own customer with a facilitation Pocket, a signing secret and a user."""
    created = await make_partner(bank, slug, name or slug, username=username or slug)
    print_success(f"Partner {slug} is created; its host is {slug}.{bank.settings.domain}.")
    rows = [
        ("username", created.username),
        ("password", created.password),
        ("shared secret", created.shared_secret),
        ("customer", created.places.own_customer_id),
        ("facilitation pocket", created.places.facilitation_pocket_id),
    ]
    console.print(key_value_table(rows))
    own = bank.settings.tls_certificate or bank.settings.behind_proxy
    note = "The certificate must cover it." if own else "A running server adds it to its certificate when it restarts."
    print_line(f"[dim]{note}[/]")
    print_line(_SHOWN_ONCE)


@group.table("list", columns=("slug", "name", "features", "calls from", "requests a minute>", "of which money>"))
async def list_all(conn: Connection) -> Iterable[Row]:
    """List the partners with their features and rate limits."""
    return [
        (
            row.slug,
            row.name,
            " ".join(sorted(row.features)) or "-",
            " ".join(row.allowed_networks) or "anywhere",
            row.rate_per_minute,
            row.money_per_minute,
        )
        for row in await store.list_partners(conn)
    ]


@group.command("add-user acme anna")
async def add_user(conn: Connection, slug: Slug, username: str) -> None:
    """Create a user who may log in for a partner."""
    password = new_password()
    partner_id = (await _partner(conn, slug)).partner_id
    await credentials.create_partner_user(conn, partner_id, username=username, password=password, now=wall_now())
    print_success(f"{username} may log in for {slug} with the password {password}")
    print_line(_SHOWN_ONCE)


@group.command("add-key anna key.pem --algorithm ES256")
async def add_key(
    bank: Bank,
    username: str,
    pem: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="A public key, PEM.")],
    algorithm: Annotated[str, typer.Option(help="ES256, EdDSA, PS256 or RS256.")] = "ES256",
) -> str:
    """Register a public key with which a user signs assertions for /token/."""
    async with bank.pool.acquire() as conn:
        partner = await _partner(conn, (await _user(conn, username)).partner_slug)
    by = administration.by_operator(bank, partner)
    key_id = await administration.add_key(by, username, algorithm=algorithm, public_pem=read_text_file(pem))
    return f"The key is registered. Name it in the header of assertions: kid = {key_id}"


@users.command("disable anna")
async def disable_user(conn: Connection, username: str) -> str:
    """Disable a user for good: tokens end, keys are revoked, and the user cannot log in."""
    user = await _user(conn, username)
    revoked = await credentials.disable_partner_user(conn, user.user_id, now=wall_now())
    return f"{username} is disabled; {revoked} keys are revoked."


@keys.table("list acme", columns=("kid", "user", "algorithm", "registered", "revoked"))
async def list_keys(conn: Connection, slug: Slug) -> Iterable[Row]:
    """List the keys of a partner's users."""
    partner = await _partner(conn, slug)
    return [
        (each.key_id, each.username, each.algorithm, each.created_at, each.revoked_at)
        for each in await store.list_partner_keys(conn, partner.partner_id)
    ]


@keys.command("revoke 5d0c2a4e8f0080008000000000000e11")
async def revoke_key(bank: Bank, kid: Annotated[str, typer.Argument(help="The key's id.")]) -> str:
    """Revoke a key at once. Tokens of its user end too."""
    key = await store.find_partner_key(bank.pool, kid)
    if key is None:
        raise CliError(f"There is no key {kid!r} in use.", "See `billfold partner keys list`.")
    async with bank.pool.acquire() as conn:
        partner = await _partner(conn, key.partner_slug)
    await administration.revoke_key(administration.by_operator(bank, partner), kid)
    return f"The key {kid} is revoked, and the tokens of its user have ended."


@group.command("rotate-secret acme")
async def rotate_secret(bank: Bank, slug: Slug) -> None:
    """Create a new signing secret for a partner; the previous one stays valid for a day."""
    async with bank.pool.acquire() as conn:
        partner = await _partner(conn, slug)
    secret = await administration.rotate_secret(administration.by_operator(bank, partner))
    print_success(f"The new signing secret of {slug} is {secret}")
    print_line(_SHOWN_ONCE)


@group.command("enable acme customer_closure")
async def enable(conn: Connection, slug: Slug, feature: Feature) -> str:
    """Enable a feature for a partner."""
    return await _set_feature(conn, slug, feature, enabled=True)


@group.command("disable acme customer_closure")
async def disable(conn: Connection, slug: Slug, feature: Feature) -> str:
    """Disable a feature for a partner."""
    return await _set_feature(conn, slug, feature, enabled=False)


@group.command("allow-ip acme 203.0.113.0/24", "allow-ip acme 2001:db8::7")
async def allow_ip(conn: Connection, slug: Slug, network: Network) -> str:
    """Accept a partner's requests from an address or a network; from then on only from listed ones."""
    partner, listed = await _partner(conn, slug), rules.parse_network(network)
    return await _set_networks(conn, partner, {*partner.allowed_networks, listed})


@group.command("disallow-ip acme 203.0.113.0/24")
async def disallow_ip(conn: Connection, slug: Slug, network: Network) -> str:
    """Remove an address or a network from a partner's list; without any, requests are accepted from anywhere."""
    partner, listed = await _partner(conn, slug), rules.parse_network(network)
    if listed not in partner.allowed_networks:
        raise CliError(f"{listed} is not listed for {slug}.", "See `billfold partner list`.")
    return await _set_networks(conn, partner, set(partner.allowed_networks) - {listed})


@group.command("set-rate-limit acme --requests 1200 --of-which-money 300")
async def set_rate_limit(conn: Connection, slug: Slug, *, requests: Limit = None, of_which_money: Limit = None) -> str:
    """Set how many requests a minute each token of a partner may send."""
    if requests is None and of_which_money is None:
        raise CliError("There is no limit to set.", "Give --requests or --of-which-money.")
    partner = await _partner(conn, slug)
    total, money = requests or partner.rate_per_minute, of_which_money or partner.money_per_minute
    await credentials.set_limits(conn, partner.partner_id, rate_per_minute=total, money_per_minute=money)
    return f"{slug} may send {total} requests a minute, of which {money} may move money."


async def _set_feature(conn: Connection, slug: str, feature: str, *, enabled: bool) -> str:
    name = feature.replace("-", "_")
    if name not in FEATURES:
        raise CliError(f"There is no feature {name!r}.", f"Use one of {', '.join(sorted(FEATURES))}.")
    await credentials.set_feature(conn, (await _partner(conn, slug)).partner_id, name, enabled=enabled)
    return f"{name} is {'on' if enabled else 'off'} for {slug}."


async def _set_networks(conn: Connection, partner: PartnerRow, networks: Collection[str]) -> str:
    await credentials.set_allowed_networks(conn, partner.partner_id, networks)
    return f"{partner.slug} calls from {', '.join(sorted(networks)) or 'anywhere'}."


async def _user(conn: Connection, username: str) -> PartnerUser:
    user = await store.find_partner_user(conn, username)
    if user is None:
        raise CliError(f"There is no user {username!r} who may log in.", "See `billfold partner add-user`.")
    return user


async def _partner(conn: Connection, slug: str) -> PartnerRow:
    partner = await store.find_partner(conn, slug)
    if partner is None:
        raise CliError(f"There is no partner {slug!r}.", "See `billfold partner list`.")
    return partner
