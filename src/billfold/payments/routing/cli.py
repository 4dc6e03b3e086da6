"""`billfold routing`: the directories of routing numbers."""

from pathlib import Path
from typing import Annotated

import typer

from billfold.cli.command import CommandGroup
from billfold.cli.context import CliError
from billfold.payments.routing.directory import InvalidDirectory, read_directory
from billfold.payments.routing.store import replace_directory
from billfold.platform.database.connection import Connection

group = CommandGroup("routing", "The directories of routing numbers.", example="import FedACHdir.txt")


@group.command("import FedACHdir.txt", "import fpddir.txt")
async def import_directory(
    conn: Connection,
    file: Annotated[Path, typer.Argument(help="A directory of FedACH or of Fedwire, as the Federal Reserve makes it.")],
) -> str:
    """Import a directory; it replaces the one before of its rail."""
    try:
        with file.open(encoding="latin-1", newline="\n") as lines:
            entries = read_directory(lines)
    except (OSError, InvalidDirectory) as wrong:
        raise CliError(f"{file}: {wrong}.", "The directory before stays. Download the file again.") from None
    await replace_directory(conn, entries)
    return f"{len(entries):,} routing numbers of {entries[0].rail} are in the directory."
