"""`billfold events`: the whole event log as lines of JSON, or as files in a folder."""

import asyncio
import fcntl
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from asyncpg import Record

from billfold.cli.command import CommandGroup, print_success
from billfold.cli.context import CliError
from billfold.events.parquet import write_parquet
from billfold.events.sequencer import sequence_events
from billfold.ledger.bank import Bank
from billfold.platform.clock import wall_now
from billfold.platform.durable_files import make_durable

group = CommandGroup("events", "Export the event log.", example="export > events.ndjson")

_AT_ONCE = 2_000
_PER_FILE = 50_000
"""Events in a file, all of which are in memory: about 50 MB."""
_AFTER = """
SELECT t.global_sequence, t.partner_id, t.partner_sequence, t.customer_id, t.customer_sequence, t.event_no,
       t.event_id, t.kind, t.raised_at, e.payload
  FROM event_sequence t JOIN event e USING (customer_id, event_no)
 WHERE t.global_sequence > $1 ORDER BY t.global_sequence LIMIT $2
"""
_HAS_EVENT = "SELECT EXISTS (SELECT 1 FROM event_sequence WHERE global_sequence = $1)"
Write = Callable[[Path, Sequence[Record]], None]


@group.view("export --after 0 > events.ndjson")
async def export(
    bank: Bank,
    *,
    after: Annotated[int, typer.Option(min=0, help="Only those after this global_sequence.")] = 0,
    parquet: Annotated[
        Path | None, typer.Option(file_okay=False, exists=True, help="Write Parquet files into this folder instead.")
    ] = None,
    ndjson: Annotated[
        Path | None, typer.Option(file_okay=False, exists=True, help="Write files of lines into this folder instead.")
    ] = None,
) -> None:
    """Print every event as a line of JSON, in the order of its global sequence.

    `partner_sequence` and `customer_sequence` are those of the APIs, null if an API does not show the event.
    To continue later, pass the last `global_sequence`. A folder is continued after the last event in its files.
    """
    await sequence_events(bank.pool, now=wall_now())
    if parquet is not None:
        if find_spec("arro3") is None:
            raise CliError("The extra for Parquet is not installed.", "Install billfold[parquet].")
        await _export_files(bank, parquet, "parquet", write_parquet, after=after)
    if ndjson is not None:
        await _export_files(bank, ndjson, "ndjson", _write_lines, after=after)
    if parquet is not None or ndjson is not None:
        return
    while rows := await bank.pool.fetch(_AFTER, after, _AT_ONCE):
        sys.stdout.buffer.writelines(map(_line_of, rows))
        after = rows[-1]["global_sequence"]


def _line_of(row: Record) -> bytes:
    return msgspec.json.encode({**row, "payload": msgspec.Raw(row["payload"].encode())}) + b"\n"


def _write_lines(path: Path, rows: Sequence[Record]) -> None:
    with path.open("wb") as file:
        file.writelines(map(_line_of, rows))


async def _export_files(bank: Bank, folder: Path, suffix: str, write: Write, *, after: int) -> None:
    """Write the events that no file of the folder has, each file whole or not at all.

    Raises CliError if the files cannot be continued without a gap or a double.
    """
    with _locked(folder):
        last = _last_in(folder, suffix)
        if last and after > last:
            raise CliError(f"The files end with event {last}: a gap would follow.", "Leave out --after.")
        if last and not await bank.pool.fetchval(_HAS_EVENT, last):
            raise CliError(
                f"Event {last} of the files is not in this bank, which is another or was restored.",
                "Export into an empty folder.",
            )
        after = max(after, last)
        while rows := await bank.pool.fetch(_AFTER, after, _PER_FILE):
            first, after = rows[0]["global_sequence"], rows[-1]["global_sequence"]
            path = folder / f"events-{first:012}-{after:012}.{suffix}"
            await asyncio.to_thread(_write_whole, path, rows, write)
            print_success(f"{path}: {len(rows)} events")


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep other exports from the folder, and remove what a killed one left. Raises CliError."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CliError(f"Another export writes into {folder}.", "Wait until it has ended.") from None
        for each in folder.glob("events-*.part"):
            each.unlink()
        yield
    finally:
        os.close(descriptor)


def _last_in(folder: Path, suffix: str) -> int:
    """Return the sequence of the last event in the files, or 0. Raises CliError if two have the same events."""
    names = (re.fullmatch(rf"events-(\d+)-(\d+)\.{suffix}", each.name) for each in folder.iterdir())
    last = 0
    for name in sorted(filter(None, names), key=lambda each: int(each[1])):
        if int(name[1]) <= last:
            raise CliError(f"{name[0]} has events of the file before it.", "Export into an empty folder.")
        last = int(name[2])
    return last


def _write_whole(path: Path, rows: Sequence[Record], write: Write) -> None:
    """Write a file under another name, and give it its own when it is on the disk."""
    part = path.with_suffix(".part")
    write(part, rows)
    make_durable(part)
    part.replace(path)
    make_durable(path.parent)
