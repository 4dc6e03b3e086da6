"""`billfold keys`: the data keys of customers, and the change of the master key that wraps them."""

from collections.abc import Iterable

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from billfold.cli.command import CommandGroup, Row, console, print_line
from billfold.cli.context import CliError
from billfold.data_keys import store
from billfold.data_keys.keys import DataKeys
from billfold.data_keys.rotation import RotationProgress, rotation
from billfold.ledger.bank import Bank
from billfold.wiring.cli_context import Wiring

_SHOWN = 5

group = CommandGroup(
    "keys", "The keys of customers' personal data, and the master key that wraps them.", example="status"
)


@group.table(
    "status",
    columns=("master key", "in use now", "data keys>", "destroyed>", "since"),
    empty="There are no data keys yet.",
)
async def status(bank: Bank) -> Iterable[Row]:
    """Show how many data keys each master key wraps, and how many were destroyed."""
    current = bank.ports[DataKeys].master.name
    return [
        (
            row.master_key,
            "yes" if row.master_key == current else "no",
            row.in_use,
            row.shredded,
            f"{row.since:%Y-%m-%d}",
        )
        for row in await store.list_by_master_key(bank.pool)
    ]


@group.command("rotate")
async def rotate(bank: Bank, context: Wiring) -> str:
    """Wrap all data keys with the current master key. Servers and workers must know it already.

    Personal data of customers is not touched; contact details of users, and the secrets of partners, subscriptions,
    authenticators and ID tokens, are sealed with the current encryption key.
    Can be stopped and resumed.
    """
    progress = RotationProgress(0, (), 0)
    columns = (TextColumn("Wrapping data keys"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    async with rotation(bank.pool, bank.ports[DataKeys].master) as steps:
        if steps is None:
            raise CliError(
                "Another process is rotating the data keys.", "Wait until it is done: `billfold keys status`."
            )
        with Progress(*columns, console=console, transient=True) as bar:
            task = bar.add_task("", total=None)
            async for progress in steps:
                bar.update(task, total=progress.total, completed=progress.done + len(progress.damaged))
    if progress.damaged:
        named = ", ".join(map(str, progress.damaged[:_SHOWN]))
        raise CliError(
            f"{len(progress.damaged)} data keys do not unwrap: {named}. {progress.done} are rewrapped.",
            "Add their master key to the settings, or restore the table `data_key` from a backup.",
        )
    secrets = await context.reseal_secrets(bank, print_line)
    return (
        f"{progress.done} data keys are wrapped by {bank.ports[DataKeys].master.name};"
        f" {secrets} secrets are resealed with the current encryption key."
    )
