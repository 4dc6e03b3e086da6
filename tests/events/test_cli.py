"""The export of the event log."""

import json

import duckdb
import pytest

from billfold.cli.context import CliError
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
    await check_folders(world, events, tmp_path, monkeypatch)


async def check_folders(world, events, folder, monkeypatch):
    """Check that exports into a folder continue it: no event twice or left out, no half file, one export at a time."""
    bank = world.bank
    monkeypatch.setattr(cli, "_PER_FILE", 4)
    await cli.export(bank, parquet=folder, ndjson=folder)
    await world.wire(await world.pocket(), 100_00)
    killed = folder / "events-000000000007-000000000099.part"
    killed.write_bytes(b"half of a file")
    with monkeypatch.context() as patched, pytest.raises(OSError, match="full"):
        patched.setattr(cli, "write_parquet", fails_halfway)
        await cli.export(bank, parquet=folder)
    for _ in range(2):  # the second finds nothing to add
        await cli.export(bank, parquet=folder, ndjson=folder)
    added = [each["global_sequence"] for each in read_files(folder)][len(events) :]
    assert added == await bank.pool.fetchval(
        "SELECT array_agg(global_sequence ORDER BY 1) FROM event_sequence WHERE global_sequence > $1",
        events[-1]["global_sequence"],
    )
    in_lines = [json.loads(line) for each in sorted(folder.glob("*.ndjson")) for line in each.read_text().splitlines()]
    assert in_lines[: len(events)] == events
    instants = [round(parse_instant(each["raised_at"]).timestamp() * 1e6) for each in in_lines]
    assert read_files(folder) == [{**each, "raised_at": at} for each, at in zip(in_lines, instants, strict=True)]
    assert not killed.exists()
    with pytest.raises(CliError, match="gap"):
        await cli.export(bank, parquet=folder, after=added[-1] + 1)
    with cli._locked(folder), pytest.raises(CliError, match="Another export"):
        await cli.export(bank, parquet=folder)
    for name, why in (("events-000000999998-000000999999.parquet", "restored"), ("events-1-5.parquet", "file before")):
        (folder / name).touch()
        with pytest.raises(CliError, match=why):
            await cli.export(bank, parquet=folder)
        (folder / name).unlink()


def fails_halfway(path, rows):
    """Write some of a file, and fail as on a full disk."""
    path.write_bytes(b"half" * len(rows))
    raise OSError("full")
