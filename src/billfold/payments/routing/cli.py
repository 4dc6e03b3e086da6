"""`billfold routing`: the directories of routing numbers."""

from pathlib import Path
from typing import Annotated

import typer

from billfold.audit.record import audited
from billfold.cli.command import CommandGroup
from billfold.cli.context import CliError
from billfold.ledger.bank import Bank
from billfold.ledger.types import Origin
from billfold.payments.routing.directory import InvalidDirectory, read_directory
from billfold.payments.routing.store import replace_directory

_NAMED_MAX = 5
"""Odd lines that are named."""
group = CommandGroup("routing", "The directories of routing numbers.", example="import FedACHdir.txt")


@group.command("import FedACHdir.txt", "import fpddir.txt")
async def import_directory(
    bank: Bank,
    file: Annotated[Path, typer.Argument(help="A directory of FedACH or of Fedwire, as the Federal Reserve makes it.")],
) -> str:
    """Import a directory; it replaces the one before of its rail. Lines that cannot be read are skipped and named."""
    try:
        with file.open(encoding="latin-1", newline="\n") as lines:
            entries, odd = read_directory(lines)
    except (OSError, InvalidDirectory) as wrong:
        raise CliError(f"{file}: {wrong}.", "The directory before stays. Download the file again.") from None
    rail = entries[0].rail
    async with audited(
        bank,
        bank.own_id,
        Origin.operator(),
        "routing_directory.imported",
        resource_id=rail,
        details={"entries": len(entries), "odd": odd[:_NAMED_MAX]},
    ) as action:
        await replace_directory(action.conn, entries)
    skipped = f" Skipped {len(odd):,}: {'; '.join(odd[:_NAMED_MAX])}." if odd else ""
    return f"{len(entries):,} routing numbers of {rail} are in the directory.{skipped}"
