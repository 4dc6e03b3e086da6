"""`billfold agreements`: versions of the agreements, and their acceptances by customers."""

import asyncio
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import Annotated
from uuid import UUID

import typer

from billfold.cli.command import EXAMPLE_ID, CommandGroup, DayOption, Row
from billfold.cli.context import CliError
from billfold.ledger.bank import Bank
from billfold.ledger.directory import find_customer
from billfold.ledger.types import Origin
from billfold.onboarding.agreements import store
from billfold.onboarding.agreements.publishing import Publisher, Release, publish
from billfold.onboarding.agreements.store import REFRESH_SECONDS
from billfold.onboarding.agreements.texts import InvalidAgreements, read_texts, to_toml
from billfold.platform.clock import wall_now
from billfold.platform.dates import et_date
from billfold.platform.errors import NotFound

group = CommandGroup("agreements", "Publish a version of the agreements, and see who accepted which.", example="list")


@group.table("list", columns=("version", "required by", "published", "state"))
async def list_versions(bank: Bank) -> Iterable[Row]:
    """List all versions, latest first."""
    today = et_date(await bank.now())
    current = bank.terms.agreements.in_force(today)
    found = await store.list_versions(bank.pool)
    return [(each.version, each.required_by, each.published_at, _state(each.version, current)) for each in found]


@group.view("show 2025-06-01 > agreements.toml")
async def show(bank: Bank, version: Annotated[str, typer.Argument(help="The version, from the list.")]) -> None:
    """Print the texts of a version, as a file that can be edited and published."""
    try:
        documents = await store.list_documents(bank.pool, version)
    except NotFound:
        raise CliError(f"There are no agreements of {version}.", "See the list.") from None
    typer.echo(to_toml(documents), nl=False)


@group.command("publish agreements.toml --release-date 2025-09-01 --required-by 2025-10-01")
async def publish_file(
    bank: Bank,
    file: Annotated[Path, typer.Argument(help="All texts, as `show` prints them.")],
    *,
    release_date: Annotated[date, DayOption(help="The date from which it is in force, and its name.")],
    required_by: Annotated[
        date | None, DayOption(help="The date from which payments require its acceptance. Never if omitted.")
    ] = None,
    fonts: Annotated[
        Path | None, typer.Option(help="A folder of fonts, for letters that the product's own do not have.")
    ] = None,
) -> str:
    """Publish a version later than all others. It stays readable forever and cannot be changed."""
    try:
        release = Release(read_texts(file.read_bytes()), release_date, required_by, fonts=(fonts,) if fonts else ())
        by = Publisher(bank.own_id, bank.settings.bank_name, bank.vault, Origin.operator())
        today = et_date(await bank.now())
        async with bank.pool.acquire() as conn:
            await publish(conn, by, release, today=today, now=wall_now())
    except OSError as error:
        raise CliError(f"{file} cannot be read: {error.strerror}.", "Name a file that can.") from None
    except InvalidAgreements as wrong:
        raise CliError(f"{file} {wrong}.", "Nothing was published. Correct the file or the dates.") from None
    if release.released_on == today:
        await asyncio.sleep(2 * REFRESH_SECONDS)  # by then every process knows it
    required = f" Without it, customers can make no payments from {release.required_by} on." if required_by else ""
    return f"The agreements of {release.version} are published, and in force from that day on.{required}"


@group.table(
    f"acceptances {EXAMPLE_ID}",
    columns=("version", "accepted", "by", "id", "address", "user agent"),
    empty="It accepted no agreements.",
)
async def acceptances(
    bank: Bank, customer: Annotated[UUID, typer.Argument(help="The customer's id.")]
) -> Iterable[Row]:
    """List the versions that a customer accepted, when, by whom and from where; latest first."""
    if await find_customer(bank.pool, customer) is None:
        raise CliError(f"There is no customer {customer}.", "Find its id in the API.")
    return [tuple(row) for row in await store.list_acceptances(bank.pool, customer)]


def _state(version: str, current: str | None) -> str:
    if version == current:
        return "in force"
    return "to come" if version > (current or "") else "replaced"
