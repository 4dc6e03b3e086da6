"""`billfold cash-back`: rules by which a partner's customers get back a share of their card payments."""

from collections.abc import Iterable
from typing import Annotated

import typer

from billfold.cli.command import CommandGroup, Row
from billfold.cli.context import CliError
from billfold.identity.partners import store as partner_store
from billfold.identity.partners.rules import PartnerRow
from billfold.ledger.bank import Bank
from billfold.payments.cards.cash_back import store
from billfold.payments.cards.cash_back.worker import set_rule
from billfold.platform.database.connection import Connection, Db
from billfold.platform.errors import InvalidInput
from billfold.platform.money import format_usd

group = CommandGroup("cash-back", "Set a partner's rule of cash back, and list what was given.", example="rules acme")

Slug = Annotated[str, typer.Argument(help="The first label of the partner's host name.")]


@group.command("set acme --basis-points 150 --exclude 5411 --cap 5000 --from 2025-07")
async def set_partner_rule(
    bank: Bank,
    slug: Slug,
    basis_points: Annotated[int, typer.Option(help="The share of purchases: 150 is 1.5 %. 0 ends it.")],
    exclude: Annotated[list[str] | None, typer.Option(help="A merchant category that does not count.")] = None,
    cap: Annotated[int | None, typer.Option(help="The most per card and month, in cents.")] = None,
    from_month: Annotated[str | None, typer.Option("--from", help="The first month; this one if omitted.")] = None,
) -> str:
    """Set a partner's rule from a month on. Past months keep theirs."""
    partner = await _partner(bank.pool, slug)
    try:
        rule = await set_rule(
            bank, partner, basis_points=basis_points, excluded_categories=exclude or (), cap=cap, from_month=from_month
        )
    except InvalidInput as invalid:
        raise CliError(f"The rule is not valid: {invalid.detail}", "See `billfold cash-back set --help`.") from None
    return f"Rule {rule.version} of {slug} gives {basis_points} basis points from {rule.from_month} on."


@group.table(
    "rules acme", columns=("version", "from", "basis points>", "excluded", "cap>", "set"), empty="No rules are set."
)
async def rules(conn: Connection, slug: Slug) -> Iterable[Row]:
    """List the rules of a partner. If several start in the same month, the last one counts."""
    found = await store.list_rules(conn, (await _partner(conn, slug)).partner_id)
    return [
        (
            each.version,
            each.from_month,
            each.basis_points,
            " ".join(each.excluded_categories) or None,
            None if each.cap is None else format_usd(each.cap),
            each.created_at,
        )
        for each in found
    ]


@group.table(
    "given 2025-06",
    columns=("card", "purchases>", "refunds>", "carried in>", "cash back>", "Pocket"),
    empty="No card has cash back for this month.",
)
async def given(bank: Bank, period: Annotated[str, typer.Argument(help="A month as YYYY-MM.")]) -> Iterable[Row]:
    """List the cash back of a month. A row without a Pocket was not credited."""
    return [
        (
            each.card_id,
            format_usd(each.purchases),
            format_usd(each.refunds),
            format_usd(each.carried_in),
            format_usd(each.amount),
            each.pocket_id,
        )
        for each in await store.list_given(bank.pool, period)
    ]


async def _partner(conn: Db, slug: str) -> PartnerRow:
    partner = await partner_store.find_partner(conn, slug)
    if partner is None:
        raise CliError(f"There is no partner {slug!r}.", "See `billfold partner list`.")
    return partner
