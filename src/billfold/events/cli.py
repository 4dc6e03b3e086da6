"""`billfold events`: the whole event log as lines of JSON."""

import sys
from typing import Annotated

import msgspec
import typer

from billfold.cli.command import CommandGroup
from billfold.events.sequencer import sequence_events
from billfold.ledger.bank import Bank
from billfold.platform.clock import wall_now

group = CommandGroup("events", "Export the event log.", example="export > events.ndjson")

_AT_ONCE = 2_000
_AFTER = """
SELECT t.global_sequence, t.partner_id, t.partner_sequence, t.customer_id, t.customer_sequence, t.event_no,
       t.event_id, t.kind, t.raised_at, e.payload
  FROM event_sequence t JOIN event e USING (customer_id, event_no)
 WHERE t.global_sequence > $1 ORDER BY t.global_sequence LIMIT $2
"""


@group.view("export --after 0 > events.ndjson")
async def export(
    bank: Bank, *, after: Annotated[int, typer.Option(min=0, help="Only those after this global_sequence.")] = 0
) -> None:
    """Print every event as a line of JSON, in the order of its global sequence.

    `partner_sequence` and `customer_sequence` are those of the APIs, null if an API does not show the event.
    To continue later, pass the last `global_sequence`.
    """
    await sequence_events(bank.pool, now=wall_now())
    while rows := await bank.pool.fetch(_AFTER, after, _AT_ONCE):
        for row in rows:
            shown = {**row, "payload": msgspec.Raw(row["payload"].encode())}
            sys.stdout.buffer.write(msgspec.json.encode(shown) + b"\n")
        after = rows[-1]["global_sequence"]
