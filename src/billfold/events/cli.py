"""`billfold events`: the whole event log as lines of JSON, or as Parquet files."""

import asyncio
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from billfold.cli.command import CommandGroup, print_success
from billfold.cli.context import CliError
from billfold.events.parquet import write_events
from billfold.events.sequencer import sequence_events
from billfold.ledger.bank import Bank
from billfold.platform.clock import wall_now

group = CommandGroup("events", "Export the event log.", example="export > events.ndjson")

_AT_ONCE = 2_000
_PER_FILE = 50_000
"""Events in a Parquet file, all of which are in memory: about 50 MB."""
_AFTER = """
SELECT t.global_sequence, t.partner_id, t.partner_sequence, t.customer_id, t.customer_sequence, t.event_no,
       t.event_id, t.kind, t.raised_at, e.payload
  FROM event_sequence t JOIN event e USING (customer_id, event_no)
 WHERE t.global_sequence > $1 ORDER BY t.global_sequence LIMIT $2
"""


@group.view("export --after 0 > events.ndjson")
async def export(
    bank: Bank,
    *,
    after: Annotated[int, typer.Option(min=0, help="Only those after this global_sequence.")] = 0,
    parquet: Annotated[
        Path | None, typer.Option(file_okay=False, exists=True, help="Write Parquet files into this folder instead.")
    ] = None,
) -> None:
    """Print every event as a line of JSON, in the order of its global sequence.

    `partner_sequence` and `customer_sequence` are those of the APIs, null if an API does not show the event.
    To continue later, pass the last `global_sequence`, which is in the name of the last Parquet file.
    """
    await sequence_events(bank.pool, now=wall_now())
    if parquet is not None:
        await _export_files(bank, parquet, after=after)
        return
    while rows := await bank.pool.fetch(_AFTER, after, _AT_ONCE):
        for row in rows:
            shown = {**row, "payload": msgspec.Raw(row["payload"].encode())}
            sys.stdout.buffer.write(msgspec.json.encode(shown) + b"\n")
        after = rows[-1]["global_sequence"]


async def _export_files(bank: Bank, folder: Path, *, after: int) -> None:
    if find_spec("arro3") is None:
        raise CliError("The extra for Parquet is not installed.", "Install billfold[parquet].")
    while rows := await bank.pool.fetch(_AFTER, after, _PER_FILE):
        print_success(f"{await asyncio.to_thread(write_events, folder, rows)}: {len(rows)} events")
        after = rows[-1]["global_sequence"]
