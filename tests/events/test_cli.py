"""The export of the event log."""

import json

import duckdb

from billfold.events import cli
from billfold.platform.dates import parse_instant

READ = "SELECT * REPLACE (epoch_us(raised_at) AS raised_at) FROM '{}/*.parquet' ORDER BY global_sequence"
NUMBERS = {"global_sequence", "partner_sequence", "customer_sequence", "event_no", "raised_at"}


def lines(printed):
    """Return the events among what was printed."""
    return [json.loads(line) for line in printed.out.splitlines() if line.startswith(b"{")]


def read_files(folder):
    """Return the events in Parquet files, as a reader that nobody here wrote reads them."""
    read = duckdb.sql(READ.format(folder))
    assert read is not None
    kinds = dict(zip(read.columns, map(str, read.types), strict=True))
    assert kinds == {name: "BIGINT" if name in NUMBERS else "VARCHAR" for name in kinds}
    rows = [dict(zip(read.columns, row, strict=True)) for row in read.fetchall()]
    return [{**row, "payload": json.loads(row["payload"])} for row in rows]


async def test_the_export_has_every_event_once_and_continues_after_a_sequence(
    world, capsysbinary, tmp_path, monkeypatch
):
    pocket, other = await world.funded(1_000_00), await world.funded(1_000_00)
    await cli.export(world.bank, after=0)
    events = lines(capsysbinary.readouterr())
    assert len(events) == await world.bank.pool.fetchval("SELECT count(*) FROM event")
    assert [each["partner_sequence"] for each in events] == [1, 2, 3, 4, 5, 6]
    paid = [each for each in events if each["kind"] == "transfers.wire.in.success"]
    assert sorted(each["payload"]["service_account_id"] for each in paid) == sorted([pocket.id, other.id])
    await cli.export(world.bank, after=events[0]["global_sequence"])
    assert lines(capsysbinary.readouterr()) == events[1:]
    monkeypatch.setattr(cli, "_PER_FILE", 4)
    for _ in range(2):  # a file is replaced by the same one
        await cli.export(world.bank, after=0, parquet=tmp_path)
    instants = [round(parse_instant(each["raised_at"]).timestamp() * 1e6) for each in events]
    assert read_files(tmp_path) == [{**each, "raised_at": at} for each, at in zip(events, instants, strict=True)]
    assert len([*tmp_path.iterdir()]) == 2
